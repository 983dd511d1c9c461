"""A simulation and its session: heap, collector, program and server, and the events.

The program runs in the thread that calls `run`; a pause, a step or a filter holds it within `finish`, in the middle of a collection too,
so all values are exact. Events and their values depend on the options and on changes of settings, not on time.

Knows how the parts are connected; the modules of the spaces know what to gather.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import numpy as np
from gcspy_protocol.errors import CommandError

from gcspy_drivers.kit.embedded_session import EmbeddedSession
from gcspy_drivers.simulator import loops
from gcspy_drivers.simulator.access_log import AccessLog
from gcspy_drivers.simulator.driver.clock import StepClock
from gcspy_drivers.simulator.driver.companion import Companion
from gcspy_drivers.simulator.driver.cost_meter import CostMeter
from gcspy_drivers.simulator.driver.cost_spaces import cost_spaces
from gcspy_drivers.simulator.driver.counted_spaces import counted_spaces
from gcspy_drivers.simulator.driver.event_view import EventView
from gcspy_drivers.simulator.driver.events import CLOCK, ENDS, PROGRESS, STARTS, Kinds
from gcspy_drivers.simulator.driver.heap_answers import (
    SimulatedGraph,
    answer,
    refuse_if_torn,
    simulated_namer,
)
from gcspy_drivers.simulator.driver.heap_space import SimulatedHeapSpace, parts_of
from gcspy_drivers.simulator.driver.lockstep import Lockstep
from gcspy_drivers.simulator.driver.object_graph import object_graph_spaces
from gcspy_drivers.simulator.driver.options import SimulationOptions
from gcspy_drivers.simulator.driver.other_spaces import OtherSpace, other_spaces
from gcspy_drivers.simulator.driver.python_companion import PYTHON, PythonCompanion
from gcspy_drivers.simulator.driver.settings import LiveSettings
from gcspy_drivers.simulator.heap import WORD_BYTES, Heap
from gcspy_drivers.simulator.loops import Words
from gcspy_drivers.simulator.mutator import Mutator
from gcspy_drivers.simulator.plan import Collection, CollectionListener, OutOfHeap, Plan
from gcspy_drivers.simulator.plans import make_plan
from gcspy_drivers.simulator.programs import make_run
from gcspy_drivers.simulator.programs.counted_function import CountedFunction
from gcspy_drivers.simulator.trace_recorder import TraceRecorder
from gcspy_server.api import (
    DetailTable,
    GatherRequest,
    HeapQuestion,
    Mode,
    PauseActsOn,
    Server,
)

__all__ = ["SimulatorSession"]

_ROOTS = 256
"""Root slots a thread."""

_LOOK_SECS = 0.2
"""Time between two looks whether anybody still waits for an answer."""


class SimulatorSession(EmbeddedSession, CollectionListener):
    """One simulation and its server.

    Args:
        options: Options of the simulation.
        longest_hold_secs: Longest single stop of the program; None: unlimited.
        clock: Clock of the times of events, and of the wait between them.
        lockstep: Couples it with another simulation of the same program; None: it is alone.
        leads: Whether this simulation leads and the other follows.

    Attributes:
        plan: The collector.
        program: The program.
        over: Why the program ended; empty: it has not.
        failed: Whether it ended since code in a user's file has a mistake.

    Raises:
        LocalProtocolError: There is no such collector or program, or it cannot have these options.
    """

    def __init__(
        self,
        options: SimulationOptions,
        *,
        longest_hold_secs: float | None = None,
        clock: StepClock | None = None,
        lockstep: Lockstep | None = None,
        leads: bool = True,
    ) -> None:
        options.check()
        self.options = options
        self._clock = clock or StepClock()
        self._lockstep, self._leads = lockstep, leads
        self.heap = Heap(
            options.heap_bytes,
            roots=_ROOTS * options.threads,
            align_words=max(1, options.align_bytes // WORD_BYTES),
        )
        self.plan: Plan = make_plan(
            options.collector, self.heap, threads=options.threads, **options.plan
        )
        self.mutator = Mutator(self.plan, seed=options.seed)
        if options.accesses or (
            options.trace and not (self.plan.frees_early or self.plan.incremental)
        ):
            self.mutator.accesses = AccessLog(self.plan)
        self._run = make_run(options.program, self.mutator)
        self.program = self._run.program
        for name, value in options.program_options.items():
            self.program.turn(name, value)
        self.kinds = Kinds(self.plan.kinds, self.program.kinds)
        self.server = Server(
            f"{self.plan.title}: {self.program.title}",
            events=self.kinds.names,
            mode=Mode.EMBEDDED,
            pause_acts_on=PauseActsOn.PROGRAM,
            general_info=f"A simulated heap. Collector: {self.plan.title}; program: {self.program.title}; seed {options.seed}.",
            target=self._facts(),
            longest_hold_secs=longest_hold_secs,
            time_nanos=self._clock.nanos,
        )
        self.settings = LiveSettings(self.server, options, self.plan, self.program)
        self.over, self.failed = "", False
        self._stop = threading.Event()
        self._program = threading.Lock()
        """Lock of the heap: the program's thread has it, except while it is at an event."""
        self._runs = False
        self.server.investigate_with(self.investigate)
        self._old_before: Words | None = None
        self._newest_before = 0
        self._seen = 0
        self._level = 0
        self._next_clock = options.clock_step
        self._heaps: list[SimulatedHeapSpace] = []
        self._add_heaps()
        self._others: list[OtherSpace] = other_spaces(self.server, self.plan)
        if isinstance(self.program, CountedFunction):
            self._others += counted_spaces(self.server, self.plan, self.program)
        if options.graph:
            self._others += object_graph_spaces(self.server, self.plan)
        self._meter: CostMeter | None = None
        if options.costs or options.beside not in ("", PYTHON):
            self._meter = CostMeter(self.plan)
            self._others += cost_spaces(self.server, self.plan, self._meter)
        self._beside: Companion | PythonCompanion | None = None
        if options.beside == PYTHON:
            self._beside = PythonCompanion(
                options, roots=len(self.heap.roots), server=self.server, plan=self.plan
            )
        elif options.beside:
            self._beside = Companion(options, roots=len(self.heap.roots), server=self.server)
            if self._meter is not None:
                self._beside.compare(self.server, self.plan, self._meter)
        listener: CollectionListener = self
        if self._meter is not None:
            self._meter.next = self
            listener = self._meter
        log = self.mutator.accesses
        if log is None:
            self.plan.listener = listener
        else:
            log.next = listener

    def _facts(self) -> dict[str, str]:
        """The description sent to clients; it contains a lesson's name, so that a player of the recording finds the lesson."""
        options = self.options
        facts = {
            "runtime": "simulator",
            "collector": options.collector,
            "program": options.program,
            "seed": str(options.seed),
        }
        facts["heap"] = f"{options.heap_bytes} bytes"
        if options.lesson:
            facts["lesson"] = options.lesson
        return facts

    def _add_heaps(self) -> None:
        self._tile_bytes = self.settings.tile_bytes
        for number, part in enumerate(parts_of(self.plan.spaces())):
            self._heaps.append(
                SimulatedHeapSpace(
                    self.server,
                    self.plan,
                    part,
                    tile_bytes=self._tile_bytes,
                    main=number == 0,
                    accesses=self.mutator.accesses if self.options.accesses else None,
                )
            )

    # --------------------------------------------------------------------------- running

    def run(self, stop: threading.Event, *, on_step: Callable[[], None] | None = None) -> str:
        """Run the program until it ends, memory is exhausted, or `stop` is set.

        Args:
            stop: Set by another thread.
            on_step: Called after each step.

        Returns:
            Why it ended.
        """
        self._stop = stop
        for guard in (self.plan.guard, self.program.guard):
            if guard is not None:
                guard.stopped = stop.is_set
        loops.want()
        with self._program, self._traced():
            self._runs = True
            try:
                return self._run_program(on_step)
            finally:
                self._runs = False

    @contextmanager
    def _traced(self) -> Iterator[None]:
        """Write an object trace meanwhile, if that was requested."""
        if not self.options.trace:
            yield
            return
        with ExitStack() as stack:
            try:
                file = stack.enter_context(open(self.options.trace, "xb"))
            except OSError as error:
                raise CommandError(
                    f"{self.options.trace} cannot be written ({error.strerror}): name a file that does not exist"
                ) from None
            facts = {
                "name": f"{self.plan.name}, {self.program.name}",
                "started": str(time.time_ns()),
            }
            recorder = TraceRecorder(self.plan, file, facts, log=self.mutator.accesses)
            self.mutator.recorder = recorder
            try:
                yield
            finally:
                if self.plan.collection is None or not self.plan.moves:
                    recorder.end()

    def _run_program(self, on_step: Callable[[], None] | None) -> str:
        stop = self._stop
        self._event(STARTS)
        steps = 0
        try:
            while not stop.is_set():
                self._take_settings(steps)
                if not self._run.step():
                    self.over = "the program has ended"
                    break
                steps += 1
                if on_step is not None:
                    on_step()
                for kind, cause in self.program.happened():
                    self._event(kind, cause)
                self._tick()
                if self.options.steps and steps >= self.options.steps:
                    self.over = f"the program has ended, after {steps:,} steps"
                    break
        except (OutOfHeap, CommandError) as error:
            self.over = str(error)
            self.failed = isinstance(error, CommandError)
            self.plan.abandon()
        if self._lockstep is not None:
            self._lockstep.end(leader=self._leads)
        if not stop.is_set():
            self._event(ENDS, self.over)
        self._run.close()
        if self._beside is not None:
            self._beside.close()
        return self.over or "stopped"

    def _take_settings(self, step: int) -> None:
        """Apply the settings the user changed, before the program's step of this number."""
        lockstep = self._lockstep
        if lockstep is not None and not self._leads:
            for name, value in lockstep.due(step):
                self.settings.choose(name, value)
        self.settings.take_knobs()
        if self._beside is not None:
            for knob in self.program.knobs():
                self._beside.turn(knob.name, knob.value)
        if lockstep is not None and self._leads:
            for name, value in self.settings.news():
                lockstep.choose(step, name, value)

    def _tick(self) -> None:
        """An event each time this many bytes were allocated."""
        allocated = self.clock_value
        if self._beside is not None:
            self._beside.follow(self.heap.allocated_words)
        lockstep = self._lockstep
        if allocated >= self._next_clock:
            if lockstep is not None and self._leads:
                lockstep.lead(allocated, self._stop.is_set)
            step = self.options.clock_step
            self._next_clock = (allocated // step + 1) * step
            self._event(CLOCK)
        if lockstep is not None and not self._leads:
            lockstep.follow(allocated, self._stop.is_set)

    # ---------------------------------------------------------------------------- events

    def collection_starts(self, collection: Collection) -> None:
        """A collection begins."""
        self._old_before, self._newest_before = self._identities_in_old(), self.heap.identities
        self._event(Kinds.start(collection.kind), collection.cause)

    def phase_ends(self, collection: Collection, phase: str) -> None:
        """A phase is over."""
        done = collection.work.get(phase, 0)
        self._event(Kinds.phase(collection.kind, phase), f"{done:,} done")

    def progress(self, collection: Collection, phase: str, done: int) -> None:
        """A bit of a phase was done, in slow motion or as a step of a collection beside the program."""
        at = f", at {self.plan.position}" if self.plan.position else ""
        self._event(PROGRESS, f"{collection.kind}: {phase}, {done:,} more done{at}")

    def collection_ends(self, collection: Collection) -> None:
        """Everything was done."""
        counts = ", ".join(f"{number:,} {what}" for what, number in collection.counts.items())
        self._event(Kinds.end(collection.kind), counts or collection.cause)

    def _identities_in_old(self) -> Words | None:
        """The numbers of the objects in spaces that receive promoted objects; None: there is no such space, or no client needs them."""
        olds = [space for space in self.plan.spaces() if space.role == "old"]
        if not olds:
            return None
        objects = self.plan.objects()
        inside = np.zeros(len(objects), dtype=np.bool_)
        for space in olds:
            inside |= (objects.cells >= space.start) & (objects.cells < space.end)
        return np.sort(objects.identities[inside])

    def _event(self, name: str, cause: str = "") -> None:
        if self._stop.is_set():
            return
        self._level = self.settings.take_view()
        self._follow_sizes()
        number = self.kinds.number(name)
        with self._standing_still():
            if self.happen(number, cause) and self.settings.pace_millis:
                self._clock.wait(self.settings.pace_millis / 1000, self._stop)

    @contextmanager
    def _standing_still(self) -> Iterator[None]:
        """Let others look at the heap meanwhile."""
        if not self._runs:
            yield
            return
        self._program.release()
        try:
            yield
        finally:
            self._program.acquire()

    def investigate(
        self, question: HeapQuestion, progress: Callable[[str, int, int], None]
    ) -> DetailTable:
        """Answer a question about the objects, as of the next event or, at a pause, the current one; in any thread.

        Raises:
            TargetError: There are no such objects, or a collection is under way.
        """
        progress("waiting for the next event", 0, 0)
        while not self._program.acquire(timeout=_LOOK_SECS):
            progress("waiting for the next event", 0, 0)
        try:
            refuse_if_torn(self.plan)
            graph = SimulatedGraph(self.plan)
        finally:
            self._program.release()
        progress("finding dominators", 0, 0)
        threads = self.options.threads
        return answer(graph, simulated_namer(graph, slots=_ROOTS, threads=threads), question)

    @property
    def clock_value(self) -> int:
        """Bytes that the program has allocated."""
        return self.heap.allocated_words * WORD_BYTES

    def gather(self, request: GatherRequest) -> None:
        """Fill the requested spaces, up to the level."""
        moment = EventView(
            self.plan,
            seen=self._seen,
            old_before=self._old_before,
            newest_before=self._newest_before,
        )
        for heap in self._heaps:
            if request.wants(heap.space):
                heap.gather(request, moment, self._level)
        if self._level >= 2:
            for other in self._others:
                other.gather(request)
        if self._beside is not None:
            self._beside.gather(request, self._level)
        self._seen = self.heap.identities

    def _follow_sizes(self) -> None:
        """Follow a heap, a table or a row of cars that has grown; and tiles of another size, with new spaces."""
        if self.settings.tile_bytes != self._tile_bytes:
            for heap in self._heaps:
                self.server.remove_space(heap.space)
            self._heaps.clear()
            self._add_heaps()
        for heap in self._heaps:
            heap.fit()
        for other in self._others:
            other.fit()
