"""The interface of a driver that attaches to a process.

Drivers are found through the entry point group ``gcspy.drivers``: name to class. Knows the base
class of drivers; does not know any driver.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from gcspy_protocol.details import DetailTable, MemoryReport
from gcspy_protocol.errors import Unsupported
from gcspy_protocol.model import Mode, PauseActsOn
from gcspy_protocol.settings import Setting, SettingKind

from gcspy_server.driver_options import DriverOption, OptionValue
from gcspy_server.driver_recognition import (
    ENTRY_POINT_GROUP,
    Recognition,
    Specificity,
    find_drivers,
)
from gcspy_server.heap_question import HeapQuestion, Investigator
from gcspy_server.interpreter.cost_accounting import LEVEL
from gcspy_server.memory_report import MemoryQuestion
from gcspy_server.server import Server
from gcspy_server.type_count import TypeCount

__all__ = [
    "ENTRY_POINT_GROUP",
    "LEVEL",
    "MODE",
    "AttachOptions",
    "Driver",
    "ProgramStart",
    "Recognition",
    "ServerDescription",
    "Specificity",
    "SteppedDriver",
    "WaitingDriver",
    "find_drivers",
    "load_driver",
]

MODE = 3
"""Number of the setting "Mode" of a driver with several modes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AttachOptions:
    """The user's choices.

    Attributes:
        tiles: Approximate maximum of tiles per space.
        clock_hz: Events of the clock per second.
        level: The amount of data gathered at each event: 1 what takes constant time, 2 small
            structures, 3 objects, 4 fields with references.
        stub_fd: A connected socket whose other end a stub in the target has or will have; the
            driver takes ownership. None: none.
        values: Value of each option that the driver declares; missing ones have their default.
    """

    tiles: int = 65536
    clock_hz: float = 10.0
    level: int = 2
    stub_fd: int | None = None
    values: Mapping[str, OptionValue] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """Return the value of an option of texts; empty: not set."""
        return str(self.values.get(name, ""))


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramStart:
    """A program to be started with a stub in it.

    Attributes:
        program: The user's argument: a file, or a command on the path.
        arguments: Its arguments.
        form: Kind of `program`: ``module`` or ``code`` as given by the user, or empty: a file or a
            command.
        interpreter: The interpreter for a program that needs one.
        stub_fd: The descriptor for the stub's connection; the program inherits it.
        values: Value of each option that the driver declares; missing ones have their default.
    """

    program: str
    arguments: tuple[str, ...] = ()
    form: str = ""
    interpreter: str = ""
    stub_fd: int
    values: Mapping[str, OptionValue] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerDescription:
    """Description of the session of an attached process; see `Server`.

    Attributes:
        name: Name of the target.
        events: Names of the kinds of event.
        mode: How the target is monitored.
        pause_acts_on: Activity that a pause stops.
        general_info: Text about the whole target.
        target: Free facts.
        levels: Description of each level, from level 1 on; none: the driver has no levels.
        level: The initial level; the nearest existing one is used.
        processors: How many processors the target may use; 0: as many as this process.
        waited_nanos: See `Server`.
        pairs: See `Server`.
        modes: Modes that the driver can switch between during the session, including `mode`; none:
            it cannot switch.
        mode_refusal: Why a mode is impossible now, as the function of `Server.add_setting`.
    """

    name: str
    events: tuple[str, ...]
    mode: Mode = Mode.PASSIVE
    pause_acts_on: PauseActsOn = PauseActsOn.SAMPLING
    general_info: str = ""
    target: dict[str, str] = field(default_factory=dict)
    levels: tuple[str, ...] = ()
    level: int = 2
    processors: int = 0
    waited_nanos: Callable[[], int | None] | None = None
    pairs: tuple[tuple[int, int], ...] = ()
    modes: tuple[Mode, ...] = ()
    mode_refusal: Callable[[Mode], str] | None = None

    def server(
        self,
        time_nanos: Callable[[], int] | None = None,
        *,
        longest_hold_secs: float | None = None,
        budget: int | None = None,
    ) -> Server:
        """Make the server for this description.

        Args:
            time_nanos: Another clock, for tests.
            longest_hold_secs: See `Server`.
            budget: See `Server`.
        """
        server = Server(
            self.name,
            events=self.events,
            mode=self.mode,
            pause_acts_on=self.pause_acts_on,
            general_info=self.general_info,
            target=self.target,
            time_nanos=time_nanos,
            longest_hold_secs=longest_hold_secs,
            budget=budget,
            processors=self.processors or None,
            waited_nanos=self.waited_nanos,
            pairs=self.pairs,
        )
        if self.levels:
            server.add_setting(self._level_setting())
        if self.modes:
            server.add_setting(self._mode_setting(), refusal=self._mode_refused)
        return server

    def _mode_setting(self) -> Setting:
        return Setting(
            id=MODE,
            name="Mode",
            about="Whether the target is stopped while its memory is read",
            kind=SettingKind.CHOICE,
            value=self.modes.index(self.mode),
            minimum=0,
            maximum=len(self.modes) - 1,
            choices=tuple(mode.value for mode in self.modes),
            modes=self.modes,
        )

    def _mode_refused(self, value: int) -> str:
        return "" if self.mode_refusal is None else self.mode_refusal(self.modes[value])

    def _level_setting(self) -> Setting:
        return Setting(
            id=LEVEL,
            name="Level",
            about="Amount of data gathered at each event, which determines its cost",
            kind=SettingKind.CHOICE,
            value=max(1, min(self.level, len(self.levels))),
            minimum=1,
            maximum=len(self.levels),
            choices=self.levels,
        )


