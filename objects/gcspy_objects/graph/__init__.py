"""Graphs of references: who holds what, how much is freed with whom, and by which way a root reaches an object.

Knows arrays of nodes and edges; knows no target, no object's layout and no window.
"""
