"""`HeldEvents`: turns a stub's reports about collections into events of the session, during which the target stands still.

    report ──▶ count unreported events ──▶ is it requested? ──▶ read, while the target stands still
    ──▶ finish ──▶ let the target continue

A stub with a ring records events there, with a copy of what is read, and the target does not wait:

    record ──▶ count unrecorded events ──▶ is it requested? ──▶ read the copy ──▶ finish

It does that as long as nothing needs the finished event before the target goes on (a pause, a step,
a delay, a trigger), and the driver has a plan of what to copy.

The same for every runtime; the driver decides what is read at an event, and the text of its cause
(`Reader`). Knows the stub's line and the server's API; does not know wire or memory.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from gcspy_protocol.errors import TargetError, TargetGone

from gcspy_drivers.cooperative.background_thread import BackgroundThread
from gcspy_drivers.cooperative.event_accounting import EventAccounting
from gcspy_drivers.cooperative.line import StubEvent, StubLine, StubLost
from gcspy_drivers.cooperative.ring_buffer import CopyPlan, EventCopy
from gcspy_drivers.remote.process import Process
from gcspy_server.api import GatherRequest, Server

__all__ = ["HELLO_SECS", "HeldEvents", "Reader"]

HELLO_SECS: Final = 10.0
"""How long a stub may take to connect: it may have to wait until the target gets to it."""

_LONGEST_GATHER_SECS: Final = 20.0
"""A target is held no longer than this for reading; a sidecar that takes longer is faulty."""

_LONGEST_BUSY_SECS: Final = 2.0
"""A target that was released early and has reached its next event waits no longer than this for the
previous one, unless no event may be left out."""

_NOT_READ: Final = "not read: gcspy was silent for 2 s, and the program continued"

_RING_LOOK_SECS: Final = 0.004
"""How often the ring is looked at: a target that records an event does not wake us, which would cost it more than the copy."""

_LONGEST_DRAIN_SECS: Final = 1.0
"""How long recorded events wait for the session when a target is held, or a tick is due."""

_ENDING_SECS: Final = 0.5
"""How long a process may take from closing its sockets to its end."""


class Reader(Protocol):
    """The part of a driver at an event."""

    def announced(self, server: Server, event: StubEvent, /) -> None:
        """Check what changes between events, before the server is asked whether this one is requested."""
        ...

    def read(self, request: GatherRequest, event: StubEvent, /) -> None:
        """Gather the event; the target stands still."""
        ...

    def pass_by(self, server: Server, /) -> None:
        """Note an event that is not requested."""
        ...

    def spoil(self) -> None:
        """Discard the data read at this event."""
        ...

    def cause_of(self, event: StubEvent, /) -> str:
        """Return why it happened; called after it was read or passed by."""
        ...

    def copy_plan(self) -> CopyPlan | None:
        """Return what an event needs to be copied; None: it cannot be gathered from copies."""
        ...

    def saw_new_pages(self) -> None:
        """Have the pages of new mappings followed: the target copies them whole at each event."""
        ...

    def announced_aside(self, event: StubEvent, /) -> None:
        """Do what has to be done with the pages of a target that stands still only for that.

        Another thread may be in `read_copy` or `pass_copy_by` meanwhile.
        """
        ...

    def announced_copy(self, event: StubEvent, copy: EventCopy, /) -> None:
        """Note a recorded event, before the server is asked whether it is requested."""
        ...

    def read_copy(self, request: GatherRequest, event: StubEvent, copy: EventCopy, /) -> None:
        """Gather a recorded event from its copy."""
        ...

    def pass_copy_by(self, copy: EventCopy, /) -> None:
        """Note a recorded event that is not requested."""
        ...


class HeldEvents:
    """The events of one stub.

    Args:
        connection: A connected socket of packets whose other end the stub has; this takes
            ownership.
        process: The target; borrowed.
        kinds: Numbers of the kinds of event "GC start" and "GC end".
        reader: The driver.

    Attributes:
        line: The connection to the stub.
    """

    def __init__(
        self, connection: socket.socket, process: Process, kinds: tuple[int, int], reader: Reader
    ) -> None:
        self.line = StubLine(connection, process, self._may_hold)
        self._process = process
        self._kinds = kinds
        self._accounting = EventAccounting(self.line, kinds)
        self._reader = reader
        self._server: Server | None = None
        self._request: GatherRequest | None = None
        self._event: StubEvent | None = None
        self._held_by_us = False
        self._let_go_nanos = (
            0  # when the target was released before its data was processed; 0: it was not
        )
        self._inside = False  # a collection whose start was reported, and whose end was not yet
        self._background = BackgroundThread()
        self._waited_nanos = self._aside_nanos = 0
        self._exact = False  # while we are busy the target waits for us at its next event

    def open(self, server: Server) -> None:
        """Begin; the target starts with the first tick or wait."""
        self._server = server
        with self._lost_told():
            self._accounting.want(server)

    def begin_tick(self) -> None:
        """Take pending reports and count missed events. If none may be missed, the target waits until `prepare`.

        Raises:
            TargetError: See `wait`.
        """
        counts = self.line.counts
        self.wait(0)
        with self._lost_told():
            self._drain(self._opened(), self.pending, wholly=False)
            if not self.pending:
                self._accounting.count_untold(self._opened(), counts)
        self._exact = self._none_may_be_left_out()
        if self._exact:
            self.line.come_back()

    def be_busy(self) -> bool:
        """Announce that this tick takes long: collections are only counted meanwhile, and the target does not wait for us, unless no event may be left out.

        Returns:
            False: not now, because the target is within a collection whose start was reported, or
                is just reporting one.
        """
        if self._inside or self.line.told:
            return False
        if not self._exact:
            self._accounting.want_none()
        return True

    def prepare(self) -> None:
        """Inform the stub of the current requests, and start a program that waits for us before its first line."""
        self._be_back()
        with self._lost_told():
            self._accounting.want(self._opened(), inside=self._inside)
            self._follow_ring(self._opened())
        self.line.let_begin()

    @contextmanager
    def drained_at_the_end(self) -> Iterator[None]:
        """Gather and finish what is recorded, if the block finds that the target has ended or the stub is lost."""
        try:
            yield
        except (StubLost, TargetGone):
            self._drain(self._opened(), self.pending, ending=True)
            raise

    def wait(self, secs: float) -> None:
        """Wait until the time is over, or until a collection; see `gcspy_server.drivers.WaitingDriver`."""
        with self._lost_told(), self.drained_at_the_end():
            self._wait(secs)

    def _wait(self, secs: float) -> None:
        server = self._opened()
        self.prepare()
        taken = self._take_copies(server, secs)
        event = None if taken else self._next(server, secs)
        if event is not None and event.aside:
            self._take_aside(event)
        elif event is not None:
            self._drain(server, self.pending)
            self.take(server, event)

    def _take_aside(self, event: StubEvent) -> None:
        """Let the driver see to the pages; the event itself is recorded, behind others, or was left out."""
        try:
            if self.line.stands_still:
                self._reader.announced_aside(event)
        finally:
            self.line.go_on()
            self._be_back()
        # Counted with the next recorded event: a thread may be using the server.
        self._aside_nanos += max(0, time.monotonic_ns() - event.time_nanos)

    @property
    def pending(self) -> int:
        """How many recorded events wait for us."""
        ring = self.line.ring
        return 0 if ring is None else ring.pending

    def _next(self, server: Server, secs: float) -> StubEvent | None:
        """Wait for a reported event, unless one is recorded, and was taken then."""
        ring = self.line.ring
        if ring is None or ring.plan is None:
            return self.line.wait(secs)
        until = time.monotonic() + secs
        while True:
            left = max(0.0, until - time.monotonic())
            event = self.line.wait(min(left, _RING_LOOK_SECS))
            if event is not None or self._take_copies(server, left) or not left:
                return event

    def _follow_ring(self, server: Server) -> None:
        """Have events recorded, or reported if something may have to hold the target after one."""
        ring = self.line.ring
        if ring is None:
            return
        held = any(server.may_hold(kind) for kind in self._kinds)
        plan = None if held else self._reader.copy_plan()
        if plan is None:
            self.line.record(records=False)
            ring.stop()
            return
        exact = self._none_may_be_left_out()
        ring.follow(plan, holds=exact)
        self.line.record(records=True, ends=self._accounting.paired)

    def _take_copies(self, server: Server, secs: float) -> int:
        """Gather and finish the events that are recorded now; return how many there were.

        Args:
            server: The session.
            secs: For how long, about.
        """
        if not self.pending:
            return 0
        until = time.monotonic() + secs
        return self._background.run(
            lambda stopping: self._take_pending(
                server, lambda: stopping() or time.monotonic() > until
            ),
            meanwhile=self._serve,  # the thread may be starved, or wait for a client
        )

    def _serve(self) -> None:
        """Do what a program waits for while a thread gathers its events: make room, and see to its pages."""
        self._keep()
        if self.line.told_aside:
            event = self.line.wait(0)
            if event is not None:
                self._take_aside(event)

    def _take_pending(self, server: Server, ends: Callable[[], bool]) -> int:
        taken = 0
        for _ in range(self.pending):
            self._keep()
            self._let_hurry(ends)
            if not server.has_room or self.line.told or ends():
                break  # the ring keeps them; a target that waits must not be silent for us
            taken += self._take_one(server)
        return taken

    def _let_hurry(self, ends: Callable[[], bool]) -> None:
        """Gather nothing while the program records faster than that: it would wait for room while we use the processors."""
        ring = self.line.ring
        while ring is not None and ring.hurries and not (self.line.told or ends()):
            time.sleep(_RING_LOOK_SECS)
            self._keep()

    def _keep(self) -> None:
        """Make room in the ring of a program that would wait for it."""
        ring = self.line.ring
        if ring is None:
            return
        if ring.holds:
            ring.keep()
        if ring.plan is not None and ring.plan.pages and ring.unprotected:
            self._reader.saw_new_pages()

    def _drain(
        self, server: Server, most: int, *, wholly: bool = True, ending: bool = False
    ) -> None:
        """Gather and finish a number of recorded events, also if the session does not keep up for a while.

        Args:
            server: The session.
            most: How many.
            wholly: Whether all of them are taken, however long it takes, since a target waits for
                them, or has ended.
            ending: Whether the stub has gone, so that nothing else waits for us.
        """
        until = time.monotonic() + _LONGEST_DRAIN_SECS
        while most > 0 and self.pending and (ending or not self.line.told):
            self._keep()
            late = time.monotonic() > until
            if late and not wholly:
                return
            if server.has_room or late:
                most -= self._take_one(server)
                self.line.progress()
                if ending:
                    until = time.monotonic() + _LONGEST_DRAIN_SECS
            else:
                time.sleep(_RING_LOOK_SECS / 4)

    def _take_one(self, server: Server) -> int:
        ring = self.line.ring
        copy = None if ring is None else ring.take()
        if copy is None:
            return 0
        self._take_copy(server, copy)
        return 1

    def _take_copy(self, server: Server, copy: EventCopy) -> None:
        """Gather and finish one recorded event, after which the target went on."""
        event = self.line.event_of(copy.event)
        kind = self._kinds[1 if event.kind else 0]
        self._accounting.count_to_event(server, event, copy.counts)
        self._reader.announced_copy(event, copy)
        request = None
        half = self._accounting.is_half(event) and not server.pausing
        if not half:
            request = server.should_transmit(kind, event.time_nanos)
        copied_nanos = max(0, copy.done_nanos - copy.begun_nanos)
        server.held(copied_nanos + self._waited_since() + self._aside_since())
        if half:
            self._reader.pass_copy_by(copy)
            server.skip(kind)
        else:
            if request is None:
                self._reader.pass_copy_by(copy)
            else:
                self._reader.read_copy(request, event, copy)
            server.finish(kind, self._reader.cause_of(event), holds=False)
        self._inside = event.kind == 0 and not half
        self._accounting.want(server, inside=self._inside)

    def _waited_since(self) -> int:
        """Return how long the program has waited for room in the ring since the last call."""
        ring = self.line.ring
        before = self._waited_nanos
        self._waited_nanos = before if ring is None else ring.waited_nanos
        return self._waited_nanos - before

    def _aside_since(self) -> int:
        """Return for how long the program has waited for its pages since the last call."""
        nanos = self._aside_nanos
        self._aside_nanos -= nanos
        return nanos

    def went_on(self) -> bool:
        """Whether the target continues although it is held at an event that is not finished yet."""
        return self._held_by_us and not self.line.stands_still

    def close(self) -> None:
        """Release the target: it continues at once, and the stub removes itself at its next collection."""
        self._background.close()
        self.line.close()

    def take(self, server: Server, event: StubEvent) -> None:
        """Gather and finish one of the stub's events, during which the target stands still."""
        kind = self._kinds[1 if event.kind else 0]
        told_late = max(0, min(time.monotonic_ns(), self.line.let_go_at_nanos) - event.time_nanos)
        self._held_by_us = True
        try:
            self._accounting.count_to_event(server, event)
            self._reader.announced(server, event)
            if self._accounting.is_half(event) and not server.pausing:
                # A session that starts within a collection does not begin with the end of that
                # collection.
                self._reader.pass_by(server)
                server.skip(kind)
                self._inside = False
                self._accounting.want(server)
                return
            request = server.should_transmit(kind)
            server.held(told_late)  # not before: what is owed decides about this very event
            still = True
            if request is not None:
                still = self._read_still(server, event, request)
            else:
                self._reader.pass_by(server)
            spoilt = not (still or self._let_go_nanos)
            told = (self._reader.cause_of(event), _NOT_READ if spoilt else "")
            server.finish(kind, "; ".join(filter(None, told)), holds=still)
            self._inside = event.kind == 0
            self._accounting.want(server, inside=self._inside)
        finally:
            self._held_by_us = False
            self._request = self._event = None
            if not self._let_go_nanos:
                self.line.go_on()
            self._let_go_nanos = 0
            self._be_back()

    def let_go_early(self) -> None:
        """Announce that everything was read, and only processing is left: the target need not wait for that, if nothing else holds it.

        It does wait if it may have to be paused after this very event. A target that was released
        at the start of a collection reports its end as usual, and waits there until we look. It
        waits at its next collection only if no event may be left out.
        """
        event, request = self._event, self._request
        if event is None or request is None or request.may_hold or not self.line.stands_still:
            return  # if it continued by itself, that is noticed later
        self._exact = self._none_may_be_left_out()
        self._inside = event.kind == 0
        if self._inside or self._exact:
            self._accounting.want(self._opened(), inside=self._inside)
        else:  # the next event is reported only when we know what is requested after this one
            self._accounting.want_none()
        self._follow_ring(
            self._opened()
        )  # what was copied at this event may be all that was missing
        self._let_go_nanos = time.monotonic_ns()
        self._held_by_us = False
        self.line.go_on(come_back=self._inside or self._exact)

    def _read_still(self, server: Server, event: StubEvent, request: GatherRequest) -> bool:
        """Gather an event; False: the target has already continued, and is not held after it.

        If it continued before everything was read, the data is not shown: the event is counted and
        sent, with all of its streams of an earlier one.
        """
        self._event, self._request = event, request
        if self.line.stands_still:
            self._reader.read(request, event)
        self._process.check()
        if self._let_go_nanos:
            server.held(max(0, self._let_go_nanos - request.time_nanos))
            return False
        if self.line.stands_still:
            return True
        self._reader.spoil()
        self._held_by_us = False
        server.discard()
        # The time from the report to here is gathering time: the program stood still for part of it
        # only.
        server.held(
            max(
                0,
                min(self.line.let_go_at_nanos, time.monotonic_ns())
                - max(event.time_nanos, request.time_nanos),
            )
        )
        return False

    def _may_hold(self, secs: float) -> bool:
        """Whether the target may be held any longer: it is paused or delayed, or is being read."""
        server = self._server
        busy = self._let_go_nanos and not self._exact
        longest = _LONGEST_BUSY_SECS if busy else _LONGEST_GATHER_SECS
        return secs < longest or (server is not None and server.holding)

    @contextmanager
    def _lost_told(self) -> Iterator[None]:
        """Report whose stub was lost, and what to do."""
        try:
            yield
        except StubLost as error:
            # The end of the target is the better message.
            if error.ending:
                self._refuse_ended()
            else:
                self._process.check()
            raise TargetError(
                f"process {self._process.pid} is alive, but {error}: attach again"
            ) from error

    def _refuse_ended(self) -> None:
        """Raise if the target has ended, or is just ending: its sockets are closed before its end is visible."""
        until = time.monotonic() + _ENDING_SECS
        while time.monotonic() < until:
            self._process.check()
            time.sleep(_ENDING_SECS / 50)

    def _none_may_be_left_out(self) -> bool:
        """Whether the target waits for us at its next collection, however long we take."""
        server = self._opened()
        return any(server.outlook(kind).exact for kind in self._kinds)

    def _be_back(self) -> None:
        self._exact = False
        self.line.be_back()

    def _opened(self) -> Server:
        if self._server is None:
            raise AssertionError("open comes first")
        return self._server
