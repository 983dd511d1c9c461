"""Painting the spaces of a session as differences to other states of them, kept up to date in a thread.

The user of the difference provides the other states: a stored event, or another session.

Knows sessions, their panels and the comparison; does not know how the compared states are chosen.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from copy import copy
from functools import partial
from typing import Protocol

from gcspy_protocol.interpreter import SpaceState
from PySide6.QtCore import QObject, Qt, QTimer, Signal

from gcspy_client.model.compare.comparison import (
    ComparedState,
    Comparison,
    TilePairing,
    compare_spaces,
)
from gcspy_client.model.latest_worker import LatestWorker
from gcspy_client.model.palette import Theme
from gcspy_client.model.session import ClientSession
from gcspy_client.model.tile_source import TileSource
from gcspy_client.model.view_states import SpaceViewState
from gcspy_client.view.compare.difference_view import DifferenceView
from gcspy_client.view.spaces.spaces import Spaces

__all__ = ["DifferencePainter", "LeftSide"]

_SETTLE_SECS = 20.0
_REST_SHARE, _MOST_REST_SECS = 0.5, 0.25
"""Comparing large heaps at each event would otherwise use a whole processor."""


class LeftSide(Protocol):
    """The other side of a comparison."""

    def state_of(
        self, space: SpaceState, source: TileSource
    ) -> tuple[SpaceState, TileSource] | str:
        """The other state of a space, which no longer changes, and the same numbers there; else why there is none."""

    def pairing(self) -> TilePairing:
        """How tiles are paired, and which spaces are not."""


class DifferencePainter(QObject):
    """The differences of one session's spaces.

    Attributes:
        comparison: The latest result; None: nothing yet.

    Signals:
        compared: There is another comparison.
        failed: It could not be worked out; why, in words.

    Args:
        session: The right side: the displayed state.
        spaces: Its panels.
    """

    compared = Signal()
    failed = Signal(str)
    _ready = Signal()

    def __init__(
        self, session: ClientSession, spaces: Spaces, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._session, self._spaces = session, spaces
        self._left: LeftSide | None = None
        self._worker: LatestWorker[Comparison] = LatestWorker(
            "gcspy comparison",
            self._ready.emit,
            rest_share=_REST_SHARE,
            most_rest_secs=_MOST_REST_SECS,
        )
        self._dirty = False
        self._scales: Mapping[Hashable, float] = {}
        self.comparison: Comparison | None = None
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.timeout.connect(self._begin)
        self._ready.connect(self._take, Qt.ConnectionType.QueuedConnection)

    @property
    def on(self) -> bool:
        """Whether differences are shown."""
        return self._left is not None

    def begin(self, left: LeftSide) -> None:
        """Show the difference to something, from now on."""
        was_on = self.on
        self._left = left
        self._forget()
        if not was_on:
            self._spaces.instead = self._make
            self._show_looks()
        self.ask()

    def end(self) -> None:
        """Show the spaces themselves again."""
        if not self.on:
            return
        self._left, self._spaces.instead = None, None
        self._forget()
        self._show_looks()

    def _forget(self) -> None:
        self._worker.forget()
        self._soon.stop()
        self._dirty, self._scales, self.comparison = False, {}, None

    def _show_looks(self) -> None:
        for space_id in self._spaces.panels:
            self._spaces.show_look(space_id)

    def _make(
        self, space: SpaceState, source: TileSource, theme: Theme, look: SpaceViewState
    ) -> DifferenceView:
        view = DifferenceView(space, source, theme, look, stale=self.ask)
        self.ask()
        return view

    def ask(self) -> None:
        """Compare soon: the displayed state, or its view, changed."""
        if not self.on:
            return
        self._dirty = True
        if self._worker.idle and not self._soon.isActive():
            self._soon.start(0)

    def _views(self) -> dict[int, DifferenceView]:
        panels = self._spaces.panels
        return {
            number: panel.view
            for number, panel in panels.items()
            if isinstance(panel.view, DifferenceView)
        }

    def _begin(self) -> None:
        """Copy what is compared, and have it compared; the copies are made here, as events are followed here."""
        if self._left is None or not self._dirty:
            return
        self._dirty = False
        subjects = []
        for number, view in self._views().items():
            found = self._left.state_of(view.space, view.source)
            if isinstance(found, str):
                view.take(None, found)
                continue
            left, source = found
            # A source that the user made of streams remembers what it worked out, so the thread has its own.
            subjects.append(
                ComparedState(number, left, view.space.copy(), source, copy(view.source))
            )
        event = self._session.interpreter.last_event
        self._worker.submit(
            partial(
                compare_spaces,
                subjects,
                event=event,
                pairing=self._left.pairing(),
                scales=self._scales,
            )
        )

    def _take(self) -> None:
        """Show what was worked out."""
        if self._left is None:
            return
        outcome = self._worker.take()
        if outcome is not None:
            if outcome.failure is not None:
                self.failed.emit(f"The difference could not be computed: {outcome.failure}")
                return
            found = outcome.result()
            self.comparison, self._scales = found, found.scales
            for number, view in self._views().items():
                if number in found.spaces:
                    view.take(found.spaces[number])
            self.compared.emit()
        if self._dirty:
            self._soon.start(0)

    def settle(self) -> bool:
        """Work out now what would be a moment later; whether that could be done."""
        for _ in range(3):
            if self._dirty:
                self._begin()
            if not self._worker.settle(_SETTLE_SECS):
                return False
            self._take()
            if not self._dirty:
                break
        for view in self._views().values():
            view.settle()
        return not self._dirty

    def stop(self) -> None:
        """Work out nothing any more; no thread and no timer is left."""
        self._soon.stop()
        self._worker.stop()
        self._worker.join()
