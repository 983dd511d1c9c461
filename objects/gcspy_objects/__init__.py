"""Heaps rebuilt from traces that name every object: what was allocated where, what a collection moved, what died.

A format's reader makes records of a trace (`anttracks`); the heap is rebuilt from records and never sees a format; analyses read the heap.

Knows no sockets, windows, servers or drivers.
"""
