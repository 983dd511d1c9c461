"""ELF files: as a process has them mapped, their exported symbols, and the symbols of their sections."""
