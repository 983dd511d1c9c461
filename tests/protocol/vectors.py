"""Golden vectors: reads the files in `protocol/vectors/`; and a script that writes the missing ones.

    python -m tests.protocol.vectors

It never changes a file: golden bytes are the promise to those who have read
them before. A vector that turns out wrong is a new protocol version, or a
defect that its test keeps showing.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gcspy_protocol import messages as m
from gcspy_protocol.attendance import Focus, LessonPlace
from gcspy_protocol.codec import decode, encode, encode_event
from gcspy_protocol.connection import preamble
from gcspy_protocol.details import (
    AnswerState,
    ColumnKind,
    DetailColumn,
    DetailTable,
    MemoryReport,
)
from gcspy_protocol.expression import Operand
from gcspy_protocol.frames.frame import HEADER, Frame, Header, inflate, pack_frame
from gcspy_protocol.frames.transcoding import without_zstd
from gcspy_protocol.limits import Limits
from gcspy_protocol.messages import FrameType, Message
from gcspy_protocol.model import (
    CONTROL_STREAM,
    ControlState,
    EventFilter,
    EventKind,
    Mode,
    Naming,
    PaintStyle,
    PauseActsOn,
    Presentation,
    Space,
    Stream,
)
from gcspy_protocol.playback import TIMELINE, Direction, Pace
from gcspy_protocol.settings import Setting, SettingKind
from gcspy_protocol.triggers import TriggerAction, TriggerState, TriggerStatus

from tests.protocol import exchange
from tests.protocol.strategies import tiles_of

FOLDER = Path(__file__).parents[2] / "protocol" / "vectors"


class Vector(NamedTuple):
    """One golden file.

    Attributes:
        name: Of the file, without suffix: message, then features.
        means: One sentence.
        data: The bytes.
        exact: Whether encoding the messages gives these bytes; not so for what only a
            later version would send, nor for compressed ones, where zstd's versions differ.
        messages: The messages of the frames, as JSON.
    """

    name: str
    means: str
    data: bytes
    exact: bool
    messages: list[dict[str, Any]]


def stored() -> list[Vector]:
    """All vectors in the folder."""
    vectors = []
    for path in sorted(FOLDER.glob("*.json")):
        about = json.loads(path.read_text(encoding="utf-8"))
        data = path.with_suffix(".bin").read_bytes()
        vectors.append(Vector(path.stem, about["means"], data, about["exact"], about["messages"]))
    return vectors


def frames_of(data: bytes) -> Iterator[tuple[Header, bytes]]:
    """Header and inflated payload of each frame; a preamble is stepped over."""
    at = len(preamble()) if data.startswith(preamble()[:8]) else 0
    while at < len(data):
        header = Header._make(HEADER.unpack_from(data, at))
        at += HEADER.size + header.length
        assert at <= len(data)
        yield header, inflate(header, data[at - header.length : at], Limits(), at)


def decoded(data: bytes) -> list[Message]:
    """The messages of a vector's frames."""
    return [decode(header, payload, Limits()) for header, payload in frames_of(data)]


def encoded(messages: Sequence[Message]) -> bytes:
    """The bytes of messages; an event takes in the frames of an event that stand before it."""
    out, held = b"", list[Frame]()
    for message in messages:
        if isinstance(message, m.Event):
            out += encode_event(message, held)
            held = []
            continue
        if held:
            held.append(encode(message))
        elif isinstance(
            message, (m.Tiles, m.StreamKey, m.StreamDelta, m.Summary, m.SpaceInfo, m.NewNames)
        ):
            held = [encode(message)]
        else:
            out += encode(message).data
    return out + b"".join(frame.data for frame in held)


# ------------------------------------------------------------------- JSON


