"""A session in which every text field of every message that a server may send has something in it."""

from __future__ import annotations

from typing import Any

import numpy as np
from gcspy_protocol import messages as m
from gcspy_protocol.attendance import Focus, LessonPlace
from gcspy_protocol.codec import encode, encode_event
from gcspy_protocol.connection import Connection
from gcspy_protocol.details import (
    AnswerState,
    ColumnKind,
    DetailColumn,
    DetailTable,
    MemoryReport,
)
from gcspy_protocol.expression.evaluation import Operand
from gcspy_protocol.frames.frame import Frame
from gcspy_protocol.messages import Message
from gcspy_protocol.model import (
    ControlState,
    EventFilter,
    EventKind,
    Mode,
    Naming,
    PauseActsOn,
    Presentation,
    Space,
    Stream,
)
from gcspy_protocol.settings import Setting, SettingKind
from gcspy_protocol.triggers import TriggerState, TriggerStatus

__all__ = ["ANSWER", "EVENTS", "HEAP", "NAMES", "event", "introduction", "packed", "partings"]

EVENTS = 3

HEAP, TYPES, MAP = 1, 2, 3
_COUNTS = {HEAP: 9, TYPES: 4, MAP: 400}
_NO_RUNS = np.empty(0, dtype="<u4")
_KINDS = ("types", "objects", "life", "neighbours")

_TABLE = DetailTable(
    columns=(
        DetailColumn(name="Type", kind=ColumnKind.TEXT, about="what it is"),
        DetailColumn(name="Objects", about="how many"),
        DetailColumn(name="Bytes", kind=ColumnKind.BYTES, about="how large"),
    ),
    rows=(("str", 3, 300), ("dict", 2, 200), (None, 1, None)),
    rest=2,
    rest_cells=("others", 2, 20),
    note="some of it was unknown",
)

ANSWER = m.Answer(
    number=1,
    space=HEAP,
    sequence=1,
    state=AnswerState.ANSWERED,
    table=_TABLE,
    report=MemoryReport(
        secs=1,
        resident=500,
        grew=20,
        memory=_TABLE,
        holders=_TABLE,
        sites=_TABLE,
        unsure=0,
        note="it ran while its memory was copied",
    ),
)
"""The answer, also to a question that nobody asked; without a table where none was given."""

NAMES = m.TileNames(
    space=TYPES, sequence=1, first=0, names=tuple(f"type {i}" for i in range(_COUNTS[TYPES]))
)

_TRIGGER = m.Trigger(id=1, expression="sum(Used) > 3", space="heap", note="why it was set")
_OPERANDS = (Operand(text="sum(Used)", value=4, covered=9), Operand(text="name", value="text"))


def introduction(*, controller: bool = True) -> list[Message]:
    """Return the messages before the first event."""
    plain = Stream(id=0, name="Used", dtype="u1", prefix="is ", suffix=" B", description="bytes")
    kind = Stream(
        id=1,
        name="Kind",
        dtype="u1",
        presentation=Presentation.ENUM,
        enum_names=("old", "young", "other"),
        description="what it is",
    )
    share = Stream(id=2, name="Share", dtype="u1", presentation=Presentation.PERCENT)
    named = Stream(id=3, name="Type", dtype="u1", names_from=TYPES)
    spaces = (
        Space(
            id=HEAP,
            name="heap",
            driver="test",
            tile_title="Block ",
            unused_text="not there",
            naming=Naming.EXTENTS,
            main=True,
            description="the heap",
            details=_KINDS,
            streams=(plain, kind, share, named),
        ),
        Space(id=TYPES, name="types", naming=Naming.STRINGS, details=_KINDS[:1], streams=(plain,)),
        Space(id=MAP, name="map", row_width=20, streams=(plain, kind)),
    )
    settings = (
        Setting(id=1, name="Level", about="how much", value=2, minimum=1, maximum=3, choices=("a", "b", "c")),
        Setting(id=2, name="Budget", about="what it may cost", kind=SettingKind.RANGE, value=50, minimum=0, maximum=1000),
        Setting(id=3, name="Collect", about="now", kind=SettingKind.ACTION, value=0, minimum=0, maximum=1),
        Setting(id=4, name="Mode", value=0, minimum=0, maximum=1, choices=("x", "y"), modes=(Mode.PASSIVE, Mode.STOPPED)),
    )  # fmt: skip
    statuses = tuple(
        TriggerStatus(
            trigger=_TRIGGER, state=state, fired=1, sequence=1, operands=_OPERANDS, why="why"
        )
        for state in (TriggerState.ARMED, TriggerState.FAILED)
    )
    return [
        m.Welcome(
            server="CPython 3.12, pid 7",
            session="identity",
            client_id=1,
            controller=controller,
            mode=Mode.PASSIVE,
            pause_acts_on=PauseActsOn.SAMPLING,
            events=(
                EventKind(id=0, name="Clock", description="a tick"),
                EventKind(id=1, name="Collection", description="of all"),
            ),
            general_info="about the target",
            target={
                "pid": "7",
                "executable": "/bin/x",
                "recorded mode": "passive",
                "recorded pause": "sampling",
            },
        ),
        *(m.SpaceDefined(space=space) for space in spaces),
        m.EpochEnd(epoch=1),
        m.Filters(filters=(EventFilter(event=0), EventFilter(event=1, period=3))),
        m.Clients(
            clients=(
                m.Client(id=1, name="this", person="Ada", following=True),
                m.Client(id=2, name="other", person="Bob", stalled=True),
                m.Client(id=3, name="third", behind=3),
            ),
            controller=1 if controller else 2,
            successor=2,
            leader=2,
        ),
        m.Counters(counts=(0, 0)),
        m.Settings(settings=settings),
        m.Budget(
            setting=2, allowed=50_000, spent=900, level_setting=1, asked=2, given=1,
            gathered=(1, 0), left_out=(3, 0), reason="it costs too much",
        ),
        m.Triggers(triggers=statuses, fired=1),
        m.Error(code=m.ErrorCode.BAD_REQUEST, message="not this", remedy="do that"),
    ]  # fmt: skip


