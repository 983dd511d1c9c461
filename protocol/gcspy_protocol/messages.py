"""The messages: the meaning of frames. SPEC.md section 4 has their table.

Each class is one frame type. They are frozen values of plain types and compared by content, so that
a test or a recorder can hold them. Only those with arrays are compared by identity, because arrays
have no single truth value. Arrays in received messages are views of the received bytes, or made
from them: do not change them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gcspy_protocol.attendance import Attend, Look, Looked
from gcspy_protocol.budget import Budget
from gcspy_protocol.details import Answer, Query
from gcspy_protocol.handshake.messages import Challenge, Proof
from gcspy_protocol.model import (
    ControlState,
    EventFilter,
    EventKind,
    Mode,
    Naming,
    PauseActsOn,
    Space,
)
from gcspy_protocol.playback import Follow, Playback, Position, Seek, SetPlayback, Timeline
from gcspy_protocol.settings import SetSetting, Settings
from gcspy_protocol.triggers import Fired, Trigger, Triggers

__all__ = [
    "Answer",
    "Attend",
    "Budget",
    "Challenge",
    "Client",
    "Clients",
    "Counters",
    "EpochEnd",
    "Error",
    "ErrorCode",
    "Event",
    "Filters",
    "Fired",
    "Follow",
    "FrameType",
    "Goodbye",
    "HandOver",
    "Hello",
    "Look",
    "Looked",
    "Lossless",
    "Message",
    "Missed",
    "NameSuccessor",
    "NewNames",
    "Pause",
    "Ping",
    "Playback",
    "Pong",
    "Position",
    "Proof",
    "Query",
    "Resume",
    "Seek",
    "SetFilters",
    "SetSetting",
    "Settings",
    "SetPlayback",
    "SpaceDefined",
    "SpaceInfo",
    "SpaceRemoved",
    "State",
    "Step",
    "StreamDelta",
    "StreamKey",
    "Subscribe",
    "Subscription",
    "Summary",
    "TakeControl",
    "TileNames",
    "TileNamesRequest",
    "Tiles",
    "Timeline",
    "Trigger",
    "Triggers",
    "Unknown",
    "Welcome",
]


class FrameType(IntEnum):
    """Numbers of the frame types. For 0x50 to 0x5F and 0x60 to 0x6F see SPEC.md section 9."""

    HELLO = 0x01
    WELCOME = 0x02
    ERROR = 0x03
    GOODBYE = 0x04
    PING = 0x05
    PONG = 0x06
    CHALLENGE = 0x07
    PROOF = 0x08
    SPACE_DEFINED = 0x10
    SPACE_REMOVED = 0x11
    EPOCH_END = 0x12
    TILE_NAMES = 0x13
    TILES = 0x20
    STREAM_KEY = 0x21
    STREAM_DELTA = 0x22
    SUMMARY = 0x23
    SPACE_INFO = 0x24
    NEW_NAMES = 0x25
    EVENT = 0x2F
    COUNTERS = 0x30
    STATE = 0x31
    FILTERS = 0x32
    CLIENTS = 0x33
    MISSED = 0x34
    PLAYBACK = 0x35
    TIMELINE = 0x36
    POSITION = 0x37
    TRIGGERS = 0x38
    FIRED = 0x39
    BUDGET = 0x3A
    LOOKED = 0x3B
    SET_FILTERS = 0x40
    PAUSE = 0x41
    RESUME = 0x42
    STEP = 0x43
    SUBSCRIBE = 0x44
    TAKE_CONTROL = 0x45
    HAND_OVER = 0x46
    NAME_SUCCESSOR = 0x47
    TILE_NAMES_REQUEST = 0x48
    SET_PLAYBACK = 0x49
    SEEK = 0x4A
    FOLLOW = 0x4B
    SETTINGS = 0x50
    SET_SETTING = 0x51
    QUERY = 0x52
    ANSWER = 0x53
    TRIGGER = 0x55
    LOSSLESS = 0x56
    ATTEND = 0x57
    LOOK = 0x58


class ErrorCode(IntEnum):
    """Why a request was refused or a connection ended."""

    PROTOCOL = 1
    """The peer violated the protocol; the connection ends."""
    TOKEN = 2
    """The token is missing or wrong; the connection ends."""
    NOT_CONTROLLER = 3
    """Only the controller may do this; the request had no effect."""
    BAD_REQUEST = 4
    """The request names something that does not exist; it had no effect."""
    BUSY = 5
    """Too many clients, or no room for one more; the connection ends."""
    TOO_SLOW = 6
    """The client did not read even its state messages; the connection ends."""
    TOO_MUCH = 7
    """The client requests more than it may: it is read more slowly; if it continues, the connection ends."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hello:
    """Client to server, first: name and requested roles.

    Attributes:
        client: Name of the program, as shown to the others.
        wants_control: Request to be the controller, granted if there is none.
        token: The secret of the session, over TLS; never logged.
        pause_at_connect: As controller, pause after the first transmission.
        codecs: Supported compressions; ``zstd`` is the only one.
        person: Name of the user, for the others; empty: not given.
        following: Follow the leader (SPEC.md section 8.12).
        nonce: 32 random bytes, new for each connection, which request proofs (SPEC.md section 4.4).
            Empty: no proofs.
    """

    client: str
    wants_control: bool = False
    token: str = ""
    pause_at_connect: bool = False
    codecs: tuple[str, ...] = ("zstd",)
    person: str = ""
    following: bool = False
    nonce: bytes = b""


