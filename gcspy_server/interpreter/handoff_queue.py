"""The one hand-over between the driver's thread and the trio thread.

    driver's thread            handoff_queue                    trio thread
    finish() ── Snapshot ──▶ ┌────────┐
    hold()  ── StateChange ─▶ │ in one │ ── take() ──▶ every client's queue
    publish ─ SchemaChange ─▶ │  order │
    worker ─── Keyframe ────▶ └────────┘

Everything that goes through is finished and never changed again, so nothing is
copied and nothing is locked on the way: a deque's `append` and `popleft` are
atomic. The order in the handoff_queue is the order in which every client is told.
Knows no clients; does not know what it carries.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["HandoffQueue"]

Item = TypeVar("Item")


class HandoffQueue(Generic[Item]):
    """A queue from any thread to one, which is woken by a function that is safe to call from any."""

    def __init__(self) -> None:
        self._items: deque[Item] = deque()
        self._wake: Callable[[], None] | None = None

    def __len__(self) -> int:
        return len(self._items)

    def open(self, wake: Callable[[], None]) -> None:
        """From now on somebody takes; `wake` tells that thread that there is something."""
        self._items.clear()
        self._wake = wake

    def close(self) -> None:
        """Nobody takes any more: what is posted is forgotten."""
        self._wake = None
        self._items.clear()

    def post(self, item: Item) -> None:
        """Hand something over, from any thread."""
        wake = self._wake
        if wake is not None:
            self._items.append(item)
            wake()

    def take(self) -> list[Item]:
        """Everything that was posted, in order; in the taking thread only."""
        taken = []
        while self._items:
            taken.append(self._items.popleft())
        return taken
