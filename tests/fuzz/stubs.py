"""Decoders of what a target's stub, agent and VM say: bytes that an untrusted program chooses.

The descriptors that a stub hands over are made here, as bytes cannot be any; times of events are
relative to now, since an event of another hour is refused before its other fields are read.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from unittest.mock import patch

from gcspy_drivers.cooperative.held_events import HeldEvents
from gcspy_drivers.cooperative.line import StubEvent, StubLine
from gcspy_drivers.cooperative.rest import Rest
from gcspy_drivers.cooperative.ring_buffer import CopyPlan, EventCopy
from gcspy_drivers.hotspot.agent.agent_library import AgentLibrary
from gcspy_drivers.hotspot.vm.counters import _parse
from gcspy_drivers.remote.process import Process

from gcspy_server.api import GatherRequest, PauseActsOn, Server

__all__ = ["AGENT_SEEDS", "ANSWER_SEEDS", "COUNTER_SEEDS", "STUB_SEEDS", "agent_line", "attach_answer", "counters", "stub_line"]  # fmt: skip

_HELLO = struct.Struct("<8sHHIQ")
_EVENT = struct.Struct("<BB2xIQQqq")
_MAGIC = b"gcspystb"
_TELLS, _UNSEALED = 2, 0x8000
_MOST_BYTES = 2000
_MOST_SHIFT = 1 << 40
"""Nanoseconds; a time in an input that is at most so far from zero is one from now."""

_PAGE_BYTES = 4096


def _packets(data: bytes) -> Iterator[bytes]:
    """The first of 24 bytes; the others, each with a length given by the byte before it."""
    yield data[: _HELLO.size] or b"\0"
    at = _HELLO.size
    while at < len(data) and at < _MOST_BYTES:
        size = max(1, data[at])
        yield data[at + 1 : at + 1 + size] or b"\0"
        at += 1 + size


def _from_now(packet: bytes) -> bytes:
    """The packet of an event, its time moved to now."""
    if len(packet) < _EVENT.size:
        return packet
    kind, generation, thread, number, nanos, *freed = _EVENT.unpack_from(packet)
    if nanos <= _MOST_SHIFT:
        nanos += time.monotonic_ns()
    return _EVENT.pack(kind, generation, thread, number, nanos, *freed) + packet[_EVENT.size :]


def _timer() -> int:
    """A timer that has run out: a reporter of an event continues at once."""
    libc = ctypes.CDLL(None, use_errno=True)
    timer = int(libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_CLOEXEC))
    libc.timerfd_settime(timer, 0, struct.pack("<4q", 0, 0, 0, 1), None)
    return timer


@contextmanager
def _said(data: bytes, page: bytes = b"") -> Iterator[socket.socket]:
    """Our end of a line on which a stub has said all of an input, and has left."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    memory = os.memfd_create("fuzz", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    timer = _timer()
    first, *others = _packets(data)
    try:
        os.truncate(memory, _PAGE_BYTES)
        os.pwrite(memory, page[:_PAGE_BYTES], 0)
        flags = int.from_bytes(first[10:12], "little")
        if not flags & _UNSEALED:
            fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        socket.send_fds(theirs, [first], [timer, memory])
        for packet in others:
            theirs.send(_from_now(packet))
        theirs.close()
        yield ours
    finally:
        theirs.close()
        ours.close()
        os.close(memory)
        os.close(timer)


def stub_line(data: bytes) -> None:
    """Take what a stub says until it has left."""
    with (
        _said(data) as ours,
        Process(os.getpid()) as process,
        closing(StubLine(ours, process, lambda secs: True)) as line,
    ):
        line.begin(1)
        while True:
            event = line.wait(0)
            assert event is not None
            assert len(event.more) < 256
            assert event.kind in (0, 1)
            assert event.number > 0
            line.go_on()


class _AtRest(Rest):
    """A reporter of an event sleeps at once; else each would be waited for."""

    def reached_by(self, thread: int) -> bool:
        """Report that it sleeps."""
        return True


class _Reader:
    """A driver that reads nothing, and counts the requests."""

    def __init__(self) -> None:
        self.told = 0

    def announced(self, server: Server, event: StubEvent, /) -> None:
        """Count it."""
        self.told += 1

    def read(self, request: GatherRequest, event: StubEvent, /) -> None:
        """Nothing is there to be read."""

    def pass_by(self, server: Server, /) -> None:
        """Nothing was prepared."""

    def spoil(self) -> None:
        """Nothing was read."""

    def cause_of(self, event: StubEvent, /) -> str:
        """Name the event."""
        return f"generation {event.generation}"

    def copy_plan(self) -> CopyPlan:
        """Ask for a range."""
        return CopyPlan(((4096, 8),))

    def saw_new_pages(self) -> None:
        """No pages are recorded."""

    def announced_aside(self, event: StubEvent, /) -> None:
        """Nothing is read beside the recording."""

    def announced_copy(self, event: StubEvent, copy: EventCopy, /) -> None:
        """Nothing is kept."""

    def read_copy(self, request: GatherRequest, event: StubEvent, copy: EventCopy, /) -> None:
        """Nothing is shown."""

    def pass_copy_by(self, copy: EventCopy, /) -> None:
        """Nothing is kept."""


