"""A stub that lies, is silent, hangs up or removes its page is refused with a message, and harms no other."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from gcspy_drivers.cooperative.line import StubLine, StubLost
from gcspy_drivers.cpython.cooperation.stub import EVENT, HELLO, MAGIC, PROTOCOL
from gcspy_drivers.remote.process import Process


def timer() -> int:
    import ctypes

    return int(ctypes.CDLL(None).timerfd_create(time.CLOCK_MONOTONIC, os.O_CLOEXEC))


def page(size_bytes: int = 4096, seals: int = fcntl.F_SEAL_SHRINK) -> int:
    memory = os.memfd_create("gcspy", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.truncate(memory, size_bytes)
    fcntl.fcntl(memory, fcntl.F_ADD_SEALS, seals)
    return memory


@contextmanager
def line_of() -> Iterator[tuple[StubLine, socket.socket]]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with (
        theirs,
        Process(os.getpid()) as process,
        closing(StubLine(ours, process, lambda _secs: False)) as line,
    ):
        yield line, theirs


def say_hello(theirs: socket.socket, *fds: int, flags: int = 2) -> None:
    """Say hello as a stub that only reports."""
    try:
        socket.send_fds(theirs, [HELLO.pack(MAGIC, PROTOCOL, flags, os.getpid(), 0)], list(fds))
    finally:
        for fd in fds:
            os.close(fd)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("nothing", "did not answer within 0 s"),
        ("the end", "is not a GCspy stub"),
        ("rubbish", "is not a GCspy stub"),
        ("too much", "is not a GCspy stub"),
        ("no descriptors", "is not a GCspy stub"),
        ("many descriptors", "is not a GCspy stub"),
        ("a page that can be cut away", "not share a sealed page"),
        ("a small page", "too small"),
        ("a file", "not share a sealed page|too small"),
        ("a pipe as timer", "does not share a sealed page and a timer"),
    ],
)
def test_whatever_it_says_first_is_taken_or_refused_in_words(kind: str, said: str) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with line_of() as (line, theirs):
        if kind == "the end":
            theirs.close()
        elif kind == "rubbish":
            theirs.send(bytes(32))
        elif kind == "too much":
            theirs.send(bytes(100_000))
        elif kind == "no descriptors":
            say_hello(theirs)
        elif kind == "many descriptors":
            say_hello(theirs, *(timer() for _ in range(20)))
        elif kind == "a page that can be cut away":
            say_hello(theirs, timer(), page(seals=0))
        elif kind == "a small page":
            say_hello(theirs, timer(), page(100))
        elif kind == "a file":
            say_hello(theirs, timer(), os.open("/dev/zero", os.O_RDWR))
        elif kind == "a pipe as timer":
            reading, writing = os.pipe()
            os.close(writing)
            say_hello(theirs, reading, page())
        with pytest.raises(StubLost, match=said):
            line.begin(0)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (b"short", "no longer in the program"),
        ((7, 1, 0), "kind 7"),
        ((0, 0, 0), "number 0"),
        ((0, 1 << 63, 0), "number 9223372036854775808"),
        ((0, 1, 3600), r"\d s ago"),
        ((0, 1, -3600), r"-3.6e\+03 s ago"),
    ],
)
def test_an_event_that_cannot_be_ends_the_line(
    event: bytes | tuple[int, int, int], said: str
) -> None:
    with line_of() as (line, theirs):
        say_hello(theirs, timer(), page())
        line.begin(1)
        if isinstance(event, tuple):
            kind, number, ago_secs = event
            nanos = time.monotonic_ns() - ago_secs * 10**9
            # monotonic time may be younger than an hour: that, too, is before the hello
            event = EVENT.pack(kind, 0, 1, number, max(0, nanos), 0, 0)
        theirs.send(event)
        with pytest.raises(StubLost, match=said):
            line.wait(1)


def test_an_event_that_can_be_is_told_and_counts_that_cannot_be_are_refused() -> None:
    with line_of() as (line, theirs):
        memory = page()
        os.pwrite(memory, struct.pack("<QQ", 5, 4), 0)
        kept = os.dup(memory)
        say_hello(theirs, timer(), memory)
        line.begin(1)
        assert line.counts == (5, 4)
        theirs.send(EVENT.pack(1, 2, 3, 4, time.monotonic_ns(), 5, 6))
        event = line.wait(1)
        assert event is not None
        assert (event.kind, event.generation, event.number) == (1, 2, 4)
        with pytest.raises(PermissionError):
            os.truncate(kept, 0)
        os.pwrite(kept, struct.pack("<QQ", 1 << 60, 4), 0)
        with pytest.raises(StubLost, match="reports impossible counts"):
            _ = line.counts
        os.close(kept)
