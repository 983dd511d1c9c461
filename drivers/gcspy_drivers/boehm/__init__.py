"""The driver for the Boehm collector (libgc), in any process that has it."""
