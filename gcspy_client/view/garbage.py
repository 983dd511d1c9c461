"""Collects Python's cyclic garbage in the thread of the windows, and in no other.

The collector runs in the thread that allocates when a collection is due, which may be one that reads a recording. Closed windows and
dialogs are often such garbage, since their parts refer to each other; the bindings then destroy their Qt objects in that thread. Qt
forbids this, and the process crashes now and then. So the automatic collection is switched off, and a timer collects.

Source: Qt, "Threads and QObjects"; CPython Modules/gcmodule.c, gc_collect_generations.
"""

from __future__ import annotations

import gc
import time
from typing import Final

from PySide6.QtCore import QObject, QTimer

__all__ = ["GarbageTimer"]

_LOOK_MILLIS: Final = 100
_OLDEST: Final = 2
_REST: Final = 50
"""The oldest generation is collected again after this many times the duration of its last collection: at most 2 % of the time."""


_TIMERS: Final[list[None]] = []
"""One for each timer that exists."""


def _ended() -> None:
    """Switch the collector on again when the last timer has ended."""
    _TIMERS.pop()
    if not _TIMERS:
        gc.unfreeze()
        gc.enable()


class GarbageTimer(QObject):
    """Collects what is due, as the collector would, as long as it exists; made in the thread of the windows.

    Args:
        parent: With whose end it ends.
    """

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._rests_until = 0.0
        if not _TIMERS:
            # Modules and classes live as long as the process: to look through them again took most of the time.
            gc.freeze()
        _TIMERS.append(None)
        gc.disable()
        self.destroyed.connect(_ended)
        timer = QTimer(self)
        timer.timeout.connect(self._look)
        timer.start(_LOOK_MILLIS)

    def _look(self) -> None:
        due = [
            count > most > 0 for count, most in zip(gc.get_count(), gc.get_threshold(), strict=True)
        ]
        now = time.monotonic()
        if due[_OLDEST] and now >= self._rests_until:
            gc.collect()
            after = time.monotonic()
            self._rests_until = after + _REST * (after - now)
        elif due[1]:
            gc.collect(1)
        elif due[0]:
            gc.collect(0)
