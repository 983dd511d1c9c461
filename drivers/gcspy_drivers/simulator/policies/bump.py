"""Allocation in one direction: a space whose threads take buffers from its top, and objects from their buffers.

A thread's buffer (TLAB) is a free cell that shrinks from below, so the space can be walked at any
time. The rest of a buffer is lost when the thread takes its next one, until the space is emptied:
that is the price of threads that do not wait for each other. An object larger than a buffer is
taken from the top itself.

Knows the heap. Knows no collector: who empties or copies the space calls `reset`.
"""

from __future__ import annotations

import numpy as np

from gcspy_drivers.simulator.heap import WORD_BYTES, Heap, bump, free_cell
from gcspy_drivers.simulator.loops import Words

__all__ = ["BumpSpace"]


class BumpSpace:
    """A range that is filled from its start.

    Args:
        start: First word.
        end: Behind the last.
        buffer_bytes: Size of a thread's buffer; 0: threads share the top, and nothing is lost.

    Attributes:
        start, end: As given.
        top: Behind the last word in use.
    """

    def __init__(
        self, heap: Heap, start: int, end: int, *, threads: int = 1, buffer_bytes: int = 0
    ) -> None:
        self._heap = heap
        self.start, self.end = start, end
        # The same array is the buffer of threads without one: its first element is the top of the
        # space.
        self._room: Words = np.array([start, start], dtype=np.int64)
        self._buffers: list[Words] = [np.zeros(2, dtype=np.int64) for _ in range(threads)]
        self._buffer_words = heap.aligned(buffer_bytes // WORD_BYTES)

    @property
    def top(self) -> int:
        """Behind the last word that was given to a thread or an object."""
        return int(self._room[0])

    @property
    def used_words(self) -> int:
        """Words that were given out and are not in a thread's present buffer."""
        return self.top - self.start - sum(int(buffer[1] - buffer[0]) for buffer in self._buffers)

    @property
    def free_words(self) -> int:
        """Words above the top."""
        return self.end - self.top

    def allocate(self, thread: int, size: int, status: int, identity: int) -> int:
        """Make an object from the thread's buffer, from a new one, or from the top; return 0 if there is no room."""
        words = self._heap.words
        cell = bump(words, self._buffers[thread], status, identity)
        if cell:
            return cell
        if size < self._buffer_words and self._refill(thread, size):
            return bump(words, self._buffers[thread], status, identity)
        self._room[1] = self._room[0] + size
        return bump(words, self._room, status, identity) if self._room[1] <= self.end else 0

    def take(self, size: int) -> int:
        """Take words from the top without making an object of them, as a copying collector does; return 0 if there is no room."""
        cell = self.top
        if cell + size > self.end:
            return 0
        self._room[0] = cell + size
        return cell

    def reset(self, top: int | None = None) -> None:
        """Let the space be empty, or full up to `top`; threads have no buffers then."""
        self._room[0] = self.start if top is None else top
        self.retire()

    def retire(self) -> None:
        """Take the threads' buffers away: the rest of each stays a free cell."""
        for buffer in self._buffers:
            buffer[:] = 0

    def _refill(self, thread: int, size: int) -> bool:
        """Give a thread a new buffer, a smaller one when the space is almost full."""
        granted = min(self._buffer_words, self.free_words)
        if granted < size:
            return False
        cell = self.take(granted)
        free_cell(self._heap.words, cell, granted)
        self._buffers[thread][:] = cell, cell + granted
        return True
