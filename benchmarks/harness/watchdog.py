"""Watches how long the thread of a window keeps its user waiting, and where it was when it did.

A separate thread sends the window's loop a message, waits for the answer, and sends the next: each
slow answer is a time in which no key, no mouse and no paint was served. Half way through the limit
the thread records the stack of the window's thread: it shows what the loop was doing.

Not in the product: benchmarks and tests use it. It costs the window some 2 % of a core.

Knows a Qt loop; does not know windows.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from dataclasses import dataclass
from types import TracebackType

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Qt, Signal, Slot

__all__ = ["HELD_SECS", "Block", "Watchdog"]

HELD_SECS = 0.05
"""Nothing may keep a user waiting longer (issue 4)."""

_BETWEEN_SECS = 0.004
_FRAMES = 12


@dataclass(frozen=True, slots=True)
class Block:
    """A time in which the loop served no message.

    Attributes:
        secs: How long, by the clock.
        used_secs: Processor time that the window's own thread used in it: the rest it waited, for the interpreter's lock, or because
            the machine had other work.
        stack: Where it was, the innermost last; one line a frame.
    """

    secs: float
    used_secs: float
    stack: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{self.secs * 1e3:.0f} ms, {self.used_secs * 1e3:.0f} ms of them at work:\n    "
            + "\n    ".join(self.stack)
        )


class Watchdog(QObject):
    """Watches the loop of the thread that makes it, from `start` to `stop`.

    Args:
        held_secs: A longer wait is a block.
    """

    _sent = Signal()

    def __init__(self, held_secs: float = HELD_SECS) -> None:
        super().__init__()
        self._held = held_secs
        self._watched = threading.get_ident()
        self._clock = time.pthread_getcpuclockid(self._watched)
        self._answered = threading.Event()
        self._stopping = threading.Event()
        self._waits: list[float] = []
        self._blocks: list[Block] = []
        self._sent.connect(self._answer, Qt.ConnectionType.QueuedConnection)
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)

    def start(self) -> Watchdog:
        """Begin."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """End."""
        self._stopping.set()
        self._answered.set()
        self._thread.join()

    def __enter__(self) -> Watchdog:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def waits(self) -> NDArray[np.float64]:
        """Shape (messages,), seconds: how long each message waited; a copy."""
        return np.array(self._waits)

    @property
    def blocks(self) -> list[Block]:
        """The waits that exceeded the limit, with the stack of each."""
        return list(self._blocks)

    @Slot()
    def _answer(self) -> None:
        self._answered.set()

    def _run(self) -> None:
        while not self._stopping.wait(_BETWEEN_SECS):
            self._answered.clear()
            if (
                self._stopping.is_set()
            ):  # the cleared event may have been the end's: no answer follows
                return
            sent, used = time.monotonic(), time.clock_gettime(self._clock)
            self._sent.emit()
            stack: tuple[str, ...] = ()
            if not self._answered.wait(self._held / 2):
                stack = self._stack()
                self._answered.wait()
            if self._stopping.is_set():
                return
            waited = time.monotonic() - sent
            self._waits.append(waited)
            if waited > self._held:
                self._blocks.append(Block(waited, time.clock_gettime(self._clock) - used, stack))

    def _stack(self) -> tuple[str, ...]:
        frame = sys._current_frames().get(self._watched)
        frames = traceback.extract_stack(frame)[-_FRAMES:] if frame is not None else []
        return tuple(f"{one.filename}:{one.lineno} {one.name}" for one in frames)