@dataclass(frozen=True, kw_only=True, slots=True)
class Welcome:
    """Server to client, the answer: the session; the bootstrap follows.

    Attributes:
        server: Name of the target: ``CPython 3.12.1, pid 4711``.
        session: Random id of the session: the same after a reconnect to the same one.
        client_id: The number of this client in `Clients`.
        controller: Whether this client is the controller.
        mode: How the target is monitored.
        pause_acts_on: Activity that a pause stops.
        events: The kinds of event.
        general_info: Text about the whole target.
        target: Free facts: ``pid``, ``runtime``, ``version``, ``executable`` ….
        clock: Name of the monotonic clock of all times: ``CLOCK_MONOTONIC``.
        clock_resolution_nanos: Its resolution.
        wall_offset_nanos: Add to a time to get nanoseconds since 1970.
    """

    server: str
    session: str
    client_id: int
    controller: bool
    mode: Mode
    pause_acts_on: PauseActsOn
    events: tuple[EventKind, ...]
    general_info: str = ""
    target: dict[str, str] = field(default_factory=dict)
    clock: str = "CLOCK_MONOTONIC"
    clock_resolution_nanos: int = 1
    wall_offset_nanos: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Error:
    """A refusal; `fatal` says whether the connection ends."""

    code: ErrorCode
    message: str
    remedy: str = ""
    fatal: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Goodbye:
    """The sender ends the connection on purpose; nothing follows."""

    reason: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ping:
    """A keep-alive; answered by `Pong` with the same number."""

    number: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Pong:
    """The answer to a `Ping`."""

    number: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SpaceDefined:
    """A space with its streams is part of the session from here on."""

    space: Space


@dataclass(frozen=True, kw_only=True, slots=True)
class SpaceRemoved:
    """A space is no longer part of the session; its id is not reused."""

    space: int


