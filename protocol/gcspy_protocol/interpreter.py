"""The client interpreter: messages in, the state of the session out (paper section 5.1).

It assigns values to the streams of their spaces, applies resizes and schema changes, and reports at
each event what changed, so that a view redraws no more than that. The window, the text client and
the recorder all use it.

Knows the model; does not know sockets, files or pixels.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gcspy_protocol import messages as m
from gcspy_protocol.compiled.stream_changes import put_values
from gcspy_protocol.errors import RemoteProtocolError
from gcspy_protocol.limits import CLIENT_LIMITS, Limits
from gcspy_protocol.messages import Event, Message, StreamDelta, StreamKey, Summary, Tiles, Welcome
from gcspy_protocol.model import (
    CONTROL_STREAM,
    ControlState,
    EventFilter,
    Mode,
    Naming,
    PauseActsOn,
    Space,
    Stream,
)
from gcspy_protocol.schema import MAX_ENUM_NAMES
from gcspy_protocol.streams.named_stream import NamedStream, named, steady, tally
from gcspy_protocol.streams.names import TileNameTable
from gcspy_protocol.streams.remap import Remap

__all__ = ["ClientInterpreter", "EventChange", "SpaceState", "StreamState"]

_MOST_RESIZES = 4
"""How often the resizes of an event may pass over the limit for all values, counting tiles before and after."""

_PERIODS = 3
"""Periods without new values after which values are stale."""
_UNKNOWN_PERIOD_NANOS = 2_000_000_000
"""The same for values that were gathered once."""

_CONTROL = Stream(id=0, name="control", dtype="u1", maximum=255, default=1)


class StreamState:
    """The latest values of one stream.

    Attributes:
        defined: Its definition in the bootstrap.
        names: If its values are numbers of names: the known names; otherwise empty.
        places: The most frequent values, if it has names; kept from event to event, and may be
            passed in.
        dtype: Type of the values, little-endian.
        sequence: Sequence of the snapshot in which they were gathered; 0 before the first.
        time_nanos: When they were gathered.
        period_nanos: How long before that they had been gathered last; 0: unknown.
        event: Event at which they were gathered.
        occurrence: Its occurrence number.
        told: The driver's summary, or None.
    """

    def __init__(self, schema: Stream, count: int, control: StreamState | None = None) -> None:
        self.defined = schema
        self.names: tuple[str, ...] = ()
        self._control = control
        self._counted: _Counted | None = None
        self.places: tuple[int, ...] = ()
        self.dtype = np.dtype("<" + schema.dtype)
        self._count = count
        self._values: NDArray[Any] = np.empty(0, dtype=self.dtype)
        self._known: NDArray[np.bool_] | None = None
        self._blank = count > 0
        self.sequence = 0
        self.time_nanos = 0
        self.period_nanos = 0
        self.event = 0
        self.occurrence = 0
        self.told: Summary | None = None

    @property
    def schema(self) -> Stream:
        """Its definition in the bootstrap, or with the currently known names."""
        return self._count_names().schema if self.names else self.defined

    @property
    def summary(self) -> Summary | None:
        """The driver's summary; if values are numbers of names, how many tiles have each; or None."""
        if self.defined.names_from is None:
            return self.told
        return self._count_names().summary if self.names and self.sequence else None

    def _count_names(self) -> _Counted:
        """Count how many tiles have each name, on request, once per event."""
        control = self._control
        state = (self.sequence, 0 if control is None else control.sequence, self._count)
        before = self._counted
        if before is not None and before.state == state and before.names is self.names:
            return before
        flags = np.ones(self._count, dtype=np.uint8) if control is None else control.values
        counts = tally(self.values, self.known, flags, len(self.names))
        self.places = steady(self.places, counts, self.defined)
        schema = named(self.defined, self.names, self.places)
        if before is not None and before.schema == schema:
            schema = (
                before.schema
            )  # the same object: a cheap comparison for code that checks whether it changed
        summary = Summary(
            space=0,
            stream=schema.id,
            sequence=self.sequence,
            time_nanos=self.time_nanos,
            values=tuple(counts.tolist()),
            covered=int(counts.sum()),
        )
        self._counted = _Counted(state, self.names, schema, summary)
        return self._counted

    @property
    def values(self) -> NDArray[Any]:
        """Shape (tiles,): do not change them; the memory is reused. Before the first event all are unknown."""
        self._fill_in()
        return self._values

    @property
    def known(self) -> NDArray[np.bool_] | None:
        """Shape (tiles,): where values are known; None when all are."""
        self._fill_in()
        return self._known

    @known.setter
    def known(self, known: NDArray[np.bool_] | None) -> None:
        self._fill_in()
        self._known = known

    def copy(self) -> StreamState:
        """A copy with its own arrays."""
        twin = copy(self)
        twin._values = self._values.copy()
        twin._known = None if self._known is None else self._known.copy()
        return twin

    def _fill_in(self) -> None:
        """Make the arrays of a stream without values, for a reader that comes before its values.

        Nothing reads between the tiles and the values of a keyframe. For 10,000,000 tiles,
        allocating arrays that are overwritten at once took longer than the values.
        """
        if self._blank:
            self._blank = False
            self._values = np.full(self._count, self.defined.default, dtype=self.dtype)
            self._known = np.zeros(self._count, dtype=np.bool_)

    def is_fresh(self, event: Event) -> bool:
        """Whether the values were gathered at this event."""
        return self.sequence == event.sequence

    def is_stale(self, event: Event) -> bool:
        """Whether the values are older at this event than is usual for them, and must be shown as such.

        A driver may gather a space more rarely than others, once a second say: its values are as
        fresh as they get until some of its periods have passed.
        """
        if self.is_fresh(event):
            return False
        limit = _PERIODS * self.period_nanos if self.period_nanos else _UNKNOWN_PERIOD_NANOS
        return event.time_nanos - self.time_nanos >= limit

    def is_known(self, tile: int) -> bool:
        """Whether the value of a tile is known."""
        return self.known is None or bool(self.known[tile])

    def stamp(self, message: StreamKey | StreamDelta | Event) -> None:
        """Note when the values were gathered: as a message says, or at an event.

        Backwards when somebody looks back: then it says nothing of the period.
        """
        if self.sequence and message.time_nanos > self.time_nanos:
            self.period_nanos = message.time_nanos - self.time_nanos
        self.sequence = message.sequence
        self.time_nanos = message.time_nanos
        self.event = message.event
        self.occurrence = message.occurrence

    def _check(self, message: StreamKey | StreamDelta, count: int) -> None:
        where = f"space {message.space} stream {message.stream}"
        if count != self._count:
            raise RemoteProtocolError(
                f"{where}: values of {count} tiles, the space has {self._count}"
            )
        if message.values.dtype != self.dtype:
            raise RemoteProtocolError(
                f"{where}: values are {message.values.dtype}, the schema says {self.dtype}"
            )

    def replace(self, message: StreamKey) -> None:
        """Replace all values."""
        self._check(message, len(message.values))
        if len(self._values) == self._count:
            np.copyto(self._values, message.values)
        else:
            self._values = message.values.copy()
        self._blank = False
        self._known = None if message.known is None else message.known.copy()
        self.stamp(message)

    def update(self, message: StreamDelta) -> None:
        """Apply changed values.

        Raises:
            RemoteProtocolError: Their base is not what this client has.
        """
        self._check(message, message.count)
        if message.base_sequence != self.sequence:
            raise RemoteProtocolError(
                f"space {message.space} stream {message.stream}: changes since snapshot {message.base_sequence}, "
                f"here are those of {self.sequence}"
            )
        if not put_values(self.values, message.indices, message.values):
            self.values[message.indices] = message.values
        if message.known is not None and self.known is None:
            self.known = np.ones(len(self.values), dtype=np.bool_)
        if self.known is not None:
            self.known[message.indices] = True if message.known is None else message.known
            if bool(self.known.all()):
                self.known = None
        self.stamp(message)

    def resize(self, remap: Remap) -> None:
        """Apply a resize: kept tiles keep their values, new ones are unknown."""
        if remap.kept:
            self._values, self._known = (
                remap.values(self.values, self.defined.default),
                remap.known(self.known),
            )
        else:
            self._known = None
            if len(self._values) != remap.count:
                self._values = np.empty(0, dtype=self.dtype)
        self._count = remap.count
        self._blank = not remap.kept and remap.count > 0


