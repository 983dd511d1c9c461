"""GCspy's own object traces (objects/FORMAT.md): written by programs, the simulator and `gcspy convert`, and read, also while they are written."""
