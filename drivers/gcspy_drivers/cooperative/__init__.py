"""Cooperating targets: the sidecar's end of the connection to a stub, which is the same for every runtime.

A stub reports an event and waits until it gets an answer, or until the sidecar has been silent for
too long.
"""
