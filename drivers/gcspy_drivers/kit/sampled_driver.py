"""`SampledDriver`: the base of drivers that read a process at the ticks of a clock.

A driver of a runtime writes three methods: `SampledDriver.find` recognises the runtime of a
process, `start` adds the spaces, `gather` fills them. The base does the rest: identity of the
process, description of the session, order of the calls at a tick, and which event is due.

    prepare ──▶ changes? ──▶ should_transmit ──▶ gather ──▶ check ──▶ finish

Knows processes and the server's API; does not know any runtime.
"""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import ClassVar, Final, Unpack, final

from gcspy_protocol.errors import TargetError

from gcspy_drivers.kit.loop_notice import COMING
from gcspy_drivers.kit.memory_history_space import HeapBytes, MemoryHistorySpace
from gcspy_drivers.kit.runtime_discovery import answered
from gcspy_drivers.remote.process import Process
from gcspy_drivers.remote.run_delay import waited_nanos
from gcspy_server.api import (
    LEVEL,
    AttachOptions,
    DriverOption,
    GatherRequest,
    OptionValue,
    Recognition,
    Server,
    ServerDescription,
    ServerSpace,
    SpaceOptions,
    SteppedDriver,
)

__all__ = ["CLOCK", "SampledDriver"]

CLOCK: Final = 0
"""Number of the clock's kind of event, which every driver has."""

_FIRST_OPTION: Final = 100
"""Numbers of the settings of live options begin here."""

_CHILDREN_REST_SECS: Final = 1.0

_IDLE_SHARE: Final = 0.05
"""A process that uses less of a processor counts as idle."""


