"""What a driver that attaches to a process looks like to the rest of GCspy.

A driver is found through the entry point group ``gcspy.drivers``: name to class.
Knows the base class of drivers; knows no driver.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import ClassVar

from gcspy_protocol.details import DetailTable
from gcspy_protocol.errors import Unsupported
from gcspy_protocol.model import Mode, PauseActsOn
from gcspy_protocol.settings import Setting, SettingKind

from gcspy_server.driver_options import DriverOption, OptionValue
from gcspy_server.heap_question import HeapQuestion
from gcspy_server.interpreter.cost_accounting import LEVEL
from gcspy_server.memory_report import MemoryQuestion, MemoryReport
from gcspy_server.server import Server

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
"""Number of the setting "Mode" of a driver that can watch its target in several modes."""

ENTRY_POINT_GROUP = "gcspy.drivers"
"""Where an installed package announces its drivers."""

_OURS = "gcspy_drivers."


class Specificity(IntEnum):
    """How much of a process a driver knows; among several, the one that knows it most specifically is taken."""

    ANY_PROCESS = 0
    """What every process has: its memory map, its C library's heap."""
    LIBRARY = 10
    """A library within the program: a database, an allocator."""
    RUNTIME = 20
    """The runtime that runs the program."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recognition:
    """What a driver says about a process at a cheap look.

    Attributes:
        runtime: The runtime found: ``CPython``; empty when it is none of this driver's.
        version: Its version, as far as it was found.
        detail: More for a human: the executable, say.
        program: What runs in it, where the command line does not tell it well: a main class, say. May be empty.
        modes: In which ways it can be watched, as its option ``mode`` names them; none: the driver does not say it.
        supported: Whether `Driver.attach` may be tried.
        why_not: When not, the reason, for a human.
        specificity: How specific it is: see `Specificity`; between those numbers a driver may choose its own.
    """

    runtime: str = ""
    version: str = ""
    detail: str = ""
    program: str = ""
    modes: tuple[str, ...] = ()
    supported: bool = False
    why_not: str = ""
    specificity: int = Specificity.LIBRARY


@dataclass(frozen=True, kw_only=True, slots=True)
class AttachOptions:
    """What the user chose.

    Attributes:
        tiles: About how many tiles a space should have at most.
        clock_hz: Events of the clock a second.
        level: How much is gathered at each event: 1 what takes constant time, 2 small structures, 3 objects, 4 fields with references.
        stub_fd: A connected socket whose other end a stub in the target has or will have; taken over. None: none.
        values: Value of each option that the driver declares; of one that is not there, the default.
    """

    tiles: int = 65536
    clock_hz: float = 10.0
    level: int = 2
    stub_fd: int | None = None
    values: Mapping[str, OptionValue] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """Return the value of an option of texts; empty: it was not set."""
        return str(self.values.get(name, ""))


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramStart:
    """A program that is to be started with a stub in it.

    Attributes:
        program: What the user named: a file, or a command on the path.
        arguments: Its arguments.
        form: What `program` is: ``module`` or ``code`` as the user said, or empty: a file or a command.
        interpreter: The interpreter for a program that needs one.
        stub_fd: The descriptor through which the stub is to talk; the program inherits it.
    """

    program: str
    arguments: tuple[str, ...] = ()
    form: str = ""
    interpreter: str = ""
    stub_fd: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerDescription:
    """How the session of an attached process introduces itself; see `Server`.

    Attributes:
        name: What is visualised.
        events: Names of the kinds of event.
        mode: How the target is watched.
        pause_acts_on: What a pause stops.
        general_info: Text about the whole target.
        target: Free facts.
        levels: What is gathered at each level that the driver has, from level 1 on; none: it knows of no levels.
        level: The one to begin with; the nearest that it has is taken.
        processors: How many processors the target may use; 0: as many as we.
        waited_nanos: As of `Server`.
        pairs: As of `Server`.
        modes: Modes that the driver can change between while it watches, `mode` among them; none: it cannot.
        mode_refusal: Why a mode cannot be had now, as the function of `Server.add_setting`.
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
        """Make the server that it describes.

        Args:
            time_nanos: Another clock, for tests.
            longest_hold_secs: As of `Server`.
            budget: As of `Server`.
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
    """Name under which it is installed; told to clients with each space."""

    has_stub: ClassVar[bool] = False
    """Whether its targets can have a stub, which talks to it through `AttachOptions.stub_fd`."""

    declared_options: ClassVar[tuple[DriverOption, ...]] = ()
    """What the user may choose when it attaches; the values are in `AttachOptions.values`.

    Help shows those that the package announces as well, in the group `gcspy_server.driver_options.OPTIONS_GROUP`.
    """

    startable: ClassVar[str] = ""
    """What `command_line` starts, for messages: ``java with its arguments``; empty: nothing."""

    @classmethod
    @abstractmethod
    def recognise(cls, pid: int) -> Recognition:
        """Tell cheaply whether this driver can watch the process; a process it does not know is no error."""

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
        """Return the argument with which a program of this runtime has the stub from its start; empty: there is none.

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
        """Answer a question about all objects of a process and the references between them; nothing is left in it.

        The default refuses: most drivers follow no references.

        Args:
            pid: The process.
            _question: What is asked.
            _progress: To be called with what is done, how much of it is done, and of how much; 0: that is not known.

        Raises:
            Unsupported: This driver does not answer it.
            TargetError: It is gone, not permitted, or not supported.
        """
        raise Unsupported(
            f"process {pid}: its driver does not follow references between objects",
            found=cls.__name__,
            known="the driver cpython",
        )

    @classmethod
    def explain_memory(
        cls, pid: int, _question: MemoryQuestion, _progress: Callable[[str, int, int], None], /
    ) -> Iterator[MemoryReport]:
        """Say what all memory of a process is for and what holds it, and after a while what of it grew; nothing is left in it.

        The default refuses.

        Args:
            pid: The process.
            _question: What is asked.
            _progress: As of `investigate`.

        Yields:
            What one look found; then, if a second one is wanted, what grew until then.

        Raises:
            Unsupported: This driver does not answer it.
            TargetError: It is gone, not permitted, or not supported.
        """
        raise Unsupported(
            f"process {pid}: its driver does not say what all of the memory is for",
            found=cls.__name__,
            known="the driver cpython",
        )

    @abstractmethod
    def describe(self) -> ServerDescription:
        """Return how the session introduces itself."""

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

        The default is True, for a target that cannot end, or whose end `tick` notices.
        """
        return True

    def why_slow(self) -> str:
        """Return why its ticks take long now, in words for clients; empty: no reason is known. May be called in any thread.

        Clients are told when a tick takes longer than a second. The default returns nothing.
        """
        return ""

    def close(self) -> None:  # noqa: B027  # a driver that holds nothing has nothing to release
        """Release the target, which goes on running. The default does nothing."""


class SteppedDriver(Driver):
    """A driver whose tick has two steps, so that several drivers can share one clock."""

    @abstractmethod
    def notice(self) -> None:
        """Gather and finish the events other than the clock's that happened since the last tick.

        Raises:
            TargetError: As `Driver.tick`.
        """

    @abstractmethod
    def sample(self) -> None:
        """Gather and finish, or only count, the event of the clock.

        Raises:
            TargetError: As `Driver.tick`.
        """

    def tick(self) -> None:
        """Take both steps; see `Driver.tick`."""
        self.notice()
        self.sample()


class WaitingDriver(Driver):
    """A driver whose target announces events between the ticks."""

    @abstractmethod
    def wait(self, secs: float) -> None:
        """Wait so long, or until the target announced an event; then gather it, finish it, and return.

        Raises:
            TargetError: As `Driver.tick`.
        """

    def went_on(self) -> bool:
        """Return whether the target, held at an event that is not finished yet, runs on all the same.

        Called while the target is paused, in any thread.
        """
        return False


@cache
def find_drivers() -> Mapping[str, EntryPoint]:
    """The installed drivers by name, not yet imported; looked for once, as it reads a file of every package there is."""
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        # GCspy's own drivers keep their names, whoever else takes one of them.
        if entry.name not in found or entry.value.startswith(_OURS):
            found[entry.name] = entry
    return found


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