@dataclass(frozen=True, kw_only=True, slots=True)
class EpochEnd:
    """The schema is complete; this is its number, from 1."""

    epoch: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Tiles:
    """The number of tiles of a space from this event on, and the new places of the old ones.

    Tile `new_starts[r] + k` is the old tile `old_starts[r] + k`, for k below `lengths[r]`; runs are
    in order of `new_starts` and do not overlap. Every other tile is new. Only new tiles are named,
    in order, so that growing costs nothing for the existing ones. A keyframe has no runs: every
    tile is new.

    Attributes:
        space: The space's id.
        count: Number of tiles from now on.
        old_starts: Shape (runs,), u32.
        new_starts: Shape (runs,), u32.
        lengths: Shape (runs,), u32.
        base: For uniform names, address of tile 0.
        tile_bytes: For uniform names, size of a tile.
        bases: For extents, shape (new tiles,), u64 addresses; they are the tiles' stable keys.
        sizes: For extents, shape (new tiles,), u64 bytes.
    """

    space: int
    count: int
    old_starts: NDArray[np.uint32]
    new_starts: NDArray[np.uint32]
    lengths: NDArray[np.uint32]
    naming: Naming
    base: int = 0
    tile_bytes: int = 0
    bases: NDArray[np.uint64] | None = None
    sizes: NDArray[np.uint64] | None = None


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class StreamKey:
    """All values of a stream.

    Attributes:
        space: Space id.
        stream: Stream id, or CONTROL_STREAM.
        sequence: Sequence of the snapshot in which they were gathered.
        time_nanos: When, on the target's host's monotonic clock.
        event: The event's id.
        occurrence: The event's occurrence number.
        values: Shape (tiles,), in the stream's dtype.
        known: Shape (tiles,), bool: False where the value is unknown; None when all are known.
    """

    space: int
    stream: int
    sequence: int
    time_nanos: int
    event: int
    occurrence: int
    values: NDArray[Any]
    known: NDArray[np.bool_] | None = None


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class StreamDelta:
    """The values of a stream that changed since an earlier snapshot.

    Attributes:
        base_sequence: Sequence of the stream's previous values, to which this applies.
        count: Number of tiles of the space, for checking.
        indices: Shape (changed,), i64, strictly increasing tile numbers.
        values: Shape (changed,), their values.
        known: Shape (changed,), bool, or None when all of them are known.
        packed: The payload as its sender compressed it, for who stores it as it came; None: it was
            not compressed, or is not at hand.
    """

    space: int
    stream: int
    sequence: int
    time_nanos: int
    event: int
    occurrence: int
    base_sequence: int
    count: int
    indices: NDArray[np.int64]
    values: NDArray[Any]
    known: NDArray[np.bool_] | None = None
    packed: bytes | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """Summary of a stream, made by the driver (paper section 3.4).

    Attributes:
        values: One number, two (sum, total) or one per name; 64-bit signed.
        covered: Number of tiles covered; 0: the summary is unknown.
    """

    space: int
    stream: int
    sequence: int
    time_nanos: int
    values: tuple[int, ...]
    covered: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SpaceInfo:
    """Text about a space, for this event."""

    space: int
    sequence: int
    time_nanos: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """End of an event: all its data have arrived, so the client may draw.

    Attributes:
        sequence: Number of the snapshot: transmitted events, from 1.
        time_nanos: When the event happened, monotonic on the target's host.
        event: Kind.
        occurrence: Number of occurrences of the kind, including filtered ones, from 1.
        epoch: Schema epoch of its data.
        gather_nanos: Time spent gathering for it.
        held_nanos: Time the target was held (delay, pause, lossless clients) since the previously
            transmitted event.
        keyframe: Its frames are complete: no earlier frame is needed.
        cached: It was sent before and is repeated for a client that joined late or missed it.
        cause: Cause, if the runtime reports it.
        program_clock: Name and value of a clock of the program, such as allocated bytes.
        waited_nanos: Total time spent waiting for lossless clients since the server began; part of
            the held time.
        stopped_nanos: Time for which the target was stopped for gathering; 0: it was not stopped,
            or this is not known.
    """

    sequence: int
    time_nanos: int
    event: int
    occurrence: int
    epoch: int
    gather_nanos: int = 0
    held_nanos: int = 0
    keyframe: bool = False
    cached: bool = False
    cause: str = ""
    program_clock: tuple[str, int] | None = None
    waited_nanos: int = 0
    stopped_nanos: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Counters:
    """Occurrences of each kind of event, by id, including filtered ones."""

    counts: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """State of the control flow.

    Attributes:
        state: The state.
        reason: Why, for a human: ``event filter``, ``trigger``, ``target exited``.
        driver_failed: Whether it ended because the driver failed; the target may run on.
        slowed_nanos: Nanoseconds between two ticks of the clock while nothing changes; 0: it has its
            full rate.
    """

    state: ControlState
    reason: str = ""
    driver_failed: bool = False
    slowed_nanos: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Filters:
    """The active event filters, one per kind of event."""

    filters: tuple[EventFilter, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Client:
    """One connected client, as the others see it.

    Attributes:
        id: Its number.
        name: Name of the program.
        person: Name of the user; empty: not given.
        following: Whether it follows the leader.
        behind: How many events it had not read at the last check; None: unknown.
        stalled: Whether it has read nothing for seconds.
        step: Place of the step of a lesson that it is at; told to the leader only. None: at none, or not told.
        tries: The choices that were taken at the question of that step; told to the leader only.
    """

    id: int
    name: str
    person: str = ""
    following: bool = False
    behind: int | None = None
    stalled: bool = False
    step: int | None = None
    tries: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Clients:
    """The connected clients, and which of them controls and inherits control.

    Attributes:
        clients: All clients.
        controller: The client that controls what this client sees.
        successor: The client that inherits control.
        leader: The client whose view the followers see; None: the controller.
    """

    clients: tuple[Client, ...]
    controller: int | None = None
    successor: int | None = None
    leader: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Missed:
    """Number of events that this client missed since the last message: it was too slow, requested a lower rate, or the server lost them."""

    events: int
    total: int


@dataclass(frozen=True, kw_only=True, slots=True)
class TileNamesRequest:
    """Requests the names of these tiles, for spaces named by strings."""

    space: int
    first: int
    count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class TileNames:
    """A page of tile names, of a snapshot."""

    space: int
    sequence: int
    first: int
    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class NewNames:
    """Part of an event: the names of its new tiles, from `first` on; for small spaces named by strings."""

    space: int
    sequence: int
    time_nanos: int
    first: int
    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class SetFilters:
    """Controller: replace these event filters."""

    filters: tuple[EventFilter, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pause:
    """Controller: pause after the next transmission."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Resume:
    """Controller: continue."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """Controller, paused: continue until after the next transmission."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Subscription:
    """One subscribed space; `streams` None means all."""

    space: int
    streams: tuple[int, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Subscribe:
    """Subscription of this client; replaces the previous one.

    Attributes:
        spaces: The subscribed spaces; None means all, now and later.
        max_rate_hz: At most this many events per second; None means every event.
    """

    spaces: tuple[Subscription, ...] | None = None
    max_rate_hz: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TakeControl:
    """Make me the controller, if there is none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HandOver:
    """Controller: that client is the controller from now on."""

    client: int


@dataclass(frozen=True, kw_only=True, slots=True)
class NameSuccessor:
    """Controller: that client inherits control when I am lost; None: no client does."""

    client: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Lossless:
    """Client: drop no event for me; the target may be held up to the deadline each time.

    Attributes:
        deadline_millis: The longest wait for this client at one event; 0: events may be dropped again.
    """

    deadline_millis: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Unknown:
    """A frame of a type that this version does not know; receivers skip it."""

    type: int
    payload_bytes: int


Message = (
    Hello
    | Welcome
    | Error
    | Goodbye
    | Ping
    | Pong
    | Challenge
    | Proof
    | SpaceDefined
    | SpaceRemoved
    | EpochEnd
    | Tiles
    | StreamKey
    | StreamDelta
    | Summary
    | SpaceInfo
    | NewNames
    | Event
    | Counters
    | State
    | Filters
    | Clients
    | Missed
    | TileNamesRequest
    | TileNames
    | SetFilters
    | Pause
    | Resume
    | Step
    | Subscribe
    | TakeControl
    | HandOver
    | NameSuccessor
    | Playback
    | Timeline
    | Position
    | SetPlayback
    | Seek
    | Follow
    | Lossless
    | Trigger
    | Triggers
    | Fired
    | Settings
    | SetSetting
    | Budget
    | Query
    | Answer
    | Attend
    | Look
    | Looked
    | Unknown
)