def event(number: int) -> list[Message]:
    """An event, and what comes behind it."""
    stamp: dict[str, Any] = {"sequence": number, "time_nanos": number * 100_000_000}
    kind = number % 2
    out: list[Message] = []
    for space, count in _COUNTS.items():
        if number == 1:
            out.append(_tiles(space, count))
        streams = {HEAP: 4, TYPES: 1, MAP: 2}[space]
        for stream in range(streams):
            most = (90, 3, 90, 4)[stream]
            values = ((np.arange(count) + number) % most).astype("<u1")
            out.append(
                m.StreamKey(
                    space=space,
                    stream=stream,
                    event=kind,
                    occurrence=number,
                    values=values,
                    **stamp,
                )
            )
        out.append(
            m.Summary(space=space, stream=0, values=(count * number,), covered=count, **stamp)
        )
        out.append(m.SpaceInfo(space=space, text=f"about this event of {space}", **stamp))
    out.append(m.Summary(space=HEAP, stream=1, values=(3, 3, 3), covered=9, **stamp))
    if number == 1:
        out.append(m.NewNames(space=TYPES, first=0, names=NAMES.names, **stamp))
    out.append(
        m.Event(
            event=kind, occurrence=number, epoch=1, cause="because", held_nanos=5,
            program_clock=("allocated", 1000 * number), stopped_nanos=7, **stamp,
        )
    )  # fmt: skip
    out.append(m.Counters(counts=(number, number // 2)))
    out.append(
        m.Fired(trigger=_TRIGGER, event=kind, occurrence=number, operands=_OPERANDS, **stamp)
    )
    out.append(m.Missed(events=1, total=number))
    place = LessonPlace(lesson="barrier", step=1, attempt=1)
    out.append(
        m.Looked(
            client=2,
            at=Focus(space=HEAP, stream=0, view="rows", panel="tile", lesson=place),
        )
    )
    return out


def _tiles(space: int, count: int) -> m.Tiles:
    more: dict[str, Any] = {"naming": Naming.UNIFORM, "base": 0x1000, "tile_bytes": 64}
    if space == HEAP:
        bases = 0x1000 + 64 * np.arange(count, dtype="<u8")
        sizes = np.full(count, 64, dtype="<u8")
        more = {"naming": Naming.EXTENTS, "bases": bases, "sizes": sizes}
    elif space == TYPES:
        more = {"naming": Naming.STRINGS}
    return m.Tiles(
        space=space,
        count=count,
        old_starts=_NO_RUNS,
        new_starts=_NO_RUNS,
        lengths=_NO_RUNS,
        **more,
    )


def partings() -> list[list[Message]]:
    """The ways in which a session ends, each with words."""
    return [
        [m.State(state=ControlState.ENDED, reason="it exited")],
        [m.Goodbye(reason="enough")],
        [m.Error(code=m.ErrorCode.PROTOCOL, message="broken", remedy="mend it", fatal=True)],
        [],
    ]


def packed(connection: Connection, messages: list[Message]) -> bytes:
    """Messages as bytes; what belongs to an event goes before it."""
    data, frames = b"", list[Frame]()
    for message in messages:
        if isinstance(message, m.Event):
            data += encode_event(message, frames)
            frames = []
        elif isinstance(
            message, (m.Tiles, m.StreamKey, m.StreamDelta, m.Summary, m.SpaceInfo, m.NewNames)
        ):
            frames.append(encode(message))
        else:
            data += connection.send(message)
    return data
