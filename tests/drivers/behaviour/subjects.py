"""The table of the suite: which driver has which behaviour, and why it lacks the others.

A driver that watches a process is watched here as a session would: in a `DriverGroup`. One that makes its own
session (the simulator, a trace, the semi-space collector) is run as its program runs it.
"""

from __future__ import annotations

import importlib.util
import random
import tempfile
import threading
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from gcspy_drivers.kit.sampled_driver import SampledDriver
from gcspy_drivers.original.driver import OriginalDriver
from gcspy_drivers.semispace.__main__ import work
from gcspy_drivers.semispace.collector import SemispaceHeap
from gcspy_drivers.semispace.driver import SemispaceDriver, make_server
from gcspy_drivers.simulator.driver import SimulationOptions, SimulatorSession
from gcspy_drivers.traced import TracedSession
from gcspy_objects.heap import RebuiltHeap
from gcspy_objects.trace import open_trace

from gcspy_server.api import AttachOptions, Server, ServerDescription, load_driver
from gcspy_server.hosting.driver_group import DriverGroup
from gcspy_server.sampler import run_driver
from tests.drivers.behaviour.target_programs import (
    JavaProgram,
    OriginalTarget,
    PythonProgram,
    TargetProgram,
)
from tests.drivers.boehm.programs import BoehmProgram
from tests.drivers.hotspot.jvms import HOMES, find_javas
from tests.drivers.published.programs import CommandedProgram
from tests.house.rooms import ROOT
from tests.objects.samples import path_of

__all__ = [
    "HOTSPOT_G1",
    "SQLITE",
    "SUBJECTS",
    "Attached",
    "Behaviour",
    "Case",
    "Connected",
    "Embedded",
    "Served",
    "Subject",
    "having",
    "install_sqlite",
]

SQLITE = ROOT / "docs" / "examples" / "sqlite_driver"
"""The example of a driver package."""


class Behaviour(Enum):
    """Behaviours that the suite tests, one a module."""

    GONE = "its target may end at any read"
    UNREADABLE = "what cannot be read is unknown"
    LEVELS = "it gathers at the level that was chosen, and never above"
    PAUSE = "a pause holds, and a step gives one event"
    BUDGET = "the budget leaves events out, and they are counted"
    KILLED = "the target goes on when the server is killed"
    MEMORY = "each event has the resident set"
    UNWATCHED = "for nobody nothing is gathered, and everything is counted"


class Case(ABC):
    """A driver at work.

    Attributes:
        server: Its server.
    """

    server: Server

    @abstractmethod
    def happen(self) -> None:
        """Let events happen, one at least."""

    @abstractmethod
    def run(self, stop: threading.Event) -> str | None:
        """Let events happen until it is stopped; return why it ended, if it ended by itself."""

    @property
    @abstractmethod
    def gatherer(self) -> Any:
        """The object whose method `gathering` fills the spaces."""

    gathering: str = "gather"

    def close(self) -> None:
        """Release everything; the default holds nothing."""
        return


class Attached(Case):
    """A driver that watches a process.

    Args:
        kind: Its class.
        target: The process.
        options: The user's options.
        budget: In thousandths; None: there is none. All our processor time counts, as if the target
            waited for it.
    """

    def __init__(
        self,
        kind: type[SampledDriver],
        target: TargetProgram,
        options: AttachOptions | None = None,
        budget: int | None = None,
    ) -> None:
        self.target = target
        driver = kind.attach(target.pid, options or AttachOptions())
        assert isinstance(driver, SampledDriver)
        self.driver = driver
        try:
            self.group = DriverGroup([(kind.name, "", self.driver)])
            self.description: ServerDescription = self.group.describe()
            described = replace(self.description, waited_nanos=None, processors=1)
            self.server = described.server(budget=budget)
            self.group.open(self.server)
        except BaseException:
            self.driver.close()
            raise

    def happen(self) -> None:
        """Let the clock tick."""
        self.group.tick()

    def run(self, stop: threading.Event) -> str | None:
        """Let the clock tick until it is stopped, or the target has ended."""
        return run_driver(self.group, self.server, 200, stop)

    @property
    def gatherer(self) -> Any:
        """The driver."""
        return self.driver

    @property
    def given_up(self) -> bool:
        """Whether the driver was dropped for a mistake of its own."""
        return bool(self.group.given_up)

    def close(self) -> None:
        """Release the target."""
        self.group.close()


