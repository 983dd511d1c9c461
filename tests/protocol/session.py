"""A small server for the tests: it keeps the truth in plain lists, and sends it with the real encoders.

A client's values are compared with the lists, which know nothing of gaps,
bitmaps, runs or arrays.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
from gcspy_protocol import messages as m
from gcspy_protocol.codec import encode, encode_event
from gcspy_protocol.connection import Connection
from gcspy_protocol.frames.frame import Frame, pack_frame
from gcspy_protocol.interpreter import ClientInterpreter, StreamState
from gcspy_protocol.messages import Message
from gcspy_protocol.model import CONTROL_STREAM, EventKind, Mode, Naming, PauseActsOn, Role, Space
from gcspy_protocol.streams.tiles import pack_tiles
from gcspy_protocol.streams.values import Stamp, StreamEncoder
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tests.protocol.strategies import NOTICES, remaps, spaces, tiles_of

Drawn = TypeVar("Drawn")


class Draw(Protocol):
    """`DrawFn` in a strategy, `data.draw` in a test."""

    def __call__(self, strategy: SearchStrategy[Drawn], /) -> Drawn: ...


KINDS = 3
"""Kinds of event of the session."""

UNIFORM_BASE, UNIFORM_BYTES = 0x4000, 0x40

Tile = int | None
"""A tile's value; None is unknown."""


@dataclass
class StreamTruth:
    """Expected state of a stream at every client."""

    dtype: str
    default: int
    tiles: list[Tile] = field(default_factory=list)
    stamp: Stamp | None = None
    summary: m.Summary | None = None


@dataclass
class SpaceTruth:
    """Expected state of a space at every client."""

    space: Space
    streams: dict[int, StreamTruth]
    extents: list[tuple[int, int]] = field(default_factory=list)
    count: int = 0
    info: str = ""


@dataclass
class Truth:
    """Expected state of the session at every client."""

    epoch: int = 1
    sequence: int = 0
    spaces: dict[int, SpaceTruth] = field(default_factory=dict)
    said: dict[type[Message], Message] = field(default_factory=dict)


