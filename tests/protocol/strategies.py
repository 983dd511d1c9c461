"""Hypothesis strategies: any legal message of every type, and ways to cut and damage bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
from gcspy_protocol import messages as m
from gcspy_protocol.attendance import LOOK_CHARS, Focus
from gcspy_protocol.details import (
    LONGEST_OVER_MILLIS,
    MOST_ROWS,
    MOST_SAMPLE_BYTES,
    AnswerState,
    ColumnKind,
    DetailColumn,
    DetailTable,
    MemoryReport,
)
from gcspy_protocol.expression import Operand
from gcspy_protocol.messages import FrameType, Message
from gcspy_protocol.model import (
    CONTROL_STREAM,
    DTYPES,
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
from gcspy_protocol.playback import FASTEST, SLOWEST, TIMELINE, Direction, Pace
from gcspy_protocol.settings import Setting, SettingKind
from gcspy_protocol.triggers import TriggerAction, TriggerState, TriggerStatus
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from hypothesis.strategies import DrawFn, SearchStrategy

U16 = st.integers(0, 0xFFFF)
U32 = st.integers(0, 0xFFFFFFFF)
U64 = st.integers(0, (1 << 64) - 1)
I63 = st.integers(0, (1 << 63) - 1)
I64 = st.integers(-(1 << 63), (1 << 63) - 1)
TEXT = st.text(max_size=12)
DTYPE = st.sampled_from(sorted(DTYPES))
STREAM_ID = st.one_of(st.integers(0, 3), st.just(CONTROL_STREAM))


@st.composite
def tile_arrays(draw: DrawFn, dtype: str, count: int) -> np.ndarray[Any, Any]:
    """Values of `count` tiles over the whole range of a stream's type."""
    return draw(npst.arrays(np.dtype("<" + dtype), count))


@st.composite
def known_masks(draw: DrawFn, count: int) -> np.ndarray[Any, np.dtype[np.bool_]] | None:
    """Which values are known; None as often as not."""
    return draw(npst.arrays(np.bool_, count)) if draw(st.booleans()) else None


@st.composite
def streams(draw: DrawFn, stream_id: int, others: list[int]) -> Stream:
    """A stream that the model allows; `others` are the ids it may name as its max stream."""
    dtype = draw(DTYPE)
    info = np.iinfo(dtype)
    kinds = [p for p in Presentation if others or p is not Presentation.PERCENT_VAR]
    presentation = draw(st.sampled_from(kinds))
    enum = presentation is Presentation.ENUM
    wide = st.integers(-(1 << 63), (1 << 64) - 1)
    least, most = sorted((draw(wide), draw(wide)))
    return Stream(
        id=stream_id,
        name=draw(TEXT),
        dtype=dtype,
        minimum=least,
        maximum=most,
        zero=draw(wide),
        default=draw(st.integers(int(info.min), int(info.max))),
        prefix=draw(TEXT),
        suffix=draw(TEXT),
        presentation=presentation,
        paint_style=draw(st.sampled_from(PaintStyle)),
        max_stream=draw(st.sampled_from(others))
        if presentation is Presentation.PERCENT_VAR
        else None,
        enum_names=tuple(draw(st.lists(TEXT, min_size=1, max_size=4))) if enum else (),
        colour=draw(st.none() | st.tuples(*[st.integers(0, 255)] * 3)),
        order=draw(st.integers(-(1 << 63) + 1, (1 << 63) - 1)),
        accumulates=draw(st.booleans()),
        names_from=draw(st.none() | U16),
        threshold=draw(st.booleans()),
        description=draw(TEXT),
    )


