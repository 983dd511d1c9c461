"""Free capacity of a lossless client (SPEC.md 8.6)."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Capacity"]


@dataclass(frozen=True, slots=True)
class Capacity:
    """Free capacity of one lossless client.

    Attributes:
        events: Number of further events; 0: its queue is full.
        size_bytes: Number of further bytes, except for the last event, which may be larger; 0: its
            queue is full.
        deadline_nanos: Maximum wait for it at one event.
    """

    events: int
    size_bytes: int
    deadline_nanos: int
