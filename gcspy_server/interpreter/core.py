"""The core of the server interpreter: requests, counts, encodes, posts and holds events.

Two locks, never both at once in the driver's thread:

* ``_encoding`` guards the data sent last, from encoding to posting. The session's worker takes it
  to copy a keyframe: no longer than an array copy.
* ``Flow``'s condition guards filters' consequences and the control state, for
  microseconds, from either thread.

Filters and the audience are immutable objects that the session replaces. Knows events and spaces;
does not know sockets or trio.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gcspy_protocol.errors import LocalProtocolError
from gcspy_protocol.limits import CLIENT_LIMITS
from gcspy_protocol.messages import (
    Budget,
    EpochEnd,
    Event,
    Fired,
    Message,
    SpaceDefined,
    SpaceRemoved,
    State,
)
from gcspy_protocol.model import EventFilter, Space
from gcspy_protocol.streams.values import Stamp
from gcspy_protocol.trigger_set import TriggerSet, pause_reason
from gcspy_protocol.triggers import Trigger, TriggerAction

from gcspy_server.clock_pace import Progress
from gcspy_server.heap_question import Investigator
from gcspy_server.interpreter.backpressure import Backpressure
from gcspy_server.interpreter.contention import Contention
from gcspy_server.interpreter.cost_accounting import ANY_LEVEL, LEVEL, PART, CostAccounting
from gcspy_server.interpreter.detail_tables import DetailTables
from gcspy_server.interpreter.flow import Flow
from gcspy_server.interpreter.gather_request import GatherRequest
from gcspy_server.interpreter.handoff_queue import HandoffQueue
from gcspy_server.interpreter.setting_table import SettingTable
from gcspy_server.interpreter.transmission import (
    KeyframeSource,
    Snapshot,
    SnapshotPart,
    SpaceSender,
    SpaceStreams,
    copy_keyframe,
)
from gcspy_server.interpreter.trigger_source import TriggerSource
from gcspy_server.memory_report import Explainer
from gcspy_server.names import TileNames
from gcspy_server.spaces import ServerSpace
from gcspy_session.interest import EVERYTHING, NOTHING, Interest, union_of

__all__ = [
    "Audience",
    "Core",
    "NEVER",
    "Item",
    "Opened",
    "EventForecast",
    "SchemaChange",
    "SettingsChanged",
    "TriggersChanged",
]

_BACKLOG = 16
"""Maximum snapshots that wait for the session's loop. Beyond it events are left out before they are
gathered, so that a target that is faster than its session costs neither memory nor gathering."""

_LOSSLESS_BACKLOG = 64
"""The same while a client is waited for, which must not lose an event this way: `Backpressure`
keeps the handoff_queue short as long as the session's loop takes from it."""


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """Spaces were added or removed: the messages for clients, and the schema after it."""

    messages: tuple[Message, ...]
    epoch: int
    spaces: tuple[Space, ...]


@dataclass(frozen=True, slots=True)
class Opened:
    """The state when a session begins.

    Attributes:
        schema: The spaces.
        names: Tile names by space, as sent last.
        sequence: Number of the latest snapshot; 0: none yet.
    """

    schema: SchemaChange
    names: dict[int, TileNames]
    sequence: int


@dataclass(frozen=True, slots=True)
class Audience:
    """The clients, as far as the driver's thread must know them.

    Attributes:
        clients: Number of clients.
        wants: Union of their subscriptions.
        interval_nanos: The shortest interval between events that any of them requests.
    """

    clients: int = 0
    wants: Interest = NOTHING
    interval_nanos: int = 0


NEVER = (1 << 63) - 1
"""A time that never comes."""


@dataclass(frozen=True, slots=True)
class EventForecast:
    """Prediction of the events of a kind that will be requested.

    Attributes:
        period: Every n-th, by occurrence number; 0: none.
        not_before_nanos: None before this time; `NEVER`: none before this changes.
        exact: Whether only filters and clients' rates leave events out, and not the budget. Then
            the target waits until we get to its event.
        rest_nanos: Least time between two that are requested before this changes; 0: no bound. Who
            sees an event later than it happens leaves those in between out.
        at_once: Except this many of the next, or pairs of them, for which enough was saved.
    """

    period: int = 0
    not_before_nanos: int = 0
    exact: bool = False
    rest_nanos: int = 0
    at_once: int = 0


