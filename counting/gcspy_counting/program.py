"""A whole program with counters: its code objects as they are loaded, new plans from observed frequencies, and the counts of all sites."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any

from gcspy_counting.flow_graph import FlowGraph, NotCountableError, flow_graph_of
from gcspy_counting.frames import frames_in_code, is_handler_entered
from gcspy_counting.instrumented_code import InstrumentedCode, Position
from gcspy_counting.network import Network, network_of
from gcspy_counting.plans.block_plan import block_plan
from gcspy_counting.plans.frequencies import guessed_frequencies
from gcspy_counting.plans.path_plan import path_plan
from gcspy_counting.plans.plan import Plan, PlanKind, block_weights
from gcspy_counting.plans.tree_plan import tree_plan
from gcspy_counting.sites import Site, SiteChoice
from gcspy_counting.solver import NotATreeError

__all__ = ["CountedProgram", "Replanned", "SiteCount"]

_NO_SWITCH_SECS = 3600.0
"""Interval of thread switches while counters are read: longer than any reading."""
_TRIES = 100
_WORTH = 0.95
"""Largest share of today's increments at which a new plan is worth its instrumentation."""


@dataclass(frozen=True, slots=True)
class SiteCount:
    """How often a site ran.

    Attributes:
        file: Source file.
        line: Line; 0 if the code names none.
        column: Column of the expression, from 1; 0 if the code names none.
        function: Qualified name of the function.
        what: What the site makes.
        always: Whether it allocates each time.
        count: Executions; None where the counters contradict each other.
    """

    file: str
    line: int
    column: int
    function: str
    what: str
    always: bool
    count: int | None


@dataclass(frozen=True, slots=True)
class Replanned:
    """Effect of new plans.

    Attributes:
        code_objects: Number of code objects that got other counters.
        before: Increments of their counters until now.
        expected: Increments for the same executions with the new plans.
        seconds: Processor time that it took.
    """

    code_objects: int
    before: int
    expected: int
    seconds: float


@dataclass(slots=True)
class _Unit:
    """A code object of the program, with all versions of it that have run."""

    graph: FlowGraph | None
    network: Network | None
    original: CodeType
    children: list[tuple[int, _Unit]]
    versions: list[InstrumentedCode] = field(default_factory=list)
    code: CodeType | None = None

    @property
    def latest(self) -> InstrumentedCode | None:
        return self.versions[-1] if self.versions else None