@st.composite
def spaces(draw: DrawFn, space_id: int | None = None) -> Space:
    """A space with up to three streams."""
    ids = draw(st.lists(st.integers(0, 0xFFFE), unique=True, max_size=3))
    return Space(
        id=draw(U16) if space_id is None else space_id,
        name=draw(TEXT),
        driver=draw(TEXT),
        tile_title=draw(TEXT),
        unused_text=draw(TEXT),
        naming=draw(st.sampled_from(Naming)),
        main=draw(st.booleans()),
        row_width=draw(st.none() | st.integers(1, 1 << 20)),
        description=draw(TEXT),
        details=tuple(draw(st.lists(TEXT, max_size=2))),
        streams=tuple(draw(streams(i, ids)) for i in ids),
    )


@st.composite
def remaps(draw: DrawFn, old_count: int, *, most: int = 12) -> list[int | None]:
    """For each tile from now on the old tile it was, or None for a new one."""
    kept = st.integers(0, old_count - 1) if old_count else st.nothing()
    if draw(st.booleans()):  # as heaps do it: tiles go from the middle, others come at the end
        stay = [i for i in range(old_count) if draw(st.booleans())]
        return (
            [*stay, *[None] * draw(st.integers(0, most - len(stay)))]
            if len(stay) <= most
            else [*stay]
        )
    used: set[int] = set()
    cells: list[int | None] = []
    for cell in draw(st.lists(st.none() | kept, max_size=most)):
        cells.append(None if cell in used else cell)
        used |= set() if cell is None else {cell}
    return cells


def runs_of(cells: list[int | None]) -> list[list[int]]:
    """Old start, new start and length of each run of a remap, made one tile at a time."""
    runs: list[list[int]] = []
    for new, old in enumerate(cells):
        if old is None:
            continue
        if runs and runs[-1][0] + runs[-1][2] == old and runs[-1][1] + runs[-1][2] == new:
            runs[-1][2] += 1
        else:
            runs.append([old, new, 1])
    return runs


def tiles_of(space: int, naming: Naming, cells: list[int | None], **more: Any) -> m.Tiles:
    """The Tiles message of a remap."""
    old_starts, new_starts, lengths = np.array(runs_of(cells), dtype="<u4").reshape(-1, 3).T
    return m.Tiles(
        space=space,
        count=len(cells),
        old_starts=old_starts,
        new_starts=new_starts,
        lengths=lengths,
        naming=naming,
        **more,
    )


@st.composite
def tiles(draw: DrawFn) -> m.Tiles:
    """A resize with any runs and any kind of names."""
    naming = draw(st.sampled_from(Naming))
    cells = draw(remaps(draw(st.integers(0, 12))))
    new = cells.count(None)
    more: dict[str, Any] = {}
    if naming is Naming.EXTENTS:
        more = {name: draw(tile_arrays("u8", new)) for name in ("bases", "sizes")}
    elif naming is Naming.UNIFORM:
        more = {"base": draw(U64), "tile_bytes": draw(U64)}
    return tiles_of(draw(U16), naming, cells, **more)


def _stamp(draw: DrawFn) -> dict[str, Any]:
    return {
        "space": draw(U16),
        "stream": draw(U16),
        "sequence": draw(U64),
        "time_nanos": draw(U64),
        "event": draw(U16),
        "occurrence": draw(U64),
    }


@st.composite
def stream_keys(draw: DrawFn) -> m.StreamKey:
    """A KEY of any type, with and without unknown tiles."""
    count = draw(st.integers(0, 20))
    values = draw(tile_arrays(draw(DTYPE), count))
    return m.StreamKey(**_stamp(draw), values=values, known=draw(known_masks(count)))


@st.composite
def stream_deltas(draw: DrawFn) -> m.StreamDelta:
    """A DELTA of any type; the distances include those around the escape."""
    gap = st.one_of(st.integers(1, 5), st.integers(0xFFFD, 0x10002), st.integers(1, 300_000))
    indices = np.cumsum([0, *draw(st.lists(gap, max_size=8))], dtype=np.int64)[1:] - 1
    count = int(indices[-1]) + 1 if len(indices) else 0
    return m.StreamDelta(
        **_stamp(draw),
        base_sequence=draw(U64),
        count=count + draw(st.integers(0, 200_000)),
        indices=indices,
        values=draw(tile_arrays(draw(DTYPE), len(indices))),
        known=draw(known_masks(len(indices))),
    )