class Driver(ABC):
    """A driver that attaches to a process, and gathers at each tick of a clock.

    `recognise`, `attach`, `describe`, `open` and `tick` must be written; the others have defaults.
    """

    name: ClassVar[str]
    """Name under which it is installed; sent to clients with each space."""

    has_stub: ClassVar[bool] = False
    """Whether its targets can have a stub, which talks to it through `AttachOptions.stub_fd`."""

    declared_options: ClassVar[tuple[DriverOption, ...]] = ()
    """Options for the user when it attaches; the values are in `AttachOptions.values`.

    Help shows those that the package announces as well, in the group `gcspy_server.driver_options.OPTIONS_GROUP`.
    """

    startable: ClassVar[str] = ""
    """Description of the programs that `command_line` starts, for messages: ``java with its arguments``; empty: none."""

    @classmethod
    @abstractmethod
    def recognise(cls, pid: int) -> Recognition:
        """Determine cheaply whether this driver can watch the process; an unknown process is no error."""

    @classmethod
    def command_line(cls, _start: ProgramStart, /) -> tuple[int, list[str]] | None:
        """Return how to start a program with this driver's stub in it; None: it is no program of this driver's runtime.

        Returns:
            How sure the driver is that the program is of its runtime, as `Specificity`; and the command line.

        Raises:
            Unsupported: The program is of this runtime, and cannot be started with a stub here.
        """
        return None

    @classmethod
    def start_option(cls) -> str:
        """Return the argument that makes a program of this runtime load the stub at its start; empty: there is none.

        Raises:
            Unsupported: There is none here.
        """
        return ""

    @classmethod
    @abstractmethod
    def attach(cls, pid: int, options: AttachOptions) -> Driver:
        """Examine the process closely and prepare to read it.

        Raises:
            TargetError: It is gone, not permitted, or not supported.
        """

    @classmethod
    def investigate(
        cls, pid: int, _question: HeapQuestion, _progress: Callable[[str, int, int], None], /
    ) -> DetailTable:
        """Answer a question about all objects of a process and the references between them; nothing is left behind in it.

        The default refuses: most drivers do not follow references.

        Args:
            pid: The process.
            _question: The question.
            _progress: Call it with the current step, its progress, and its total; 0: not known.

        Raises:
            Unsupported: This driver does not support it.
            TargetError: It is gone, not permitted, or not supported.
        """
        raise Unsupported(
            f"process {pid}: its driver does not follow references between objects",
            found=cls.__name__,
            known="the driver cpython",
        )

    def investigator(self) -> Investigator | None:
        """Return what answers such questions within this session, if that knows more than `investigate`; None: it does not."""
        return None

    @classmethod
    def explain_memory(
        cls, pid: int, _question: MemoryQuestion, _progress: Callable[[str, int, int], None], /
    ) -> Iterator[MemoryReport]:
        """Report what all memory of a process is used for and what holds it, and after a while what of it grew; nothing is left behind in it.

        The default refuses.

        Args:
            pid: The process.
            _question: The question.
            _progress: See `investigate`.

        Yields:
            The result of the first sample; then, if a second one is requested, the growth until
            then.

        Raises:
            Unsupported: This driver does not support it.
            TargetError: It is gone, not permitted, or not supported.
        """
        raise Unsupported(
            f"process {pid}: its driver does not say what all of the memory is for",
            found=cls.__name__,
            known="the drivers cpython and hotspot",
        )

    @classmethod
    def count_types(
        cls, pid: int, _most: int, _progress: Callable[[str, int, int], None], /
    ) -> Iterator[TypeCount]:
        """Count the objects of a process by type, without a session; nothing is left behind in it.

        The default refuses: the types are then asked of a session.

        Args:
            pid: The process.
            _most: Maximum rows.
            _progress: See `investigate`.

        Yields:
            Estimates, if counting takes long; at last the counts.

        Raises:
            Unsupported: This driver does not support it.
            TargetError: It is gone, not permitted, or not supported.
        """
        raise Unsupported(
            f"process {pid}: its driver counts types only in a session",
            found=cls.__name__,
            known="the driver cpython",
        )

    @abstractmethod
    def describe(self) -> ServerDescription:
        """Return the description of the session."""

    @abstractmethod
    def open(self, server: Server) -> None:
        """Add the spaces and streams."""

    @abstractmethod
    def tick(self) -> None:
        """Gather and finish the events that are due now.

        Raises:
            TargetError: The target ended (TargetGone) or cannot be read any more; it ends the session.
        """

    def alive(self) -> bool:
        """Return whether the target still runs; must be cheap: called twice a second while sampling is paused.

        The default is True, for a target that cannot end, or whose end `tick` detects.
        """
        return True

    def is_idle(self) -> bool:
        """Return whether the target has done next to nothing since the last call, so that ticks may be left out while nothing changes.

        Called at each tick; must take microseconds. The default is False: no tick is left out.
        """
        return False

    def why_slow(self) -> str:
        """Return why its ticks take long now, as text for clients; empty: no reason is known. May be called in any thread.

        Clients see it when a tick takes longer than a second. The default returns nothing.
        """
        return ""

    def close(self) -> None:  # noqa: B027  # a driver that holds nothing has nothing to release
        """Release the target, which keeps running. The default does nothing."""