@dataclass(frozen=True, slots=True)
class _Counted:
    """Names with how many tiles have them.

    Attributes:
        state: Sequences of values and control stream, and tiles, at the time of counting.
        names: The names at the time of counting.
        schema: The stream with them.
        summary: The counts.
    """

    state: tuple[int, int, int]
    names: tuple[str, ...]
    schema: NamedStream
    summary: Summary


class SpaceState:
    """A space with the latest values of its streams.

    Attributes:
        space: Its definition in the bootstrap.
        count: Tiles.
        names: Names and stable keys of the tiles.
        streams: By id, in the order of the schema.
        control: The control stream.
        info: Text about the space, of the latest event.
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        self.count = 0
        self.names = TileNameTable(space.naming)
        self.control = StreamState(_CONTROL, 0)
        self.streams = {stream.id: StreamState(stream, 0, self.control) for stream in space.streams}
        self.info = ""
        streams = (*self.streams.values(), self.control)
        self._tile_bytes = sum(1 + stream.dtype.itemsize for stream in streams) + (
            16 if space.naming is Naming.EXTENTS else 0
        )

    def copy(self) -> SpaceState:
        """A copy with its own arrays; objects that are never changed in place are shared."""
        twin = copy(self)
        twin.names = self.names.copy()
        twin.control = self.control.copy()
        twin.streams = {number: stream.copy() for number, stream in self.streams.items()}
        for stream in twin.streams.values():
            stream._control = twin.control
        return twin

    def stream(self, stream_id: int) -> StreamState:
        """A stream by id, including the control stream.

        Raises:
            RemoteProtocolError: The space has no such stream.
        """
        found = self.control if stream_id == CONTROL_STREAM else self.streams.get(stream_id)
        if found is None:
            raise RemoteProtocolError(f"space {self.space.id} has no stream {stream_id}")
        return found

    def bytes_for(self, count: int) -> int:
        """Memory for the values of this many tiles: for each the integer and whether it is known."""
        return count * self._tile_bytes

    def resize(self, tiles: Tiles) -> None:
        """Apply a Tiles message.

        Raises:
            RemoteProtocolError: Its naming differs, or it keeps tiles that do not exist.
        """
        if tiles.naming is not self.space.naming:
            raise RemoteProtocolError(
                f"space {self.space.id}: tiles named by {tiles.naming}, not {self.space.naming}"
            )
        remap = Remap(tiles.old_starts, tiles.new_starts, tiles.lengths, tiles.count)
        if remap.old_end > self.count:
            raise RemoteProtocolError(
                f"space {tiles.space}: kept tiles up to {remap.old_end} of {self.count}"
            )
        for stream in (*self.streams.values(), self.control):
            stream.resize(remap)
        self.names.resize(tiles, remap)
        self.count = tiles.count


@dataclass(frozen=True, slots=True)
class EventChange:
    """The changes of an event, so that a view redraws no more than these.

    Attributes:
        event: The event.
        changed: Per (space, stream) the changed tiles, i64; None when all may have changed.
        resized: The spaces whose tiles were resized, and how: the last time, if several times.
        resized_again: The spaces that were resized several times.
        renamed: The spaces of which texts of tiles came, or were moved.
    """

    event: Event
    changed: dict[tuple[int, int], NDArray[np.int64] | None] = field(default_factory=dict)
    resized: dict[int, Tiles] = field(default_factory=dict)
    resized_again: set[int] = field(default_factory=set)
    renamed: frozenset[int] = frozenset()


class ClientInterpreter:
    """The state of a session, as one client knows it.

    Args:
        limits: Limits on what the server may send.

    Attributes:
        welcome: The server's greeting; None before.
        spaces: By id, in the order of their definition.
        epoch: Number of the schema.
        counters: Occurrences per kind of event, including filtered ones.
        state: State of the control flow.
        state_reason: Why.
        driver_failed: Whether it ended because the driver failed.
        slowed_nanos: Nanoseconds between two ticks of the clock while nothing changes; 0: it has its
            full rate.
        filters: The active event filters, by event id.
        clients: The connected clients, with controller and successor.
        missed_total: Events that this client missed.
        playback: A player's description of its playback; None: the session is live.
        position: Number of the latest event in the played recording; 0 before the first, and in a
            live session.
        triggers: All triggers, as last announced.
        fired: The latest firing, or None.
        settings: The settings, as last announced.
        budget: The latest report on the cost budget; None: none was received.
        last_event: The latest event, or None.
        last_change: What that event changed; None before the first.
    """

    def __init__(self, *, limits: Limits = CLIENT_LIMITS) -> None:
        self._limits = limits
        self.welcome: Welcome | None = None
        self.spaces: dict[int, SpaceState] = {}
        self.epoch = 0
        self.counters: tuple[int, ...] = ()
        self.mode: Mode | None = None
        self.state = ControlState.RUNNING
        self.state_reason = ""
        self.driver_failed = False
        self.slowed_nanos = 0
        self.filters: dict[int, EventFilter] = {}
        self.clients = m.Clients(clients=())
        self.missed_total = 0
        self.playback: m.Playback | None = None
        self.position = 0
        self.triggers = m.Triggers(triggers=())
        self.fired: m.Fired | None = None
        self.settings = m.Settings(settings=())
        self.budget: m.Budget | None = None
        self.looked: m.Looked | None = None
        self.last_event: Event | None = None
        self.last_change: EventChange | None = None
        self._renamed: set[int] = set()
        self._values_bytes = 0
        self._event_bytes = 0
        self._change = EventChange(Event(sequence=0, time_nanos=0, event=0, occurrence=0, epoch=0))

    def copy(self) -> ClientInterpreter:
        """An independent copy of the state; call it between events only."""
        twin = copy(self)
        twin.spaces = {number: space.copy() for number, space in self.spaces.items()}
        twin.filters = dict(self.filters)
        twin._renamed = set(self._renamed)
        twin._change = EventChange(self._change.event)
        return twin

    @property
    def pause_acts_on(self) -> PauseActsOn:
        """The word for what a pause stops."""
        return self.welcome.pause_acts_on if self.welcome else PauseActsOn.PROGRAM

    def is_controller(self) -> bool:
        """Whether this client controls the session."""
        return self.welcome is not None and self.clients.controller == self.welcome.client_id

    def event_name(self, event_id: int) -> str:
        """Name of a kind of event; its number if it has none."""
        if self.welcome is not None and event_id < len(self.welcome.events):
            return self.welcome.events[event_id].name
        return f"event {event_id}"

    def apply(self, message: Message) -> EventChange | None:
        """Apply one message.

        Returns:
            The change, if the message ends an event.

        Raises:
            RemoteProtocolError: It contradicts earlier messages.
        """
        match message:
            case StreamKey():
                self._space(message.space).stream(message.stream).replace(message)
                self._change.changed[message.space, message.stream] = None
            case StreamDelta():
                self._space(message.space).stream(message.stream).update(message)
                self._note_changed(message)
            case Summary():
                self._summarise(message)
            case Tiles():
                self._resize(message)
            case m.SpaceInfo():
                self._space(message.space).info = message.text
            case m.NewNames():
                self._space(message.space).names.add(message.first, message.names)
                self._renamed.add(message.space)
            case Event():
                return self._end(message)
            case _:
                self._follow(message)
        return None

    def _space(self, space_id: int) -> SpaceState:
        space = self.spaces.get(space_id)
        if space is None:
            raise RemoteProtocolError(f"there is no space {space_id}")
        return space

    def _resize(self, tiles: Tiles) -> None:
        # A Tiles of 32 bytes can claim 2**25 tiles, and a space can have 512 streams: 150 GB.
        space = self._space(tiles.space)
        needed = self._values_bytes - space.bytes_for(space.count) + space.bytes_for(tiles.count)
        if needed > self._limits.values_bytes:
            raise RemoteProtocolError(
                f"space {tiles.space}: with {tiles.count} tiles the session would take {needed} bytes, "
                f"over the limit of {self._limits.values_bytes}"
            )
        self._work(space, tiles.count + (space.count if len(tiles.lengths) else 0))
        self._values_bytes = needed
        space.resize(tiles)
        if space.space.naming is Naming.STRINGS:
            self._renamed.add(tiles.space)
        if tiles.space in self._change.resized:
            self._change.resized_again.add(tiles.space)
        self._change.resized[tiles.space] = tiles

    def _work(self, space: SpaceState, count: int) -> None:
        """Limit the passes over all tiles of an event: a hundred resizes of a large space would take minutes.

        Raises:
            RemoteProtocolError: There are too many.
        """
        self._event_bytes += space.bytes_for(count)
        most = _MOST_RESIZES * self._limits.values_bytes
        if self._event_bytes > most:
            raise RemoteProtocolError(
                f"space {space.space.id}: the resizes of one event go through {self._event_bytes} bytes, "
                f"over the limit of {most}"
            )

    def _note_changed(self, message: StreamDelta) -> None:
        key = message.space, message.stream
        if key in self._change.changed:
            self._change.changed[key] = None
        else:
            self._change.changed[key] = message.indices

    def _rename(self, space_id: int) -> None:
        """Update the names of the streams whose values are tiles of a space."""
        space = self.spaces.get(space_id)
        if space is None or space.space.naming is not Naming.STRINGS:
            return
        names: tuple[str, ...] | None = None
        for other in self.spaces.values():
            for stream in other.streams.values():
                if stream.defined.names_from == space_id:
                    names = space.names.all_texts(MAX_ENUM_NAMES) if names is None else names
                    stream.names = names

    def _summarise(self, message: Summary) -> None:
        stream = self._space(message.space).stream(message.stream)
        if len(message.values) != stream.defined.summary_length:
            raise RemoteProtocolError(
                f"space {message.space} stream {message.stream}: a summary of {len(message.values)} numbers, "
                f"the schema needs {stream.defined.summary_length}"
            )
        stream.told = message

    def _end(self, event: Event) -> EventChange:
        if self.welcome is None or event.event >= len(self.welcome.events):
            raise RemoteProtocolError(f"there is no kind of event {event.event}")
        if event.epoch != self.epoch:
            raise RemoteProtocolError(
                f"an event of schema epoch {event.epoch}, here is {self.epoch}"
            )
        for space_id in self._renamed:
            self._rename(space_id)
        self._event_bytes = 0
        collected = self._change
        change = EventChange(
            event,
            collected.changed,
            collected.resized,
            collected.resized_again,
            frozenset(self._renamed),
        )
        self._renamed.clear()
        self._change = EventChange(event)
        self.last_event, self.last_change = event, change
        return change

    def _follow(self, message: Message) -> None:
        """Apply a message that is not part of an event."""
        match message:
            case Welcome():
                self.welcome = message
                self.mode = message.mode
            case m.SpaceDefined():
                if message.space.id in self.spaces:
                    raise RemoteProtocolError(f"space {message.space.id} is defined twice")
                if len(self.spaces) >= self._limits.spaces:
                    raise RemoteProtocolError(f"more than {self._limits.spaces} spaces")
                self.spaces[message.space.id] = SpaceState(message.space)
                # A space that already has its names may name it.
                self._renamed |= {
                    one.names_from for one in message.space.streams if one.names_from is not None
                }
            case m.SpaceRemoved():
                space = self._space(message.space)
                self._values_bytes -= space.bytes_for(space.count)
                del self.spaces[message.space]
            case m.EpochEnd():
                self.epoch = message.epoch
            case m.TileNames():
                self._space(message.space).names.add_page(message)
                self._rename(message.space)
            case m.Counters():
                self.counters = message.counts
            case m.State():
                self.state, self.state_reason = message.state, message.reason
                self.driver_failed = message.driver_failed
                self.slowed_nanos = message.slowed_nanos
            case m.Filters():
                self.filters = {f.event: f for f in message.filters}
            case m.Clients():
                self.clients = message
            case m.Missed():
                self.missed_total = message.total
            case _:
                self._follow_others(message)

    def _follow_others(self, message: Message) -> None:
        """Apply messages of a player, about triggers, settings and the budget."""
        match message:
            case m.Triggers():
                self.triggers = message
            case m.Fired():
                self.fired = message
            case m.Settings():
                self.settings = message
                if self.mode is not Mode.PLAYBACK:
                    self.mode = next(
                        (
                            one.mode
                            for one in message.settings
                            if one.applies and one.mode is not None
                        ),
                        self.mode,
                    )
            case m.Budget():
                self.budget = message
            case m.Playback():
                self.playback = message
            case m.Looked():
                self.looked = message
            case m.Position():
                self.position = message.number
            case _:
                return
