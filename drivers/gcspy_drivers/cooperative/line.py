"""`StubLine`: the sidecar's end of the connection to a stub in the target.

    stub ──hello, timer, shared page──▶ sidecar        once
         ──event──▶                                    then stops
                    sees that the stub sleeps (`Rest`)
                    re-arms the timer while it runs
         ◀──one byte──                                 continues

Knows the packets, the page (`gcspy_drivers/cpython/cooperation/stub.py` has their bytes) and the process; knows no runtime and no server.

Why a kernel timer, shared by both ends? A stub that slept for a while and checked again would have
to run for that, and the rest of the program could run between two checks as well. So it waits for
one of two descriptors, and the sidecar prolongs the wait without touching the stub. If the sidecar
is stopped, the wait ends.

A target that continued without an answer does not report this: the sidecar must check
(`stands_still`) after everything that it has read. The stub reports nothing more until the answer
has come, however late, and so never two events at once.

Source: timerfd_create(2), unix(7) SOCK_SEQPACKET and SCM_RIGHTS.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gcspy_protocol.errors import NotPermitted, TargetError

from gcspy_drivers.cooperative.rest import Rest
from gcspy_drivers.cooperative.ring_buffer import CopyRing
from gcspy_drivers.remote.process import Process
from gcspy_drivers.remote.user import user_of

__all__ = ["StubEvent", "StubLine", "StubLost"]

_HELLO: Final = struct.Struct("<8sHHIQ")
_EVENT: Final = struct.Struct("<BB2xIQQqq")
_ASIDE_AT: Final = 2
_MAGIC: Final = b"gcspystb"
_PROTOCOL: Final = 2
_WAITS: Final = 1
_TELLS: Final = 2
_RECORDS: Final = 4
_PAGES: Final = 8
_COUNTS: Final = 16
_PACKET_BYTES: Final = 256
_GO_ON: Final = b"g"
_CREDENTIALS: Final = struct.Struct("3i")

_DEADLINE_SECS: Final = 2.0
"""Silence after which the stub lets its program continue; each rewind of the timer is for this long."""

_NANOS: Final = 1_000_000_000

_MOST_EVENTS: Final = 1 << 48
"""No program collects more often: 90 years at 100,000 a second."""

_SLACK_NANOS: Final = 60 * _NANOS
"""A stub may have noted an event's time before we received its hello, and been descheduled since."""

_LONGEST_REST_SECS: Final = 20.0
"""A target that has reported its event sleeps within milliseconds, on the busiest machine within seconds."""

_LIFE_SECS: Final = 0.4
"""Period of re-arming the timer: several times within the deadline, since this machine may be busy."""

_FIRST_LOOK_SECS: Final = 20e-6
_LAST_LOOK_SECS: Final = 1e-3
"""How often to check whether a target that has reported its event sleeps; mostly it does at the first check."""


_SPEC_LEFT: Final = slice(16, 32)
"""Position of the remaining time in a struct itimerspec: all zero once it has run out."""


class StubLost(TargetError):
    """The stub has disconnected, does not answer, or sent an invalid report. The target may still run.

    Args:
        message: Description of the failure.
        ending: Whether the cause may be that the target is just ending.
    """

    def __init__(self, message: str, *, ending: bool = False) -> None:
        super().__init__(message)
        self.ending = ending


@dataclass(frozen=True, slots=True)
class StubEvent:
    """An event that a stub reported; if the stub holds its program, the program stands still until `StubLine.go_on`.

    Attributes:
        kind: 0 a collection starts, 1 it has ended.
        generation: The generation that is collected.
        thread: The waiting thread, by its own number.
        number: Its number among those of its kind since the stub began, from 1, including
            unreported ones.
        time_nanos: When, by the monotonic clock of the target's host.
        collected: Objects that were freed; for an end only.
        uncollectable: Objects that could not be freed; for an end only.
        more: Further data of a stub that only reports; checked by code that knows its runtime.
        aside: Whether it is recorded, or left out, and the program waits only for what is done with its pages.
    """

    kind: int
    generation: int
    thread: int
    number: int
    time_nanos: int
    collected: int
    uncollectable: int
    more: bytes = b""
    aside: bool = False