_FILTERS = st.lists(
    st.builds(
        EventFilter,
        event=U16,
        enabled=st.booleans(),
        delay_millis=st.integers(0, 3_600_000),
        pause=st.booleans(),
        period=st.integers(1, 1 << 32),
    ),
    max_size=4,
).map(tuple)

_SUBSCRIPTION = st.builds(
    m.Subscription,
    space=U16,
    streams=st.none() | st.lists(U16, max_size=3).map(tuple),
)

EVENTS: SearchStrategy[m.Event] = st.builds(
    m.Event,
    sequence=U64,
    time_nanos=I63,
    event=U16,
    occurrence=U64,
    epoch=U32,
    gather_nanos=U64,
    held_nanos=U64,
    keyframe=st.booleans(),
    cached=st.booleans(),
    cause=TEXT,
    program_clock=st.none() | st.tuples(TEXT, U64),
    waited_nanos=U64,
    stopped_nanos=U64,
)

_MANNERS: SearchStrategy[m.SetPlayback] = st.builds(
    m.SetPlayback,
    pace=st.sampled_from(Pace),
    interval_millis=st.integers(0, 3_600_000),
    speed=st.floats(SLOWEST, FASTEST),
    direction=st.sampled_from(Direction),
    loop=st.none() | st.tuples(I63, I63).map(lambda ends: (min(ends), max(ends))),
)

_SETTINGS: SearchStrategy[Setting] = st.builds(
    Setting,
    id=U32,
    name=TEXT,
    about=TEXT,
    kind=st.sampled_from(SettingKind),
    value=st.integers(-(1 << 63) + 1, (1 << 63) - 1),
    minimum=st.integers(-(1 << 63) + 1, 0),
    maximum=I63,
    choices=st.lists(TEXT, max_size=3).map(tuple),
    costs=st.lists(I63, max_size=3).map(tuple),
    applies=I63,
    modes=st.lists(st.sampled_from(Mode), max_size=3).map(tuple),
)
_TRIGGERS: SearchStrategy[m.Trigger] = st.builds(
    m.Trigger,
    id=st.integers(0, (1 << 32) - 1),
    expression=TEXT,
    space=TEXT,
    action=st.sampled_from(TriggerAction),
    once=st.booleans(),
    enabled=st.booleans(),
    note=TEXT,
)
_FLOATS = st.floats(allow_nan=False, allow_infinity=False)
_OPERANDS: SearchStrategy[tuple[Operand, ...]] = st.lists(
    st.builds(
        Operand,
        text=TEXT,
        value=st.none()
        | st.booleans()
        | st.integers(-(1 << 63) + 1, (1 << 64) - 1)
        | _FLOATS
        | TEXT,
        covered=st.integers(0, 1 << 25),
        tiles=st.integers(0, 1 << 25),
    ),
    max_size=3,
).map(tuple)
_STATUSES: SearchStrategy[TriggerStatus] = st.builds(
    TriggerStatus,
    trigger=_TRIGGERS,
    state=st.sampled_from(TriggerState),
    fired=I63,
    sequence=I63,
    event=U16,
    occurrence=U64,
    operands=_OPERANDS,
    why=TEXT,
)


@st.composite
def tables(draw: DrawFn) -> DetailTable:
    """A table of detail with at least one column."""
    column = st.builds(DetailColumn, name=TEXT, kind=st.sampled_from(ColumnKind), about=TEXT)
    columns = draw(st.lists(column, min_size=1, max_size=4))
    number = st.integers(-(1 << 63), (1 << 64) - 1)
    row = st.tuples(
        *(st.none() | (TEXT if one.kind is ColumnKind.TEXT else number) for one in columns)
    )
    return DetailTable(
        columns=tuple(columns),
        rows=tuple(draw(st.lists(row, max_size=4))),
        rest=draw(I63),
        rest_cells=draw(st.just(()) | row),
        note=draw(TEXT),
    )


