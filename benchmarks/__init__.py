"""Benchmarks: each number of the design's budget table, measured on real processes.

``python -m benchmarks`` runs them all; each module also runs alone. They print a
figure beside its budget and judge nothing: tests have no timed assertions.
"""
