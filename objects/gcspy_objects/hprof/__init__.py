"""Heap dumps in the format HPROF, as written by JVMs: all objects of one moment, their references, and the roots.

Knows the format and Java's names; does not know processes, or the origin of a dump.
"""
