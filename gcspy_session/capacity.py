"""How much more a lossless client can take (SPEC.md 8.6)."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Capacity"]


@dataclass(frozen=True, slots=True)
class Capacity:
    """What one lossless client can take.

    Attributes:
        events: So many more; 0: its queue is full.
        size_bytes: So many more, but for the last event, which may be larger; 0: its queue is full.
        deadline_nanos: How long it is waited for at one event.
    """

    events: int
    size_bytes: int
    deadline_nanos: int
