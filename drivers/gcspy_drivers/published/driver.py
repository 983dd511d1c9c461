"""The driver for programs that show themselves with `gcspy.h`.

    the program finishes an event ──▶ copied, if the sequence stayed the same ──▶ is it requested? ──▶ filled ──▶ finish ──▶ answer

The program writes an event into its own memory and goes on, or waits for the answer if it can and
something needs that: a pause, a step, a delay, a trigger, or a client that must not miss an event.
Events that were overwritten before they were read are counted as missed. At a tick of the clock the
latest event's data is read again, so that a client that comes late has it.

Knows the page, the segment and the server's API; knows no program.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from gcspy_protocol.errors import TargetError

from gcspy_drivers.kit.sampled_driver import CLOCK, SampledDriver
from gcspy_drivers.published.allocator_library import load_allocator_library
from gcspy_drivers.published.control_page import ControlPage
from gcspy_drivers.published.names import RUNTIME
from gcspy_drivers.published.options import ALLOCATOR, INJECT, MANAGER, OPTIONS
from gcspy_drivers.published.publication import Publication, find_publications
from gcspy_drivers.published.recognition import find
from gcspy_drivers.published.segment import Head, SpaceRecord
from gcspy_drivers.published.spaces import PublishedSpaces, SpaceData, copy_space
from gcspy_drivers.remote.process import Process
from gcspy_server.api import (
    AttachOptions,
    GatherRequest,
    Mode,
    PauseActsOn,
    Recognition,
    ServerDescription,
    WaitingDriver,
)

__all__ = ["PublishedDriver"]

_TRIES: Final = 20
"""How often an event is copied again while the program writes no further one; then it is missed."""

_LONGEST_READ_SECS: Final = 20.0
"""A program is held no longer than this for reading; a sidecar that takes longer is faulty."""

_STUCK_SECS: Final = 5.0
"""An event that is not finished after this time: its writer has died, or hangs."""

_NANOS: Final = 1_000_000_000


@dataclass(frozen=True)
class _Copy:
    """An event of one moment."""

    sequence: int
    head: Head
    records: tuple[SpaceRecord, ...]
    spaces: dict[int, SpaceData]


class PublishedDriver(SampledDriver, WaitingDriver):
    """Shows what one program publishes.

    Args:
        process: The program; closed here.
        options: The user's choices.
    """

    name = "published"
    runtime = RUNTIME
    declared_options = OPTIONS

    def __init__(self, process: Process, options: AttachOptions) -> None:
        super().__init__(process, options)
        if options.text(INJECT) == ALLOCATOR:
            load_allocator_library(process)
        found = find_publications(process)
        self._publication = _chosen(found, options.text(MANAGER), process)
        self._segment = self._publication.segment
        self._head = self._publication.head
        self._page = ControlPage(
            process, self._publication.maps, self._publication.row, self._may_hold
        )
        self.holds_at_clock = not self._head.can_wait
        self._spaces: PublishedSpaces | None = None
        self._seen = self._page.sequence  # what was written before is read at the clock
        self._mask = (1 << 64) - 1
        self._wanted = [False] * len(self._head.kinds)
        self._given: _Copy | None = None
        self._held = 0
        self._odd_since = 0.0
        self._unreadable = False

    @classmethod
    def find(cls, pid: int) -> Recognition | None:
        """Check quickly whether a process publishes with `gcspy.h`."""
        return find(pid)

    @property
    def events(self) -> tuple[str, ...]:
        """The clock, and the program's own kinds of event."""
        return (
            "Clock",
            *(name if name != "Clock" else "Clock of the program" for name in self._head.kinds),
        )

    @property
    def title(self) -> str:
        """Name of the memory manager and of the process."""
        return f"{self._head.name or self.process.name} ({self.process.name}, process {self.process.pid})"

    def description(self) -> ServerDescription:
        """Return how the program cooperates."""
        waits = self._head.can_wait
        how = (
            "At a pause, a step or for a client that must not miss an event, the program waits in its event."
            if waits
            else "The program does not wait: a pause stops the sampling only, and events that follow each other faster than they are read are missed."
        )
        own = f"{self._head.info} " if self._head.info else ""
        return ServerDescription(
            name=self.title,
            events=self.events,
            mode=Mode.COOPERATIVE,
            pause_acts_on=PauseActsOn.PROGRAM if waits else PauseActsOn.SAMPLING,
            general_info=f"{own}The program shows itself with gcspy.h; each event is of one moment. {how}",
        )

    def start(self) -> None:
        """Add the spaces that the program has now, and count its events until now; it is told what is wanted at the first tick or wait."""
        for kind, count in enumerate(self._head.counts, start=1):
            self.server.skip(kind, count)
        self._spaces = PublishedSpaces(self.server, self.name)
        self._spaces.follow(self._segment.spaces(self._head))

    # ------------------------------------------------------------------- events

    def notice(self) -> None:
        """Take a finished event, and count those that were not written or overwritten."""
        self._take()
        self._count()
        self.prepare()
        self._ask()

    def sample(self) -> None:
        """Gather the clock's event: the latest event of the program as it is now; not while a pause waits for an event of the program."""
        if self._head.can_wait and self.server.pausing:
            self.check()
            self.server.skip(CLOCK)
        else:
            super().sample()
        self._page.ask()
        self._watch_writer()

    def wait(self, secs: float) -> None:
        """Wait until the time is over, or until the program has finished an event; then gather that."""
        until = time.monotonic() + secs
        self._ask()
        while not self._take():
            left = until - time.monotonic()
            if left <= 0:
                return
            sequence = self._page.sequence
            if sequence & 1 or sequence == self._seen:
                self._page.wait(sequence, left)

    def went_on(self) -> bool:
        """Return whether the program continues although it is held at an event that is not finished yet."""
        return self._held != 0 and not self._page.waits_at(self._held)

    def gather(self, request: GatherRequest) -> None:
        """Fill the requested spaces: with the event that was copied, or at the clock with the latest one."""
        copied = self._given or self._latest()
        if self._spaces is None:
            raise AssertionError("open comes first")
        if copied is None:
            self._spaces.hide(request)
        else:
            self._spaces.fill(copied.spaces, request)

    def close(self) -> None:
        """Let the program go on, and leave it."""
        self._page.close()
        super().close()

    def _take(self) -> bool:
        """Copy, gather and finish the program's latest event, if there is a new one; return whether there was."""
        sequence = self._page.sequence
        if sequence & 1 or sequence == self._seen:
            return False
        waits = self._page.waits_at(sequence)
        if waits:
            self._page.hold_begins()
        try:
            copied = self._copy(self._mask)
            if copied is None:
                self._seen = (
                    sequence  # it is being overwritten; whatever it was, it is counted later
                )
                return True
            self._seen = copied.sequence
            self._finish(copied, waits=waits and copied.sequence == sequence)
        finally:
            if waits:
                self._page.answer(sequence)
        return True

    def _finish(self, copied: _Copy, *, waits: bool) -> None:
        server, head = self.server, copied.head
        kind = head.kind + 1
        if head.number <= server.counts()[kind]:
            return  # it was counted already, as one that was not read in time
        if self._spaces is None:
            raise AssertionError("open comes first")
        self._spaces.follow(copied.records)
        self._count_to(head.kind, head.number - 1)
        now = time.monotonic_ns()
        request = server.should_transmit(kind, min(max(0, head.time_nanos), now))
        if request is not None:
            self._given = copied
            try:
                self.gather_event(request)
            finally:
                self._given = None
            self._mask = self._spaces.wanted(request)
            self._page.want_spaces(self._mask)
        self.check()
        self._held = copied.sequence if waits else 0
        try:
            server.finish(kind, head.cause, head.clock, holds=waits)
        finally:
            self._held = 0

    def _copy(self, mask: int) -> _Copy | None:
        """Copy the latest event; None: it was overwritten at every try, or cannot be read."""
        copied = self._try_copy(mask)
        if copied is not None or self._unreadable:
            return copied
        with self._page.quiet():  # a program that writes faster than we read
            for _ in range(_TRIES):
                copied = self._try_copy(mask)
                if copied is not None or self._unreadable:
                    return copied
                time.sleep(0)
        return None

    def _try_copy(self, mask: int) -> _Copy | None:
        sequence = self._page.sequence
        self._unreadable = False
        if sequence & 1:
            return None
        try:
            head = self._segment.head()
            records = self._segment.spaces(head)
            spaces = {
                record.index: copy_space(self._segment, record)
                for record in records
                if mask >> record.index & 1
            }
        except TargetError:
            self.process.check()
            self._unreadable = self._page.sequence == sequence
            return None
        same = self._page.sequence == sequence
        return _Copy(sequence, head, records, spaces) if same else None

    def _latest(self) -> _Copy | None:
        """Copy the data of the latest event again, if there was one."""
        copied = self._copy((1 << 64) - 1)
        return copied if copied is not None and copied.head.number else None

    # ----------------------------------------------------------------- accounting

    def _count(self) -> None:
        """Count the events that were not read; the latest one of a wanted kind may still be being written."""
        try:
            self._head = self._segment.head()
        except TargetError:
            self.process.check()
            return
        for kind, count in enumerate(self._head.counts[: len(self._wanted)]):
            self._count_to(kind, count - self._wanted[kind])

    def _count_to(self, kind: int, number: int) -> None:
        missing = number - self.server.counts()[kind + 1]
        if missing > 0:
            self.server.skip(kind + 1, missing, untold=self._wanted[kind])

    def _ask(self) -> None:
        """Tell the program which events are wanted, and whether it is to wait at them."""
        server = self.server
        outlooks = [server.outlook(kind) for kind in range(1, len(self._wanted) + 1)]
        wanted = [one for one in outlooks if one.period]
        hold = self._head.can_wait and any(
            one.exact or server.may_hold(kind)
            for kind, one in enumerate(outlooks, start=1)
            if one.period
        )
        # The page has one time for all kinds: a kind that is to wait for longer is not wanted until then.
        first = min((one.not_before_nanos for one in wanted), default=0)
        now = time.monotonic_ns()
        periods = [one.period if one.not_before_nanos <= max(first, now) else 0 for one in outlooks]
        now_wanted = [one.period > 0 for one in outlooks]
        if any(new and not old for new, old in zip(now_wanted, self._wanted, strict=True)):
            self._count()  # nobody misses what happened before it was wanted
        self._page.want(periods, not_before_nanos=first, hold=hold)
        self._wanted = now_wanted

    def _watch_writer(self) -> None:
        """Report an event that is never finished."""
        now = time.monotonic()
        if not self._page.sequence & 1:
            if self._odd_since:
                self.server.tell("")
            self._odd_since = 0.0
        elif not self._odd_since:
            self._odd_since = now
        elif now - self._odd_since > _STUCK_SECS:
            self.server.tell(
                f"the program has been writing an event for {now - self._odd_since:.0f} s: the thread that does may have ended or hang, and no further event comes"
            )

    def _may_hold(self, secs: float) -> bool:
        """Whether the program may be held any longer: it is paused or delayed, or is being read."""
        server = self._opened_server
        return secs < _LONGEST_READ_SECS or (server is not None and server.holding)


def _chosen(found: list[Publication], name: str, process: Process) -> Publication:
    for one in found:
        if not name or one.head.name == name:
            return one
    names = ", ".join(repr(one.head.name) for one in found)
    raise TargetError(
        f"process {process.pid} shows no memory manager {name!r}; it shows {names}: give one of these as --option {MANAGER}=NAME"
    )
