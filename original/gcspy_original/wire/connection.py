"""One end of the original's wire: bytes in, messages out.

    client                                server
    ClientGreeting        ──────▶
                          ◀──────  ServerGreeting, Bootstrap, one SpaceAdded for each space
    commands              ──────▶
                          ◀──────  commands

Knows the order of the messages, and the spaces, since values have the type of their stream and one
value for each tile. Does not know sockets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import Final

from gcspy_protocol.errors import LocalProtocolError, RemoteProtocolError

from gcspy_original.wire import messages as m
from gcspy_original.wire.fields import FieldReader
from gcspy_original.wire.limits import (
    MOST_COMMANDS,
    MOST_ENUM_NAMES,
    MOST_EVENTS,
    MOST_FRAME_BYTES,
    MOST_GREETING_BYTES,
    MOST_SPACES,
    MOST_TILES,
)
from gcspy_original.wire.schema import SpaceDefinition

__all__ = ["Connection", "Side"]

_LENGTH_BYTES: Final = 4


class Side(Enum):
    """The end whose bytes are read."""

    SERVER = auto()
    """They are a server's: this end is a client, or reads a stored trace."""
    CLIENT = auto()


class _Phase(Enum):
    GREETING = auto()
    BOOTSTRAP = auto()
    SPACES = auto()
    COMMANDS = auto()


