"""The graph of references of a CPython process: every object that roots lead to, found in a copy of its memory.

Knows layouts, types and copies; what is asked of a graph is in `gcspy_objects.graph`.
"""