@dataclass(frozen=True, slots=True)
class SettingsChanged:
    """A setting was chosen, was applied, or changed its cost; the report is made when it is sent."""


@dataclass(frozen=True, slots=True)
class TriggersChanged:
    """The state of the triggers changed; the report is made when it is sent."""


Item = (
    SchemaChange
    | Snapshot
    | State
    | KeyframeSource
    | Fired
    | TriggersChanged
    | SettingsChanged
    | Budget
)


class Core:
    """Shared by the driver's thread, which makes most of the calls, and the session's thread.

    Args:
        kinds: Names of the kinds of event.
        time_nanos: Monotonic clock of all times.
        longest_hold_secs: Longest single stop of the target.
        budget: The allowed share of the target's time, in thousandths; None: there is no budget.
        holds: Whether the target of a pause stands still during an event.
        processors: How many the target may use.
        waited_nanos: How long the target's threads have waited for a processor so far; None:
            unknown.
        pairs: Kinds of event that are start and end of the same thing: the budget leaves out both
            or neither.

    Attributes:
        live: Whether there is a client: the only attribute read while there is none.
        counts: Occurrences by kind of event.
        changes: Number of transmitted events at which a value or a tile changed.
        lost: Number of events of all kinds that were requested and lost, though neither a filter, a
            client's rate nor the budget left them out. Written by the driver's thread.
        filters: The active event filters, by kind.
        handoff_queue: The session takes its messages from here.
        flow: The control flow.
        room: The wait for lossless clients.
        triggers: Set by the session, evaluated here.
        settings: Set by the session, taken by the driver.
        spending: The cost of gatherings in the target's time, and the budget for it.
        details: Answers to questions about the latest event.
    """

    def __init__(
        self,
        kinds: Sequence[str],
        *,
        time_nanos: Callable[[], int],
        longest_hold_secs: float | None = None,
        budget: int | None = None,
        holds: bool = True,
        processors: int = 1,
        waited_nanos: Callable[[], int | None] | None = None,
        pairs: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.live = False
        self._pairs = tuple(pairs)
        self.counts = [0] * len(kinds)
        self.lost = 0
        self.changes = self._requests = 0
        self.filters = tuple(EventFilter(event=number) for number in range(len(kinds)))
        self.handoff_queue: HandoffQueue[Item] = HandoffQueue()
        self.flow = Flow(self.handoff_queue.post, longest_hold_secs=longest_hold_secs)
        longest = None if longest_hold_secs is None else int(longest_hold_secs * 1_000_000_000)
        self.room = Backpressure(self.flow, longest_hold_nanos=longest)
        # Processor time: a trigger must not fail because the machine is busy.
        self.triggers = TriggerSet(time_nanos=time.thread_time_ns)
        self.settings = SettingTable()
        self.spending = CostAccounting(
            len(kinds),
            self.settings,
            thousandths=budget,
            holds=holds,
            processors=processors,
            pairs=self._pairs,
            processor_nanos=(
                time.process_time_ns
                if waited_nanos is None
                else Contention(time.process_time_ns, waited_nanos, time_nanos)
            ),
        )
        self.details = DetailTables()
        self.investigator: Investigator | None = None
        self.explainer: Explainer | None = None
        self._kinds = tuple(kinds)
        self._time_nanos = time_nanos
        self._encoding = threading.Lock()
        self._setting = threading.Lock()
        self._arrived = threading.Condition()
        self._audience = Audience()
        self._observers: list[Callable[[Event], None]] = []
        self._observed: list[Callable[[ServerSpace], bool] | None] = []
        self._observes_all = False
        self._spaces: dict[int, ServerSpace] = {}
        self._senders: dict[int, SpaceSender] = {}
        self._epoch = 0
        self._sequence = 0
        self._last_event: Event | None = None
        self._last_keyframe: KeyframeSource | None = None
        self._request: GatherRequest | None = None
        self._discarded = False
        self._held_nanos = self._begun_nanos = 0
        self._waited_nanos = 0
        self._turn = 0
        self._given = ANY_LEVEL

    # ------------------------------------------------------------------- schema

    @property
    def spaces(self) -> tuple[ServerSpace, ...]:
        """The spaces, in order of their ids."""
        return tuple(self._spaces.values())

    def add_space(self, space: ServerSpace) -> None:
        """Add a space; published with the next event."""
        if len(self._spaces) >= CLIENT_LIMITS.spaces:
            raise LocalProtocolError(
                f"space {space.name!r}: there are {len(self._spaces)}, the maximum"
            )
        self._spaces[space.id] = space

    def remove_space(self, space: ServerSpace) -> None:
        """Remove a space; published with the next event."""
        if self._spaces.get(space.id) is not space:
            raise LocalProtocolError(
                f"space {space.name!r} does not belong to this server, or was already removed"
            )
        if self._request is not None:
            raise LocalProtocolError(
                f"space {space.name!r}: removed within an event; finish the event first"
            )
        del self._spaces[space.id]

    def detach_space(self, space: ServerSpace) -> ServerSpace:
        """Replace a space by a copy: later changes by its driver have no effect.

        Returns:
            The copy.
        """
        twin = space._copy()
        with self._encoding:
            self._spaces[space.id] = twin
            if space.id in self._senders:
                self._senders[space.id].space = twin
        return twin

    def publish(self) -> None:
        """Send clients the spaces that were added or removed."""
        with self._encoding:
            self._publish()

    def _publish(self) -> None:
        if self._epoch and self._spaces.keys() == self._senders.keys():
            return
        removed = [number for number in self._senders if number not in self._spaces]
        added = [space for number, space in self._spaces.items() if number not in self._senders]
        for number in removed:
            del self._senders[number]
            self.details.forget(number)
        for space in added:
            space._published = True
            self._senders[space.id] = SpaceSender(space)
        self._epoch += 1
        self._last_keyframe = None
        messages: list[Message] = [SpaceRemoved(space=number) for number in removed]
        messages += [SpaceDefined(space=space.schema) for space in added]
        messages.append(EpochEnd(epoch=self._epoch))
        self.handoff_queue.post(SchemaChange(tuple(messages), self._epoch, self._schema()))

    def _schema(self) -> tuple[Space, ...]:
        return tuple(sender.space.schema for sender in self._senders.values())

    def open_queue(self, wake: Callable[[], None]) -> Opened:
        """Begin to post; the first entry of the handoff_queue follows the returned state."""
        with self._encoding:
            self.handoff_queue.open(wake)
            names = {n: s.names for n, s in self._senders.items() if s.names is not None}
            return Opened(SchemaChange((), self._epoch, self._schema()), names, self._sequence)

    # ------------------------------------------------------------------- events

    def may_hold(self, event: int) -> bool:
        """Whether an event of this kind may hold the target; see `Server.may_hold`."""
        asked = self._asked_for(self.filters[event], lossless=False)
        return self.triggers.active or bool(asked)

    @property
    def progress(self) -> Progress:
        """Counts that show whether anything happens; see `ClockPace`."""
        return Progress(self._sequence, self.changes, self._requests + self.flow.moves)

    @property
    def has_room(self) -> bool:
        """Whether the session keeps up; see `Server.has_room`."""
        return len(self.handoff_queue) < _BACKLOG // 2

    def request(self, event: int, happened_nanos: int | None = None) -> GatherRequest | None:
        """Decide whether the event that happens now is transmitted; see `Server.should_transmit`."""
        occurrence = self.counts[event] + 1
        event_filter = self.filters[event]
        if self.flow.ended or not event_filter.wants(occurrence):
            return None
        now = self._time_nanos() if happened_nanos is None else happened_nanos
        audience = self._audience
        if not self._observers and not self.flow.pausing:
            last = self._last_event
            due = (
                last is None
                or now - last.time_nanos >= audience.interval_nanos
                or self._ends_a_pair(event)
            )
            backlog = _LOSSLESS_BACKLOG if self.room.wanted else _BACKLOG
            if not (due or self._looks()):
                return None
            if len(self.handoff_queue) >= backlog:
                self.lost += 1
                return None
        looks = self._looks()
        wants, level = self._wanted_by_observers(audience.wants), ANY_LEVEL
        explicit = self._asked_for(event_filter)
        self._follow_pairs()
        if self.spending.limits and not explicit:
            wanted = [number for number in self._spaces if wants.has(number)]
            found = self.spending.level_for(event, now, len(wanted))
            if found is None and not looks:
                self._tell_budget(now)
                return None
            if found is None:
                # Filled for triggers only: clients see that everything else is of an earlier event.
                wants, explicit = NOTHING, "triggers check every event"
            elif found == PART:
                # Spaces take turns; clients see that the others are of an earlier event.
                self._turn += 1
                wants, level = wants.only(wanted[self._turn % len(wanted)]), PART
            else:
                level = found
        for space in self._spaces.values():
            space._begin_event()
        needed = self.triggers.needs() if looks else frozenset()
        self.spending.begin()
        self._discarded = False
        self._given = level
        most = max(1, level)  # part of the spaces means one at the lightest level
        self._request = GatherRequest(
            event,
            occurrence,
            now,
            event_filter,
            wants,
            needed,
            most,
            explicit,
            bool(explicit) or looks,
            begun_nanos=now if happened_nanos is None else self._time_nanos(),
        )
        return self._request

    def _wanted_by_observers(self, wants: Interest) -> Interest:
        """Return what clients want, and what observers read."""
        if None in self._observed:
            return EVERYTHING
        if not self._observed or wants.spaces is None:
            return wants
        read = tuple(
            (number, None)
            for number, space in sorted(self._spaces.items())
            if any(reads is not None and reads(space) for reads in self._observed)
        )
        return union_of((wants, Interest(read)))

    def _asked_for(self, event_filter: EventFilter, *, lossless: bool = True) -> str:
        """Why an event is gathered at any cost; empty: only if the budget has room for it.

        Args:
            event_filter: The filter of its kind.
            lossless: Whether a lossless client is a reason.
        """
        if self.flow.pausing:
            return "a pause or a step waits for the next event"
        if event_filter.pause or event_filter.delay_millis:
            return "an event filter pauses or delays"
        if lossless and self.room.wanted:
            return "a lossless client is connected"
        return "a program reads every event" if self._observes_all else ""

    def _ends_a_pair(self, event: int) -> bool:
        """Whether the start of what this event ends was gathered: then a client's rate and the budget pass it."""
        return self._follow_pairs() and self.spending.limits and self.spending.awaits(event) is True

    def _follow_pairs(self) -> bool:
        """Determine whether both events of all pairs are requested, and equally often."""
        wanted = [
            (first.enabled, first.period) == (second.enabled, second.period)
            for first, second in (
                (self.filters[start], self.filters[end]) for start, end in self._pairs
            )
        ]
        self.spending.paired = all(wanted)
        return bool(wanted) and self.spending.paired

    def _tell_budget(self, now: int) -> None:
        told = self.spending.tell(now, self._sequence)
        if told is not None:
            self.handoff_queue.post(told)

    def _looks(self) -> bool:
        """Whether a trigger is evaluated, with the current spaces."""
        if self.triggers.bind(tuple(space.schema for space in self._spaces.values())):
            self.handoff_queue.post(TriggersChanged())
        return self.triggers.active

    def outlook(self, event: int) -> EventForecast:
        """Predict which events of a kind `request` would accept, for a stub that can skip the rest."""
        event_filter = self.filters[event]
        if self.flow.ended or not self.live or not event_filter.enabled:
            return EventForecast()
        last = self._last_event if self._request is None else self._request
        exact = not self._budget_decides(event_filter)
        if self.triggers.active or self._asked_for(event_filter) or last is None:
            return EventForecast(event_filter.period, exact=exact)
        interval = self._audience.interval_nanos
        not_before = last.time_nanos + interval if interval else 0
        if exact:
            return EventForecast(event_filter.period, not_before, exact=True)
        if self._follow_pairs():
            awaited = self.spending.awaits(event)
            if awaited is not None:
                return EventForecast(event_filter.period, 0 if awaited else NEVER)
        now = self._time_nanos()
        not_before = max(not_before, self.spending.not_before(event, now))
        rest_nanos, at_once = self.spending.rest(now)
        return EventForecast(
            event_filter.period, not_before, rest_nanos=rest_nanos, at_once=at_once
        )

    def _budget_decides(self, event_filter: EventFilter) -> bool:
        """Whether an event of this kind may be left out for the budget."""
        return self.spending.limits and not (self.triggers.active or self._asked_for(event_filter))

    def skip(self, event: int, times: int = 1, *, untold: bool = False) -> None:
        """Only count events; unreported ones count as left out for the budget, or as lost."""
        if self._request is not None and self._request.event == event:
            raise LocalProtocolError(
                f"event {event} is being gathered: finish it instead of skipping it"
            )
        if untold and self.live:
            self._account_for(event, times, waits=True)
        self.spending.passed(event)
        self.counts[event] += times

    def leave_out(self, event: int) -> None:
        """Count an event that the driver skips; see `Server.leave_out`."""
        if self.live:
            self._account_for(event, 1, waits=False)
        self.skip(event)

    def lighten(self, level: int) -> None:
        """Lower the level of the current event; see `Server.lighten`."""
        if self._request is not None:
            self._request = replace(self._request, level=min(level, self._request.level))
            self._given = min(level, self._given)

    def _account_for(self, event: int, times: int, *, waits: bool) -> None:
        """Determine why events were not reported that `outlook` had predicted as requested."""
        one, interval = self.filters[event], self._audience.interval_nanos
        wanted = (self.counts[event] + times) // one.period - self.counts[event] // one.period
        if not (one.enabled and wanted):
            return
        if self._budget_decides(one):
            now, last = self._time_nanos(), self._last_event
            if last is None or now - last.time_nanos >= interval:
                self.spending.leave_out(event, wanted, now, waits=waits)
        elif not interval or self.triggers.active or self._asked_for(one):
            self.lost += wanted

    def discard(self) -> None:
        """Discard all data of this event; see `Server.discard`."""
        if self._request is None:
            raise LocalProtocolError("no event is being gathered: there is nothing to discard")
        for space in self._spaces.values():
            space._discard()
        self._discarded = True

    def say_held(self, nanos: int) -> None:
        """Note that the driver held the target; see `Server.held`."""
        self.spending.say_held(nanos, self._time_nanos())

    def finish(
        self, event: int, cause: str, program_clock: tuple[str, int] | None, *, holds: bool = True
    ) -> None:
        """Count the event and transmit it if requested; see `Server.finish`."""
        self.counts[event] += 1
        request, self._request = self._request, None
        if request is None or request.event != event or not self.live:
            return
        with self._encoding:
            self._publish()
            snapshot = self._encode(request, cause, program_clock, holds=holds)
            fired, changed = self._look_at_triggers(snapshot, holds=holds)
            reason = pause_reason(fired)
            pause = self.flow.will_hold(request.event_filter, trigger=reason)
            if pause and not holds:
                pause = False
                self.flow.pause(reason or "event filter")
            snapshot.must = pause
            self.handoff_queue.post(snapshot)
            for one in fired:
                pauses = pause and one.trigger.action is TriggerAction.PAUSE
                self.handoff_queue.post(replace(one, pauses=pauses))
            if changed:
                self.handoff_queue.post(TriggersChanged())
            if not self._discarded and self.settings.gathered(
                snapshot.event.sequence,
                snapshot.event.gather_nanos,
                self._time_nanos(),
                None if self._given == PART else {LEVEL: request.level},
            ):
                self.handoff_queue.post(SettingsChanged())
        now = self._time_nanos()
        self.spending.finish(
            event,
            self._given,
            request.begun_nanos,
            now,
            holds=holds,
            explicit=request.explicit,
            in_vain=self._discarded,
        )
        self._tell_budget(now)
        self.room.posted(snapshot.event.sequence, snapshot.frame_bytes)
        for observer in self._observers:
            observer(snapshot.event)
        held = self.flow.hold(request.event_filter, pause=pause, trigger=reason) if holds else 0
        waited = self.room.wait(held_nanos=held, holds=holds)
        self.spending.pass_over(held + waited)
        if holds:  # otherwise only this thread waited
            self._held_nanos += held + waited
            self._waited_nanos += waited

    def _look_at_triggers(self, snapshot: Snapshot, *, holds: bool) -> tuple[list[Fired], bool]:
        """Determine which triggers fire at an event that was not sent yet; the evaluation is part of its gathering."""
        if not self.triggers.active:
            return [], False
        event = snapshot.event
        source = TriggerSource(event, self._kinds[event.event], self._senders)
        found = self.triggers.look(source, event)
        gather_nanos = max(0, self._time_nanos() - self._begun_nanos)
        stopped = self.spending.stopped(gather_nanos, holds=holds)
        self._last_event = snapshot.event = replace(
            event, gather_nanos=gather_nanos, stopped_nanos=stopped
        )
        return found

    def _encode(
        self,
        request: GatherRequest,
        cause: str,
        program_clock: tuple[str, int] | None,
        *,
        holds: bool,
    ) -> Snapshot:
        self._sequence += 1
        stamp = Stamp(
            sequence=self._sequence,
            time_nanos=request.time_nanos,
            event=request.event,
            occurrence=request.occurrence,
        )
        parts: list[SnapshotPart | SpaceStreams] = []
        changed = False
        names: dict[int, TileNames] = {}
        for number, sender in self._senders.items():
            frames, resized = sender.encode(request, stamp)
            parts += frames
            if sender.space._details_touched:
                self.details.keep(sender.space, self._sequence)
            changed |= resized or any(
                isinstance(one, SpaceStreams) and one.encoded.changed for one in frames
            )
            if resized:
                names[number] = sender.space.names
        self.changes += changed
        held, self._held_nanos = self._held_nanos, 0
        self._begun_nanos = request.begun_nanos
        gather_nanos = max(0, self._time_nanos() - request.begun_nanos)
        self._last_event = Event(
            sequence=self._sequence,
            time_nanos=request.time_nanos,
            event=request.event,
            occurrence=request.occurrence,
            epoch=self._epoch,
            gather_nanos=gather_nanos,
            held_nanos=held,
            cause=cause,
            program_clock=program_clock,
            waited_nanos=self._waited_nanos,
            stopped_nanos=self.spending.stopped(gather_nanos, holds=holds),
        )
        self._last_keyframe = None
        return Snapshot(self._last_event, parts, tuple(self.counts), names, lost=self.lost)

    def set_trigger(self, trigger: Trigger, spaces: tuple[Space, ...] | None = None) -> None:
        """Set, replace or remove a trigger; by the session, or from the driver's side between events.

        Args:
            trigger: The trigger.
            spaces: The spaces that clients know; None: the current ones.
        """
        if spaces is None:
            spaces = tuple(space.schema for space in self._spaces.values())
        self._requests += 1
        with self._setting:
            self.triggers.set(trigger, spaces)
        self.handoff_queue.post(TriggersChanged())

    def set_setting(self, ident: int, value: int) -> None:
        """Set a setting from the next gathered event on; by the session, or from the driver's side.

        Raises:
            LocalProtocolError: There is no such setting, or the value is invalid.
        """
        self.settings.set(ident, value)
        self._requests += 1
        self.handoff_queue.post(SettingsChanged())

    def add_observer(
        self,
        observer: Callable[[Event], None],
        reads: Callable[[ServerSpace], bool] | None = None,
        *,
        exact: bool = True,
    ) -> None:
        """Call a function at each event, in the driver's thread; see `Server.add_observer`."""
        self._observers.append(observer)
        self._observes_all |= exact
        self._observed.append(reads)
        self.live = True

    def end(self, reason: str, *, driver_failed: bool = False) -> None:
        """End the session: the target is gone, or the driver failed."""
        self.flow.end(reason, driver_failed=driver_failed)

    def wait_for_client(self, timeout_secs: float | None) -> bool:
        """Wait until a client is connected."""
        with self._arrived:
            return self._arrived.wait_for(lambda: self._audience.clients > 0, timeout_secs)

    # ------------------------------------------------- called by the session's side

    def set_audience(self, audience: Audience) -> None:
        """Set the clients and their subscriptions."""
        with self._arrived:
            self._audience = audience
            self._requests += 1
            self.live = audience.clients > 0 or bool(self._observers)
            self._arrived.notify_all()

    def set_filters(self, filters: tuple[EventFilter, ...]) -> tuple[EventFilter, ...]:
        """Replace filters by their kind of event; the others stay.

        Returns:
            All active filters.
        """
        by_event = {one.event: one for one in filters}
        self._requests += 1
        self.filters = tuple(by_event.get(one.event, one) for one in self.filters)
        return self.filters

    def post_keyframe(self) -> None:
        """Copy the data sent last and post it; called in a worker thread, because it may wait for an encoding.

        No snapshot is lost or doubled around it: both are posted with the same lock held.
        """
        with self._encoding:
            if self._last_keyframe is None:
                self._last_keyframe = copy_keyframe(
                    self._last_event, self._epoch, self._senders.values()
                )
            self.handoff_queue.post(self._last_keyframe)
