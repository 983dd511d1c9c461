"""A session of ours as a server of the original would send it; `session` is the way in."""

from gcspy_original.outgoing.session import OutgoingSession

__all__ = ["OutgoingSession"]
