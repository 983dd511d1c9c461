"""Time in the window: connects timeline and transport with the playback.

In a live session the time shift moves through time, in a recording its player; users press the same
buttons for both. The difference: a live session has an end, at which the display is *live*, and
looking back does not affect the program or its sampling.

Knows the panel, the two kinds of `Playing` and the session; does not know files.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from gcspy_protocol.messages import Client, Seek, SetPlayback
from gcspy_protocol.model import ControlState
from gcspy_protocol.playback import Direction
from gcspy_replay.file import Recording
from PySide6.QtCore import QObject, Signal

from gcspy_client.link import WindowLink
from gcspy_client.model.playback.bookmarks import Bookmarks
from gcspy_client.model.playback.excerpt import save_events
from gcspy_client.model.playback.time_shift import StorageState, TimeShift
from gcspy_client.model.playback.timeline import TimelineAxis
from gcspy_client.model.session import ClientSession
from gcspy_client.model.shell.link_status import LinkPhase, pause_words
from gcspy_client.view.live_updater import LiveUpdater
from gcspy_client.view.time.bookmarks import BookmarkStore
from gcspy_client.view.time.panel import TimePanel
from gcspy_client.view.time.playback_controller import (
    PlaybackController,
    ShiftPlayback,
    WirePlayback,
)
from gcspy_client.view.time.save_dialog import SaveOffer
from gcspy_client.view.time.timeline import StripFacts, TimelineFlag
from gcspy_client.view.time.transport import TransportFacts

__all__ = ["TimeNavigator"]


class TimeNavigator(QObject):
    """Moves through time as users request, and keeps the panel in step.

    Attributes:
        chosen: First and last event of the range that the user drew.
        more_flags: Called for further marks in the timeline beside bookmarks.

    Signals:
        refused: A request could not be fulfilled; why, as text.
        moved: Another event is displayed, or the range changed: texts follow.

    Args:
        session: The displayed and the live state.
        link: To the server.
        shift: The stored events of a live session.
        following: Paints the displayed state.
        panel: Buttons and timeline.
        bookmarking: The bookmarks.
    """

    refused = Signal(str)
    moved = Signal()

    def __init__(
        self,
        session: ClientSession,
        link: WindowLink,
        shift: TimeShift,
        following: LiveUpdater,
        panel: TimePanel,
        bookmarking: BookmarkStore,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._session, self._link, self._shift = session, link, shift
        self._panel, self._bookmarking = panel, bookmarking
        self.chosen: tuple[int, int] | None = None
        self.more_flags: list[Callable[[], tuple[TimelineFlag, ...]]] = []
        self._identity = ""
        self.past = ShiftPlayback(session, shift.recording, self)
        self.wire = WirePlayback(session, link, self)
        self.past.moved.connect(following.look)
        following.came.connect(self.past.came)
        following.spoken.connect(self.refresh)
        for playing in (self.past, self.wire):
            playing.changed.connect(self._changed)
            playing.refused.connect(self.refused)
        bookmarking.asked.connect(self.go_to)
        bookmarking.changed.connect(self.refresh)
        panel.strip.scrubbed.connect(self.go_to)
        panel.strip.stepped.connect(self.step)
        panel.strip.range_chosen.connect(self.choose_range)
        panel.transport.manner_chosen.connect(self._set_manner)

    @property
    def playing(self) -> PlaybackController:
        """The current controller of playback: of the player or of the time shift."""
        return self.wire if self._session.is_playback else self.past

    @property
    def looks_back(self) -> bool:
        """Whether the past of a live session is shown."""
        return not self._session.is_live

    @property
    def usable(self) -> bool:
        """Whether one can move through time now."""
        return not self.reason

    @property
    def reason(self) -> str:
        """Why one cannot move through time; empty when one can."""
        session = self._session
        if session.is_playback:
            there = session.live.playback is not None and session.live.playback.last > 0
            if self._link.status.phase is not LinkPhase.LIVE:
                return "not connected to the player"
            return "" if there else "the recording has no event yet"
        status = self._shift.status
        if status.keeping is StorageState.ON or (
            status.keeping is StorageState.ENDED and status.last
        ):
            return ""
        return status.reason or "no event received yet"

    # ------------------------------------------------------------------- what users do

    def go_to(self, number: int) -> None:
        """Show an event."""
        if self.usable:
            self.playing.seek(Seek(number=number))

    def step(self, steps: int) -> None:
        """Go forwards by this many events, or back, and pause; live there is no event to go forwards to."""
        if self.usable and (steps < 0 or not self.is_live):
            self.playing.step(steps)

    def go_to_words(self, words: str) -> None:
        """Show the event that is meant: ``1234``, ``12.5 s``, ``1:30``, or the name of a kind: the next of it."""
        if not self.usable or not words.strip():
            return
        try:
            self.playing.seek(self._place(words.strip()))
        except ValueError:
            self.refused.emit(
                f"{words!r} is not an event: give a number, a time such as 12.5 s or 1:30, or one of "
                f"{', '.join(self._kind_names())}"
            )

    def _place(self, words: str) -> Seek:
        if re.fullmatch(r"[\d,]+", words):
            return Seek(number=int(words.replace(",", "")))
        matches = [name for name in self._kind_names() if name.lower() == words.lower()]
        if matches:
            return Seek(name=matches[0])
        secs = 0.0
        for part in words.lower().removesuffix("s").strip().split(":"):
            secs = secs * 60 + float(part)
        return Seek(
            time_nanos=self._session.timeline.span(TimelineAxis.TIME)[0] + round(secs * 1e9)
        )

    def _kind_names(self) -> list[str]:
        welcome = self._session.live.welcome
        return [] if welcome is None else [kind.name for kind in welcome.events]

    def same_kind(self, *, backwards: bool) -> None:
        """Show the next event of the same kind, or the one before."""
        shown = self._session.interpreter.last_event
        if self.usable and shown is not None and (backwards or not self.is_live):
            name = self._session.interpreter.event_name(shown.event)
            if self.playing.running:
                self.playing.pause()
            self.playing.seek(Seek(name=name, backwards=backwards))

    def first(self) -> None:
        """Show the first event."""
        if self.usable:
            self.go_to(self._ends()[0])

    def last(self) -> None:
        """Go live; in a recording, show the last event."""
        if self._session.is_playback:
            self.go_to(self._ends()[1])
        elif self.looks_back:
            self.past.go_live()

    def play(self, direction: Direction = Direction.FORWARDS) -> None:
        """Play in a direction, or stand still; what is live is held by it, and nothing else."""
        if not self.usable:
            return
        if self.is_live and direction is Direction.FORWARDS:
            self.past.pause()
        else:
            self.playing.play(direction)

    def choose_range(self, first: int, last: int) -> None:
        """Choose a range: to loop over, or to save."""
        self.chosen = (first, last)
        if self.playing.manner.loop is not None:
            self._set_manner(replace(self.playing.manner, loop=self.chosen))
        self._changed()

    def forget_range(self) -> None:
        """Choose no range."""
        self.chosen = None
        if self.playing.manner.loop is not None:
            self._set_manner(replace(self.playing.manner, loop=None))
        self._changed()

    def toggle_loop(self) -> None:
        """Play the chosen range over and over, or everything; or no longer."""
        if not self.usable:
            return
        manner = self.playing.manner
        self._set_manner(
            replace(manner, loop=None if manner.loop is not None else self.chosen or self._ends())
        )
        self._changed()

    def begin_range(self) -> None:
        """Let the range begin with the event that is shown."""
        self._mark_end(first=True)

    def end_range(self) -> None:
        """Let the range end with the event that is shown."""
        self._mark_end(first=False)

    def choose_before(self) -> None:
        """Choose all events up to the displayed one."""
        number = self._session.number
        if number and self.usable:
            self.choose_range(min(self._ends()[0], number), number)

    def choose_after(self) -> None:
        """Choose all events from the displayed one on."""
        number = self._session.number
        if number and self.usable:
            self.choose_range(number, max(self._ends()[1], number))

    def _mark_end(self, *, first: bool) -> None:
        number = self._session.number
        if not number:
            return
        low, high = self.chosen or self._ends()
        low, high = (number, max(high, number)) if first else (min(low, number), number)
        self.choose_range(low, high)

    def _set_manner(self, manner: SetPlayback) -> None:
        self.playing.set_manner(manner)

    # ------------------------------------------------------------------- how it stands

    @property
    def is_live(self) -> bool:
        """Whether a live session is shown as it is now."""
        return not self._session.is_playback and self._session.is_live

    def others(self) -> list[Client]:
        """Who else sees this recording, and may be followed."""
        live = self._session.live
        if not self._session.is_playback or live.welcome is None:
            return []
        return [client for client in live.clients.clients if client.id != live.welcome.client_id]

    def _ends(self) -> tuple[int, int]:
        """Numbers of the first and last event that can be gone to."""
        playback = self._session.live.playback
        if self._session.is_playback and playback is not None:
            return playback.first, playback.last
        timeline = self._session.timeline
        return timeline.first, timeline.last

    def offer(self) -> SaveOffer | None:
        """Return the range that can be saved; None: there is nothing to save."""
        whole = self._ends()
        if not whole[1]:
            return None
        welcome = self._session.live.welcome
        name = _file_name(welcome.server if welcome is not None else "session")
        if not self._session.is_playback:
            saved = self._shift.status
            if not saved.last:
                return None
            return SaveOffer(
                save=self._save_live, whole=(saved.first, saved.last), chosen=self.chosen, name=name
            )
        paths = self._bookmarking.recording
        if not paths:
            return None
        save = partial(_save_part, paths, self._bookmarking.marks)
        return SaveOffer(save=save, whole=whole, chosen=self.chosen, name=f"{paths[0].stem}-part")

    def _save_live(
        self,
        path: Path,
        first: int | None,
        last: int | None,
        *,
        replace: bool,
        progress: Callable[[int, int], None],
    ) -> int:
        """Save what was kept, and its bookmarks beside it; runs in a thread of its own."""
        status, recording = self._shift.status, self._shift.recording_id
        first = status.first if first is None else first
        last = status.last if last is None else last
        count = self._shift.save(path, first, last, replace=replace, progress=progress)
        self._bookmarking.marks.save(path, recording, first, last)
        return count

    def past_words(self) -> str:
        """The text above the tiles while the user looks back; otherwise empty."""
        if not self.looks_back:
            return ""
        session = self._session
        behind = session.behind
        events = f"{behind:,} {'event' if behind == 1 else 'events'} behind live"
        what = pause_words(session.live.pause_acts_on)
        if (
            self._link.status.phase is not LinkPhase.LIVE
            or session.live.state is ControlState.ENDED
        ):
            goes_on = "no more events will arrive"
        elif session.live.state is ControlState.PAUSED:
            goes_on = f"{what} is paused"
        else:
            goes_on = "the program is running" if what == "program" else f"{what} is running"
        return f"Showing event {session.number:,}, {events}; {goes_on}."

    def refresh(self) -> None:
        """Update all texts."""
        self._follow_session()
        session = self._session
        low, high = self._ends()
        playing = self.playing
        reason = self.reason
        number = session.number
        ended = not session.is_playback and session.live.state is ControlState.ENDED
        self._panel.transport.show_facts(
            TransportFacts(
                usable=not reason,
                reason=reason,
                number=number,
                first=low,
                last=max(high, number),
                since_nanos=self._since(number),
                running=playing.running,
                live_view=not session.is_playback,
                live=self.is_live,
                ended=ended,
                behind=session.behind,
                manner=playing.manner,
                chosen=self.chosen is not None,
                may_save=self.offer() is not None,
            )
        )
        welcome = session.live.welcome
        kinds = tuple(kind.name for kind in welcome.events) if welcome is not None else ()
        self._panel.strip.show_timeline(
            session.timeline,
            StripFacts(
                kinds=kinds,
                number=number,
                live=self.is_live,
                ended=ended,
                of_process=welcome is not None and "pid" in welcome.target,
                growing=self._is_growing(),
                chosen=self.chosen,
                looping=playing.manner.loop is not None,
                flags=sum((flags() for flags in self.more_flags), self._bookmarking.flags()),
                filters=tuple(session.live.filters.values()) if session.is_playback else (),
                filtered=self._filtered(),
                wall_offset_nanos=0 if welcome is None else welcome.wall_offset_nanos,
            ),
        )

    def _filtered(self) -> frozenset[int]:
        """Kinds of event of which a filter hid some: of a recording, when it was made."""
        playback = self._session.live.playback
        then = (
            playback.filters
            if self._session.is_playback and playback is not None
            else self._session.live.filters.values()
        )
        return frozenset(one.event for one in then if not one.enabled or one.period > 1)

    def _is_growing(self) -> bool:
        playback = self._session.live.playback
        if self._session.is_playback:
            return playback is not None and playback.growing
        return self._link.status.phase is LinkPhase.LIVE

    def _since(self, number: int) -> int | None:
        timeline = self._session.timeline
        row = timeline.row(number)
        return None if row is None else int(row["time_nanos"]) - timeline.span(TimelineAxis.TIME)[0]

    def _follow_session(self) -> None:
        """Forget range and past of another session."""
        welcome = self._session.live.welcome
        identity = "" if welcome is None else welcome.session
        if welcome is not None and identity != self._identity:
            self._identity = identity
            self.chosen = None
            if self._session.is_live:
                self.past.leave()

    def _changed(self) -> None:
        self.refresh()
        self.moved.emit()

    def show_by_event(self) -> None:
        """Let the timeline count events, and not time."""
        axis = self._panel.transport.axis
        axis.setCurrentIndex(axis.findData(False))
        axis.activated.emit(axis.currentIndex())

    def stop(self) -> None:
        """Move no more; no timer and no thread is left."""
        self._panel.strip.stop()
        self.past.leave(wait=True)


def _save_part(
    paths: tuple[Path, ...],
    marks: Bookmarks,
    path: Path,
    first: int | None,
    last: int | None,
    *,
    replace: bool,
    progress: Callable[[int, int], None],
) -> int:
    """Save a part of a recorded session, and its bookmarks beside it; runs in a thread of its own."""
    with Recording.open(*paths) as whole:
        first = whole.first if first is None else first
        last = whole.last if last is None else last
        count = save_events(whole, path, first, last, replace=replace, progress=progress)
        marks.save(path, whole.facts.recording, first, last)
    return count


def _file_name(server: str) -> str:
    """A name for a file, of what is watched: letters and digits, and dashes between."""
    words = re.findall(r"[A-Za-z0-9.]+", server)
    return "-".join(words)[:60].strip(".-") or "session"
