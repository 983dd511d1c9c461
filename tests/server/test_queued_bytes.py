"""The bytes queued for all clients together are bounded: the largest queues lose events, then the slowest clients are disconnected."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

import numpy as np

from gcspy_server.api import ServedSession, Server, SessionOptions, UniformNames
from gcspy_session.queue import ClientQueue, EntryKind
from gcspy_session.queued_bytes import QueuedBytes
from tests.server.conftest import EndLog
from tests.server.test_hostile import greeted, raw
from tests.server.viewer import Viewer

Serve = Callable[..., ServedSession]
Join = Callable[..., Viewer]

_TILES = 64_000


@dataclass
class Somebody:
    """A client, as the ledger knows it: with a real queue, and a list of the calls on it."""

    memory: QueuedBytes
    last_taken: float = 0.0
    ended: bool = False
    queue: ClientQueue = field(init=False)

    def __post_init__(self) -> None:
        self.queue = ClientQueue(events=100, event_bytes=1 << 30, messages=100, memory=self.memory)
        self.memory.join(self)

    @property
    def waiting_bytes(self) -> int:
        return self.queue.event_bytes

    @property
    def own_bytes(self) -> int:
        return self.queue.own_bytes

    @property
    def holds_any(self) -> bool:
        return self.queue.holds_any

    def lose_events(self) -> None:
        self.queue.drop_events()

    def end_for_memory(self, waiting: int, most: int) -> None:
        assert waiting > most
        self.ended = True
        self.queue.clear()


def test_what_several_wait_for_is_counted_once_until_the_last_has_it() -> None:
    memory = QueuedBytes(100)
    some = [Somebody(memory) for _ in range(3)]
    event = bytes(60)
    for one in some:
        one.queue.add_event(event, 1)
    assert memory.total == 60
    memory.relieve()
    assert [one.queue.events for one in some] == [1, 1, 1]
    for one in some:
        one.queue.pop()
    assert memory.total == 60, "what is being sent is in memory, too"
    for one in some[:2]:
        one.queue.pop()
    assert (memory.total, some[2].own_bytes) == (60, 60)
    some[2].queue.clear()
    assert memory.total == 0


def test_the_rest_of_a_frame_keeps_all_of_it() -> None:
    memory = QueuedBytes()
    one = Somebody(memory)
    one.queue.add_rest(EntryKind.EVENT, memoryview(bytes(50))[49:], 1)
    assert memory.total == 50


def test_the_largest_queue_loses_its_events_first_and_nobody_is_ended_for_it() -> None:
    memory = QueuedBytes(100)
    small, large = Somebody(memory), Somebody(memory, last_taken=9.0)
    small.queue.add_event(bytes(40), 1)
    for number in (1, 2):
        large.queue.add_event(bytes(35), number)
    memory.relieve()
    assert (small.queue.events, large.queue.events, memory.total) == (1, 0, 40)
    assert [small.ended, large.ended] == [False, False]


def test_the_slowest_is_ended_where_nothing_can_be_dropped_and_the_last_one_never() -> None:
    memory = QueuedBytes(100)
    slow, slower, quick = (Somebody(memory, last_taken=at) for at in (2.0, 1.0, 3.0))
    for one in (slow, slower, quick):
        one.queue.add_event(bytes(60), 1, must=True)
    memory.relieve()
    assert [one.ended for one in (slow, slower, quick)] == [True, True, False]
    quick.queue.add_event(bytes(90), 2, must=True)
    memory.relieve()
    assert not quick.ended, "a large heap may be looked at by one"
    memory.leave(slow)
    memory.leave(slow)


def test_who_holds_nothing_of_its_own_is_ended_last() -> None:
    memory = QueuedBytes(100)
    sharing, also, alone = (Somebody(memory, last_taken=at) for at in (1.0, 2.0, 3.0))
    shared = bytes(60)
    for one in (sharing, also):
        one.queue.add_event(shared, 1, must=True)
    alone.queue.add_event(bytes(60), 1, must=True)
    memory.relieve()
    assert [one.ended for one in (sharing, also, alone)] == [False, False, True]


# ------------------------------------------------------------------ over real sockets


def test_of_many_who_read_nothing_the_slowest_are_ended_and_others_miss_nothing(
    serve: Serve, join: Join, ended: EndLog
) -> None:
    server = Server("large", events=["tick"])
    space = server.add_space("heap", names=UniformNames(0x1000, 16, _TILES), main=True)
    stream = space.add_stream("value", dtype="i8", maximum=1 << 62)
    options = SessionOptions(queued_bytes_all=2 << 20)
    address = serve(server, options=options).addresses[0]
    witness = join(address)
    random = np.random.default_rng(1)

    def event() -> None:
        assert server.should_transmit(0)
        # Numbers that do not compress: each event has half a mebibyte.
        stream.data[:] = random.integers(0, 1 << 62, _TILES, dtype=np.int64)
        server.finish(0)
        witness.event()

    event()
    with ExitStack() as stack:
        for _ in range(12):  # of different events, as a rule
            sock = stack.enter_context(raw(address))
            greeted(sock)
            # From here on it takes nothing: its keyframe is being sent, and larger than its buffers.
            sock.recv(1, socket.MSG_PEEK)
            event()
        (line, *_) = ended.abnormal(3)
        assert "too slow: " in line
        assert "bytes wait for all clients, of at most 2,097,152" in line
    assert witness.state.missed_total == 0