def to_json(value: Any) -> Any:
    """A message as JSON: its class and fields; arrays with their dtype."""
    if isinstance(value, np.ndarray):
        dtype = (
            [list(field) for field in value.dtype.descr] if value.dtype.names else value.dtype.str
        )
        return {
            "dtype": dtype,
            "values": [list(one) if isinstance(one, tuple) else one for one in value.tolist()],
        }
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bytes):
        return value.hex()
    if dataclasses.is_dataclass(value):
        named = {
            field.name: to_json(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if field.compare
        }
        return {name: found for name, found in named.items() if name not in _LATER or found}
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    return value


_LATER = {
    "driver_failed",
    "slowed_nanos",
    "names_from",
    "threshold",
    "stopped_nanos",
    "waited_nanos",
    "details",
    "modes",
    "person",
    "following",
    "behind",
    "stalled",
    "leader",
    "text",
    "held",
    "done",
    "total",
    "nonce",
    "over_millis",
    "sample_bytes",
    "report",
    "lesson",
    "step",
    "tries",
}
"""Fields that came after the first vectors were written: those have no word of them, and mean the default."""


def message_to_json(message: Message) -> dict[str, Any]:
    """A message as JSON, with its class."""
    return {"is": type(message).__name__, **to_json(message)}


def message_of(value: dict[str, Any]) -> Message:
    """Inverse of `message_to_json`."""
    fields = dict(value)
    cls = getattr(m, fields.pop("is"))
    message: Message = _of(cls, fields)
    return message


def _of(hint: Any, value: Any) -> Any:
    """A value of the hinted type from JSON."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if value is None:
        return None
    if isinstance(value, dict) and set(value) == {"dtype", "values"}:
        return _array_of(value["dtype"], value["values"])
    if origin in (types.UnionType, typing.Union):
        return _of(next(arg for arg in inner if arg is not type(None)), value)
    if origin is tuple:
        hints = [inner[0]] * len(value) if len(inner) == 2 and inner[1] is Ellipsis else inner
        return tuple(_of(hint, item) for hint, item in zip(hints, value, strict=True))
    if hint is bytes:
        return bytes.fromhex(value)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(value)
    if dataclasses.is_dataclass(hint):
        make: Any = hint
        named = typing.get_type_hints(hint)
        return make(**{name: _of(named[name], item) for name, item in value.items()})
    return value


def _array_of(dtype: str | list[list[str]], values: list[Any]) -> np.ndarray[Any, Any]:
    if isinstance(dtype, str):
        return np.array(values, dtype=dtype)
    return np.array([tuple(row) for row in values], dtype=[(name, kind) for name, kind in dtype])


# -------------------------------------------------------------- new vectors


def _array(values: list[int], dtype: str) -> np.ndarray[Any, Any]:
    return np.array(values, dtype="<" + dtype)


_STAMP: dict[str, Any] = {
    "space": 1,
    "stream": 2,
    "sequence": 0x0102030405060708,
    "time_nanos": 0x1112131415161718,
    "event": 3,
    "occurrence": 0xFFFFFFFFFFFFFFFF,
}


def _key(
    values: list[int], dtype: str, known: list[bool] | None = None, **more: Any
) -> m.StreamKey:
    mask = None if known is None else np.array(known)
    return m.StreamKey(**{**_STAMP, **more}, values=_array(values, dtype), known=mask)


def _delta(
    indices: list[int], values: list[int], dtype: str, count: int, known: list[bool] | None = None
) -> m.StreamDelta:
    return m.StreamDelta(
        **_STAMP,
        base_sequence=0x0102030405060701,
        count=count,
        indices=np.array(indices, dtype=np.int64),
        values=_array(values, dtype),
        known=None if known is None else np.array(known),
    )


def _behind(message: Message, behind: bytes = b"of a later version") -> bytes:
    """The frame with more at the end of its payload."""
    ((header, payload),) = frames_of(encode(message).data)
    return pack_frame(
        header.type, payload + behind, space=header.space, stream=header.stream, sequence=header.sequence,
        time_nanos=header.time_nanos, compress=False,
    ).data  # fmt: skip


def _stream_messages() -> Iterator[tuple[str, str, Message]]:
    for dtype in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"):
        info = np.iinfo(dtype)
        values = [int(info.min), 0, 1, int(info.max)]
        yield (
            f"stream_key-{dtype}",
            "All values, with the least and the greatest of the type.",
            _key(values, dtype),
        )
    known = [True, False, True, True, False, False, True, True, False]
    numbers = list(range(9))
    yield (
        "stream_key-i4-bitmap",
        "Nine tiles of which four are unknown: two bytes of bitmap.",
        _key(numbers, "i4", known),
    )
    yield "stream_key-u2-none", "A space without tiles.", _key([], "u2")
    yield (
        "stream_key-u1-control",
        "Control flags: used, background, unused, separator, link.",
        _key([1, 2, 4, 9, 17], "u1", stream=CONTROL_STREAM),
    )
    yield (
        "stream_delta-i4",
        "Tiles 0, 4, 5 and 9 of ten changed.",
        _delta([0, 4, 5, 9], [-1, 1, 2, 3], "i4", 10),
    )
    yield (
        "stream_delta-i4-bitmap",
        "Three changed; the one in the middle became unknown.",
        _delta([1, 2, 8], [5, 0, 6], "i4", 9, [True, False, True]),
    )
    yield "stream_delta-i4-none", "Gathered again, and nothing changed.", _delta([], [], "i4", 10)
    yield (
        "stream_delta-u1-escape",
        (
            "Distances around the escape: tiles 65,534 (gap 65,534), 131,070 (escape and 0) and 400,000 (escapes)."
        ),
        _delta([65_534, 131_070, 400_000], [1, 2, 3], "u1", 400_001),
    )
    yield (
        "stream_delta-i8",
        "64-bit values at both ends of their range.",
        _delta([0, 2], [-(1 << 63), (1 << 63) - 1], "i8", 3),
    )
    yield (
        "stream_delta-u8",
        "The greatest unsigned 64-bit value.",
        _delta([1], [(1 << 64) - 1], "u8", 3),
    )
    yield "stream_key-i4-zstd", "200 equal values: compressed (flag 1).", _key([77] * 200, "i4")
    yield (
        "stream_delta-i4-zstd",
        "200 of 1,000 tiles changed: compressed (flag 1).",
        _delta(list(range(0, 1000, 5)), [7] * 200, "i4", 1000),
    )


def _tile_messages() -> Iterator[tuple[str, str, Message]]:
    extents: dict[str, Any] = {
        "bases": _array([0x7F0000004000, 0x7F0000000000, (1 << 64) - 0x1000], "u8"),
        "sizes": _array([0x4000, 0x2000, 0x1000], "u8"),
    }
    yield (
        "tiles-uniform",
        "Four tiles of 4 KiB from 0x10000 on; a keyframe: all are new.",
        tiles_of(1, Naming.UNIFORM, [None] * 4, base=0x10000, tile_bytes=4096),
    )
    yield (
        "tiles-uniform-runs",
        "Grown from four tiles to six.",
        tiles_of(1, Naming.UNIFORM, [0, 1, 2, 3, None, None], base=0x10000, tile_bytes=4096),
    )
    yield (
        "tiles-extents",
        "Three extents, not in order, the last at the end of the address space.",
        tiles_of(1, Naming.EXTENTS, [None] * 3, **extents),
    )
    yield (
        "tiles-extents-runs",
        "Of ten tiles the arena in the middle (3 to 5) went; three new ones came.",
        tiles_of(1, Naming.EXTENTS, [0, 1, 2, None, None, 6, 7, 8, 9, None], **extents),
    )
    yield "tiles-strings", "Three tiles named by texts.", tiles_of(1, Naming.STRINGS, [None] * 3)
    yield "tiles-strings-none", "No tiles any more.", tiles_of(1, Naming.STRINGS, [])


def _schema_messages() -> Iterator[tuple[str, str, Message]]:
    streams = (
        Stream(id=0, name="Used", dtype="u4", maximum=4096, suffix=" bytes", presentation=Presentation.PERCENT,
               paint_style=PaintStyle.ZERO, colour=(220, 50, 47), description="Bytes in use"),
        Stream(id=1, name="Blocks", dtype="i2", minimum=-1, maximum=255, zero=-1, default=-1,
               presentation=Presentation.PLUS, order=1),
        Stream(id=2, name="Age", dtype="u8", maximum=(1 << 64) - 1, presentation=Presentation.MAX_VAR, order=2),
        Stream(id=3, name="State", dtype="u1", maximum=1, presentation=Presentation.ENUM,
               enum_names=("free", "full"), order=3),
        Stream(id=4, name="Live", dtype="i4", presentation=Presentation.PERCENT_VAR, max_stream=1, order=4),
        Stream(id=0xFFFE, name="Moved", dtype="i8", prefix="moved ", accumulates=True, order=5),
    )  # fmt: skip
    space = Space(id=258, name="Größe", driver="cpython", tile_title="Pool ", unused_text="not carved yet",
                  naming=Naming.EXTENTS, main=True, row_width=64, description="Every arena",
                  streams=streams)  # fmt: skip
    yield (
        "space_defined",
        "A space with one stream of each presentation.",
        m.SpaceDefined(space=space),
    )
    small = Space(id=1, name="Heap", streams=streams[2:3])
    yield (
        "space_defined-one",
        "A space with one stream, small enough to stay uncompressed.",
        m.SpaceDefined(space=small),
    )
    typed = Stream(id=3, name="Top type", dtype="u2", maximum=0xFFFF, names_from=7)
    yield (
        "space_defined-names_from",
        "A stream whose values are tiles of space 7, and are shown by their names.",
        m.SpaceDefined(space=Space(id=2, name="Objects", streams=(typed,))),
    )
    yield "space_removed", "Space 258 is no more.", m.SpaceRemoved(space=258)
    yield "epoch_end", "The schema is complete and is number 3.", m.EpochEnd(epoch=3)
    names = m.TileNames(space=258, sequence=9, first=100, names=("eden", "überlebt", ""))
    yield "tile_names", "A page of three names from tile 100 on.", names
    yield (
        "summary-one",
        "One value, at the lower end of 64 bits.",
        m.Summary(
            space=1, stream=2, sequence=3, time_nanos=4, values=(-(1 << 63),), covered=4_000_000_000
        ),
    )
    yield (
        "summary-enum",
        "One count for each of three names.",
        m.Summary(
            space=1, stream=2, sequence=3, time_nanos=4, values=(5, 0, (1 << 63) - 1), covered=5
        ),
    )
    yield (
        "space_info",
        "Text about a space.",
        m.SpaceInfo(space=1, sequence=3, time_nanos=4, text="37 % used ☂"),
    )
    yield (
        "new_names",
        "Two tiles that are new with the event, from tile 258 on.",
        m.NewNames(
            space=7, sequence=3, time_nanos=4, first=258, names=("collections.OrderedDict", "")
        ),
    )


def _session_messages() -> Iterator[tuple[str, str, Message]]:
    filters = (
        EventFilter(event=0),
        EventFilter(event=1, enabled=False, delay_millis=250, pause=True, period=10),
    )
    welcome = m.Welcome(
        server="CPython 3.12.1, pid 4711", session="f00d", client_id=2, controller=True, mode=Mode.PASSIVE,
        pause_acts_on=PauseActsOn.SAMPLING, general_info="", target={"pid": "4711"},
        events=(EventKind(id=0, name="Clock", description="A tick"), EventKind(id=1, name="Collections happened")),
        clock_resolution_nanos=1, wall_offset_nanos=1_700_000_000_000_000_000,
    )  # fmt: skip
    yield (
        "hello",
        "A window asks for control, and to pause at once.",
        m.Hello(client="window", wants_control=True, token="secret", pause_at_connect=True),
    )
    yield "welcome", "Passive, two kinds of event.", welcome
    yield (
        "error",
        "A viewer may not pause.",
        m.Error(
            code=m.ErrorCode.NOT_CONTROLLER,
            message="only the controller may pause",
            remedy="ask client 2",
        ),
    )
    yield (
        "error-fatal",
        "The end, because the client did not read.",
        m.Error(code=m.ErrorCode.TOO_SLOW, message="60 s without reading", fatal=True),
    )
    yield "goodbye", "The end, on purpose.", m.Goodbye(reason="window closed")
    yield "ping", "Are you there?", m.Ping(number=(1 << 63) - 1)
    yield "pong", "Yes.", m.Pong(number=(1 << 63) - 1)
    yield "counters", "Three kinds of event.", m.Counters(counts=(0, 1, (1 << 64) - 1))
    for state in ControlState:
        yield (
            f"state-{state.value}",
            f"The session is {state.value}.",
            m.State(state=state, reason="why"),
        )
    yield (
        "state-driver_failed",
        "The session is ended, because the driver failed.",
        m.State(state=ControlState.ENDED, reason="why", driver_failed=True),
    )
    yield (
        "state-slowed",
        "The session is running, and read every two seconds, since nothing changes.",
        m.State(state=ControlState.RUNNING, reason="why", slowed_nanos=2_000_000_000),
    )
    yield "filters", "What is in force, for everybody.", m.Filters(filters=filters)
    yield (
        "clients",
        "Two, the second controls, the first inherits.",
        m.Clients(
            clients=(m.Client(id=1, name="tail"), m.Client(id=2, name="window")),
            controller=2,
            successor=1,
        ),
    )
    yield "clients-nobody", "Nobody controls.", m.Clients(clients=())
    yield "missed", "Seven since the last event, 40 in all.", m.Missed(events=7, total=40)
    yield "set_filters", "Replace two filters.", m.SetFilters(filters=filters)
    for name, message in (("pause", m.Pause()), ("resume", m.Resume()), ("step", m.Step())):
        yield name, f"Please {name}.", message
    yield "subscribe-all", "Everything, now and later.", m.Subscribe()
    yield (
        "subscribe-some",
        "One space whole, two streams of another, 2.5 events a second.",
        m.Subscribe(
            spaces=(m.Subscription(space=1), m.Subscription(space=2, streams=(0, 3))),
            max_rate_hz=2.5,
        ),
    )
    yield "subscribe-none", "No space at all: events and states only.", m.Subscribe(spaces=())
    yield "take_control", "Make me the controller.", m.TakeControl()
    yield "hand_over", "Make client 7 the controller.", m.HandOver(client=7)
    yield "name_successor", "Client 7 inherits.", m.NameSuccessor(client=7)
    yield "name_successor-nobody", "Nobody inherits.", m.NameSuccessor(client=None)
    request = m.TileNamesRequest(space=258, first=100, count=3)
    yield "tile_names_request", "Names of tiles 100 to 102.", request
    yield (
        "lossless",
        "Drop no event for me, and hold the target no longer than two seconds for it.",
        m.Lossless(deadline_millis=2000),
    )


def _playback_messages() -> Iterator[tuple[str, str, Message]]:
    manner = m.SetPlayback(
        pace=Pace.PROGRAM,
        interval_millis=250,
        speed=2.5,
        direction=Direction.BACKWARDS,
        loop=(10, 20),
    )
    yield "playback", "At the original pace, forwards, to the end.", m.Playback(first=1, last=300)
    filters = (EventFilter(event=1, enabled=False),)
    yield (
        "playback-all",
        "Every field.",
        m.Playback(
            first=5, last=0x0102030405, growing=True, manner=manner, follows=7, filters=filters
        ),
    )
    yield "position", "That was event 0x0102030405060708.", m.Position(number=0x0102030405060708)
    rows = np.zeros(2, dtype=TIMELINE)
    rows["time_nanos"], rows["occurrence"], rows["gather_nanos"] = (1000, 2000), (3, 4), (5, 6)
    rows["held_nanos"], rows["missed"], rows["event"], rows["flags"] = (
        (7, 8),
        (0, 9),
        (258, 1),
        (1, 2),
    )
    yield "timeline", "Two events, from number 258 on.", m.Timeline(first=258, rows=rows)
    yield (
        "timeline-fresh",
        "Forget what you know; there is no event yet.",
        m.Timeline(first=1, rows=rows[:0], fresh=True),
    )
    yield "set_playback", "Every field.", manner
    yield "seek-number", "To event 258.", m.Seek(number=258)
    yield "seek-time", "To the event nearest to a time.", m.Seek(time_nanos=0x0102030405060708)
    yield "seek-name", "To the collection before this.", m.Seek(name="GC start", backwards=True)
    yield "seek-steps", "One event back.", m.Seek(steps=-1)
    yield "follow", "See what client 7 sees.", m.Follow(client=7)
    yield "follow-nobody", "Have a playback of my own.", m.Follow(client=None)


def _trigger_messages() -> Iterator[tuple[str, str, Message]]:
    trigger = m.Trigger(
        id=258,
        expression="sum(Used) > 1.2 * was(sum(Used))",
        space="heap",
        action=TriggerAction.BOOKMARK,
        once=True,
        enabled=False,
        note="it grows",
    )
    yield (
        "trigger",
        "Pause when more than half of the tiles are full.",
        m.Trigger(id=1, expression="share(Used == 4k) > 50%"),
    )
    yield "trigger-all", "Every field.", trigger
    yield "trigger-removed", "Forget trigger 258.", m.Trigger(id=258)
    operands = (
        Operand("sum(Used)", 0x0102030405060708, 3, 4),
        Operand("was(sum(Used))", 0.5),
        Operand("mean(Used)", None, 0, 4),
        Operand("was(event)", "GC start"),
        Operand("was(sum(Used) > 0)", True),
    )
    fired = TriggerStatus(
        trigger=trigger,
        state=TriggerState.OFF,
        fired=3,
        sequence=0x0102030405060708,
        event=258,
        occurrence=0x0102030405060708,
        operands=operands,
    )
    waits = TriggerStatus(
        trigger=m.Trigger(id=1, expression="x > 1"),
        state=TriggerState.WAITING,
        why="no space has a stream 'x'",
    )
    yield (
        "triggers",
        "Two triggers: one that fired, one that waits.",
        m.Triggers(triggers=(waits, fired), fired=9),
    )
    yield "triggers-none", "The last one was removed.", m.Triggers(triggers=(), fired=9)
    yield (
        "fired",
        "What is watched stands at event 258, since the used bytes grew.",
        m.Fired(
            trigger=trigger,
            sequence=0x0102030405060708,
            time_nanos=0x1112131415161718,
            event=258,
            occurrence=0x0102030405060708,
            pauses=True,
            operands=operands,
        ),
    )


def _setting_messages() -> Iterator[tuple[str, str, Message]]:
    level = Setting(
        id=1,
        name="Level",
        about="How much is gathered at each event",
        kind=SettingKind.CHOICE,
        value=3,
        minimum=1,
        maximum=3,
        choices=("1: constant time", "2: small structures", "3: objects"),
        costs=(9_000, 47_000_000, 0),
        applies=0,
    )
    budget = Setting(
        id=4_000_000_000,
        name="Budget",
        kind=SettingKind.RANGE,
        value=-5,
        minimum=-10,
        maximum=(1 << 63) - 1,
        applies=7,
    )
    collect = Setting(
        id=0, name="Collect now", kind=SettingKind.ACTION, value=0, minimum=0, maximum=0
    )
    yield (
        "settings",
        "A level that was just chosen, a budget, an action.",
        m.Settings(settings=(level, budget, collect)),
    )
    rung = Setting(
        id=3,
        name="Rung",
        value=1,
        minimum=0,
        maximum=1,
        choices=("passive", "stopped"),
        costs=(47_000_000, 0),
        modes=(Mode.PASSIVE, Mode.STOPPED),
    )
    yield (
        "settings-modes",
        "How the target is watched was just chosen.",
        m.Settings(settings=(rung,)),
    )
    yield "settings-none", "Nothing can be set.", m.Settings(settings=())
    yield (
        "budget",
        "Level 3 of 3 every two seconds, level 2 between; most events are left out.",
        m.Budget(
            setting=2,
            allowed=50_000,
            spent=48_123,
            sequence=210,
            level_setting=1,
            asked=3,
            given=2,
            spaces=7,
            covered=7,
            every_nanos=20_000_000,
            full_nanos=2_000_000_000,
            gathered=(10, 100, 100),
            left_out=(0, 497, 1 << 62),
            reason="",
        ),
    )
    yield (
        "budget-none",
        "Anything may be spent, and a trigger wants every event.",
        m.Budget(
            setting=4_000_000_000,
            allowed=1_000_000,
            spent=1 << 40,
            reason="a trigger looks at every event",
        ),
    )
    yield "set_setting", "Level 3, please.", m.SetSetting(id=1, value=3)
    yield "set_setting-negative", "A value below zero.", m.SetSetting(id=4_000_000_000, value=-5)


def _class_messages() -> Iterator[tuple[str, str, Message]]:
    place = Focus(space=3, stream=1, key=1 << 63, view="hilbert", panel="history", sequence=210)
    yield (
        "hello-class",
        "A student greets.",
        m.Hello(client="gcspy window", person="Ada", following=True),
    )
    yield (
        "hello-no-codecs",
        "A client that takes no compressed payload.",
        m.Hello(client="minimal", codecs=()),
    )
    yield (
        "clients-class",
        "A teacher, a student who follows and one who has read nothing for seconds.",
        m.Clients(
            clients=(
                m.Client(id=1, name="gcspy window", person="Dr. Müller", behind=3),
                m.Client(id=2, name="gcspy window", person="Ada", following=True, behind=1),
                m.Client(
                    id=3,
                    name="gcspy window",
                    person="Grace",
                    following=True,
                    behind=417,
                    stalled=True,
                ),
            ),
            controller=1,
            successor=2,
            leader=1,
        ),
    )
    yield "attend", "Ada follows.", m.Attend(person="Ada", following=True)
    asked = LessonPlace(lesson="barrier", step=2, attempt=1)
    yield "look-lesson", "The class is asked at step 3.", m.Look(at=Focus(space=3, lesson=asked))
    led = LessonPlace(lesson="barrier", step=2, attempt=2, revealed=True)
    yield (
        "looked-lesson",
        "The answer after the second try is shown.",
        m.Looked(client=1, at=Focus(lesson=led)),
    )
    yield (
        "attend-answers",
        "Ada took the second choice, then the first.",
        m.Attend(person="Ada", following=True, step=2, tries=(1, 0)),
    )
    yield "attend-roaming", "Nobody in particular roams.", m.Attend()
    yield "look", "A tile of a space, in a view, at an event.", m.Look(at=place)
    yield "look-nowhere", "Nothing is said.", m.Look()
    yield "looked", "The same, as those get it who follow.", m.Looked(client=1, at=place)
    yield (
        "looked-live",
        "A space at the latest event.",
        m.Looked(client=2, at=Focus(space=0, view="tiles")),
    )


def _detail_messages() -> Iterator[tuple[str, str, Message]]:
    table = DetailTable(
        columns=(
            DetailColumn(name="Type", kind=ColumnKind.TEXT),
            DetailColumn(name="Objects", about="How many there are"),
            DetailColumn(name="Bytes", kind=ColumnKind.BYTES),
        ),
        rows=(("dict", 12, 768), ("naïve.Thing", 1, None)),
        rest=41,
        rest_cells=(None, 500, (1 << 64) - 1),
        note="3 pools are unknown",
    )
    yield (
        "query",
        "The types of the tile with key 2^63, ten of them.",
        m.Query(number=7, space=3, kind="types", key=1 << 63, most=10),
    )
    yield "query-space", "The types of a whole space.", m.Query(number=0, space=3, kind="types")
    sought = m.Query(number=8, space=3, kind="objects", text="type:Node size:24..64")
    yield "query-text", "The objects of a space that are sought.", sought
    yield (
        "answer",
        "A table of two rows, 41 left out.",
        m.Answer(number=7, space=3, sequence=9, state=AnswerState.ANSWERED, table=table),
    )
    yield (
        "answer-gone",
        "The tile is gone.",
        m.Answer(
            number=7,
            space=3,
            sequence=9,
            state=AnswerState.GONE,
            reason="there is no such tile any more",
        ),
    )
    yield (
        "query-holders",
        "Who holds the objects of a type; the process is held while its memory is copied.",
        m.Query(number=9, space=0, kind="holders", most=50, text="app.Order", held=True),
    )
    yield (
        "query-holders-address",
        "Who holds the object at an address.",
        m.Query(number=10, space=0, kind="holders", key=0x7F12A0B3C4D0),
    )
    yield (
        "answer-under-way",
        "So many references were followed; how many there are is not known.",
        m.Answer(
            number=9,
            space=0,
            sequence=9,
            state=AnswerState.UNDER_WAY,
            reason="following references",
            done=1_200_000,
        ),
    )
    yield (
        "query-memory",
        "What memory is for, in two samples 15 seconds apart, each of a held process.",
        m.Query(number=11, space=0, kind="memory", held=True, over_millis=15_000),
    )
    what = DetailTable(
        columns=(
            DetailColumn(name="What", kind=ColumnKind.TEXT),
            DetailColumn(name="Objects"),
            DetailColumn(name="Bytes", kind=ColumnKind.BYTES),
        ),
        rows=(("app.Order", 12_000, 1_344_000), ("Stacks", None, 8192)),
    )
    holders = DetailTable(
        columns=(
            DetailColumn(name="Holder", kind=ColumnKind.TEXT),
            DetailColumn(name="Type", kind=ColumnKind.TEXT),
            DetailColumn(name="Objects"),
            DetailColumn(name="Retained", kind=ColumnKind.BYTES),
        ),
        rows=(("app.AUDIT", "list", 24_000, 3_555_696),),
    )
    sites = DetailTable(
        columns=(DetailColumn(name="What", kind=ColumnKind.TEXT),), note="tracemalloc is off"
    )
    report = MemoryReport(
        secs=0,
        resident=5_000_000,
        grew=None,
        memory=what,
        holders=holders,
        sites=sites,
        unsure=400_000,
        note="it ran while its memory was copied",
    )
    yield (
        "answer-memory",
        "The first of two samples.",
        m.Answer(number=11, space=0, sequence=9, state=AnswerState.UNDER_WAY, report=report),
    )
    grown = dataclasses.replace(
        report, secs=15.25, resident=5_600_000, grew=600_000, unsure=390_000, unsure_grew=-10_000
    )
    yield (
        "answer-memory-later",
        "The growth until the second one.",
        m.Answer(number=11, space=0, sequence=12, state=AnswerState.ANSWERED, report=grown),
    )
    told = Space(id=3, name="Objects", naming=Naming.EXTENTS, details=("types",))
    yield (
        "space_defined-details",
        "A space that can be asked for types.",
        m.SpaceDefined(space=told),
    )


def _event_messages() -> Iterator[tuple[str, str, list[Message]]]:
    event: dict[str, Any] = {
        "sequence": 0x0102030405060708,
        "time_nanos": 0x1112131415161718,
        "event": 3,
        "occurrence": 0xFFFFFFFFFFFFFFFE,
        "epoch": 0xFFFFFFFF,
    }
    yield "event", "Nothing was gathered.", [m.Event(**event)]
    yield (
        "event-keyframe-cached",
        "Repeated for a client that came late; both flags.",
        [m.Event(**event, keyframe=True, cached=True, gather_nanos=1000, held_nanos=(1 << 64) - 1)],
    )
    yield (
        "event-cause-clock",
        "With a cause and a program's clock.",
        [m.Event(**event, cause="threshold", program_clock=("allocated bytes", (1 << 64) - 1))],
    )
    yield (
        "event-waited",
        "Held, and what was held for lossless clients in all.",
        [m.Event(**event, held_nanos=3_000_000_000, waited_nanos=2_000_000_000)],
    )
    yield (
        "event-stopped",
        "The target stood still while it was gathered.",
        [m.Event(**event, gather_nanos=5_000_000, stopped_nanos=4_000_000)],
    )
    yield (
        "event-frames",
        "Five frames of an event and their CRC.",
        [
            tiles_of(1, Naming.UNIFORM, [None, None], base=0x1000, tile_bytes=0x1000),
            _key([1, 4], "u1", stream=CONTROL_STREAM),
            _key([7, 8], "i4"),
            m.Summary(space=1, stream=2, sequence=3, time_nanos=4, values=(15,), covered=2),
            m.SpaceInfo(space=1, sequence=3, time_nanos=4, text="both used"),
            m.Event(**event, keyframe=True),
        ],
    )


def cases() -> Iterator[Vector]:
    """Every vector there should be."""
    for source in (
        _stream_messages,
        _tile_messages,
        _schema_messages,
        _session_messages,
        _playback_messages,
        _trigger_messages,
        _setting_messages,
        _detail_messages,
        _class_messages,
    ):
        for name, means, message in source():
            frame = encode(message).data
            yield _vector(name, means, frame, exact=not frame[5])
    for name, means, messages in _event_messages():
        yield _vector(name, means, encoded(messages), exact=True)
    yield from _both_forms()
    for name, means, data, exact in exchange.vectors():
        yield _vector(name, means, data, exact=exact)
    later = "with bytes of a later version behind the payload."
    for name, message in (
        ("stream_key-i4-trailing", _key([1, 2], "i4")),
        ("stream_delta-i4-trailing", _delta([1], [2], "i4", 3)),
        ("tiles-uniform-trailing", tiles_of(1, Naming.UNIFORM, [None], base=1, tile_bytes=2)),
        (
            "summary-trailing",
            m.Summary(space=1, stream=2, sequence=3, time_nanos=4, values=(1, 2), covered=9),
        ),
        ("counters-trailing", m.Counters(counts=(1, 2))),
        ("pause-trailing", m.Pause()),
        ("goodbye-trailing", m.Goodbye(reason="bye")),
    ):
        yield _vector(name, f"{type(message).__name__} {later}", _behind(message), exact=False)
    yield from _later_versions()


def _both_forms() -> Iterator[Vector]:
    """An event as it is sent to a client that takes zstd, and to one that does not."""
    event = m.Event(sequence=3, time_nanos=4, event=5, occurrence=6, epoch=1)
    parts: list[Message] = [
        _key([77] * 200, "i4"),
        m.Summary(space=1, stream=2, sequence=3, time_nanos=4, values=(15_400,), covered=200),
        event,
    ]
    data = encoded(parts)
    yield _vector(
        "event-zstd", "An event with one compressed frame, and its CRC.", data, exact=False
    )
    yield _vector(
        "event-plain",
        "The event of event-zstd for a client that takes no zstd: another CRC.",
        without_zstd(data),
        exact=False,
    )


def _later_versions() -> Iterator[Vector]:
    state = b"\x83\xa6future\x93\x01\xc0\x81\xa1x\x02\xa5state\xa7running\xa6reason\xa0"
    yield _vector(
        "state-unknown-key",
        "STATE with a key of a later version.",
        pack_frame(FrameType.STATE, state).data,
        exact=False,
    )
    hello = b"\x82\xa6client\xa3cli\xa5newer\xc3"
    yield _vector(
        "hello-unknown-key",
        "HELLO with a key of a later version, and with nothing that has a default.",
        pack_frame(FrameType.HELLO, hello).data,
        exact=False,
    )
    yield _vector(
        "unknown-0x7f",
        "A frame of a type of a later version.",
        pack_frame(0x7F, b"later").data,
        exact=False,
    )
    event = m.Event(sequence=1, time_nanos=2, event=0, occurrence=1, epoch=1)
    inside = encode_event(
        event, [encode(_key([1], "i4")), pack_frame(0x2A, b"later", space=1, sequence=1)]
    )
    yield _vector(
        "event-unknown-0x2a", "A frame of a later version in an event: skipped, and counted by the CRC.", inside,
        exact=False,
    )  # fmt: skip
    flagged = bytearray(encode(m.Missed(events=1, total=1)).data)
    flagged[5] |= 0x80
    flagged[10:12] = b"\xff\xff"
    yield _vector(
        "missed-unknown-flag",
        "A flag and a reserved field of a later version.",
        bytes(flagged),
        exact=False,
    )
    welcome = m.Welcome(server="s", session="x", client_id=1, controller=False, mode=Mode.EMBEDDED,
                        pause_acts_on=PauseActsOn.PROGRAM, events=())  # fmt: skip
    yield _vector(
        "session-greeting", "A server's preamble (version 1 to 1) and WELCOME.", preamble() + encode(welcome).data,
        exact=False,
    )  # fmt: skip


def _vector(name: str, means: str, data: bytes, *, exact: bool) -> Vector:
    return Vector(name, means, data, exact, [message_to_json(message) for message in decoded(data)])


def write_missing() -> list[str]:
    """Write the vectors that are not there yet; those that are stay as they are.

    Returns:
        The names written.
    """
    FOLDER.mkdir(exist_ok=True)
    written = []
    for vector in cases():
        path = FOLDER / f"{vector.name}.bin"
        if path.exists() or path.with_suffix(".json").exists():
            continue
        about = {"means": vector.means, "exact": vector.exact, "messages": vector.messages}
        with path.open("xb") as file:
            file.write(vector.data)
        with path.with_suffix(".json").open("x", encoding="utf-8") as text:
            text.write(json.dumps(about, ensure_ascii=False, indent=1) + "\n")
        written.append(vector.name)
    return written


if __name__ == "__main__":
    print("\n".join(write_missing()) or "nothing is missing")