class StubLine:
    """The connection to one stub. Used by one thread, beside which another may ask whether an event is `told`; a thread of its own rewinds the timer.

    Args:
        connection: A connected socket of packets; this takes ownership.
        process: The target; borrowed.
        may_hold: Called while an event is not answered yet, with the seconds since: whether the
            target may be held any longer.

    Attributes:
        ring: Where the stub can record events; None: it cannot.
        pages: The program's userfaultfd; -1: it has none, or `take_pages` was called.
        counts_fd: The line to what counts allocation sites; -1: there is none, or `take_counts` was called.
    """

    def __init__(
        self, connection: socket.socket, process: Process, may_hold: Callable[[float], bool]
    ) -> None:
        self._connection = connection
        self._process = process
        self._rest: Rest | None = None
        self._may_hold = may_hold
        self._timer_fd = -1
        self._waits = False
        self._holds = True
        self._page: memoryview | None = None
        self.ring: CopyRing | None = None
        self.pages = self.counts_fd = -1
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._spec = struct.pack("<4q", 0, 0, int(_DEADLINE_SECS), 0)
        self._left = ctypes.create_string_buffer(len(self._spec))
        self._went_on = False
        self._held_since = 0.0
        self._let_go_at_nanos = self._begun_nanos = 0
        self._timer = threading.Lock()
        self._holding = threading.Event()
        self._closed = threading.Event()
        self._life = threading.Thread(target=self._live, name="gcspy-life", daemon=True)
        self._poll = select.poll()
        self._poll.register(connection, select.POLLIN)
        self._asking = threading.Lock()  # two threads may ask, and `poll` allows one at a time

    @property
    def open(self) -> bool:
        """Whether the stub has said hello."""
        return self._page is not None

    @property
    def counts(self) -> tuple[int, int]:
        """How many collections have started and ended since the stub began; the report of the last of each may be on its way."""
        page = self._opened()
        starts, ends = int(page[0]), int(page[1])
        if max(starts, ends) >= _MOST_EVENTS:
            raise StubLost(f"the stub reports impossible counts: {starts} starts, {ends} ends")
        return starts, ends

    def begin(self, secs: float) -> None:
        """Receive the stub's hello.

        Args:
            secs: How long to wait for it.

        Raises:
            StubLost: It did not come, or is not one that we understand.
            NotPermitted: It came from another process.
        """
        pid = self._process.pid
        if not self._poll.poll(secs * 1000):
            raise StubLost(
                f"process {pid}: its stub did not answer within {secs:g} s; it may be busy: try again"
            )
        try:
            packet, descriptors, _, _ = socket.recv_fds(
                self._connection, _PACKET_BYTES, 5, socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT
            )
        except OSError as error:
            raise StubLost(
                f"process {pid}: its stub closed the connection ({error.strerror}); attach again"
            ) from None
        try:
            self._take_hello(pid, packet, descriptors)
        finally:
            for fd in descriptors:
                if fd not in (self._timer_fd, self.pages, self.counts_fd):
                    os.close(fd)
        self._begun_nanos = time.monotonic_ns()
        self._life.start()

    def _take_hello(self, pid: int, packet: bytes, descriptors: list[int]) -> None:
        expected = 2
        if len(packet) >= _HELLO.size:
            shared = _HELLO.unpack_from(packet)[2]
            expected += sum(bool(shared & each) for each in (_RECORDS, _PAGES, _COUNTS))
        if len(packet) < _HELLO.size or len(descriptors) != expected or packet[:8] != _MAGIC:
            raise StubLost(
                f"process {pid}: the peer is not a GCspy stub ({len(packet)} bytes); attach again"
            )
        _, protocol, flags, _, waits_at = _HELLO.unpack_from(packet)
        if protocol != _PROTOCOL:
            raise StubLost(
                f"process {pid}: its stub speaks protocol {protocol}, this is {_PROTOCOL}: use the same gcspy on both sides"
            )
        credentials = self._connection.getsockopt(
            socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size
        )
        _, peer_uid, _ = _CREDENTIALS.unpack(credentials)
        owner = user_of(self._process).uid
        if peer_uid not in (owner, os.geteuid(), 0):
            raise NotPermitted(
                f"process {pid}: uid {peer_uid} answered instead of it", remedy="attach again"
            )
        timer, memory, *others = descriptors
        counts = others.pop() if flags & _COUNTS else -1
        pages = others.pop() if flags & _PAGES else -1
        if os.fstat(memory).st_size < mmap.PAGESIZE:
            raise StubLost(
                f"process {pid}: its stub's shared page is too small ({os.fstat(memory).st_size} bytes)"
            )
        # Reading a truncated page would kill us by a signal, and reading another file may block
        # forever.
        if not _seals(memory) & fcntl.F_SEAL_SHRINK or not _is_timer(timer):
            raise StubLost(
                f"process {pid}: its stub does not share a sealed page and a timer: restart the program, which may have the stub of an older gcspy"
            )
        self._rest = Rest(self._process, waits_at)
        self._waits = bool(flags & _WAITS)
        self._holds = not flags & _TELLS
        self._page = memoryview(mmap.mmap(memory, mmap.PAGESIZE)).cast("Q")
        self._timer_fd = timer
        try:
            self.ring = CopyRing(others[0]) if others else None
        except TargetError as error:
            raise StubLost(f"process {pid}: {error}") from error
        self.pages, self.counts_fd = pages, counts

    def take_counts(self) -> int:
        """Return the line to what counts allocation sites, which belongs to the caller then; -1: there is none."""
        counts, self.counts_fd = self.counts_fd, -1
        return counts

    def take_pages(self) -> int:
        """Return the program's userfaultfd, which belongs to the caller then; -1: it shares none."""
        pages, self.pages = self.pages, -1
        return pages

    def always_report(self, generation: int | None) -> None:
        """Set from which generation on each collection is reported, whatever else is requested, and waits.

        Where events are recorded, it is recorded as others are, and waits for its pages only.

        Args:
            generation: The youngest of them; None: none.
        """
        page = self._opened()
        page[9] = 1
        page[8] = 0 if generation is None else 1 + generation

    @property
    def holds(self) -> bool:
        """Whether the program waits at an event; if not, its stub only reports, and gets no answer."""
        return self._holds

    def let_begin(self) -> None:
        """Start a program that waits for us before its first line; has no effect on others."""
        if self._waits:
            self._waits = False
            self.go_on()

    def record(self, *, records: bool, ends: bool = False) -> None:
        """Set whether the stub records events in the ring, which then has a plan, or reports them and waits.

        Args:
            records: Whether it records them.
            ends: Whether an end is recorded just when its start was.
        """
        page = self._opened()
        page[7] = ends
        page[6] = records

    def rest(self, nanos: int, *, after: int) -> None:
        """Set the least time from one recorded start to the next.

        Args:
            nanos: The time; 0: any.
            after: Up to this number of a start, any time.
        """
        page = self._opened()
        page[11] = after
        page[10] = nanos

    def event_of(self, packet: bytes) -> StubEvent:
        """Return the event of a recorded packet.

        Raises:
            StubLost: It cannot have happened.
        """
        event = StubEvent(*_EVENT.unpack(packet))
        self._refuse_nonsense(event)
        return event

    def want(self, kind: int, *, period: int, not_before_nanos: int) -> None:
        """Set which events the stub reports; all others are only counted there.

        Args:
            kind: 0 starts, 1 ends.
            period: Every n-th; 0: none.
            not_before_nanos: None before this time; one time for both kinds.
        """
        page = self._opened()
        page[2 + kind] = period
        page[4] = not_before_nanos

    def wait(self, secs: float) -> StubEvent | None:
        """Wait for an event, and until the target stands still for it; None if there was none.

        Raises:
            StubLost: The stub has left.
            TargetGone: The target has ended.
        """
        with self._asking:
            if not self._poll.poll(secs * 1000):
                return None
        try:
            packet = self._connection.recv(_PACKET_BYTES)
        except OSError:
            packet = b""
        if len(packet) < _EVENT.size:
            raise StubLost(
                "the stub is no longer in the program: it was removed, or it failed",
                ending=not packet,
            )
        more, aside = packet[_EVENT.size :], packet[_ASIDE_AT] != 0
        event = StubEvent(*(*_EVENT.unpack_from(packet), more, aside))
        self._refuse_nonsense(event)
        if not self._holds:
            return event
        self._held_since = time.monotonic()
        self._let_go_at_nanos = event.time_nanos + int(_DEADLINE_SECS * _NANOS)
        self._holding.set()
        self._await_rest(event.thread)
        return event

    def _refuse_nonsense(self, event: StubEvent) -> None:
        """Refuse numbers that would make us count forever, or imply that a target owes more time than it has lived.

        Raises:
            StubLost: The event cannot have happened.
        """
        now = time.monotonic_ns()
        if (
            event.kind > 1
            or not 0 < event.number < _MOST_EVENTS
            or not self._begun_nanos - _SLACK_NANOS <= event.time_nanos <= now + _SLACK_NANOS
        ):
            raise StubLost(
                f"the stub reports an impossible event: kind {event.kind}, number {event.number}, "
                f"{(now - event.time_nanos) / _NANOS:.3g} s ago"
            )

    def _await_rest(self, thread: int) -> None:
        """Wait until the thread sleeps; also returns when it is not held any more, which `stands_still` reports.

        Raises:
            StubLost: The process has no such thread, or it does not sleep.
            TargetGone: It has ended.
        """
        if self._rest is None:
            raise AssertionError("begin comes first")
        pause_secs = _FIRST_LOOK_SECS
        # A target can set the timer that both ends share, so it is not trusted indefinitely.
        give_up = time.monotonic() + _LONGEST_REST_SECS
        while not self._rest.reached_by(thread) and self.stands_still:
            # Only the end of the connection would be visible there; the timer's end is checked
            # above.
            if time.monotonic() > give_up:
                raise StubLost(
                    f"the stub says that it waits, and its thread {thread} has not slept for {_LONGEST_REST_SECS:g} s"
                )
            time.sleep(pause_secs)
            if pause_secs < _LAST_LOOK_SECS <= 2 * pause_secs and not self._rest.knows(thread):
                raise StubLost(
                    f"the stub reports thread {thread}, a thread that it does not have", ending=True
                )
            pause_secs = min(2 * pause_secs, _LAST_LOOK_SECS)

    @property
    def stands_still(self) -> bool:
        """Whether the target has stood still since its event, without interruption."""
        if not self._holding.is_set() or self._went_on:
            return False
        # The timer becomes readable once it has run out; the stub never reads it, and the next
        # rewind clears that.
        return not select.select([self._timer_fd], [], [], 0)[0]

    def progress(self) -> None:
        """Announce that a target that is held waits for others of its events, of which one was just processed."""
        self._held_since = time.monotonic()

    @property
    def let_go_at_nanos(self) -> int:
        """When the target continues if nothing more is heard of us, or when it did, by the monotonic clock; within a millisecond."""
        return self._let_go_at_nanos

    def go_on(self, *, come_back: bool = False) -> None:
        """Let the target continue; harmless if it already has, and then the stub reports events again.

        Args:
            come_back: See the method of this name.
        """
        if come_back:
            self.come_back()
        else:
            with self._timer:
                self._went_on = False
                self._holding.clear()
        try:
            self._connection.send(_GO_ON, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except OSError:
            pass  # it has ended or left: the next wait reports that

    @property
    def told(self) -> bool:
        """Whether an event waits for us, or the connection has ended."""
        with self._asking:
            return bool(self._poll.poll(0))

    @property
    def told_aside(self) -> bool:
        """Whether an event waits for us for which the target stands still only for its pages."""
        if not self.told:
            return False
        try:
            packet = self._connection.recv(_PACKET_BYTES, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except OSError:
            return False  # the next wait reports that
        return len(packet) >= _EVENT.size and packet[_ASIDE_AT] != 0

    def come_back(self) -> None:
        """Announce that we are busy for a while: at its next event the target waits as long as we live, until `be_back`."""
        with self._timer:
            self._went_on = False
            self._held_since = time.monotonic()
            # A flag from an earlier event would be taken for this one's; the stub sets it itself
            # when it reports.
            self._libc.timerfd_settime(self._timer_fd, 0, self._spec, None)
            self._holding.set()

    def be_back(self) -> None:
        """Announce that we check for events again."""
        with self._timer:
            if not self.told:
                self._went_on = False
                self._holding.clear()

    def close(self) -> None:
        """Release the stub: it leaves the target at its next collection. May be called twice."""
        self._closed.set()
        self._holding.set()  # wakes the thread
        if self._life.is_alive():
            self._life.join()
        self._connection.close()
        page, self._page = self._page, None
        if self.ring is not None:
            self.ring.close()
        if page is not None:
            page[5] = 1
            page.release()
        timer, self._timer_fd = self._timer_fd, -1
        for fd in (timer, self.take_pages(), self.take_counts()):
            if fd >= 0:
                os.close(fd)

    def _opened(self) -> memoryview:
        if self._page is None:
            raise AssertionError("begin comes first")
        return self._page

    def _live(self) -> None:
        """Rewind the timer while the target is held, and may be."""
        while not self._closed.is_set():
            self._holding.wait()
            if self._closed.wait(_LIFE_SECS):
                return
            # Not for an event that was answered meanwhile: by then the timer may have run out for
            # the next one, unnoticed.
            with self._timer:
                # It must not be rewound once it has run out: that would hide that the target
                # continued.
                if self.stands_still and self._may_hold(time.monotonic() - self._held_since):
                    self._wind_up()

    def _wind_up(self) -> None:
        let_go_at_nanos = time.monotonic_ns() + int(_DEADLINE_SECS * _NANOS)
        self._libc.timerfd_settime(self._timer_fd, 0, self._spec, self._left)
        # It may have run out since the check: then this has removed the sign of that.
        if not any(self._left.raw[_SPEC_LEFT]):
            self._went_on = True
        else:
            self._let_go_at_nanos = let_go_at_nanos


def _seals(fd: int) -> int:
    """Return what can never be done to a shared page any more; 0 for another kind of file."""
    try:
        return fcntl.fcntl(fd, fcntl.F_GET_SEALS)
    except OSError:
        return 0


def _is_timer(fd: int) -> bool:
    return os.readlink(f"/proc/self/fd/{fd}") == "anon_inode:[timerfd]"
