"""Going to moments that are found, not scrubbed to: when the selected tile filled, and before a collection.

The stored events are searched in a thread; the window continues, and shows the event when it is found.

Knows the selection, the timeline and where events are stored; the model knows how to search them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import monotonic, sleep

from gcspy_protocol.errors import RecordingError
from gcspy_replay.file import Recording
from PySide6.QtCore import Qt, Signal

from gcspy_client.model.latest_worker import LatestWorker
from gcspy_client.model.playback.collection_costs import before_collection
from gcspy_client.model.playback.value_rise import TileSubject, ValueRise, find_rise
from gcspy_client.model.session import tile_title
from gcspy_client.view.actions import Action
from gcspy_client.view.desk import Desk
from gcspy_client.view.part import Part

__all__ = ["TileMoments"]

_TIME = "&Time"
_PATIENCE_SECS = 2.0
"""For an event that is displayed and not stored yet."""

_LOOK_SECS = 0.02


@dataclass(frozen=True, slots=True)
class _Found:
    """A finished search.

    Attributes:
        session: Identity of the session that was searched.
        title: Name of the tile.
        stream: Name of the number.
        shown: Number of the event from which it was searched backwards.
        rise: The result.
        problem: Why there is none; empty: there is one.
    """

    session: str
    title: str
    stream: str
    shown: int
    rise: ValueRise | None = None
    problem: str = ""


class TileMoments(Part):
    """Goes to the event at which the selected tile rose to its present value, and to before collections."""

    _told = Signal()

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._stops = threading.Event()
        self._worker: LatestWorker[_Found] | None = None
        self._told.connect(self._arrived, Qt.ConnectionType.QueuedConnection)

    # ------------------------------------------------------------------- actions of users

    @property
    def can_search(self) -> bool:
        """Whether a tile is selected, and past events of it are stored where this window can read them."""
        return not self._why_not()

    def go_to_rise(self) -> None:
        """Go to the event at which the selected tile rose to its present value."""
        why_not = self._why_not()
        if why_not:
            self._desk.say(f"Not found: {why_not}.")
            return
        session = self._desk.session
        space, welcome, number = session.active_space(), session.live.welcome, session.number
        assert space is not None
        assert welcome is not None
        space_id = space.space.id
        source, key = session.chosen_source(space_id), session.selected_key(space_id)
        tile = session.selected(space_id)
        if source is None or key is None or tile is None:
            return
        subject = TileSubject(space.space.name, space_id, source, key)
        found = _Found(welcome.session, tile_title(space, tile), source.schema.name, number)
        if self._worker is None:
            self._worker = LatestWorker("gcspy tile search", self._told.emit)
        self._worker.submit(partial(_search, self._opener(), subject, found, self._stops.is_set))

    def go_before_collection(self) -> None:
        """Go to the moment before the latest collection that precedes the displayed event."""
        number = self._before_collection()
        if number is None:
            self._desk.say("No earlier collection is stored.")
        else:
            self._desk.navigator.go_to(number)

    # ------------------------------------------------------------------------ how it stands

    def _why_not(self) -> str:
        """Why no tile can be searched for; empty: it can."""
        session, navigator = self._desk.session, self._desk.navigator
        space = session.active_space()
        if space is None or session.selected(space.space.id) is None:
            return "no tile is selected"
        if not navigator.usable:
            return navigator.reason
        if session.is_playback and not self._desk.bookmarks.recording:
            return "the recording is on another machine"
        return ""

    def _opener(self) -> Callable[[], Recording]:
        if self._desk.session.is_playback:
            return partial(Recording.open, *self._desk.bookmarks.recording)
        return self._desk.shift.recording

    def _before_collection(self) -> int | None:
        session = self._desk.session
        welcome = session.live.welcome
        if welcome is None or not self._desk.navigator.usable:
            return None
        timeline = session.timeline
        names = tuple(kind.name for kind in welcome.events)
        return before_collection(timeline.numbers, timeline.rows, names, session.number)

    def _arrived(self) -> None:
        outcome = None if self._worker is None else self._worker.take()
        welcome = self._desk.session.live.welcome
        if outcome is None or welcome is None:
            return
        found = outcome.result()
        if found.session != welcome.session:
            return  # of the session before
        if found.rise is None:
            self._desk.say(f"Not found: {found.problem}.")
            return
        what = f"{found.stream} of {found.title}"
        if found.rise.number == found.shown:
            self._desk.say(f"{what} rose to this value at this very event.")
        else:
            self._desk.navigator.go_to(found.rise.number)
        if not found.rise.stored:
            self._desk.say(f"{what} has not been lower since the first stored event.")

    def stop(self) -> None:
        """The window closes: no thread is left."""
        self._stops.set()
        if self._worker is not None:
            self._worker.stop()
            self._worker.join()

    def settle(self) -> bool:
        """Wait for a search."""
        return self._worker is None or self._worker.settle(_PATIENCE_SECS)

    def actions(self) -> tuple[Action, ...]:
        """The actions of moments."""
        return (
            Action(
                name="time.rise",
                menu=_TIME,
                text="When the selected tile f&illed",
                about="go back to the event at which the selected tile rose to its present value",
                run=self.go_to_rise,
                keys=("G",),
                enabled=lambda: self.can_search,
                why_not="select a tile first, for example the fullest (X)",
                begins_group=True,
            ),
            Action(
                name="time.before-collection",
                menu=_TIME,
                text="Before the previous &collection",
                about="go to the moment before the previous collection; again: before the one before",
                run=self.go_before_collection,
                keys=("C",),
                enabled=lambda: self._before_collection() is not None,
                why_not="no earlier collection is stored",
            ),
        )


def _search(
    opener: Callable[[], Recording], subject: TileSubject, found: _Found, stops: Callable[[], bool]
) -> _Found:
    """Search, in a thread."""
    session, title, stream, number = found.session, found.title, found.stream, found.shown
    rise, problem = None, "the value of the tile is not known at this event"
    try:
        with opener() as recording:
            patience = monotonic() + _PATIENCE_SECS
            while recording.last < number and monotonic() < patience and not stops():
                sleep(_LOOK_SECS)
                recording.refresh()
            rise = find_rise(recording, subject, number, stops=stops)
    except (RecordingError, OSError) as error:
        problem = str(error)
    return _Found(session, title, stream, number, rise, "" if rise else problem)