class Connected(Case):
    """A client of a server of GCspy 1.0."""

    gathering = "fill"
    given_up = False

    def __init__(self, target: OriginalTarget) -> None:
        self.target = target
        self.driver = OriginalDriver("127.0.0.1", target.port)
        try:
            self.server = self.driver.describe().server()
            self.driver.open(self.server)
        except BaseException:
            self.driver.close()
            raise

    def happen(self) -> None:
        """Wait for the next event of the program."""
        before = sum(self.server.counts())
        while sum(self.server.counts()) == before:
            self.driver.wait(0.1)

    def run(self, stop: threading.Event) -> str | None:
        """Follow the program until it is stopped, or the program has ended."""
        return run_driver(self.driver, self.server, 200, stop)

    @property
    def gatherer(self) -> Any:
        """What fills the spaces."""
        return self.driver._spaces

    def close(self) -> None:
        """Leave the server."""
        self.driver.close()


class _Simulation(Case):
    def __init__(self) -> None:
        options = SimulationOptions(heap_bytes=32 << 10, tile_bytes=512, pace_millis=0, steps=60)
        self._options = options
        self.session = SimulatorSession(options)
        self.server = self.session.server

    def happen(self) -> None:
        """Run the program to its end."""
        self.session.run(threading.Event())

    def run(self, stop: threading.Event) -> str | None:
        """Run the program until it is stopped, or ends."""
        return self.session.run(stop)

    @property
    def gatherer(self) -> Any:
        """The session."""
        return self.session


class _Trace(Case):
    def __init__(self) -> None:
        self._trace = open_trace(path_of("list"))
        self._heap = RebuiltHeap(self._trace)
        self.session = TracedSession(self._heap)
        self.server = self.session.server

    def happen(self) -> None:
        """Go through the trace."""
        self.session.run()

    def run(self, stop: threading.Event) -> str | None:
        """Go through the trace."""
        self.session.run()
        return "the trace ends"

    @property
    def gatherer(self) -> Any:
        """The session."""
        return self.session

    def close(self) -> None:
        """Close the trace."""
        self._heap.close()
        self._trace.close()


