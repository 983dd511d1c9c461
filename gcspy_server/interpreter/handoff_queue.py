"""The one queue from the driver's thread to the trio thread.

    driver's thread            handoff_queue                    trio thread
    finish() ── Snapshot ──▶ ┌────────┐
    hold()  ── StateChange ─▶ │ in one │ ── take() ──▶ every client's queue
    publish ─ SchemaChange ─▶ │  order │
    worker ─── Keyframe ────▶ └────────┘

Every entry is complete and never changes again, so nothing is copied and nothing is locked: a
deque's `append` and `popleft` are atomic. The order in the handoff_queue is the order of messages
for every client. Does not know clients, or the content of its entries.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["HandoffQueue"]

Item = TypeVar("Item")


class HandoffQueue(Generic[Item]):
    """A queue from any thread to one. A function that is safe to call from any thread wakes that one."""

    def __init__(self) -> None:
        self._items: deque[Item] = deque()
        self._wake: Callable[[], None] | None = None

    def __len__(self) -> int:
        return len(self._items)

    def open(self, wake: Callable[[], None]) -> None:
        """Start: a thread takes entries from now on; `wake` notifies it."""
        self._items.clear()
        self._wake = wake

    def close(self) -> None:
        """Stop: later entries are dropped."""
        self._wake = None
        self._items.clear()

    def post(self, item: Item) -> None:
        """Post an entry, from any thread."""
        wake = self._wake
        if wake is not None:
            self._items.append(item)
            wake()

    def take(self) -> list[Item]:
        """All posted entries, in order; in the taking thread only."""
        taken = []
        while self._items:
            taken.append(self._items.popleft())
        return taken