_SIGNED = st.integers(-(1 << 63) + 1, (1 << 63) - 1)

_REPORTS = st.builds(
    MemoryReport,
    secs=st.integers(0, 1 << 40).map(lambda millis: millis / 1000),
    resident=I63,
    grew=st.none() | _SIGNED,
    memory=tables(),
    holders=tables(),
    sites=tables(),
    unsure=_SIGNED,
    unsure_grew=_SIGNED,
    note=TEXT,
)

_PLACES = st.builds(
    Focus,
    space=st.none() | U16,
    stream=st.none() | st.integers(0, 0xFFFE),
    key=st.none() | U64,
    view=st.text(max_size=LOOK_CHARS),
    panel=st.text(max_size=LOOK_CHARS),
    sequence=st.none() | st.integers(1, (1 << 63) - 1),
)

BY_TYPE: dict[FrameType, SearchStrategy[Message]] = {
    FrameType.HELLO: st.builds(
        m.Hello,
        client=TEXT,
        wants_control=st.booleans(),
        token=TEXT,
        pause_at_connect=st.booleans(),
        codecs=st.lists(TEXT, max_size=3).map(tuple),
        person=TEXT,
        following=st.booleans(),
        nonce=st.just(b"") | st.binary(min_size=32, max_size=32),
    ),
    FrameType.CHALLENGE: st.builds(m.Challenge, nonce=st.binary(min_size=32, max_size=32)),
    FrameType.PROOF: st.builds(m.Proof, proof=st.binary(min_size=32, max_size=32)),
    FrameType.WELCOME: st.builds(
        m.Welcome,
        server=TEXT,
        session=TEXT,
        client_id=I63,
        controller=st.booleans(),
        mode=st.sampled_from(Mode),
        pause_acts_on=st.sampled_from(PauseActsOn),
        events=st.lists(st.tuples(TEXT, TEXT), max_size=4).map(
            lambda kinds: tuple(
                EventKind(id=i, name=n, description=d) for i, (n, d) in enumerate(kinds)
            )
        ),
        general_info=TEXT,
        target=st.dictionaries(TEXT, TEXT, max_size=3),
        clock=TEXT,
        clock_resolution_nanos=I63,
        wall_offset_nanos=st.integers(-(1 << 63) + 1, (1 << 63) - 1),
    ),
    FrameType.ERROR: st.builds(
        m.Error, code=st.sampled_from(m.ErrorCode), message=TEXT, remedy=TEXT, fatal=st.booleans()
    ),
    FrameType.GOODBYE: st.builds(m.Goodbye, reason=TEXT),
    FrameType.PING: st.builds(m.Ping, number=I63),
    FrameType.PONG: st.builds(m.Pong, number=I63),
    FrameType.SPACE_DEFINED: st.builds(m.SpaceDefined, space=spaces()),
    FrameType.SPACE_REMOVED: st.builds(m.SpaceRemoved, space=U16),
    FrameType.EPOCH_END: st.builds(m.EpochEnd, epoch=I63),
    FrameType.TILE_NAMES: st.builds(
        m.TileNames,
        space=U16,
        sequence=U64,
        first=st.integers(0, 1 << 25),
        names=st.lists(TEXT, max_size=5).map(tuple),
    ),
    FrameType.TILES: tiles(),
    FrameType.STREAM_KEY: stream_keys(),
    FrameType.STREAM_DELTA: stream_deltas(),
    FrameType.SUMMARY: st.builds(
        m.Summary,
        space=U16,
        stream=U16,
        sequence=U64,
        time_nanos=U64,
        values=st.lists(I64, max_size=5).map(tuple),
        covered=U32,
    ),
    FrameType.NEW_NAMES: st.builds(
        m.NewNames,
        space=U16,
        sequence=U64,
        time_nanos=U64,
        first=st.integers(0, 1 << 25),
        names=st.lists(TEXT, max_size=5).map(tuple),
    ),
    FrameType.SPACE_INFO: st.builds(
        m.SpaceInfo, space=U16, sequence=U64, time_nanos=U64, text=TEXT
    ),
    FrameType.EVENT: EVENTS,
    FrameType.COUNTERS: st.builds(m.Counters, counts=st.lists(U64, max_size=5).map(tuple)),
    FrameType.STATE: st.builds(m.State, state=st.sampled_from(ControlState), reason=TEXT),
    FrameType.FILTERS: st.builds(m.Filters, filters=_FILTERS),
    FrameType.CLIENTS: st.builds(
        m.Clients,
        clients=st.lists(
            st.builds(
                m.Client,
                id=I63,
                name=TEXT,
                person=TEXT,
                following=st.booleans(),
                behind=st.none() | I63,
                stalled=st.booleans(),
            ),
            max_size=3,
        ).map(tuple),
        controller=st.none() | I63,
        successor=st.none() | I63,
        leader=st.none() | I63,
    ),
    FrameType.MISSED: st.builds(m.Missed, events=I63, total=I63),
    FrameType.SET_FILTERS: st.builds(m.SetFilters, filters=_FILTERS),
    FrameType.PAUSE: st.just(m.Pause()),
    FrameType.RESUME: st.just(m.Resume()),
    FrameType.STEP: st.just(m.Step()),
    FrameType.SUBSCRIBE: st.builds(
        m.Subscribe,
        spaces=st.none() | st.lists(_SUBSCRIPTION, max_size=3).map(tuple),
        max_rate_hz=st.none() | st.floats(0.001, 1e6),
    ),
    FrameType.TAKE_CONTROL: st.just(m.TakeControl()),
    FrameType.HAND_OVER: st.builds(m.HandOver, client=I63),
    FrameType.NAME_SUCCESSOR: st.builds(m.NameSuccessor, client=st.none() | I63),
    FrameType.TILE_NAMES_REQUEST: st.builds(
        m.TileNamesRequest, space=U16, first=st.integers(0, 1 << 25), count=st.integers(1, 4096)
    ),
    FrameType.PLAYBACK: st.builds(
        m.Playback,
        first=I63,
        last=I63,
        growing=st.booleans(),
        manner=_MANNERS,
        follows=st.none() | I63,
        filters=_FILTERS,
    ),
    FrameType.TIMELINE: st.builds(
        m.Timeline, first=U64, rows=npst.arrays(TIMELINE, st.integers(0, 5)), fresh=st.booleans()
    ),
    FrameType.POSITION: st.builds(m.Position, number=U64),
    FrameType.SET_PLAYBACK: _MANNERS,
    FrameType.SEEK: st.one_of(
        st.builds(m.Seek, number=I63),
        st.builds(m.Seek, time_nanos=I63),
        st.builds(m.Seek, name=TEXT, backwards=st.booleans()),
        st.builds(m.Seek, steps=st.integers(-(1 << 63) + 1, (1 << 63) - 1)),
    ),
    FrameType.FOLLOW: st.builds(m.Follow, client=st.none() | I63),
    FrameType.TRIGGER: _TRIGGERS,
    FrameType.TRIGGERS: st.builds(
        m.Triggers, triggers=st.lists(_STATUSES, max_size=3).map(tuple), fired=I63
    ),
    FrameType.FIRED: st.builds(
        m.Fired,
        trigger=_TRIGGERS,
        sequence=I63,
        time_nanos=I63,
        event=U16,
        occurrence=U64,
        pauses=st.booleans(),
        operands=_OPERANDS,
    ),
    FrameType.QUERY: st.builds(
        m.Query,
        number=st.integers(0, (1 << 32) - 1),
        space=U16,
        kind=TEXT,
        key=st.none() | U64,
        most=st.integers(1, MOST_ROWS),
        text=TEXT,
        held=st.booleans(),
        over_millis=st.integers(0, LONGEST_OVER_MILLIS),
        sample_bytes=st.integers(0, MOST_SAMPLE_BYTES),
    ),
    FrameType.ANSWER: st.builds(
        m.Answer,
        number=st.integers(0, (1 << 32) - 1),
        space=U16,
        sequence=U64,
        state=st.sampled_from(AnswerState),
        reason=TEXT,
        table=st.just(DetailTable()) | tables(),
        done=I63,
        total=I63,
        report=st.none() | _REPORTS,
    ),
    FrameType.SETTINGS: st.builds(m.Settings, settings=st.lists(_SETTINGS, max_size=3).map(tuple)),
    FrameType.BUDGET: st.builds(
        m.Budget,
        setting=U32,
        allowed=st.integers(0, 1_000_000),
        spent=I63,
        sequence=I63,
        level_setting=U32,
        asked=st.integers(-(1 << 63) + 1, (1 << 63) - 1),
        given=st.integers(-(1 << 63) + 1, (1 << 63) - 1),
        spaces=U32,
        covered=U32,
        every_nanos=I63,
        full_nanos=I63,
        gathered=st.lists(I63, max_size=3).map(tuple),
        left_out=st.lists(I63, max_size=3).map(tuple),
        reason=TEXT,
    ),
    FrameType.SET_SETTING: st.builds(
        m.SetSetting, id=U32, value=st.integers(-(1 << 63) + 1, (1 << 63) - 1)
    ),
    FrameType.ATTEND: st.builds(m.Attend, person=TEXT, following=st.booleans()),
    FrameType.LOOK: st.builds(m.Look, at=_PLACES),
    FrameType.LOOKED: st.builds(m.Looked, client=I63, at=_PLACES),
    FrameType.LOSSLESS: st.builds(m.Lossless, deadline_millis=st.integers(0, 60_000)),
}
"""A strategy for each type of frame; a test says that none is missing."""

