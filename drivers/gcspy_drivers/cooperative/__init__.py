"""Targets that cooperate: the sidecar's end of the connection to a stub, which is the same for every runtime.

A stub reports an event and stands still until it is answered, or until the sidecar has been silent for too long.
"""
