"""Python's cyclic garbage is collected in the thread of the windows, and in no other.

The collector runs in whichever thread allocates when it is due: in one that reads a recording as likely as not. A window that was
closed and a dialog that is over are often such garbage, since their parts refer to each other; the bindings destroy what belongs to
them at once, in that thread. Qt forbids it, and the process crashes now and then. So it is switched off, and a timer does its work.

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
"""The oldest generation is looked through again after this many times what it took: at most 2 % of the time."""


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