class Session:
    """The server's side of a session.

    Args:
        draw: Where every choice comes from.
    """

    welcome = m.Welcome(
        server="test",
        session="s",
        client_id=1,
        controller=True,
        mode=Mode.EMBEDDED,
        pause_acts_on=PauseActsOn.PROGRAM,
        events=tuple(EventKind(id=i, name=f"kind {i}") for i in range(KINDS)),
    )

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self.truth = Truth()
        self._encoders: dict[tuple[int, int], StreamEncoder] = {}
        self._occurrences = [0] * KINDS
        self._next_space = 1
        self._next_address = 0x1000
        self._last: m.Event | None = None

    # ------------------------------------------------------------ the schema

    def bootstrap(self) -> list[Message]:
        """Return the messages that a client gets first."""
        return [
            self.welcome,
            *(m.SpaceDefined(space=s.space) for s in self.truth.spaces.values()),
            m.EpochEnd(epoch=self.truth.epoch),
            *self.truth.said.values(),
        ]

    def add_space(self) -> list[Message]:
        """Define a space; it has no tiles until an event gives it some."""
        space = self._draw(spaces(self._next_space))
        self._next_space += 1
        streams = {s.id: StreamTruth(s.dtype, s.default) for s in space.streams}
        streams[CONTROL_STREAM] = StreamTruth("u1", 1)
        self.truth.spaces[space.id] = SpaceTruth(space, streams)
        for stream_id, stream in streams.items():
            self._encoders[space.id, stream_id] = StreamEncoder(
                space.id, stream_id, dtype=stream.dtype, default=stream.default, count=0
            )
        self.truth.epoch += 1
        return [m.SpaceDefined(space=space), m.EpochEnd(epoch=self.truth.epoch)]

    def remove_space(self) -> list[Message]:
        """Remove any space, if there is one."""
        if not self.truth.spaces:
            return []
        gone = self._draw(st.sampled_from(sorted(self.truth.spaces)))
        del self.truth.spaces[gone]
        self.truth.epoch += 1
        return [m.SpaceRemoved(space=gone), m.EpochEnd(epoch=self.truth.epoch)]

    def notice(self) -> list[Message]:
        """Say something that is not part of an event."""
        message = self._draw(NOTICES)
        self.truth.said[type(message)] = message
        return [message]

    # ---------------------------------------------------------------- events

    def event(self) -> bytes:
        """Anything that an event may bring: resizes, values, summaries, texts, frames of a later version."""
        kind = self._draw(st.integers(0, KINDS - 1))
        self._occurrences[kind] += self._draw(st.integers(1, 3))
        self.truth.sequence += 1
        stamp = Stamp(
            sequence=self.truth.sequence,
            time_nanos=1000 * self.truth.sequence,
            event=kind,
            occurrence=self._occurrences[kind],
        )
        frames: list[Frame] = []
        for space in self.truth.spaces.values():
            if self._draw(st.booleans()):
                frames.append(self._resize(space))
            for stream_id, stream in space.streams.items():
                if self._draw(st.booleans()):
                    frames += self._gather(space, stream_id, stream, stamp)
            if self._draw(st.booleans()):
                space.info = self._draw(st.text(max_size=5))
                frames.append(encode(self._info(space)))
        if self._draw(st.booleans()):
            place = self._draw(st.integers(0, len(frames)))
            frames.insert(place, pack_frame(0x2A, b"of a later version"))
        self._last = m.Event(
            sequence=stamp.sequence,
            time_nanos=stamp.time_nanos,
            event=kind,
            occurrence=stamp.occurrence,
            epoch=self.truth.epoch,
        )
        return encode_event(self._last, frames)

    def keyframe(self) -> bytes:
        """The latest event as a client needs it that missed it, or the previous values."""
        if self._last is None:
            return b""
        frames: list[Frame] = []
        for space in self.truth.spaces.values():
            frames.append(pack_tiles(self._tiles(space, [None] * space.count, space.extents)))
            for stream_id, stream in space.streams.items():
                if stream.stamp is not None:
                    frames.append(self._encoders[space.space.id, stream_id].key())
                if stream.summary is not None:
                    frames.append(encode(stream.summary))
            frames.append(encode(self._info(space)))
        return encode_event(
            m.Event(
                sequence=self._last.sequence,
                time_nanos=self._last.time_nanos,
                event=self._last.event,
                occurrence=self._last.occurrence,
                epoch=self.truth.epoch,
                keyframe=True,
                cached=True,
            ),
            frames,
        )

    def _info(self, space: SpaceTruth) -> m.SpaceInfo:
        return m.SpaceInfo(
            space=space.space.id, sequence=self.truth.sequence, time_nanos=0, text=space.info
        )

    def _tiles(
        self, space: SpaceTruth, cells: list[int | None], new_extents: list[tuple[int, int]]
    ) -> m.Tiles:
        more: dict[str, Any] = {}
        if space.space.naming is Naming.EXTENTS:
            bases, sizes = np.array(new_extents, dtype="<u8").reshape(-1, 2).T
            more = {"bases": bases, "sizes": sizes}
        elif space.space.naming is Naming.UNIFORM:
            more = {"base": UNIFORM_BASE, "tile_bytes": UNIFORM_BYTES}
        return tiles_of(space.space.id, space.space.naming, cells, **more)

    def _resize(self, space: SpaceTruth) -> Frame:
        cells = self._draw(remaps(space.count))
        extents = []
        for _ in range(cells.count(None)):
            size = self._draw(st.integers(1, 1 << 40))
            extents.append((self._next_address, size))
            self._next_address += size + self._draw(st.integers(0, 1 << 40))
        names = iter(extents)
        space.extents = [
            next(names) if old is None else space.extents[old]
            for old in cells
            if space.space.naming is Naming.EXTENTS
        ]
        space.count = len(cells)
        tiles = self._tiles(space, cells, extents)
        for stream_id, stream in space.streams.items():
            stream.tiles = [None if old is None else stream.tiles[old] for old in cells]
            self._encoders[space.space.id, stream_id].remap(
                tiles.old_starts, tiles.new_starts, tiles.lengths, tiles.count
            )
        return pack_tiles(tiles)

    def _gather(
        self, space: SpaceTruth, stream_id: int, stream: StreamTruth, stamp: Stamp
    ) -> list[Frame]:
        info = np.iinfo(stream.dtype)
        value = st.sampled_from([int(info.min), int(info.max), 0, 1, 2]) | st.none()
        for tile in range(space.count):
            if stream.stamp is None or self._draw(st.integers(0, 3)) == 0:
                stream.tiles[tile] = self._draw(value)
        known = np.array([v is not None for v in stream.tiles], dtype=np.bool_)
        # Places of unknown values may hold anything: a driver's buffer has the last torn read
        # there.
        values = np.array([99 if v is None else v for v in stream.tiles], dtype="<" + stream.dtype)
        mask = known if self._draw(st.booleans()) or not known.all() else None
        frames = [self._encoders[space.space.id, stream_id].encode(values, mask, stamp)]
        stream.stamp = stamp
        if stream_id != CONTROL_STREAM and self._draw(st.booleans()):
            numbers = [self._draw(st.integers(-9, 9))] * space.space.stream(
                stream_id
            ).summary_length
            stream.summary = m.Summary(
                space=space.space.id,
                stream=stream_id,
                sequence=stamp.sequence,
                time_nanos=stamp.time_nanos,
                values=tuple(numbers),
                covered=space.count,
            )
            frames.append(encode(stream.summary))
        return frames

    def snapshot(self) -> Truth:
        """The truth at this moment, for a client that reaches this point later."""
        return deepcopy(self.truth)