class _Semispace(Case):
    gathering = "_gather"

    def __init__(self) -> None:
        self.server = make_server()
        self._heap = SemispaceHeap(64 << 10)
        self._driver = SemispaceDriver(self.server, self._heap)
        self._dice = random.Random(7)
        self._step = 0

    def happen(self) -> None:
        """Allocate until there was a collection."""
        before = sum(self.server.counts())
        while sum(self.server.counts()) == before:
            work(self._heap, self._dice, self._step)
            self._step += 1

    def run(self, stop: threading.Event) -> str | None:
        """Allocate and collect until it is stopped."""
        while not stop.is_set():
            self.happen()
        return None

    @property
    def gatherer(self) -> Any:
        """The driver."""
        return self._driver


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A driver, and what it cannot have.

    Attributes:
        name: Its name in tests; of a driver that attaches, the name under which it is installed.
        lacks: Behaviours that it cannot have, with the reason.
    """

    name: str
    lacks: dict[Behaviour, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, kw_only=True)
class Embedded(Subject):
    """A driver that makes a session of its own.

    Attributes:
        make: Makes the case.
    """

    make: Callable[[], Case]

    @contextmanager
    def case(self) -> Iterator[Case]:
        """Run a case for the body of the `with`."""
        case = self.make()
        try:
            yield case
        finally:
            case.close()


@dataclass(frozen=True, kw_only=True)
class AttachedSubject(Subject):
    """A driver that watches a process.

    Attributes:
        load: Returns its class.
        start: Starts a process for it, given an empty folder and the folder of the compiled Java program.
        java: Whether that is a JVM.
        reads_memory: Whether it reads the target's memory by `gcspy_drivers.remote.memory`.
        partial: Spaces that sum what could be read: an incomplete sum says so in the space's text.
    """

    load: Callable[[], type[SampledDriver]]
    start: Callable[[Path, Callable[[], Path]], TargetProgram]
    reads_memory: bool = True
    partial: frozenset[str] = frozenset()

    @contextmanager
    def target(self, classes: Callable[[], Path]) -> Iterator[TargetProgram]:
        """Run a process for the body of the `with`."""
        with tempfile.TemporaryDirectory(prefix="gcspy-test-") as folder:
            target = self.start(Path(folder), classes)
            try:
                yield target
            finally:
                target.end()

    def attach(self, target: TargetProgram) -> None:
        """Attach a driver to a process, with errors of ours where that fails."""
        self.load().attach(target.pid, AttachOptions()).close()

    def command(self, target: TargetProgram) -> tuple[str, ...]:
        """Return the arguments of `gcspy attach`."""
        return str(target.pid), "--driver", self.name, "--clock", "200"

    @property
    def space_driver(self) -> str:
        """The driver that its spaces name."""
        return self.name

    def called(self, target: TargetProgram) -> str:
        """Return what messages call a process."""
        return f"process {target.pid}"

    @contextmanager
    def watch(
        self, target: TargetProgram, options: AttachOptions | None = None, budget: int | None = None
    ) -> Iterator[Attached]:
        """Watch a process for the body of the `with`."""
        case = Attached(self.load(), target, options, budget)
        try:
            yield case
        finally:
            case.close()


@dataclass(frozen=True, kw_only=True)
class Served(Subject):
    """The driver of servers of GCspy 1.0: a process is watched, by an address."""

    space_driver: str = "test"
    reads_memory: bool = False

    @contextmanager
    def target(self, _classes: Callable[[], Path]) -> Iterator[OriginalTarget]:
        """Run a program with a server for the body of the `with`."""
        target = OriginalTarget()
        try:
            yield target
        finally:
            target.end()

    @contextmanager
    def watch(self, target: TargetProgram) -> Iterator[Connected]:
        """Be its client for the body of the `with`."""
        assert isinstance(target, OriginalTarget)
        case = Connected(target)
        try:
            yield case
        finally:
            case.close()

    @contextmanager
    def case(self) -> Iterator[Case]:
        """Run a program and be its client for the body of the `with`."""
        with self.target(Path) as target, self.watch(target) as case:
            yield case

    def attach(self, target: TargetProgram) -> None:
        """Be a client of its server, with errors of ours where that fails."""
        assert isinstance(target, OriginalTarget)
        OriginalDriver("127.0.0.1", target.port).close()

    def command(self, target: TargetProgram) -> tuple[str, ...]:
        """Return the arguments of `gcspy attach`."""
        return (self.called(target),)

    def called(self, target: TargetProgram) -> str:
        """Return what messages call a program."""
        assert isinstance(target, OriginalTarget)
        return f"gcspy666://127.0.0.1:{target.port}"


def _installed(name: str) -> Callable[[], type[SampledDriver]]:
    def load() -> type[SampledDriver]:
        kind = load_driver(name)
        assert issubclass(kind, SampledDriver)
        return kind

    return load


def _sqlite() -> type[SampledDriver]:
    spec = importlib.util.spec_from_file_location("gcspy_sqlite", SQLITE / "gcspy_sqlite.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kind: type[SampledDriver] = module.SqliteDriver
    return kind


def install_sqlite(folder: Path) -> None:
    """Put the example package where Python finds it with its entry point, as an installation would."""
    project = tomllib.loads((SQLITE / "pyproject.toml").read_text())["project"]
    information = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    information.mkdir()
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (information / "METADATA").write_text(head)
    entries = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in found.items())
        for group, found in project["entry-points"].items()
    ]
    (information / "entry_points.txt").write_text("".join(entries))
    (folder / "gcspy_sqlite.py").write_text((SQLITE / "gcspy_sqlite.py").read_text())


def _start_python(folder: Path, _classes: Callable[[], Path]) -> TargetProgram:
    return PythonProgram(folder)


def _start_java(
    _folder: Path, classes: Callable[[], Path], collector: str = "Serial"
) -> TargetProgram:
    javas = find_javas()
    if not javas:
        pytest.skip(f"no java on PATH or in {HOMES}: the behaviour of JVMs is not tested here")
    return JavaProgram(javas[0], classes(), collector)


def _start_published(_folder: Path, _classes: Callable[[], Path]) -> TargetProgram:
    program = CommandedProgram()
    program.do("written 5")
    return program


def _start_boehm(_folder: Path, _classes: Callable[[], Path]) -> TargetProgram:
    return BoehmProgram()


_NO_PROCESS = "it shows a heap of its own process: there is no other one that could end or be read"
_NO_BUDGET = "what it shows stands still for its events by design: its server has no budget"
_NO_OTHER = "it shows a heap of its own process, and no process"
_NO_VICTIM = "the program and the server are one process"

SUBJECTS: tuple[Embedded | AttachedSubject | Served, ...] = (
    AttachedSubject(
        name="cpython",
        load=_installed("cpython"),
        start=_start_python,
        partial=frozenset({"Size classes"}),
    ),
    AttachedSubject(name="hotspot", load=_installed("hotspot"), start=_start_java),
    AttachedSubject(
        name="boehm",
        load=_installed("boehm"),
        start=_start_boehm,
        partial=frozenset({"Heap", "Kinds and sizes", "Free blocks"}),
    ),
    AttachedSubject(
        name="malloc",
        load=_installed("malloc"),
        start=_start_python,
        partial=frozenset({"malloc bins", "malloc size classes"}),
    ),
    AttachedSubject(
        name="published",
        load=_installed("published"),
        start=_start_published,
        lacks={Behaviour.LEVELS: "the program decides what an event has, and writes it itself"},
    ),
    AttachedSubject(
        name="sqlite",
        load=_sqlite,
        start=_start_python,
        reads_memory=False,
        lacks={Behaviour.LEVELS: "it describes no levels: it is all or nothing there"},
    ),
    Served(
        name="original",
        lacks={
            Behaviour.UNREADABLE: "what is sent is whole, or refused: tests/original/test_connection.py",
            Behaviour.LEVELS: "the program decides what an event has, before it is sent",
            Behaviour.BUDGET: "the program has gathered before anybody can refuse that: there is no budget",
            Behaviour.MEMORY: "it is named by an address, and may run on another machine",
            Behaviour.UNWATCHED: "the program counts for itself, and tells it with its next event: tests/original/test_live.py",
        },
    ),
    Embedded(
        name="simulator",
        make=_Simulation,
        lacks={
            Behaviour.GONE: _NO_PROCESS,
            Behaviour.UNREADABLE: _NO_PROCESS,
            Behaviour.BUDGET: _NO_BUDGET,
            Behaviour.KILLED: _NO_VICTIM,
            Behaviour.MEMORY: _NO_OTHER,
            Behaviour.LEVELS: "its levels say what is shown of its own heap: tests/drivers/simulator/test_driver.py",
        },
    ),
    Embedded(
        name="semispace",
        make=_Semispace,
        lacks={
            Behaviour.GONE: _NO_PROCESS,
            Behaviour.UNREADABLE: _NO_PROCESS,
            Behaviour.BUDGET: _NO_BUDGET,
            Behaviour.KILLED: _NO_VICTIM,
            Behaviour.MEMORY: _NO_OTHER,
            Behaviour.LEVELS: "it has no levels: it is the example of the guide",
        },
    ),
    Embedded(
        name="traced",
        make=_Trace,
        lacks={
            Behaviour.GONE: "a file is read, and no process",
            Behaviour.UNREADABLE: "a damaged trace is refused, or ends early: tests/objects",
            Behaviour.BUDGET: "nobody's time is taken: its server has no budget",
            Behaviour.KILLED: "the program ended when the trace was written",
            Behaviour.MEMORY: "the program ended when the trace was written",
            Behaviour.LEVELS: "it has no levels: whoever writes the recording wants everything",
            Behaviour.PAUSE: "it is recorded at once, and the player of the recording pauses",
        },
    ),
)


HOTSPOT_G1 = AttachedSubject(
    name="hotspot", load=_installed("hotspot"), start=partial(_start_java, collector="G1")
)
"""The same driver, for a collector whose heap is read by other modules."""


def having(behaviour: Behaviour) -> list[Any]:
    """Return the drivers that are to have a behaviour, for ``pytest.mark.parametrize``."""
    return [pytest.param(one, id=one.name) for one in SUBJECTS if behaviour not in one.lacks]
