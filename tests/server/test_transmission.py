"""Whatever a driver does, a client that followed every event and one that came this moment have the same, and it is true."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest
from gcspy_protocol import ClientInterpreter, Connection
from gcspy_protocol import messages as m
from gcspy_protocol.codec import encode
from gcspy_protocol.connection import preamble
from gcspy_protocol.frames.frame import Frame
from gcspy_protocol.messages import Message
from gcspy_protocol.model import CONTROL_STREAM, Mode, PauseActsOn, Role
from gcspy_protocol.streams.tiles import pack_tiles
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gcspy_server.api import (
    ExtentNames,
    Presentation,
    Server,
    ServerSpace,
    StringNames,
    TileNames,
    UniformNames,
)
from gcspy_server.interpreter import transmission
from gcspy_server.interpreter.core import Audience, SchemaChange
from gcspy_server.interpreter.transmission import KeyframeSource, Snapshot
from gcspy_session.interest import EVERYTHING, Interest
from tests.examples import examples

_KEYS = list(range(12))


def test_two_threads_that_encode_a_keyframe_at_the_same_time_get_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Server("x", events=["tick"])
    space = server.add_space("s", names=UniformNames(0, 16, 4))
    space.add_stream("plain", dtype="i8", default=0)
    core = server._core
    core.publish()
    core.open_queue(lambda: None)
    core.set_audience(Audience(clients=2, wants=EVERYTHING))
    assert server.should_transmit(0)
    space.reset(*space.streams)
    server.finish(0)
    core.post_keyframe()
    (source,) = core.handoff_queue.take()[-1:]
    assert isinstance(source, KeyframeSource)
    inside = threading.Barrier(2)

    def pack(tiles: m.Tiles, **stamp: int) -> Frame:
        with suppress(threading.BrokenBarrierError):
            inside.wait(0.3)  # both get here only if nothing keeps the second one out
        return pack_tiles(tiles, **stamp)

    monkeypatch.setattr(transmission, "pack_tiles", pack)
    with ThreadPoolExecutor(2) as threads:
        first, second = (one.result() for one in [threads.submit(source.encode) for _ in range(2)])
    assert first is second
    assert first.parts


class Follower:
    """A client without a socket."""

    def __init__(self, server: Server, schema: SchemaChange) -> None:
        self.connection = Connection(Role.CLIENT)
        self.state = ClientInterpreter()
        self.fresh: list[tuple[int, int]] = []
        welcome = m.Welcome(
            server="x",
            session="1",
            client_id=1,
            controller=False,
            mode=Mode.EMBEDDED,
            pause_acts_on=PauseActsOn.PROGRAM,
            events=server.events,
        )
        self.receive(preamble() + encode(welcome).data)
        for space in schema.spaces:
            self.tell(m.SpaceDefined(space=space))
        self.tell(m.EpochEnd(epoch=schema.epoch))

    def tell(self, message: Message) -> None:
        self.receive(encode(message).data)

    def receive(self, data: bytes) -> None:
        self.connection.receive_data(data)
        for message in self.connection.messages():
            self.state.apply(message)


def names_of(kind: str, keys: list[int]) -> TileNames:
    match kind:
        case "uniform":
            return UniformNames(16 * min(keys, default=0), 16, len(keys))
        case "extents":
            return ExtentNames([32 * key for key in keys], [16 + key % 3 for key in keys])
        case _:
            return StringNames([f"tile {key}" for key in keys], keys)


keys = st.lists(st.sampled_from(_KEYS), unique=True)


class DriverMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.server = Server("x", events=["tick"])
        self.kinds: dict[int, str] = {}
        self.truth: dict[tuple[int, int], tuple[list[int], list[bool]]] = {}
        self.add("uniform", [0, 1, 2])
        core = self.core = self.server._core
        core.publish()
        self.schema = core.open_queue(lambda: None).schema
        core.set_audience(Audience(clients=1, wants=EVERYTHING))
        self.early = Follower(self.server, self.schema)

    def add(self, kind: str, tile_keys: list[int]) -> None:
        space = self.server.add_space("s", names=names_of(kind, tile_keys))
        space.add_stream("plain", dtype="i8", default=-7)
        space.add_stream("percent", dtype="u1", presentation=Presentation.PERCENT)
        space.add_stream("sum", dtype="i4", accumulates=True)
        self.kinds[space.id] = kind

    @precondition(lambda self: len(self.server.spaces) < 4)
    @rule(kind=st.sampled_from(["uniform", "extents", "strings"]), tile_keys=keys)
    def add_space(self, kind: str, tile_keys: list[int]) -> None:
        self.add(kind, tile_keys)

    @precondition(lambda self: len(self.server.spaces) > 1)
    @rule(which=st.integers(0, 9))
    def remove_space(self, which: int) -> None:
        self.server.remove_space(self.server.spaces[which % len(self.server.spaces)])

    @rule(which=st.integers(0, 9), tile_keys=keys)
    def resize(self, which: int, tile_keys: list[int]) -> None:
        space = self.server.spaces[which % len(self.server.spaces)]
        space.resize(names_of(self.kinds[space.id], tile_keys))

    @rule(
        seed=st.integers(0, 1 << 16),
        gather=st.lists(st.booleans(), min_size=8, max_size=8),
        info=st.sampled_from("ab"),
    )
    def event(self, seed: int, gather: list[bool], info: str) -> None:
        assert self.server.should_transmit(0)
        random = np.random.default_rng(seed)
        gathered: set[tuple[int, int]] = set()
        for space, all_of_it, unknown in zip(
            self.server.spaces, gather[:4], gather[4:], strict=False
        ):
            space.info = info
            some = space.streams[: 2 if all_of_it else 1]
            space.reset(*some)
            for stream in some:
                stream.data[:] = random.integers(0, 5, space.count)
                gathered.add((space.id, stream.schema.id))
                if unknown:
                    stream.set_unknown(random.random(space.count) < 0.3)
            space.streams[2].data[:] += random.integers(0, 3, space.count).astype("i4")
            gathered.add((space.id, 2))
            space.control[:] = random.integers(0, 32, space.count)
        self.server.finish(0)
        self.deliver()
        self.check_gathered(gathered)

    def deliver(self) -> None:
        for item in self.core.handoff_queue.take():
            if isinstance(item, SchemaChange):
                self.schema = item
                for message in item.messages:
                    self.early.tell(message)
            elif isinstance(item, Snapshot):
                self.early.receive(item.bytes_for(EVERYTHING))

    def check_gathered(self, gathered: set[tuple[int, int]]) -> None:
        """Check that gathered streams are present and fresh, and that the others are stale."""
        event = self.early.state.last_event
        assert event is not None
        for space in self.server.spaces:
            state = self.early.state.spaces[space.id]
            assert state.count == space.count
            assert state.info == space.info
            np.testing.assert_array_equal(state.control.values, space._control)
            for stream in space.streams:
                mine = state.streams[stream.schema.id]
                assert mine.is_fresh(event) == ((space.id, stream.schema.id) in gathered)
                if mine.is_fresh(event):
                    self.check_values(space, stream.schema.id)

    def check_values(self, space: ServerSpace, number: int) -> None:
        mine, stream = self.early.state.spaces[space.id].streams[number], space.streams[number]
        known = np.ones(space.count, dtype=bool) if stream.known is None else stream.known
        ours = np.ones(space.count, dtype=bool) if mine.known is None else mine.known
        np.testing.assert_array_equal(ours, known)
        np.testing.assert_array_equal(mine.values[known], stream._values[known])
        used = known & ((space._control & 1) != 0)
        assert mine.summary is not None
        assert mine.summary.covered == int(used.sum())
        assert mine.summary.values[0] == int(stream._values[used].astype(object).sum())

    @invariant()
    def a_late_joiner_has_the_same(self) -> None:
        if not hasattr(self, "early") or self.early.state.last_event is None:
            return
        self.core.post_keyframe()
        (source,) = self.core.handoff_queue.take()[-1:]
        assert isinstance(source, KeyframeSource)
        late = Follower(self.server, self.schema)
        late.receive(source.encode().bytes_for(EVERYTHING))
        self.compare(self.early.state, late.state)
        # A client that followed may get it as well, after events that it missed.
        again = Follower(self.server, self.schema)
        again.receive(source.encode().bytes_for(EVERYTHING))
        again.receive(source.encode().bytes_for(EVERYTHING))
        self.compare(self.early.state, again.state)

    @staticmethod
    def compare(early: ClientInterpreter, late: ClientInterpreter) -> None:
        assert early.last_event is not None
        assert late.last_event is not None
        assert late.last_event.sequence == early.last_event.sequence
        assert late.last_event.keyframe
        assert early.spaces.keys() == late.spaces.keys()
        for number, mine in early.spaces.items():
            theirs = late.spaces[number]
            assert (mine.count, mine.info) == (theirs.count, theirs.info)
            assert [mine.names.key(i) for i in range(mine.count)] == [
                theirs.names.key(i) for i in range(mine.count)
            ]
            for stream in (*mine.streams, CONTROL_STREAM):
                one, other = mine.stream(stream), theirs.stream(stream)
                ours = np.ones(mine.count, dtype=bool) if one.known is None else one.known
                known = np.ones(mine.count, dtype=bool) if other.known is None else other.known
                np.testing.assert_array_equal(ours, known)
                np.testing.assert_array_equal(one.values[known], other.values[known])
                assert (one.sequence, one.occurrence, one.summary) == (
                    other.sequence,
                    other.occurrence,
                    other.summary,
                )


TestDriverMachine = DriverMachine.TestCase
TestDriverMachine.settings = examples(0.6, stateful_step_count=25)


def test_a_keyframe_holds_only_what_is_wanted() -> None:
    machine = DriverMachine()
    machine.event(1, [True] * 8, "a")
    machine.core.post_keyframe()
    (source,) = machine.core.handoff_queue.take()
    assert isinstance(source, KeyframeSource)
    wants = Interest.of([m.Subscription(space=machine.server.spaces[0].id, streams=(1,))])
    late = Follower(machine.server, machine.schema)
    late.receive(source.encode().bytes_for(wants))
    streams = late.state.spaces[machine.server.spaces[0].id].streams
    assert [stream.sequence for stream in streams.values()] == [0, 1, 0]
