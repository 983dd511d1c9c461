"""What benchmarks share: figures, processes, timing."""
