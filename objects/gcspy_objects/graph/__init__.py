"""Graphs of references: who holds which objects, how much would be freed with an object, and the shortest path from a root.

Knows arrays of nodes and edges; knows no target, no object's layout and no window.
"""
