"""The client interpreter: contradictions to earlier messages, and changes reported to the view."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.errors import RemoteProtocolError
from gcspy_protocol.interpreter import ClientInterpreter, EventChange
from gcspy_protocol.limits import Limits
from gcspy_protocol.messages import Message
from gcspy_protocol.model import (
    CONTROL_STREAM,
    ControlState,
    EventFilter,
    Naming,
    PauseActsOn,
    Presentation,
    Space,
    Stream,
)
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.session import Session
from tests.protocol.strategies import BY_TYPE, any_message, tiles_of

SPACE = Space(
    id=1,
    name="Heap",
    naming=Naming.EXTENTS,
    streams=(
        Stream(id=0, name="Used", dtype="i4", default=-1),
        Stream(
            id=5, name="State", dtype="u1", presentation=Presentation.ENUM, enum_names=("a", "b")
        ),
    ),
)

EVENT = m.Event(sequence=1, time_nanos=10, event=2, occurrence=7, epoch=1)


def key(
    values: list[int],
    *,
    stream: int = 0,
    dtype: str = "i4",
    sequence: int = 1,
    space: int = 1,
    **more: Any,
) -> m.StreamKey:
    return m.StreamKey(space=space, stream=stream, sequence=sequence, time_nanos=10 * sequence, event=2, occurrence=7,
                       values=np.array(values, dtype="<" + dtype), **more)  # fmt: skip


def delta(
    indices: list[int],
    values: list[int],
    *,
    base: int = 1,
    count: int = 3,
    dtype: str = "i4",
    **more: Any,
) -> m.StreamDelta:
    return m.StreamDelta(space=1, stream=0, sequence=base + 1, time_nanos=20, event=2, occurrence=8,
                         base_sequence=base, count=count, indices=np.array(indices, dtype=np.int64),
                         values=np.array(values, dtype="<" + dtype), **more)  # fmt: skip


def extents(cells: list[int | None], *bases: int) -> m.Tiles:
    new = np.array(bases, dtype="<u8")
    return tiles_of(1, Naming.EXTENTS, cells, bases=new, sizes=np.full(len(new), 16, dtype="<u8"))


def started(*messages: Message, limits: Limits | None = None) -> ClientInterpreter:
    """A client that knows the space, with three tiles."""
    client = ClientInterpreter(limits=limits or Limits())
    for message in (Session.welcome, m.SpaceDefined(space=SPACE), m.EpochEnd(epoch=1),
                    extents([None] * 3, 0x10, 0x20, 0x30), *messages):  # fmt: skip
        client.apply(message)
    return client


def seen(client: ClientInterpreter, stream: int = 0) -> list[int | None]:
    state = client.spaces[1].stream(stream)
    return [int(v) if state.is_known(i) else None for i, v in enumerate(state.values)]


def test_before_the_first_values_nothing_is_known() -> None:
    client = started()
    assert seen(client) == [None] * 3
    assert client.spaces[1].streams[0].values.tolist() == [-1] * 3
    assert seen(client, CONTROL_STREAM) == [None] * 3
    assert client.spaces[1].control.values.tolist() == [1] * 3
    assert not client.spaces[1].streams[0].is_fresh(EVENT)


def test_values_are_those_of_the_latest_key_and_its_deltas() -> None:
    client = started(key([1, 2, 3]))
    assert seen(client) == [1, 2, 3]
    assert client.spaces[1].streams[0].is_fresh(EVENT)
    client.apply(delta([1], [9], known=np.array([False])))
    assert seen(client) == [1, None, 3]
    state = client.spaces[1].streams[0]
    assert (state.sequence, state.time_nanos, state.event, state.occurrence) == (2, 20, 2, 8)
    assert not state.is_fresh(EVENT)
    client.apply(delta([1, 2], [4, 5], base=2))
    assert seen(client) == [1, 4, 5]
    assert state.known is None
    client.apply(key([7, 8, 9], known=np.array([False, True, True])))
    assert seen(client) == [None, 8, 9]
    client.apply(key([7, 8, 9]))
    assert state.known is None


def test_the_view_is_told_what_changed_since_the_event_before() -> None:
    client = started(key([1, 2, 3]))
    change = client.apply(EVENT)
    assert isinstance(change, EventChange)
    assert change.event is EVENT
    assert client.last_event is EVENT
    assert change.changed == {(1, 0): None}
    assert list(change.resized) == [1]
    client.apply(delta([0, 2], [5, 5]))
    change = client.apply(EVENT)
    assert change is not None
    assert change.resized == {}
    assert list(change.changed) == [(1, 0)]
    changed = change.changed[1, 0]
    assert changed is not None
    assert changed.tolist() == [0, 2]
    client.apply(delta([0], [5], base=2))
    client.apply(delta([1], [5], base=3))
    change = client.apply(EVENT)
    assert change is not None
    assert change.changed == {(1, 0): None}
    change = client.apply(EVENT)
    assert change is not None
    assert (change.changed, change.resized) == ({}, {})


def test_a_resize_keeps_values_and_names_of_kept_tiles() -> None:
    client = started(key([1, 2, 3]), extents([2, None, 0], 0x99))
    assert seen(client) == [3, None, 1]
    space = client.spaces[1]
    assert space.count == 3
    assert [space.names.key(i) for i in range(3)] == [0x30, 0x99, 0x10]
    client.apply(delta([1], [8]))
    assert seen(client) == [3, 8, 1]
    client.apply(extents([]))
    assert seen(client) == []


@pytest.mark.parametrize(
    ("message", "about"),
    [
        (key([1, 2, 3], space=2), "there is no space 2"),
        (key([1, 2, 3], stream=4), "space 1 has no stream 4"),
        (key([1, 2]), "values of 2 tiles, the space has 3"),
        (key([1, 2, 3], dtype="u4"), "values are uint32, the schema says int32"),
        (key([1, 2, 3], dtype="i8"), "values are int64, the schema says int32"),
        (key([1, 2, 3], stream=CONTROL_STREAM), "values are int32, the schema says uint8"),
        (delta([1], [1], base=3), "changes since snapshot 3, here are those of 1"),
        (delta([1], [1], count=4), "values of 4 tiles, the space has 3"),
        (delta([1], [1], dtype="i2"), "values are int16"),
        (extents([3]), "kept tiles up to 4 of 3"),
        (extents([0xFFFFFFFF]), "kept tiles up to 4294967296 of 3"),
        (tiles_of(1, Naming.STRINGS, [0]), "tiles named by strings, not extents"),
        (tiles_of(3, Naming.EXTENTS, [0]), "there is no space 3"),
        (m.Summary(space=1, stream=0, sequence=1, time_nanos=1, values=(1, 2), covered=3), "a summary of 2 numbers"),
        (m.Summary(space=1, stream=5, sequence=1, time_nanos=1, values=(1,), covered=3), "the schema needs 2"),
        (m.Summary(space=1, stream=9, sequence=1, time_nanos=1, values=(1,), covered=3), "no stream 9"),
        (m.SpaceInfo(space=4, sequence=1, time_nanos=1, text=""), "there is no space 4"),
        (m.SpaceDefined(space=SPACE), "space 1 is defined twice"),
        (m.SpaceRemoved(space=2), "there is no space 2"),
        (m.TileNames(space=2, sequence=1, first=0, names=()), "there is no space 2"),
        (replace(EVENT, event=3), "there is no kind of event 3"),
        (replace(EVENT, epoch=2), "an event of schema epoch 2, here is 1"),
    ],
)  # fmt: skip
def test_what_contradicts_what_was_said_before_is_blamed_on_the_server(
    message: Message, about: str
) -> None:
    client = started(key([1, 2, 3]))
    with pytest.raises(RemoteProtocolError, match=about):
        client.apply(message)
    assert seen(client) == [1, 2, 3]


def test_a_space_ends_and_another_begins() -> None:
    client = started(key([1, 2, 3]), EVENT, m.SpaceRemoved(space=1))
    other = Space(id=2, name="Other")
    for message in (m.SpaceDefined(space=other), m.EpochEnd(epoch=2)):
        client.apply(message)
    assert list(client.spaces) == [2]
    with pytest.raises(RemoteProtocolError, match="epoch 1, here is 2"):
        client.apply(EVENT)
    assert client.apply(replace(EVENT, epoch=2)) is not None


def test_a_message_of_32_bytes_cannot_take_gigabytes() -> None:
    """Each tile costs its integers, and whether they are known, and here its extent: 5 + 2 + 2 + 16."""
    limits = Limits(values_bytes=25 * 100)
    client = started(limits=limits)
    assert client.spaces[1].bytes_for(1) == 25
    client.apply(extents([None] * 100, *range(100)))
    with pytest.raises(
        RemoteProtocolError,
        match="with 101 tiles the session would take 2525 bytes, over the limit",
    ):
        client.apply(extents([None] * 101, *range(101)))
    client.apply(m.SpaceDefined(space=Space(id=2, name="n", naming=Naming.STRINGS)))
    with pytest.raises(RemoteProtocolError, match="the session would take 2502 bytes"):
        client.apply(tiles_of(2, Naming.STRINGS, [None]))
    client.apply(extents([]))
    client.apply(tiles_of(2, Naming.STRINGS, [None]))
    bomb = ClientInterpreter()
    streams = tuple(Stream(id=i, name="s", dtype="i8") for i in range(512))
    bomb.apply(m.SpaceDefined(space=Space(id=1, name="n", naming=Naming.STRINGS, streams=streams)))
    none = np.empty(0, dtype="<u4")
    with pytest.raises(RemoteProtocolError, match="over the limit of 4294967296"):
        bomb.apply(m.Tiles(space=1, count=1 << 25, old_starts=none, new_starts=none, lengths=none,
                           naming=Naming.STRINGS))  # fmt: skip


def test_resizes_of_an_event_are_bounded_by_what_they_go_through() -> None:
    """A TILES of 44 bytes that keeps all tiles moves every value of the space."""
    client = started(limits=Limits(values_bytes=25 * 100))
    client.apply(extents([None] * 100, *range(100)))
    client.apply(EVENT)
    kept = extents(list(range(100)))
    before = client.spaces[1].control.values
    for _ in range(2):
        client.apply(kept)
    with pytest.raises(
        RemoteProtocolError, match="go through 15000 bytes, over the limit of 10000"
    ):
        client.apply(kept)
    client.apply(EVENT)
    client.apply(kept)  # the next event may again
    assert client.spaces[1].control.values is not before


def test_spaces_that_were_removed_take_no_room() -> None:
    limits = Limits(values_bytes=25 * 100)
    client = started(limits=limits)
    for _ in range(3):
        client.apply(extents([None] * 100, *range(100)))
        client.apply(EVENT)
        client.apply(m.SpaceRemoved(space=1))
        client.apply(m.SpaceDefined(space=SPACE))


def test_spaces_are_bounded() -> None:
    client = started(limits=Limits(spaces=2))
    client.apply(m.SpaceDefined(space=replace(SPACE, id=2)))
    with pytest.raises(RemoteProtocolError, match="more than 2 spaces"):
        client.apply(m.SpaceDefined(space=replace(SPACE, id=3)))


def test_what_is_not_part_of_an_event_is_followed() -> None:
    client = started()
    assert client.pause_acts_on is PauseActsOn.PROGRAM
    assert client.event_name(2) == "kind 2"
    assert client.event_name(9) == "event 9"
    assert ClientInterpreter().event_name(0) == "event 0"
    assert not client.is_controller()
    clients = m.Clients(clients=(m.Client(id=1, name="us"),), controller=1, successor=None)
    filters = (EventFilter(event=0, period=3), EventFilter(event=2, enabled=False))
    for message in (clients, m.Filters(filters=filters), m.Counters(counts=(3, 2, 1)), m.Missed(events=2, total=5),
                    m.State(state=ControlState.PAUSED, reason="event filter"), m.Ping(number=1),
                    m.Unknown(type=0x7F, payload_bytes=1),
                    m.Error(code=m.ErrorCode.BUSY, message="m"), m.Goodbye()):  # fmt: skip
        assert client.apply(message) is None
    assert client.is_controller()
    assert client.clients == clients
    assert client.filters == {0: filters[0], 2: filters[1]}
    assert client.counters == (3, 2, 1)
    assert client.missed_total == 5
    assert (client.state, client.state_reason) == (ControlState.PAUSED, "event filter")
    client.apply(m.SpaceInfo(space=1, sequence=1, time_nanos=1, text="now"))
    assert client.spaces[1].info == "now"
    summary = m.Summary(space=1, stream=5, sequence=1, time_nanos=1, values=(1, 2), covered=3)
    client.apply(summary)
    assert client.spaces[1].streams[5].summary == summary


def test_pages_of_names_reach_their_space() -> None:
    client = ClientInterpreter()
    client.apply(m.SpaceDefined(space=Space(id=1, name="n", naming=Naming.STRINGS)))
    client.apply(tiles_of(1, Naming.STRINGS, [None, None]))
    client.apply(m.TileNames(space=1, sequence=1, first=1, names=("second",)))
    assert client.spaces[1].names.name(1) == "second"


@given(st.lists(any_message(), max_size=12))
def test_any_messages_in_any_order_are_followed_or_blamed_on_the_server(
    messages: list[Message],
) -> None:
    """Legal messages that contradict each other: of spaces that are not there, of other sizes and types."""
    client = started(limits=Limits(values_bytes=1 << 20))
    for message in messages:
        with suppress(RemoteProtocolError):
            client.apply(message)
    for space in client.spaces.values():
        for stream in (*space.streams.values(), space.control):
            assert len(stream.values) == space.count
            assert stream.known is None or stream.known.shape == stream.values.shape


@given(st.data())
def test_odd_messages_for_a_space_that_is_there_are_followed_or_blamed(data: st.DataObject) -> None:
    """The same, with the place made to fit, so that more than the place is judged."""
    client = started(key([1, 2, 3]), limits=Limits(values_bytes=1 << 20))
    kinds = [m.FrameType.TILES, m.FrameType.STREAM_KEY, m.FrameType.STREAM_DELTA, m.FrameType.SUMMARY,
             m.FrameType.TILE_NAMES, m.FrameType.SPACE_INFO, m.FrameType.NEW_NAMES]  # fmt: skip
    for _ in range(data.draw(st.integers(1, 6))):
        kind = data.draw(st.sampled_from(kinds))
        place: dict[str, Any] = {"space": 1}
        if kind in (m.FrameType.STREAM_KEY, m.FrameType.STREAM_DELTA, m.FrameType.SUMMARY):
            place["stream"] = data.draw(st.sampled_from([0, 5, CONTROL_STREAM]))
        if kind is m.FrameType.STREAM_DELTA:
            place |= {
                "base_sequence": client.spaces[1].stream(place["stream"]).sequence,
                "count": client.spaces[1].count,
            }
        message = replace(data.draw(BY_TYPE[kind]), **place)
        if (
            isinstance(message, m.StreamDelta)
            and len(message.indices)
            and message.indices[-1] >= message.count
        ):
            continue  # the codec refuses that
        with suppress(RemoteProtocolError):
            client.apply(message)
        space = client.spaces[1]
        assert (
            len({len(s.values) for s in (*space.streams.values(), space.control)} | {space.count})
            == 1
        )


def test_values_are_stale_when_three_of_their_own_periods_have_passed() -> None:
    """A space that is read once a second is not stale at each event between."""

    def event(sequence: int, secs: float) -> m.Event:
        return m.Event(
            sequence=sequence, time_nanos=round(secs * 1e9), event=0, occurrence=sequence, epoch=1
        )

    def gathered(sequence: int, secs: float) -> m.StreamKey:
        return replace(key([1, 2, 3], sequence=sequence), time_nanos=round(secs * 1e9))

    client = started(gathered(1, 10.0))
    stream = client.spaces[1].stream(0)
    assert not stream.is_stale(event(1, 10.0))
    assert not stream.is_stale(event(2, 11.9)), "its period is not known yet"
    assert stream.is_stale(event(3, 12.0))
    client.apply(gathered(4, 11.0))
    assert stream.period_nanos == 1_000_000_000
    assert not stream.is_stale(event(5, 13.9))
    assert stream.is_stale(event(6, 14.0))
    assert not stream.is_fresh(event(5, 13.9))
    client.apply(gathered(7, 5.0))
    assert stream.period_nanos == 1_000_000_000, "to look back is no period"
