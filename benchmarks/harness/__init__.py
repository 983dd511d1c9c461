"""Common parts of the benchmarks: figures, processes, timing."""