class CountedProgram:
    """Instruments code objects, and reads their counters.

    Args:
        kind: How counters are placed. `TREE` begins with paths, and changes with `replan`.
        choice: Which instructions are sites.
        least_increments: Increments of a code object from which on it is planned anew.

    Attributes:
        not_countable: Number of code objects without counters because their form is not known.
        instrumenting_secs: Processor time that instrumentation took, new plans included.
    """

    def __init__(
        self,
        kind: PlanKind = PlanKind.TREE,
        choice: SiteChoice = SiteChoice.WIDE,
        least_increments: int = 1000,
    ) -> None:
        self._kind = kind
        self._least_increments = least_increments
        self._choice = choice
        self._units: list[_Unit] = []
        self._tops: list[_Unit] = []
        self.not_countable = 0
        self.instrumenting_secs = 0.0

    @property
    def is_planned_anew(self) -> bool:
        """Whether counters are placed anew by observed frequencies."""
        return self._kind is PlanKind.TREE

    # -------------------------------------------------------------- instrumentation

    def instrument(self, code: CodeType) -> CodeType:
        """Return a code object that does the same and counts; those nested in it, too."""
        begin = time.thread_time()
        unit = self._unit(code)
        self._tops.append(unit)
        self.instrumenting_secs += time.thread_time() - begin
        assert unit.code is not None
        return unit.code

    def _unit(self, code: CodeType) -> _Unit:
        children = [
            (index, self._unit(each))
            for index, each in enumerate(code.co_consts)
            if isinstance(each, CodeType)
        ]
        graph = network = None
        try:
            graph = flow_graph_of(code, self._choice)
            network = network_of(graph)
        except NotCountableError:
            self.not_countable += 1
        unit = _Unit(graph, network, code, children)
        self._units.append(unit)
        if network is None:
            unit.code = code.replace(co_consts=_constants(unit))
            return unit
        try:
            self._version(unit, self._first_plan(network))
        except NotATreeError:
            self._version(unit, block_plan(network))
        return unit

    def _version(self, unit: _Unit, plan: Plan) -> None:
        version = InstrumentedCode(plan, _constants(unit))
        unit.versions.append(version)
        unit.code = version.code

    def _first_plan(self, network: Network) -> Plan:
        if self._kind is PlanKind.SITE or not network.block_edges:
            return Plan(PlanKind.SITE, network, frozenset())
        if self._kind is PlanKind.BLOCK or not network.graph.is_conserved:
            return block_plan(network)
        # Before a tree, too: its frequencies are not known yet, and with guessed ones it is no better.
        return path_plan(network, guessed_frequencies(network))

    def replan(self) -> Replanned:
        """Place counters anew where observed frequencies promise fewer increments, in functions that are called from now on."""
        begin = time.thread_time()
        changed: dict[int, CodeType] = {}
        totals = [0, 0, 0]
        with _no_other_thread():
            frames = self._frames()
            for unit in self._tops:
                self._replan_unit(unit, frames, changed, totals)
            if changed:
                for each in gc.get_objects():
                    if type(each) is FunctionType:
                        new = changed.get(id(each.__code__))
                        if new is not None:
                            each.__code__ = new
        seconds = time.thread_time() - begin
        self.instrumenting_secs += seconds
        return Replanned(totals[0], totals[1], totals[2], seconds)

    def _replan_unit(
        self,
        unit: _Unit,
        frames: dict[int, dict[Position, int]],
        changed: dict[int, CodeType],
        totals: list[int],
    ) -> bool:
        """Plan a code object and those nested in it anew; return whether its code changed."""
        nested = [self._replan_unit(child, frames, changed, totals) for _, child in unit.children]
        old = unit.code
        latest = unit.latest
        plan = None
        if latest is not None and latest.increments() >= self._least_increments:
            plan = self._better_plan(latest, frames.get(id(latest.code), {}), totals)
        is_function = bool(unit.original.co_flags & _IS_FUNCTION)
        if plan is None and not (any(nested) and is_function):
            return False
        assert latest is not None
        self._version(unit, plan or latest.plan)
        assert old is not None
        assert unit.code is not None
        changed[id(old)] = unit.code
        return True

    def _better_plan(
        self, latest: InstrumentedCode, frames: dict[Position, int], totals: list[int]
    ) -> Plan | None:
        network = latest.plan.network
        flows = latest.flows(frames)
        if not flows or min(flows.values()) < 0:
            return None
        # Flows that do not follow, around loops without sites, are guessed from the number of entries.
        entries = max(flows.get(0, 0), 1)
        frequencies = {
            edge: flows.get(edge, entries * guess) + 1e-6 * guess
            for edge, guess in guessed_frequencies(network).items()
        }
        plan = tree_plan(network, frequencies)
        before = latest.increments()
        weights = block_weights(network, frequencies)
        expected = round(sum(weights.get(edge, 0.0) for edge in plan.counted))
        if expected > before * _WORTH:
            return None
        totals[0] += 1
        totals[1] += before
        totals[2] += expected
        return plan

    # --------------------------------------------------------------------- reading

    def _frames(self) -> dict[int, dict[Position, int]]:
        return frames_in_code(
            {id(version.code): version for unit in self._units for version in unit.versions}
        )

    def counts(self) -> list[SiteCount]:
        """Return the count of each site, in the order in which code was loaded. No other thread runs meanwhile."""
        with _no_other_thread():
            frames = self._frames()
            found = []
            for unit in self._units:
                if unit.versions:
                    found += _counts_of(unit, frames)
        return found

    def increments(self) -> int:
        """Return how often a counter was incremented."""
        return sum(version.increments() for unit in self._units for version in unit.versions)

    def counters(self) -> int:
        """Return the number of counters in the latest code."""
        return sum(unit.latest.counter_count() for unit in self._units if unit.latest)

    def code_objects(self) -> int:
        """Return the number of code objects."""
        return len(self._units)

    def raises(self) -> int:
        """Return how many exceptions left an instruction in the middle of a block."""
        return sum(version.raises() for unit in self._units for version in unit.versions)

    def graphs(self, function: str) -> list[InstrumentedCode]:
        """Return the latest code of all functions of a qualified name."""
        return [
            unit.versions[-1]
            for unit in self._units
            if unit.versions and unit.original.co_qualname == function
        ]


_IS_FUNCTION = 0x0002 | 0x0001
"""`CO_NEWLOCALS` and `CO_OPTIMIZED`: code that is called, unlike that of modules and classes."""


def _constants(unit: _Unit) -> tuple[Any, ...]:
    """Return the constants of a code object, with the latest code of those nested in it."""
    constants = list(unit.original.co_consts)
    for index, child in unit.children:
        constants[index] = child.code
    return tuple(constants)


@contextmanager
def _no_other_thread() -> Iterator[None]:
    """Let no other thread run Python code, and begin while none is counting an exception."""
    interval = sys.getswitchinterval()
    for _ in range(_TRIES):
        sys.setswitchinterval(_NO_SWITCH_SECS)
        if not is_handler_entered():
            break
        sys.setswitchinterval(interval)
        time.sleep(0.0001)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


def _from_one(column: int | None) -> int:
    return 0 if column is None else column + 1


def _counts_of(unit: _Unit, frames: dict[int, dict[Position, int]]) -> list[SiteCount]:
    graph = unit.graph
    assert graph is not None
    sums: dict[int, int | None] = {}
    for version in unit.versions:
        for row, count in version.counts(frames.get(id(version.code), {})).items():
            before = sums.get(row, 0)
            sums[row] = None if before is None or count < 0 else before + count
    if not sums:
        return []
    positions = list(unit.original.co_positions())
    places = graph.instructions.places
    sites: list[Site] = [*graph.direct, *(each for block in graph.blocks for each in block.sites)]
    return [
        SiteCount(
            unit.original.co_filename,
            positions[places[site.row]][0] or 0,
            _from_one(positions[places[site.row]][2]),
            unit.original.co_qualname,
            site.what,
            site.always,
            sums[site.row],
        )
        for site in sites
        if site.row in sums
    ]
