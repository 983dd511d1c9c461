"""Benchmarks of native heaps."""
