"""Heaps rebuilt from traces of every object: where it was allocated, which collection moved it, when it died.

A format's reader makes records of a trace (`anttracks`); the heap is rebuilt from records and never sees a format; analyses read the heap.

Knows no sockets, windows, servers or drivers.
"""
