"""A whole program with counters: its code objects as they are loaded, new plans from observed frequencies, and the counts of all sites."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import CodeType

from gcspy_counting.code_replacement import replace_code
from gcspy_counting.code_unit import CodeUnit, SitePlace
from gcspy_counting.count_reader import CountReader, Reading
from gcspy_counting.flow_graph import NotCountableError, flow_graph_of
from gcspy_counting.instrumented_code import InstrumentedCode, Position
from gcspy_counting.network import Network, network_of
from gcspy_counting.plans.block_plan import block_plan
from gcspy_counting.plans.frequencies import guessed_frequencies
from gcspy_counting.plans.path_plan import path_plan
from gcspy_counting.plans.plan import Plan, PlanKind, block_weights
from gcspy_counting.plans.tree_plan import tree_plan
from gcspy_counting.sites import SiteChoice
from gcspy_counting.solver import NotATreeError

__all__ = ["CountedProgram", "Replanned", "SiteCount"]

Observed = tuple[list[int], dict[Position, int]]
"""Values of a version's counters, and how often control left a block of it in its middle."""


_WORTH = 0.95
"""Largest share of today's increments at which a new plan is worth its instrumentation."""


@dataclass(frozen=True, slots=True)
class SiteCount:
    """How often a site ran.

    Attributes:
        place: The site.
        count: Executions; None where the counters contradict each other.
    """

    place: SitePlace
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
        self._units: list[CodeUnit] = []
        self._unit_of: dict[int, CodeUnit] = {}
        self._tops: list[CodeUnit] = []
        self._reader = CountReader()
        self._planning = threading.Lock()
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

    def _unit(self, code: CodeType) -> CodeUnit:
        known = self._unit_of.get(id(code))
        if known is not None:
            return known
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
        unit = CodeUnit(graph, network, code, children)
        if network is None:
            unit.code = code.replace(co_consts=unit.constants())
        else:
            try:
                self._version(unit, self._first_plan(network))
            except NotATreeError:
                self._version(unit, block_plan(network))
            unit.find_sites()
        self._unit_of[id(code)] = unit
        self._units.append(unit)
        return unit

    def _version(self, unit: CodeUnit, plan: Plan) -> None:
        version = InstrumentedCode(plan, unit.constants())
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
        with self._planning:
            return self._replan()

    def _replan(self) -> Replanned:
        begin = time.thread_time()
        changed: dict[int, CodeType] = {}
        totals = [0, 0, 0]
        found, _, versions = self._reader.snapshot(self._units)
        seen: dict[int, Observed] = {}
        at = 0
        for version, left in zip(versions, self._reader.left_of(found, versions), strict=True):
            seen[id(version)] = found.values[at : at + version.value_count], left
            at += version.value_count
        for unit in tuple(self._tops):
            self._replan_unit(unit, seen, changed, totals)
        replace_code(changed)
        seconds = time.thread_time() - begin
        self.instrumenting_secs += seconds
        return Replanned(totals[0], totals[1], totals[2], seconds)

    def _replan_unit(
        self,
        unit: CodeUnit,
        seen: Mapping[int, Observed],
        changed: dict[int, CodeType],
        totals: list[int],
    ) -> bool:
        """Plan a code object and those nested in it anew; return whether its code changed."""
        nested = [self._replan_unit(child, seen, changed, totals) for _, child in unit.children]
        old = unit.code
        latest = unit.latest
        plan = None
        if latest is not None and id(latest) in seen:
            values, left = seen[id(latest)]
            before = sum(values[: latest.counter_count()])
            if before >= self._least_increments:
                plan = self._better_plan(latest, latest.flows_of(values, left), before, totals)
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
        self,
        latest: InstrumentedCode,
        flows: Mapping[int, int],
        before: int,
        totals: list[int],
    ) -> Plan | None:
        network = latest.plan.network
        if not flows or min(flows.values()) < 0:
            return None
        plan, expected = _best_plan(network, flows)
        if expected > before * _WORTH:
            return None
        totals[0] += 1
        totals[1] += before
        totals[2] += expected
        return plan

    # --------------------------------------------------------------------- reading

    def read(self) -> Reading:
        """Return the counts of all sites at one moment. No other thread runs while counters are read, but while counts are computed."""
        return self._reader.read(self._units)

    def counts(self) -> list[SiteCount]:
        """Return the count of each site, in the order in which code was loaded."""
        found = self.read()
        return [
            SiteCount(place, count)
            for unit, counts in zip(found.units, found.counts, strict=True)
            for place, count in zip(unit.places, counts, strict=True)
        ]

    def increments(self) -> int:
        """Return how often a counter was incremented."""
        return sum(version.increments() for unit in self._units for version in unit.versions)

    def least_increments(self) -> int:
        """Return how many increments the best places of counters would have taken for all that was executed; for code in which no frame is.

        Sites that are in no block need counters of their own.
        """
        least = 0
        for unit in self._units:
            if unit.graph is None or unit.latest is None or unit.network is None:
                continue
            flows: Counter[int] = Counter()
            for version in unit.versions:
                flows.update(version.flows())
                counts = version.counts()
                least += sum(counts[site.row] for site in unit.graph.direct)
            if flows:
                least += _best_plan(unit.network, flows)[1]
        return least

    def counters(self) -> int:
        """Return the number of counters in the latest code."""
        return sum(unit.latest.counter_count() for unit in self._units if unit.latest)

    def code_objects(self) -> int:
        """Return the number of code objects."""
        return len(self._units)

    def code_of(self, original: int) -> CodeType | None:
        """Return what runs instead of a code object, by its `id`; None: it was not instrumented."""
        unit = self._unit_of.get(original)
        return None if unit is None else unit.code

    def originals(self) -> dict[int, CodeType]:
        """Return the original code by the `id` of each instrumented version; both stay as long as this object."""
        return {
            id(version.code): unit.original
            for unit in tuple(self._units)
            for version in unit.versions
            if version.code is not unit.original
        }

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


def _best_plan(network: Network, flows: Mapping[int, int]) -> tuple[Plan, int]:
    """Return the plan off a tree of the most frequent edges, and how many increments it takes for these flows."""
    # Flows that do not follow are those around loops without sites, which need no counter, and may be large: no counter is to stand there.
    beyond = 2 * max(flows.values()) + 1
    frequencies = {
        edge: flows.get(edge, beyond) + 1e-6 * guess
        for edge, guess in guessed_frequencies(network).items()
    }
    frequencies.update(
        (edge, flows[edge]) for edge in network.block_edges.values() if edge in flows
    )
    plan = tree_plan(network, frequencies)
    weights = block_weights(network, frequencies)
    return plan, round(sum(weights.get(edge, 0.0) for edge in plan.counted))


_IS_FUNCTION = 0x0002 | 0x0001
"""`CO_NEWLOCALS` and `CO_OPTIMIZED`: code that is called, unlike that of modules and classes."""