class Connection:
    """Reads what one side says.

    Args:
        side: Whose bytes these are.
        events: How many kinds of event there are, if the client's bytes are read: it sends a filter
            for each.

    Attributes:
        server_name: The server's name; empty before its greeting.
        general_info: Text about the session.
        event_names: Names of the kinds of event.
        spaces: The spaces, by number.
        offset: Bytes of complete frames that were read.
    """

    def __init__(self, side: Side, *, events: int | None = None) -> None:
        self.server_name = ""
        self.general_info = ""
        self.event_names: tuple[str, ...] = ()
        self.spaces: dict[int, SpaceDefinition] = {}
        self.offset = 0
        self._side = side
        self._events = events
        self._phase = _Phase.GREETING
        self._spaces_to_come = 0
        self._data = bytearray()
        self._failed = False

    @property
    def described(self) -> bool:
        """Whether greetings, description and spaces are complete."""
        return self._phase is _Phase.COMMANDS

    @property
    def held_bytes(self) -> int:
        """Bytes of a frame that is not complete."""
        return len(self._data)

    def receive_data(self, data: bytes) -> None:
        """Take bytes of the other end.

        Raises:
            LocalProtocolError: An earlier frame was wrong: where the next one begins is not known.
        """
        if self._failed:
            raise LocalProtocolError("the original's wire was wrong before: nothing more is read")
        self._data += data

    def messages(self) -> Iterator[m.Message]:
        """Return the messages that are complete.

        Raises:
            RemoteProtocolError: A frame is wrong; nothing more can be read.
        """
        while not self._failed and (payload := self._next_payload()) is not None:
            start = self.offset + _LENGTH_BYTES
            fields = FieldReader(payload, start)
            try:
                found = list(self._read(fields))
            except RemoteProtocolError:
                self._failed = True
                raise
            self.offset = start + len(payload)
            yield from found

    def receive_eof(self) -> None:
        """Note that the other end has closed.

        Raises:
            RemoteProtocolError: It did so within a frame, or before its description was complete.
        """
        if self._data:
            raise RemoteProtocolError(
                f"the original's wire ends within a frame: {len(self._data):,} bytes of it are there (byte {self.offset:,})",
                offset=self.offset,
            )
        if not self.described:
            raise RemoteProtocolError(
                f"the original's wire ends before the description of its spaces is complete (byte {self.offset:,})",
                offset=self.offset,
            )

    def _next_payload(self) -> bytes | None:
        if len(self._data) < _LENGTH_BYTES:
            return None
        length = int.from_bytes(self._data[:_LENGTH_BYTES], "big")
        most = MOST_GREETING_BYTES if self._phase is _Phase.GREETING else MOST_FRAME_BYTES
        if length > most:
            self._failed = True
            raise RemoteProtocolError(
                f"a frame of {length:,} bytes, the limit is {most:,}: this is not the wire of GCspy 1.0 (byte {self.offset:,})",
                offset=self.offset,
            )
        end = _LENGTH_BYTES + length
        if len(self._data) < end:
            return None
        payload = bytes(self._data[_LENGTH_BYTES:end])
        del self._data[:end]
        return payload

    def _read(self, fields: FieldReader) -> Iterator[m.Message]:
        if self._phase is _Phase.GREETING:
            yield self._greeting(fields)
        elif self._phase is _Phase.BOOTSTRAP:
            yield self._bootstrap(fields)
        elif self._phase is _Phase.SPACES:
            yield self._space_added(fields)
        else:
            yield from self._commands(fields)
            return
        fields.end("a frame of the greeting")

    def _greeting(self, fields: FieldReader) -> m.Message:
        magic = fields.text("the magic word")
        version = fields.number("the version")
        if magic != m.MAGIC or version != m.VERSION:
            raise fields.wrong(
                f"the greeting is {magic[:40]!r}, version {version}; the original's is {m.MAGIC!r}, version {m.VERSION}"
            )
        if self._side is Side.CLIENT:
            self._phase = _Phase.COMMANDS
            return m.ClientGreeting(pause_at_start=fields.boolean("pause at start"))
        self._phase = _Phase.BOOTSTRAP
        self.server_name = fields.text("the server's name")
        return m.ServerGreeting(name=self.server_name)

    def _bootstrap(self, fields: FieldReader) -> m.Bootstrap:
        spaces = fields.count("the number of spaces", MOST_SPACES, short=True)
        self.general_info = fields.text("the general information")
        events = fields.count("the number of kinds of event", MOST_EVENTS, short=True)
        self.event_names = fields.some_texts(events, "the name of an event")
        self._events = events
        self._spaces_to_come = spaces
        self._phase = _Phase.SPACES if spaces else _Phase.COMMANDS
        return m.Bootstrap(spaces=spaces, general_info=self.general_info, events=self.event_names)

    def _space_added(self, fields: FieldReader) -> m.SpaceAdded:
        space = SpaceDefinition.read(fields)
        if space.id in self.spaces:
            raise fields.wrong(f"space {space.id} is described twice")
        self._keep(space, fields)
        self._spaces_to_come -= 1
        if not self._spaces_to_come:
            self._phase = _Phase.COMMANDS
        return m.SpaceAdded(space=space)

    def _keep(self, space: SpaceDefinition, fields: FieldReader) -> None:
        others = sum(one.tiles for number, one in self.spaces.items() if number != space.id)
        if others + space.tiles > MOST_TILES:
            raise fields.wrong(
                f"all spaces have {others + space.tiles:,} tiles; the limit is {MOST_TILES:,}"
            )
        self.spaces[space.id] = space

    def _commands(self, fields: FieldReader) -> Iterator[m.Command]:
        mark = fields.number("the mark of a list of commands")
        if mark != m.START_MARK:
            raise fields.wrong(f"a list of commands begins with {mark}, not {m.START_MARK}")
        readers = _OF_SERVER if self._side is Side.SERVER else _OF_CLIENT
        count = 0
        while command := fields.byte("a command"):
            count += 1
            if count > MOST_COMMANDS:
                raise fields.wrong(f"a frame of more than {MOST_COMMANDS:,} commands")
            reader = readers.get(command)
            if reader is None:
                raise fields.wrong(
                    f"command {command}: a {self._side.name.lower()} of the original sends {', '.join(map(str, readers))}"
                )
            yield reader(self, fields)
        mark = fields.number("the end of a list of commands")
        if mark != m.END_MARK:
            raise fields.wrong(f"a list of commands ends with {mark}, not {m.END_MARK}")
        fields.end("a list of commands")

    # ------------------------------------------------------------------- bodies

    def _space(self, fields: FieldReader) -> SpaceDefinition:
        number = fields.index("the number of a space")
        space = self.spaces.get(number)
        if space is None:
            raise fields.wrong(f"there is no space {number}")
        return space

    def _one_per_tile(self, fields: FieldReader, space: SpaceDefinition) -> int:
        count = fields.count("the number of values", MOST_TILES)
        if count != space.tiles:
            raise fields.wrong(f"space {space.name!r}: {count:,} values for {space.tiles:,} tiles")
        return count

    def _stream_values(self, fields: FieldReader) -> m.StreamValues:
        space = self._space(fields)
        number = fields.index("the number of a stream")
        stream = space.stream(number)
        if stream is None:
            raise fields.wrong(f"space {space.name!r} has no stream {number}")
        count = self._one_per_tile(fields, space)
        return m.StreamValues(
            space=space.id,
            stream=number,
            values=fields.array(count, stream.dtype, f"the values of stream {stream.name!r}"),
        )

    def _control_values(self, fields: FieldReader) -> m.ControlValues:
        space = self._space(fields)
        count = self._one_per_tile(fields, space)
        return m.ControlValues(space=space.id, values=fields.array(count, "u1", "control flags"))

    def _event(self, fields: FieldReader) -> m.Event:
        event = fields.index("the number of an event")
        if event >= len(self.event_names):
            raise fields.wrong(
                f"there is no kind of event {event}: there are {len(self.event_names)}"
            )
        return m.Event(
            event=event,
            elapsed_millis=fields.number("the elapsed time"),
            compensation_millis=fields.number("the compensation time"),
        )

    def _event_counts(self, fields: FieldReader) -> m.EventCounts:
        count = fields.count("the number of counts", MOST_EVENTS)
        if count != len(self.event_names):
            raise fields.wrong(f"{count} counts for {len(self.event_names)} kinds of event")
        return m.EventCounts(counts=tuple(fields.array(count, "i4", "counts").tolist()))

    def _summary(self, fields: FieldReader) -> m.Summary:
        space = self._space(fields)
        stream = fields.index("the number of a stream")
        if space.stream(stream) is None:
            raise fields.wrong(f"space {space.name!r} has no stream {stream}")
        count = fields.count("the length of a summary", MOST_ENUM_NAMES)
        values = fields.array(count, "i4", "a summary").tolist()
        return m.Summary(space=space.id, stream=stream, values=tuple(values))

    def _space_info(self, fields: FieldReader) -> m.SpaceInfo:
        return m.SpaceInfo(space=self._space(fields).id, text=fields.text("the text about a space"))

    def _space_changed(self, fields: FieldReader) -> m.SpaceChanged:
        space = SpaceDefinition.read(fields)
        if space.id not in self.spaces:
            raise fields.wrong(f"there is no space {space.id}")
        self._keep(space, fields)
        return m.SpaceChanged(space=space)

    def _event_filters(self, fields: FieldReader) -> m.EventFilters:
        count = fields.count("the number of filters", MOST_EVENTS, short=True)
        if self._events is not None and count != self._events:
            raise fields.wrong(f"{count} filters for {self._events} kinds of event")
        return m.EventFilters(
            filters=tuple(
                m.EventFilter(
                    enabled=fields.boolean("whether events are sent"),
                    delay_millis=fields.number("a delay"),
                    pause=fields.boolean("whether an event pauses"),
                    period=fields.number("a period"),
                )
                for _ in range(count)
            )
        )


_Reader = Callable[[Connection, FieldReader], m.Command]

_OF_SERVER: Final[dict[int, _Reader]] = {
    2: lambda _connection, _fields: m.Paused(),
    6: lambda _connection, _fields: m.Shutdown(),
    7: Connection._stream_values,
    8: Connection._event,
    9: Connection._control_values,
    11: Connection._event_counts,
    12: Connection._summary,
    13: Connection._space_info,
    14: Connection._space_changed,
}

_OF_CLIENT: Final[dict[int, _Reader]] = {
    1: lambda _connection, _fields: m.PauseRequest(),
    3: lambda _connection, _fields: m.Restart(),
    4: lambda _connection, _fields: m.PlayOne(),
    5: lambda _connection, _fields: m.ShutdownRequest(),
    10: Connection._event_filters,
}
