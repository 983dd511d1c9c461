"""The graph of references of a CPython process: every object that roots lead to, found in a copy of its memory.

Knows layouts, types and copies; `gcspy_objects.graph` answers questions about a graph.
"""
