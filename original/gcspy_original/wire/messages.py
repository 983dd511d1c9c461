"""The messages of the original's wire, and their bytes.

Every message is a frame: its length as an int, then the payload. The greetings and the description
of the session have no marks. All later frames are lists of commands:

    int 666666, then (command byte, body) …, byte 0, int -666

| command | message | from | body |
|---|---|---|---|
| 1 | PauseRequest | client | |
| 2 | Paused | server | |
| 3 | Restart | client | |
| 4 | PlayOne | client | |
| 5 | ShutdownRequest | client | |
| 6 | Shutdown | server | |
| 7 | StreamValues | server | byte space, byte stream, int n, n values of the stream's type |
| 8 | Event | server | byte event, int elapsed ms, int compensation ms |
| 9 | ControlValues | server | byte space, int n, n bytes |
| 10 | EventFilters | client | short n, n × (bool enabled, int delay ms, bool pause, int period) |
| 11 | EventCounts | server | int n, n ints |
| 12 | Summary | server | byte space, byte stream, int n, n ints |
| 13 | SpaceInfo | server | byte space, text |
| 14 | SpaceChanged | server | a whole space again |

Source: runs of the original's programs, watched from outside. Knows bytes; a connection knows their
order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from numpy.typing import NDArray

from gcspy_original.wire.fields import FieldWriter
from gcspy_original.wire.schema import SpaceDefinition

__all__ = [
    "END_MARK",
    "START_MARK",
    "Bootstrap",
    "ClientGreeting",
    "Command",
    "ControlValues",
    "Event",
    "EventCounts",
    "EventFilter",
    "EventFilters",
    "MAGIC",
    "Message",
    "PauseRequest",
    "Paused",
    "PlayOne",
    "Restart",
    "ServerGreeting",
    "Shutdown",
    "ShutdownRequest",
    "SpaceAdded",
    "SpaceChanged",
    "SpaceInfo",
    "StreamValues",
    "Summary",
    "VERSION",
    "commands",
    "encode",
]

MAGIC: Final = "GCspy666"
VERSION: Final = 1
START_MARK: Final = 666666
END_MARK: Final = -666


@dataclass(frozen=True, kw_only=True, slots=True)
class ClientGreeting:
    """The client's first frame: text GCspy666, int 1, bool."""

    pause_at_start: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerGreeting:
    """The server's first frame: text GCspy666, int 1, its name."""

    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Bootstrap:
    """The description of the session: short spaces, text, short events, the names of the events."""

    spaces: int
    general_info: str
    events: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class SpaceAdded:
    """A space, one frame each behind the description."""

    space: SpaceDefinition


@dataclass(frozen=True, slots=True)
class PauseRequest:
    """Pause after the next event that passes its filter."""


@dataclass(frozen=True, slots=True)
class Paused:
    """The target waits; sent once when a pause begins, and not after a step."""


@dataclass(frozen=True, slots=True)
class Restart:
    """Continue."""


@dataclass(frozen=True, slots=True)
class PlayOne:
    """Continue until after the next event that passes its filter."""


@dataclass(frozen=True, slots=True)
class ShutdownRequest:
    """The client leaves."""


@dataclass(frozen=True, slots=True)
class Shutdown:
    """The server has nothing more for this client; comes after the next event that passes its filter."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class StreamValues:
    """The values of all tiles; shape (tiles,), in the stream's type."""

    space: int
    stream: int
    values: NDArray[Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """The end of an event's data.

    Attributes:
        event: Its kind.
        elapsed_millis: Since the previous one, without pauses.
        compensation_millis: Of that, for gathering.
    """

    event: int
    elapsed_millis: int = 0
    compensation_millis: int = 0


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ControlValues:
    """The control flags of all tiles; shape (tiles,), u1."""

    space: int
    values: NDArray[Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class EventFilter:
    """The server's treatment of events of one kind."""

    enabled: bool = True
    delay_millis: int = 0
    pause: bool = False
    period: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class EventFilters:
    """A filter for each kind of event; a server of the original fails if there are more."""

    filters: tuple[EventFilter, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class EventCounts:
    """Occurrences of each kind of event."""

    counts: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """The summary of a stream: 1 number, 2 for percents, one per name for enums."""

    space: int
    stream: int
    values: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class SpaceInfo:
    """A text about a space."""

    space: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SpaceChanged:
    """A space again, since its tiles have changed."""

    space: SpaceDefinition


Command = (
    PauseRequest
    | Paused
    | Restart
    | PlayOne
    | ShutdownRequest
    | Shutdown
    | StreamValues
    | Event
    | ControlValues
    | EventFilters
    | EventCounts
    | Summary
    | SpaceInfo
    | SpaceChanged
)
Message = ClientGreeting | ServerGreeting | Bootstrap | SpaceAdded | Command


def encode(message: Message) -> bytes:
    """Return the frame of a message, with its length.

    Raises:
        LocalProtocolError: A number does not fit.
    """
    fields = FieldWriter()
    match message:
        case ClientGreeting():
            fields.text(MAGIC)
            fields.number(VERSION)
            fields.boolean(message.pause_at_start)
        case ServerGreeting():
            fields.text(MAGIC)
            fields.number(VERSION)
            fields.text(message.name)
        case Bootstrap():
            fields.short(message.spaces)
            fields.text(message.general_info)
            fields.short(len(message.events))
            for name in message.events:
                fields.text(name)
        case SpaceAdded():
            message.space.write(fields)
        case _:
            return commands([message])
    return fields.frame()


def commands(messages: Iterable[Command]) -> bytes:
    """Return one frame with several commands.

    Raises:
        LocalProtocolError: A number does not fit.
    """
    fields = FieldWriter()
    fields.number(START_MARK)
    for message in messages:
        fields.byte(_NUMBERS[type(message)])
        _write_body(fields, message)
    fields.byte(0)
    fields.number(END_MARK)
    return fields.frame()


_NUMBERS: Final[dict[type, int]] = {
    PauseRequest: 1,
    Paused: 2,
    Restart: 3,
    PlayOne: 4,
    ShutdownRequest: 5,
    Shutdown: 6,
    StreamValues: 7,
    Event: 8,
    ControlValues: 9,
    EventFilters: 10,
    EventCounts: 11,
    Summary: 12,
    SpaceInfo: 13,
    SpaceChanged: 14,
}


def _write_body(fields: FieldWriter, message: Command) -> None:
    match message:
        case StreamValues():
            fields.byte(message.space, "the number of a space")
            fields.byte(message.stream, "the number of a stream")
            fields.number(len(message.values))
            fields.array(message.values)
        case Event():
            fields.byte(message.event, "the number of an event")
            fields.number(message.elapsed_millis)
            fields.number(message.compensation_millis)
        case ControlValues():
            fields.byte(message.space, "the number of a space")
            fields.number(len(message.values))
            fields.array(message.values)
        case EventFilters():
            fields.short(len(message.filters))
            for one in message.filters:
                fields.boolean(one.enabled)
                fields.number(one.delay_millis)
                fields.boolean(one.pause)
                fields.number(one.period)
        case EventCounts():
            fields.number(len(message.counts))
            for number in message.counts:
                fields.number(number)
        case Summary():
            fields.byte(message.space, "the number of a space")
            fields.byte(message.stream, "the number of a stream")
            fields.number(len(message.values))
            for number in message.values:
                fields.number(number)
        case SpaceInfo():
            fields.byte(message.space, "the number of a space")
            fields.text(message.text)
        case SpaceChanged():
            message.space.write(fields)
        case _:
            return  # the others have no body