def agent_line(data: bytes) -> None:
    """Take a session's events of what an agent says; the first 32 bytes are what its page counts, then what it is asked."""
    page, data = data[:32], data[32:]
    server = Server(
        "fuzz", events=("GC start", "GC end"), budget=1000, pause_acts_on=PauseActsOn.PROGRAM
    )
    server.add_observer(lambda _: None)
    reader = _Reader()
    with _said(data, page) as ours, Process(os.getpid()) as process:
        events = HeldEvents(ours, process, (0, 1), reader)
        # One that has left is waited for, as it may be ending; this process never does.
        with closing(events), patch.object(events, "_refuse_ended", process.check):
            events.line.begin(1)
            events.line._rest = _AtRest(process, 0)
            events.open(server)
            try:
                while True:
                    events.begin_tick()
                    events.prepare()
                    events.wait(0)
            finally:
                counts = server.counts()
                assert all(count >= 0 for count in counts)
                assert sum(counts) >= reader.told - len(data)


def attach_answer(data: bytes) -> None:
    """Take the answers of a JVM's attach listener to the request to load the agent."""
    with Process(os.getpid()) as process:
        library = AgentLibrary(process, {})
        listener = library._listener
        ours, theirs = socket.socketpair()
        with (
            ours,
            theirs,
            patch.object(listener, "_connected", lambda deadline: nullcontext(ours)),
            patch.object(listener, "why_not", str),
        ):
            theirs.sendall(data)
            theirs.shutdown(socket.SHUT_WR)
            library._ask("/agent.so", "connect:/socket", 60, last=True)


def counters(data: bytes) -> None:
    """Find the performance counters in a VM's memory; each lies in it."""
    if len(data) < 32:
        return
    first = 0x7F00_0000_0000
    for place in _parse(data, first).values():
        assert first <= place.address
        assert place.address + (place.text_bytes or 8) <= first + len(data)


def _events(*packets: bytes) -> bytes:
    return b"".join(bytes([len(packet)]) + packet for packet in packets)


def _hello(flags: int) -> bytes:
    return _HELLO.pack(_MAGIC, 2, flags, 0, 0x1000)


def _counter_seed() -> bytes:
    def entry(name: bytes, kind: bytes, vector: int, value: bytes) -> bytes:
        place = 20 + (len(name) + 8) // 8 * 8
        length = (place + len(value) + 7) // 8 * 8
        head = struct.pack("<iiiBBBBi", length, 20, vector, kind[0], 0, 1, 1, place)
        return (head + name).ljust(place, b"\0") + value.ljust(length - place, b"\0")

    entries = [
        entry(b"sun.gc.cause", b"B", 16, b"No GC".ljust(16, b"\0")),
        entry(b"sun.gc.collector.0.invocations", b"J", 0, (7).to_bytes(8, "little")),
        entry(b"sun.gc.time", b"J", 0, bytes(8)),
    ]
    body = b"".join(entries)
    head = struct.pack(
        "<IBBBBiiqii", 0xC0C0FECA, 1, 2, 0, 1, 32 + len(body), 0, 0, 32, len(entries)
    )
    return head + body


STUB_SEEDS = (
    _hello(_TELLS) + _events(*(_EVENT.pack(kind, 1, 2, 3, 4, 5, 6) for kind in (0, 1))),
    _hello(_TELLS) + _events(_EVENT.pack(0, 1, 2, 3, 4, 5, 6) + bytes(120)),
    _hello(0) + _events(_EVENT.pack(0, 1, 2, 1, 0, 5, 6), _EVENT.pack(1, 1, 2, 1, 0, 5, 6)),
    _hello(_UNSEALED),
)
AGENT_SEEDS = (
    struct.pack("<4Q", 2, 2, 1, 1)
    + _hello(0)
    + _events(*(_EVENT.pack(number % 2, 1, 2, 1 + number // 2, 0, 5, 6) for number in range(4))),
    struct.pack("<4Q", 9, 8, 1, 1) + _hello(1) + _events(_EVENT.pack(1, 0, 2, 8, 0, 5, 6)),
)
ANSWER_SEEDS = (b"0\n", b"0\nreturn code: 101\n", b"101\nProtocol mismatch", b"", b"100\n\xff\x00")
COUNTER_SEEDS = (_counter_seed(), _counter_seed()[:80])
