"""GCspy: see the heap of a running process, live."""