_LATE_ANSWERS = (FrameType.SETTINGS, FrameType.ANSWER)
"""Types of messages that a server sends and whose numbers are above those of commands."""

COMMANDS: SearchStrategy[Message] = st.one_of(
    *[BY_TYPE[t] for t in FrameType if t >= FrameType.SET_FILTERS and t not in _LATE_ANSWERS],
    BY_TYPE[FrameType.PING],
)
"""Messages that a client may send at any time."""

NOTICES: SearchStrategy[Message] = st.one_of(
    *[
        BY_TYPE[t]
        for t in (
            FrameType.COUNTERS,
            FrameType.STATE,
            FrameType.FILTERS,
            FrameType.CLIENTS,
            FrameType.MISSED,
            FrameType.TRIGGERS,
            FrameType.SETTINGS,
            FrameType.BUDGET,
            FrameType.LOOKED,
        )
    ]
)
"""Messages that a server may send between events without a schema."""


def any_message() -> SearchStrategy[Message]:
    """Any message that has a frame of its own: all but Event."""
    return st.one_of(*[s for t, s in BY_TYPE.items() if t is not FrameType.EVENT])


@st.composite
def cuts(draw: DrawFn, data: bytes) -> list[bytes]:
    """The same bytes in pieces, as a socket may deliver them; some pieces are empty."""
    places = sorted(draw(st.lists(st.integers(0, len(data)), max_size=8)))
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


@st.composite
def damaged(draw: DrawFn, data: bytes) -> bytes:
    """Bytes with some of them changed, left out, doubled or put in."""
    out = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(len(out) - 1, 0)))
        size = draw(st.integers(1, 4))
        match draw(st.sampled_from(("change", "extreme", "cut", "double", "insert"))):
            case "change":
                out[at : at + 1] = draw(st.binary(min_size=1, max_size=1))
            case "extreme":
                out[at : at + size] = (
                    draw(st.sampled_from((b"\xff", b"\0", b"\x80", b"\x7f"))) * size
                )
            case "cut":
                del out[at : at + size]
            case "double":
                out[at:at] = out[at : at + size]
            case _:
                out[at:at] = draw(st.binary(min_size=1, max_size=size))
    return bytes(out)