class SampledDriver(SteppedDriver):
    """A driver that reads one process at each tick of the clock.

    Args:
        process: The process; closed by `close`.
        options: The user's choices.

    Attributes:
        process: The process.
        options: The user's choices.
        level: The current level.
        note: Information for the user on how the process is monitored; shown before the general
            information.
    """

    runtime: ClassVar[str] = ""
    """Name of the runtime, as clients see it; empty: the driver's name."""

    levels: ClassVar[tuple[str, ...]] = ()
    """Description of each level, from level 1 on; none: the driver has no levels."""

    info: ClassVar[str] = (
        "Read from outside while it runs; values that change during the read are unknown."
    )
    """Text about the whole target."""

    noticed: int | None = None
    """Number of the kind of event for `changes`; None: there is none."""

    holds_at_clock: bool = True
    """Whether the target of a pause stands still at the clock's events."""

    def __init__(self, process: Process, options: AttachOptions) -> None:
        self.process = process
        self.options = options
        self.level = options.level
        self.note = ""
        self._opened_server: Server | None = None
        self._memory_history: MemoryHistorySpace | None = None
        self._children: list[int] = []
        self._list_children_after = 0.0
        self._took_noticed = False
        # Source: clock_getcpuclockid(3); the number of the clock of a process is made like this.
        self._processor_clock = (~process.pid << 3) | 2
        self._used = (0, 0)
        self._live: dict[str, tuple[int, DriverOption]] = {}

    # --------------------------------------------------------- methods that a driver must write

    @classmethod
    @abstractmethod
    def find(cls, pid: int) -> Recognition | None:
        """Check quickly what runs in a process; None: nothing that this driver knows.

        Raises:
            TargetError: It cannot be examined.
            OSError: The same, from a file of the system.
        """

    @abstractmethod
    def start(self) -> None:
        """Add the spaces and streams, with `add_space` or `add_table`."""

    @abstractmethod
    def gather(self, request: GatherRequest) -> None:
        """Read the process, and fill the requested spaces."""

    # ------------------------------------------------------------ methods with defaults

    @property
    def events(self) -> tuple[str, ...]:
        """Names of the kinds of event; the first is the clock."""
        return ("Clock",)

    @property
    def title(self) -> str:
        """Name of the target."""
        what = f"{self.runtime or self.name} {self.version}".rstrip()
        return f"{self.process.name} ({what}, process {self.process.pid})"

    @property
    def version(self) -> str:
        """Version of the runtime, as people write it; empty: it has none, or it is not known."""
        return ""

    @property
    def facts(self) -> Mapping[str, str]:
        """More facts about the target; of the same name as the base's, they replace it."""
        return {}

    def description(self) -> ServerDescription:
        """Return fields of the session's description other than title, events, levels and facts; see `ServerDescription`."""
        return ServerDescription(name=self.title, events=self.events)

    def prepare(self) -> None:
        """Handle changes between events: settings, spaces that are added or removed. The default applies the level."""
        if self.levels:
            self.level = self.server.take_setting(LEVEL)

    def changes(self) -> str:
        """Return what happened since the last tick, as the cause of the event `noticed`; empty: nothing."""
        return ""

    @property
    def managers(self) -> tuple[str, ...]:
        """Names of the memory managers that `heap_bytes` reports, from the end of `start` on."""
        return ()

    def heap_bytes(self) -> Mapping[str, HeapBytes]:
        """Return the memory of each memory manager, as read at the current event; missing ones are unknown."""
        return {}

    def loops_coming(self) -> bool:
        """Return whether gathering is slow now, until its loops are compiled. May be called in any thread."""
        return False

    def check(self) -> None:
        """Confirm that the data that was read belongs to the process.

        Raises:
            TargetGone: It has ended.
        """
        self.process.check()

    # ------------------------------------------------------------------- the session

    @classmethod
    def recognise(cls, pid: int) -> Recognition:
        """Check quickly whether this driver can monitor the process."""
        return answered(cls.find, pid)

    @classmethod
    def attach(cls, pid: int, options: AttachOptions) -> SampledDriver:
        """Open the process by its identity, and make the driver.

        Raises:
            TargetError: It is gone, or may not be examined; or the driver refuses it.
        """
        process = Process(pid)
        try:
            return cls(process, options)
        except BaseException:
            process.close()
            raise

    def describe(self) -> ServerDescription:
        """Return the description of the session."""
        process = self.process
        described = self.description()
        facts = {
            "pid": str(process.pid),
            "runtime": self.runtime or self.name,
            "driver": self.name,
            "command": process.name,
        }
        return replace(
            described,
            levels=self.levels,
            level=self.level,
            processors=_processors(process.pid),
            waited_nanos=partial(waited_nanos, process.pid),
            general_info=self.note + (described.general_info or self.info),
            target=facts | ({"version": self.version} if self.version else {}) | dict(self.facts),
        )

    def open(self, server: Server) -> None:
        """Add the spaces.

        Raises:
            TargetError: The target has ended, or does not export the required symbols.
        """
        self._opened_server = server
        for ident, option in enumerate(self.declared_options, start=_FIRST_OPTION):
            if option.live:
                value = self.options.values.get(option.name, option.default)
                server.add_setting(option.setting(ident, value))
                self._live[option.name] = ident, option
        self.start()
        self._memory_history = MemoryHistorySpace(server, driver=self.name, managers=self.managers)

    @final
    def gather_event(
        self, request: GatherRequest, gather: Callable[[GatherRequest], None] | None = None
    ) -> None:
        """Gather an event of any kind: the driver's spaces, and then the space "Memory over time".

        Args:
            request: The requested streams.
            gather: Fills the driver's spaces; None: `gather` of the driver.
        """
        (gather or self.gather)(request)
        history = self._memory_history
        if history is not None and request.wants(history.space):
            history.fill(self.process.resident_bytes(), self.heap_bytes(), self._child_ids())

    def _child_ids(self) -> list[int]:
        """The child processes of the target, listed at most once a second."""
        now = time.monotonic()
        if now >= self._list_children_after:
            try:
                self._children = self.process.child_ids()
            except TargetError:  # it may not be known, or has ended, which `check` reports
                self._children = []
            self._list_children_after = now + _CHILDREN_REST_SECS
        return self._children

    @property
    def server(self) -> Server:
        """The session's server, from `open` on."""
        if self._opened_server is None:
            raise AssertionError("open comes first")
        return self._opened_server

    def notice(self) -> None:
        """Check what happened since the last tick, and gather and finish an event of it if requested."""
        self._took_noticed = False
        self.prepare()
        cause = self.changes()
        if not cause or self.noticed is None:
            return
        request = self.server.should_transmit(self.noticed)
        if request is None:
            self.server.skip(self.noticed)
            return
        self.gather_event(request)
        self.check()
        self.server.finish(self.noticed, cause, holds=self.holds_at_clock)
        self._took_noticed = True

    def sample(self) -> None:
        """Gather and finish the event of the clock; if `notice` had one at this tick, the clock is only counted."""
        if self._took_noticed:
            self.server.skip(CLOCK)
            return
        request = self.server.should_transmit(CLOCK)
        if request is not None:
            self.gather_event(request)
        self.check()
        self.server.finish(CLOCK, holds=self.holds_at_clock)

    def option(self, name: str) -> OptionValue:
        """Return the value of an option that the driver declares; of a live one, the latest choice in the window."""
        if name in self._live:
            ident, option = self._live[name]
            return option.of_setting(self.server.take_setting(ident))
        if name in self.options.values:
            return self.options.values[name]
        return next(one.default for one in self.declared_options if one.name == name)

    def add_space(self, name: str, **options: Unpack[SpaceOptions]) -> ServerSpace:
        """Add a space of this driver; the arguments are those of `Server.add_space`.

        Without `names` it has no tiles until `ServerSpace.fill` adds some, which are named by
        texts.
        """
        options.setdefault("driver", self.name)
        return self.server.add_space(name, **options)

    def alive(self) -> bool:
        """Return whether it is still the same process, running the same program; about 10 µs."""
        return self.process.alive()

    def is_idle(self) -> bool:
        """Return whether the process has used next to no processor time since the last call; one call of the system."""
        now = time.monotonic_ns()
        try:
            used = time.clock_gettime_ns(self._processor_clock)
        except OSError:  # it has ended, which `check` reports
            return False
        (then, before), self._used = self._used, (now, used)
        return used - before <= _IDLE_SHARE * (now - then)

    def why_slow(self) -> str:
        """Return why its ticks take long now; see `Driver.why_slow`."""
        return COMING if self.loops_coming() else ""

    def close(self) -> None:
        """Release the target, which keeps running."""
        self.process.close()


def _processors(pid: int) -> int:
    """How many processors a process may use; 0: unknown."""
    try:
        return len(os.sched_getaffinity(pid))
    except OSError:
        return 0
