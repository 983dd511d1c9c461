"""One playback of one recording: its position, direction, speed and next event (SPEC.md 8.5).

    RUNNING ──pause, step, a filter's pause, the end──▶ PAUSED ──resume──▶ RUNNING
       │                                                  │
       └─ advance: the event that is due                  └─ step, seek: another event

Time is an argument: nanoseconds of any clock of the caller's that only goes forwards. The caller waits until
`due_nanos` and calls `advance`; if that is late the playback runs late, and no event is left out for it.

Knows a recording and event filters; does not know clients, sockets, threads or clocks. Its user, a
server or a window, gets a `Move` for each event that is to be shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from gcspy_protocol.errors import CorruptChunk, ExpressionError, LocalProtocolError, RecordingError
from gcspy_protocol.expression.client import ClientSource
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.messages import Event, State, Summary
from gcspy_protocol.model import CONTROL_STREAM, ControlState, EventFilter
from gcspy_protocol.playback import Direction, Pace, Seek, SetPlayback
from gcspy_protocol.trigger_set import TriggerSet, pause_reason
from gcspy_protocol.triggers import Fired, Trigger
from numpy.typing import NDArray

from gcspy_replay.file import Cursor, RecordedEvent, Recording
from gcspy_replay.playback.timetable import Timetable, shown_rows

__all__ = ["END", "ViewerState", "Move", "RecordingPlayback"]

END = "end of the recording"
"""Why a playback pauses where there is nothing more to show."""

_MILLI = 1_000_000
_LATE_NANOS = 500_000_000
"""A playback that is later than this continues from now: it never catches up."""

_NEAR = 8
"""Maximum hidden events to step over; a jump over more of them starts at a keyframe, unless it is in the same chunk."""

_KEPT, _KEPT_BYTES = 16, 32 << 20
"""States of one chunk that are kept while going back, and their bytes: each costs a copy, where reading it again costs the
chunk. More of them made the one step that makes them take longer than a seek may."""

_MOST_LOST = 64
"""Damaged places that one `advance` passes; then the caller has its turn again."""


@dataclass(frozen=True, slots=True, eq=False)
class ViewerState:
    """The viewers' state before a move.

    Attributes:
        session: The state itself, with unchanged arrays; None: it was changed in place, and the
            rest describes the old one.
        sequences: Sequences of the values, by (space, stream).
        summaries: By (space, stream).
        infos: Texts, by space.
        counters: Occurrences per kind of event.
    """

    session: ClientInterpreter | None
    sequences: dict[tuple[int, int], int] = field(default_factory=dict)
    summaries: dict[tuple[int, int], Summary | None] = field(default_factory=dict)
    infos: dict[int, str] = field(default_factory=dict)
    counters: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """An event that is shown now.

    Attributes:
        number: Its number in the recording.
        event: The event.
        session: All that a viewer knows now; changed by the next move.
        steps: The events from the one before to this one, when `session` was changed in place; else empty.
        had: The viewers' state before; None: that is lost, or this is the first event: they need
            everything.
        fired: The triggers that fired at it.
    """

    number: int
    event: Event
    session: ClientInterpreter
    steps: tuple[RecordedEvent, ...] = ()
    had: ViewerState | None = None
    fired: tuple[Fired, ...] = ()

    @property
    def direct(self) -> bool:
        """Whether this event follows the one shown before, so that its recorded bytes apply."""
        return len(self.steps) == 1


class RecordingPlayback:
    """A playback.

    Args:
        recording: The recording; no other code uses this object at the same time.
        timetable: A timetable of the same recording that other code keeps up to date; None: one of
            its own.
        manner: How it is played.
        filters: Event filters; missing kinds pass.
        running: Whether it runs.
        growing: Whether more events may come.
        triggers: Evaluated at each event that is shown going forwards, and set by `set_trigger`.

    Attributes:
        number: The event that is shown; 0 before the first.
        session: All that a viewer knows; read it only.
        manner: How it is played.
        state: Whether it runs, or why not.
        growing: Whether more events may come; set it, then call `settle`.
        timetable: Timetable of the recording.
        lost: First and last numbers of events that were found damaged.
        triggers: The triggers.
    """

    def __init__(
        self,
        recording: Recording,
        *,
        timetable: Timetable | None = None,
        manner: SetPlayback | None = None,
        filters: Iterable[EventFilter] = (),
        running: bool = True,
        growing: bool = False,
        triggers: TriggerSet | None = None,
    ) -> None:
        self.triggers = triggers or TriggerSet()
        self.recording = recording
        self._owns_timetable = timetable is None
        self.timetable = Timetable(recording) if timetable is None else timetable
        self.number = 0
        self.manner = manner or SetPlayback()
        self.state = State(state=ControlState.RUNNING if running else ControlState.PAUSED)
        self.growing = growing
        self.lost: list[tuple[int, int]] = []
        self._cursor: Cursor = recording.cursor()
        self._astray = False
        self._kept: dict[int, ClientInterpreter] = {}
        self._filters = {kind.id: EventFilter(event=kind.id) for kind in recording.welcome.events}
        self._since = 0
        self._hold = 0
        self._pause_after = ""
        self._elapsed = 0
        self._mask: tuple[NDArray[Any], NDArray[np.bool_]] | None = None
        self.set_filters(filters)

    # ------------------------------------------------------------------ state

    @property
    def session(self) -> ClientInterpreter:
        """All that a viewer knows now; the next move changes or replaces it."""
        return self._cursor.session

    @property
    def running(self) -> bool:
        """Whether it is running."""
        return self.state.state is ControlState.RUNNING

    @property
    def filters(self) -> tuple[EventFilter, ...]:
        """The filter of each kind of event."""
        return tuple(self._filters.values())

    def refresh(self) -> bool:
        """Read data that a running recorder has written; return whether there was any.

        Raises:
            RecordingError: The recording cannot be read any more.
        """
        grown = self.recording.refresh()
        if self._owns_timetable:
            grown = self.timetable.refresh()
        return grown

    def _shown(self) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The timetable, and which of its events are shown."""
        rows = self.timetable.rows
        if self._mask is not None:
            known, mask = self._mask
            same = len(known) <= len(rows) and (
                not len(known) or known["number"][0] == rows["number"][0]
            )
            if same and len(known) == len(rows):
                return rows, mask
            if same:
                more = shown_rows(rows[len(known) :], self._filters, self.lost)
                self._mask = rows, np.concatenate((mask, more))
                return self._mask
        self._mask = rows, shown_rows(rows, self._filters, self.lost)
        return self._mask

    def _neighbour(self, number: int, direction: int) -> int | None:
        """The shown event next to one, in a direction."""
        rows, mask = self._shown()
        if direction > 0:
            part = mask[int(np.searchsorted(rows["number"], number, side="right")) :]
            at = len(mask) - len(part) + int(part.argmax()) if len(part) else 0
        else:
            part = mask[: int(np.searchsorted(rows["number"], number))][::-1]
            at = len(part) - 1 - int(part.argmax()) if len(part) else 0
        return int(rows["number"][at]) if len(part) and mask[at] else None

    def _begin(self) -> int | None:
        """The shown event with which playing in this direction begins."""
        direction, loop = int(self.manner.direction), self.manner.loop
        if direction > 0:
            start = self._neighbour(loop[0] - 1 if loop else 0, 1)
            return None if start is None or (loop and start > loop[1]) else start
        rows = self.timetable.rows
        start = self._neighbour(
            loop[1] + 1 if loop else int(rows["number"][-1]) + 1 if len(rows) else 0, -1
        )
        return None if start is None or (loop and start < loop[0]) else start

    def _next(self) -> int | None:
        """The event that comes next, loops followed; None at the end."""
        if not self.number:
            return self._begin()
        direction, loop = int(self.manner.direction), self.manner.loop
        found = self._neighbour(self.number, direction)
        if loop is not None and (
            found is None or (found > loop[1] if direction > 0 else found < loop[0])
        ):
            return self._begin()
        return found

    @property
    def following(self) -> int | None:
        """The number of the event that comes next, loops followed; None: none does."""
        return self._next()

    # ------------------------------------------------------------------ when

    @property
    def due_nanos(self) -> int | None:
        """When `advance` is due by the caller's clock; None: not before something else happens."""
        if not self.number:
            return (
                None if self._next() is None else 0
            )  # the first picture is shown, also when it is paused
        if not self.running:
            return None
        if self._pause_after:
            return self._since + self._hold
        following = self._next()
        return None if following is None else self._since + self._hold + self._between(following)

    def _between(self, following: int) -> int:
        """Nanoseconds from the event that is shown to the next."""
        manner = self.manner
        forwards = (following > self.number) == (int(manner.direction) > 0)
        if manner.pace is Pace.FIXED or not forwards or following == self.number:
            return (
                manner.interval_millis * _MILLI
            )  # from the end of a loop to its beginning no time has passed
        rows = self.timetable.rows
        here, there = np.searchsorted(rows["number"], (self.number, following)).tolist()
        if here >= len(rows) or there >= len(rows) or int(rows["number"][here]) != self.number:
            return 0  # a ring has dropped it
        column = "program_nanos" if manner.pace is Pace.PROGRAM else "time_nanos"
        nanos = int(rows[column][there]) - int(rows[column][here])
        return int(max(0, nanos * int(manner.direction)) / manner.speed)

    def settle(self) -> None:
        """Pause where there is nothing more to come; to be called when `growing` or the recording has changed."""
        waits = self.growing and int(self.manner.direction) > 0 and self.manner.loop is None
        if self.running and not waits and self._next() is None and not self._pause_after:
            self._pause(self._since + self._hold, END)

    def _pause(self, now_nanos: int, reason: str) -> None:
        self._elapsed = max(0, now_nanos - self._since)
        self._pause_after = ""
        self.state = State(state=ControlState.PAUSED, reason=reason)

    # ------------------------------------------------------------------ commands

    def pause(self, now_nanos: int) -> None:
        """Stop at once."""
        if self.running:
            self._pause(now_nanos, "")

    def resume(self, now_nanos: int) -> Move | None:
        """Continue; at the end, from the other end. This also ends a delay.

        Returns:
            The event with which it begins again, if it does.
        """
        if self.running:
            if now_nanos < self._since + self._hold:
                self._since, self._hold = now_nanos, 0
                if self._pause_after:
                    self._pause(now_nanos, self._pause_after)
            return None
        self.state = State(state=ControlState.RUNNING)
        self._since = now_nanos - self._elapsed
        waits = self.growing and int(self.manner.direction) > 0
        if self.number and self._next() is None and not waits:
            start = self._begin()
            if start is not None and start != self.number:
                return self._show_from(start, now_nanos, now_nanos)
        self.settle()
        return None

    def step(self, now_nanos: int) -> Move | None:
        """Show the next event in the direction of the playback, and pause; None if there is none."""
        following = self._next()
        move = None if following is None else self._show_from(following, now_nanos, now_nanos)
        why = END if move is None else pause_reason(move.fired) or "step"
        self._pause(now_nanos, why)
        return move

    def set_manner(self, manner: SetPlayback) -> None:
        """Change the parameters; neither starts nor stops, unless the playback is at its end."""
        self.manner = manner
        self.settle()

    def set_filters(self, filters: Iterable[EventFilter]) -> None:
        """Replace the filters of some kinds of event; the displayed event stays.

        Raises:
            RecordingError: There is no such kind; nothing was changed.
        """
        new = {one.event: one for one in filters}
        unknown = sorted(new.keys() - self._filters.keys())
        if unknown:
            raise RecordingError(
                f"filters for events {unknown}: there are {len(self._filters)} kinds of event"
            )
        self._filters |= new
        self._mask = None
        self.settle()

    def seek(self, place: Seek, now_nanos: int) -> Move:
        """Show another event; whether it runs stays.

        Raises:
            RecordingError: The position does not exist, or is damaged; nothing has moved.
        """
        target = self.target(place)
        try:
            move = self._go(target)
        except RecordingError as error:
            self._note_loss(target, error)
            raise
        return self._sought(move, now_nanos)

    def reach(self, target: int) -> Cursor:
        """Fetch an event like `seek`, but leave the displayed event unchanged: `arrive` shows it.

        It may take a while, and may run in another thread, as long as only `pause` and read-only
        attributes of this playback are used meanwhile.

        Raises:
            RecordingError: It does not exist, or is damaged; pass it to `arrive`.
        """
        if target > self.recording.last:
            self.recording.refresh()
        return self._stand_at(target)

    def arrive(self, target: int, reached: Cursor | RecordingError, now_nanos: int) -> Move:
        """Show the event that was got at.

        Raises:
            RecordingError: The error that was passed; nothing has moved.
        """
        if isinstance(reached, RecordingError):
            self._note_loss(target, reached)
            raise reached
        before = None if self._astray or not self.number else ViewerState(self.session)
        self._cursor, self._astray, self.number = reached, False, target
        return self._sought(
            Move(target, _event_of(reached.session), reached.session, (), before), now_nanos
        )

    def _sought(self, move: Move, now_nanos: int) -> Move:
        self._shown_at(now_nanos)
        self.triggers.reset()
        self._pause_after = ""
        if not self.running:
            self.state = State(state=ControlState.PAUSED)
        self.settle()
        return move

    def go(self, number: int, now_nanos: int) -> Move:
        """Show an event, even one that the filters hide: one that another playback showed before they were set.

        Raises:
            RecordingError: There is no such event, or it is damaged; nothing has moved.
        """
        move = self._go(number)
        self._shown_at(now_nanos)
        self.triggers.reset()
        return move

    def target(self, place: Seek) -> int:
        """The number of the event that a seek would show.

        Raises:
            RecordingError: The position does not exist.
        """
        rows, mask = self._shown()
        if not bool(mask.any()):
            raise RecordingError(
                "the event filters let no event through" if len(rows) else "there is no event yet"
            )
        numbers = rows["number"]
        if place.number is not None:
            return self._nearest_shown(
                int(np.searchsorted(numbers, place.number, side="right")) - 1
            )
        if place.time_nanos is not None:
            away = np.abs(rows["time_nanos"].astype(np.int64) - place.time_nanos)
            return self._nearest_shown(int(np.argmin(away)))
        if place.name is not None:
            return self._named(place.name, backwards=place.backwards)
        steps = place.steps or 0
        found = numbers[mask]
        at = int(np.searchsorted(found, self.number))
        if steps > 0 and not (at < len(found) and int(found[at]) == self.number):
            at -= 1  # what is shown is hidden by now: the next one is one step away all the same
        return int(found[min(max(at + steps, 0), len(found) - 1)])

    def _nearest_shown(self, at: int) -> int:
        """The shown event at a row, else the nearest before, else the first."""
        rows, mask = self._shown()
        before = np.flatnonzero(mask[: at + 1])
        return int(rows["number"][before[-1] if len(before) else int(mask.argmax())])

    def _named(self, name: str, *, backwards: bool) -> int:
        kinds = self.recording.event_ids(name)
        rows, mask = self._shown()
        found = rows["number"][mask & np.isin(rows["event"], kinds)]
        found = found[found < self.number] if backwards else found[found > self.number]
        if not len(found):
            way = "before" if backwards else "after"
            raise RecordingError(
                f"there is no event {name!r} {way} event {self.number} that the filters let through"
            )
        return int(found[-1] if backwards else found[0])

    # ------------------------------------------------------------------ moving

    def advance(self, now_nanos: int) -> Move | None:
        """Do what is due: show the next event, or pause as a filter requires.

        Returns:
            The event; None if none is due, or it was damaged and skipped (then `state` says so).
        """
        due = self.due_nanos
        if due is None or now_nanos < due:
            return None
        if self._pause_after and self.number:
            self._pause(due, self._pause_after)
            return None
        following = self._next()
        assert following is not None, "something is due"
        on_time = bool(self.number) and now_nanos - due <= _LATE_NANOS
        return self._show_from(following, due if on_time else now_nanos, now_nanos)

    def _show_from(self, target: int | None, since_nanos: int, now_nanos: int) -> Move | None:
        """Show an event, or the next one that is not damaged."""
        for _ in range(_MOST_LOST):
            if target is None:
                break
            before = self.number
            try:
                move = self._go(target)
            except RecordingError as error:
                first, last = self._note_loss(target, error)
                self._say_loss(first, last, str(error))
                target = self._next()
                continue
            self._shown_at(since_nanos)
            self._say_gap(before)
            move = self._look_at_triggers(move, before)
            one = self._filters.get(move.event.event)
            why = pause_reason(move.fired) or (
                "event filter" if one is not None and one.pause else ""
            )
            if why and self.running:
                self._pause_after = why
                if not self._hold:
                    self._pause(now_nanos, why)
            self.settle()
            return move
        self.settle()
        return None

    def _look_at_triggers(self, move: Move, before: int) -> Move:
        """Evaluate the triggers at a displayed event; they are reset if it does not follow in time."""
        if move.number <= before or self.manner.direction is not Direction.FORWARDS:
            self.triggers.reset()
            return move
        self.triggers.bind(tuple(state.space for state in move.session.spaces.values()))
        if not self.triggers.active:
            return move
        fired, _ = self.triggers.look(ClientSource(move.session), move.event)
        return replace(
            move, fired=tuple(replace(one, pauses=bool(pause_reason([one]))) for one in fired)
        )

    def set_trigger(self, trigger: Trigger) -> None:
        """Set, replace or remove a trigger.

        Raises:
            RecordingError: It is not a condition; nothing was changed.
        """
        try:
            self.triggers.set(trigger, tuple(state.space for state in self.session.spaces.values()))
        except (ExpressionError, LocalProtocolError) as error:
            raise RecordingError(str(error)) from error

    def _shown_at(self, since_nanos: int) -> None:
        """Note that an event was shown: the time to the next one counts from here."""
        event = self.session.last_event
        one = None if event is None else self._filters.get(event.event)
        self._since, self._hold = since_nanos, 0 if one is None else one.delay_millis * _MILLI
        self._elapsed = 0

    def _say_gap(self, before: int) -> None:
        """Report which events between two displayed ones are missing from the recording."""
        if not before or abs(self.number - before) < 2:
            return
        low, high = sorted((before, self.number))
        here, there = np.searchsorted(self.timetable.rows["number"], (low, high)).tolist()
        lacking = high - low - (there - here)
        if (
            lacking > 0
            and self.running
            and (self.number > before) == (int(self.manner.direction) > 0)
        ):
            self.state = State(
                state=ControlState.RUNNING, reason=f"{lacking} events before event {high} are lost"
            )

    def _say_loss(self, first: int, last: int, why: str) -> None:
        if self.running:
            what = f"event {first} is" if first == last else f"events {first} to {last} are"
            self.state = State(state=ControlState.RUNNING, reason=f"{what} lost: {why}")

    def _note_loss(self, target: int, error: RecordingError) -> tuple[int, int]:
        """Leave out from now on what cannot be read."""
        lost = target, target
        if isinstance(error, CorruptChunk) and error.chunk is not None:
            try:
                first, last = self.recording.damaged(error)
                lost = (first, last) if first <= target <= last else lost
            except RecordingError:
                pass  # not even the table of the chunk exists: then this event is the known loss
        self.lost.append(lost)
        self._mask = None
        return lost

    def _go(self, target: int) -> Move:
        """Move the cursor to an event.

        Raises:
            RecordingError: It does not exist, or is damaged; the displayed event has not changed.
        """
        if target > self.recording.last:
            self.recording.refresh()  # other code keeps the timetable, which is ahead of us
        anew = self._astray or not self.number
        if not anew and self._is_near(target):
            had = self._had()
            self._kept = {}
            steps = self._walk(target)
            if steps is not None:
                self.number = target
                return Move(target, _event_of(self.session), self.session, steps, had)
            anew = True
        cursor, before = self._stand_at(target), self.session
        self._cursor, self._astray, self.number = cursor, False, target
        return Move(
            target,
            _event_of(cursor.session),
            cursor.session,
            (),
            None if anew else ViewerState(before),
        )

    def _stand_at(self, target: int) -> Cursor:
        """A cursor of its own at an event, so that a damaged position leaves everything unchanged.

        Raises:
            RecordingError: As `Cursor.seek`.
        """
        cursor = self.recording.cursor()
        if 0 < self.number - target <= _NEAR:
            self._go_back(cursor, target)
        else:
            self._kept = {}
            cursor.seek(target)
        return cursor

    def _go_back(self, cursor: Cursor, target: int) -> None:
        """Go to an event shortly before this one, and keep the states before that: they are needed next.

        Raises:
            RecordingError: As `Cursor.seek`.
        """
        known = self._kept.pop(target, None)
        if known is not None:
            cursor.stand(target, known)
            return
        first = self.recording.chunk_of(target).place.first
        state_bytes = sum(space.bytes_for(space.count) for space in self.session.spaces.values())
        keep = max(first, target - min(_KEPT, _KEPT_BYTES // max(state_bytes, 1)))
        self._kept = {}
        if keep < target:
            cursor.seek(keep)
        while cursor.number < target and keep < target:
            self._kept[cursor.number] = cursor.session.copy()
            if cursor.step() is None:
                break
        cursor.seek(target)

    def _is_near(self, target: int) -> bool:
        """Whether stepping there is possible, and cheaper than starting at a keyframe."""
        if target <= self.number:
            return False
        at, there = self.recording.chunk_of(self.number), self.recording.chunk_of(target)
        if at.place.number != there.place.number and target - self.number > _NEAR:
            return False
        while at.place.number != there.place.number:
            following = self.recording.chunk_after(at)
            if following is None or not following.part.head(following.place).continues:
                return False
            at = following
        return True

    def _walk(self, target: int) -> tuple[RecordedEvent, ...] | None:
        """Step to an event; None if the state was started again on the way.

        Raises:
            RecordingError: Something on the way is damaged.
        """
        session, steps = self.session, list[RecordedEvent]()
        self._astray = True  # until it has arrived
        while self._cursor.number < target:
            step = self._cursor.step()
            if step is None or step.number > target or self._cursor.session is not session:
                return None
            steps.append(step)
        self._astray = False
        return tuple(steps)

    def _had(self) -> ViewerState:
        """The viewers' current state, to be kept while the state is changed in place."""
        session = self.session
        sequences: dict[tuple[int, int], int] = {}
        summaries: dict[tuple[int, int], Summary | None] = {}
        for space_id, state in session.spaces.items():
            for stream_id, stream in state.streams.items():
                sequences[space_id, stream_id] = stream.sequence
                summaries[space_id, stream_id] = stream.told
            sequences[space_id, CONTROL_STREAM] = state.control.sequence
        infos = {space_id: state.info for space_id, state in session.spaces.items()}
        return ViewerState(None, sequences, summaries, infos, session.counters)


def _event_of(session: ClientInterpreter) -> Event:
    event = session.last_event
    assert event is not None, "a cursor that has arrived stands behind an event"
    return event