class Joined:
    """A client that came to a session: both ends of its connection, and what it knows.

    Args:
        session: The session.
    """

    def __init__(self, session: Session) -> None:
        self.server, self.client = Connection(Role.SERVER), Connection(Role.CLIENT)
        self.interpreter = ClientInterpreter()
        self.downstream = bytearray(self.server.preamble())
        self.upstream = bytearray(self.client.preamble() + self.client.send(m.Hello(client="test")))
        for message in session.bootstrap():
            self.downstream += self.server.send(message)


def read_stream(state: StreamState) -> list[Tile]:
    """A client's values as a plain list."""
    values = [int(v) for v in state.values]
    return [v if state.is_known(i) else None for i, v in enumerate(values)]


def assert_equal(client: ClientInterpreter, truth: Truth) -> None:
    """Everything the client knows is the truth."""
    assert list(client.spaces) == list(truth.spaces)
    assert client.epoch == truth.epoch
    for space_id, expected in truth.spaces.items():
        found = client.spaces[space_id]
        assert found.space == expected.space
        assert found.count == expected.count
        assert found.info == expected.info
        _assert_names(found.names, expected)
        for stream_id, stream in expected.streams.items():
            state = found.stream(stream_id)
            assert read_stream(state) == stream.tiles, (space_id, stream_id)
            assert state.values.dtype == np.dtype("<" + stream.dtype)
            assert state.told == stream.summary
            if stream.stamp is not None:
                assert stream.stamp == Stamp(
                    sequence=state.sequence,
                    time_nanos=state.time_nanos,
                    event=state.event,
                    occurrence=state.occurrence,
                )
    _assert_said(client, truth)


def _assert_names(names: Any, expected: SpaceTruth) -> None:
    for tile in range(expected.count):
        match expected.space.naming:
            case Naming.EXTENTS:
                base, size = expected.extents[tile]
                name = f"[{base:#x}, {base + size:#x})"
            case Naming.UNIFORM:
                base = UNIFORM_BASE + tile * UNIFORM_BYTES
                name = f"[{base:#x}, {base + UNIFORM_BYTES:#x})"
            case Naming.STRINGS:
                base, name = tile, str(tile)
        assert names.name(tile) == name
        assert names.key(tile) == base
        assert names.index_of(base) == tile
    assert names.index_of(3 << 50) is None


def _assert_said(client: ClientInterpreter, truth: Truth) -> None:
    for message in truth.said.values():
        match message:
            case m.Counters():
                assert client.counters == message.counts
            case m.State():
                assert (client.state, client.state_reason) == (message.state, message.reason)
                assert client.driver_failed == message.driver_failed
            case m.Filters():
                assert client.filters == {f.event: f for f in message.filters}
            case m.Clients():
                assert client.clients == message
            case m.Missed():
                assert client.missed_total == message.total
            case m.Triggers():
                assert client.triggers == message
            case m.Settings():
                assert client.settings == message
            case m.Budget():
                assert client.budget == message
            case m.Looked():
                assert client.looked == message
            case _:
                raise AssertionError(f"not a notice: {message}")


@st.composite
def server_streams(draw: DrawFn, most_steps: int = 5) -> bytes:
    """All bytes of a server to one client, for a session in which anything happens."""
    session = Session(draw)
    joined = Joined(session)
    data = bytes(joined.downstream)
    for _ in range(draw(st.integers(0, most_steps))):
        match draw(st.sampled_from(("add", "remove", "notice", "event", "event"))):
            case "add":
                messages = session.add_space()
            case "remove":
                messages = session.remove_space()
            case "notice":
                messages = session.notice()
            case _:
                messages = []
                data += session.event()
        data += b"".join(joined.server.send(message) for message in messages)
    return data