class SteppedDriver(Driver):
    """A driver whose tick has two steps, so that several drivers can share one clock."""

    @abstractmethod
    def notice(self) -> None:
        """Gather and finish the events other than the clock's that happened since the last tick.

        Raises:
            TargetError: See `Driver.tick`.
        """

    @abstractmethod
    def sample(self) -> None:
        """Gather and finish, or only count, the event of the clock.

        Raises:
            TargetError: See `Driver.tick`.
        """

    def tick(self) -> None:
        """Take both steps; see `Driver.tick`."""
        self.notice()
        self.sample()


class WaitingDriver(Driver):
    """A driver whose target announces events between the ticks."""

    @abstractmethod
    def wait(self, secs: float) -> None:
        """Wait until the time is over, or until the target announced an event; then gather it, finish it, and return.

        Raises:
            TargetError: See `Driver.tick`.
        """

    def went_on(self) -> bool:
        """Return whether the target continues although it is held at an event that is not finished yet.

        Called while the target is paused, in any thread.
        """
        return False


def load_driver(name: str) -> type[Driver]:
    """Import an installed driver.

    Raises:
        Unsupported: There is no driver of that name.
    """
    found = find_drivers()
    if name not in found:
        raise Unsupported(
            "no such driver is installed", found=name, known=", ".join(sorted(found)) or "none"
        )
    driver: type[Driver] = found[name].load()
    return driver
