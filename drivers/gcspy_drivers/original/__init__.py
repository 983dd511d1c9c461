"""The driver of servers of GCspy 1.0 (2002), and of what they sent before: their spaces become spaces of a session.

`spaces` translates spaces and values, `stored_session` goes through a stored trace. What the wire
says comes from `gcspy_original`.
"""
