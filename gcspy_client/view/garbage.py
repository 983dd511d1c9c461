"""Collects Python's cyclic garbage in the thread of the windows, in no other, and in turns of the loop that no user notices.

The collector runs in the thread that allocates when a collection is due, which may be one that reads a recording. Closed windows and
dialogs are often such garbage, since their parts refer to each other; the bindings then destroy their Qt objects in that thread. Qt
forbids this, and the process crashes now and then. So the automatic collection is switched off, and a timer collects.

A full collection visits every object, which takes longer than a screen frame. So what survived one is
frozen: the next visits only objects that are newer. Cyclic garbage among the frozen objects stays until
a *deep* collection, which visits all again. It runs when no user acts and twice as many objects are
frozen as after the one before.

Source: Qt, "Threads and QObjects"; CPython Modules/gcmodule.c, gc_collect_generations.
"""

from __future__ import annotations

import gc
import time
from collections import deque
from typing import Final

from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtGui import QGuiApplication, QWindow

__all__ = ["GarbageTimer"]

_LOOK_MILLIS: Final = 100
_OLDEST: Final = 2
_REST: Final = 50
"""The oldest generation is collected again after this many times the duration of its last collection: at most 2 % of the time."""

_IDLE_SECS: Final = 5.0
"""Time without input after which a user does not notice a turn of a tenth of a second."""

_LEAST_NEW: Final = 100_000
"""Frozen objects before a deep collection is worth its time: a window on a session has as many."""

_BURST: Final = 10_000
"""Number of objects made since the last check that are frozen without being visited; visiting that many takes 2 ms."""

_BURSTS: Final = 2
_BURSTS_SECS: Final = 5.0
"""At most `_BURSTS` such freezes in this many seconds: objects that are continually made at this rate may be garbage, and are collected."""

_MOST_NEW: Final = 2_000_000
"""Number of new frozen objects above which a deep collection does not wait for idle time: they may be half a gigabyte of garbage."""

_ACTS: Final = frozenset(
    {
        QEvent.Type.KeyPress,
        QEvent.Type.MouseButtonPress,
        QEvent.Type.MouseMove,
        QEvent.Type.NativeGesture,
        QEvent.Type.TouchUpdate,
        QEvent.Type.Wheel,
    }
)

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

    Attributes:
        idle_secs: For how long no user must have acted before a deep collection.
        least_new: Frozen objects since the last deep collection before there is another.
    """

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.idle_secs = _IDLE_SECS
        self.least_new = _LEAST_NEW
        self._rests_until = 0.0
        self._bursts = deque([-_BURSTS_SECS] * _BURSTS, maxlen=_BURSTS)
        self._new = self._frozen = 0
        self._acted = time.monotonic()
        if not _TIMERS:
            gc.freeze()
        _TIMERS.append(None)
        gc.disable()
        self.destroyed.connect(_ended)
        application = QGuiApplication.instance()
        if isinstance(application, QGuiApplication):
            application.focusWindowChanged.connect(self._watch)
        timer = QTimer(self)
        timer.timeout.connect(self._look)
        timer.start(_LOOK_MILLIS)

    def _watch(self, window: QWindow | None) -> None:
        """Notice what users do in a window; to filter the events of all widgets would cost time at each of them."""
        if window is None:
            return
        window.installEventFilter(self)
        if not self._frozen:
            # The objects of the first window stay until the end, like modules.
            gc.freeze()
            self._frozen = gc.get_freeze_count()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Remember when a user acted; nothing is filtered out."""
        if event.type() in _ACTS:
            self._acted = time.monotonic()
        return False

    def _look(self) -> None:
        due = [
            count > most > 0 for count, most in zip(gc.get_count(), gc.get_threshold(), strict=True)
        ]
        now = time.monotonic()
        rested = now >= self._rests_until
        made = gc.get_count()[0]
        if made > _BURST and now - self._bursts[0] >= _BURSTS_SECS:
            # Something was built: a session's panels, a long table. To visit all of it would be noticed.
            self._bursts.append(now)
            self._new += made
            gc.freeze()
            return
        if rested and self._is_deep_due(now):
            self._collect_frozen()
        elif rested and due[_OLDEST]:
            self._collect_all()
        elif due[1]:
            gc.collect(1)
            return
        elif due[0]:
            gc.collect(0)
            return
        else:
            return
        after = time.monotonic()
        self._rests_until = after + _REST * (after - now)

    def _collect_all(self) -> None:
        """Collect what is not frozen, and freeze the rest."""
        gc.collect()
        self._new += len(gc.get_objects(generation=_OLDEST))
        gc.freeze()

    def _is_deep_due(self, now: float) -> bool:
        most = max(self.least_new, self._frozen)
        idle = now - self._acted >= self.idle_secs
        if self._new <= most or not (idle or self._new > _MOST_NEW):
            return False
        # Of those that were frozen most may have ended meanwhile, without being garbage.
        self._new = max(0, gc.get_freeze_count() - self._frozen)
        return self._new > most

    def _collect_frozen(self) -> None:
        """Collect everything."""
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self._frozen, self._new = gc.get_freeze_count(), 0
