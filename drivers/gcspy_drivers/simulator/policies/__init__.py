"""Policies: the behaviour of parts of a heap, shared by collectors, such as `bump`, `freelist`, `marking`, `cards`."""
