"""Calls of the sample function one edge at a time: what was executed, what the counters of each plan say, and what follows from them.

What was executed is known from the trace of real calls. A counter of a plan is incremented when its edge is taken; all other flows are
computed from the counters, as `gcspy_counting` does in a program, and never from the trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gcspy_counting.bytecode.opcodes import RAISES
from gcspy_counting.flow_graph import OUTSIDE, Edge, EdgeKind, FlowGraph, flow_graph_of
from gcspy_counting.network import Network, network_of
from gcspy_counting.plans.block_plan import block_plan
from gcspy_counting.plans.frequencies import guessed_frequencies
from gcspy_counting.plans.path_plan import path_plan
from gcspy_counting.plans.plan import Plan, PlanKind
from gcspy_counting.plans.tree_plan import tree_plan
from gcspy_counting.sites import Site, SiteChoice
from gcspy_counting.solver import FlowSolver

from gcspy_drivers.simulator.counted.walk import Visit, walk

__all__ = ["OBSERVED", "PLANS", "CountedExecution", "PlanTally"]

PLANS: Final = (
    "a counter for each site",
    "a counter for each block",
    "paths: DuckTracks",
    "tree, frequencies guessed",
    "tree, frequencies observed",
)
"""The plans, in the order of `CountedExecution.plans`."""
OBSERVED: Final = 4
"""The plan that is made while the program runs."""

Position = tuple[int, int]
"""Where control left a block, or is: (block, row)."""


@dataclass
class _Executed:
    """Counts of what was executed since some moment.

    Attributes:
        taken: How often each edge of the network was taken, those of blocks with sites among them.
        raised: How often an exception left a block, by position.
        executions: How often each site was executed, by row.
    """

    taken: list[int]
    raised: dict[Position, int] = field(default_factory=dict)
    executions: dict[int, int] = field(default_factory=dict)

    def since(self, before: _Executed) -> _Executed:
        """Return what was executed since an earlier moment."""
        return _Executed(
            [now - then for now, then in zip(self.taken, before.taken, strict=True)],
            _difference(self.raised, before.raised),
            _difference(self.executions, before.executions),
        )

    def copy(self) -> _Executed:
        """Return a copy."""
        return _Executed(list(self.taken), dict(self.raised), dict(self.executions))


def _difference(now: Mapping[Any, int], then: Mapping[Any, int]) -> dict[Any, int]:
    return {key: count - then.get(key, 0) for key, count in now.items()}


@dataclass
class _Before:
    """Counts by the counters of earlier plans, when they were replaced, by edge and by row of a site."""

    flows: dict[int, int] = field(default_factory=dict)
    site_counts: dict[int, int] = field(default_factory=dict)
    increments: int = 0

    def missed(self, network: Network) -> dict[int, int]:
        """Return how much less often each site ran than its block began, by row."""
        return {
            site.row: self.flows[edge] - self.site_counts[site.row]
            for block, edge in network.block_edges.items()
            for site in network.graph.blocks[block].sites
        }


class PlanTally:
    """Counters of one plan, and what was counted by those that they replaced.

    Args:
        plan: Where they stand.
        begun: What had been executed when they were placed.
        before: What was counted before; None: nothing.

    Attributes:
        plan: Where they stand.
    """

    def __init__(self, plan: Plan, begun: _Executed, before: _Before | None = None) -> None:
        self.plan = plan
        self._begun = begun
        self._before = before
        network = plan.network
        self._solver = (
            None
            if plan.kind is PlanKind.SITE
            else FlowSolver(network, plan.counted, network.block_edges.values())
        )

    @property
    def counters(self) -> int:
        """Number of counters."""
        if self.plan.kind is PlanKind.SITE:
            return len(sites_of(self.plan.network.graph))
        return len(self.plan.counted)

    def increments(self, executed: _Executed) -> int:
        """Return how often a counter was incremented."""
        mine = executed.since(self._begun)
        before = 0 if self._before is None else self._before.increments
        if self._solver is None:
            return before + sum(mine.executions.values())
        return before + sum(mine.taken[edge] for edge in self.plan.counted)

    def values(self, executed: _Executed) -> dict[int, int]:
        """Return the counters of edges, by edge of the network."""
        mine = executed.since(self._begun)
        return {edge: mine.taken[edge] for edge in self.plan.counted}

    def flows(self, executed: _Executed, inside: Position | None) -> dict[int, int]:
        """Return the flow along each edge that follows from the counters.

        Args:
            executed: What was executed.
            inside: Where control is now; None: in no block.
        """
        if self._solver is None:
            return {}
        network = self.plan.network
        mine = executed.since(self._begun)
        counts = {edge: mine.taken[edge] for edge in (*self.plan.counted, *network.known)}
        leaving: dict[int, int] = {}
        for (block, _), count in _with(mine.raised, inside).items():
            vertex = network.left[block]
            leaving[vertex] = leaving.get(vertex, 0) + count
        flows = self._solver.flows(counts, leaving)
        if self._before is None:
            return flows
        then = self._before.flows
        return {edge: flow + then[edge] for edge, flow in flows.items() if edge in then}

    def site_counts(self, executed: _Executed, inside: Position | None) -> dict[int, int]:
        """Return how often each site was executed, by row; see `flows`."""
        mine = executed.since(self._begun)
        graph = self.plan.network.graph
        if self._solver is None:
            return {site.row: mine.executions.get(site.row, 0) for site in sites_of(graph)}
        flows = self.flows(executed, inside)
        left = _with(mine.raised, inside)
        then = {} if self._before is None else self._before.missed(self.plan.network)
        return {
            site.row: flows[edge]
            - then.get(site.row, 0)
            - sum(count for (at, row), count in left.items() if at == block and row < site.row)
            for block, edge in self.plan.network.block_edges.items()
            for site in graph.blocks[block].sites
        }

    def carriers(self, block: int) -> int:
        """Return from how many counters the counts of a block's sites follow."""
        edge = self.plan.network.block_edges[block]
        return 1 if self._solver is None else self._solver.carriers(edge)

    def replaced(self, plan: Plan, executed: _Executed) -> PlanTally:
        """Return the counters of another plan that replace these, between two calls."""
        return PlanTally(
            plan,
            executed.copy(),
            _Before(
                self.flows(executed, None),
                self.site_counts(executed, None),
                self.increments(executed),
            ),
        )


def _with(raised: Mapping[Position, int], inside: Position | None) -> dict[Position, int]:
    left = dict(raised)
    if inside is not None:
        left[inside] = left.get(inside, 0) + 1
    return left


def sites_of(graph: FlowGraph) -> list[Site]:
    """Return the sites of a graph, in the order of the code."""
    return [site for block in graph.blocks for site in block.sites]


class CountedExecution:
    """Calls of a function, one edge at a time, and the counters of all plans.

    Args:
        function: The function: no generator, and not recursive.

    Attributes:
        graph: Its flow graph, with sites that always allocate.
        network: The same as a network.
        sites: Its sites, in the order of the code.
        lines: Line of each row, counted from that of `def`; 0: it has none.
        block_names: Name of each block, such as ``C (lines 5-7)``.
        edge_names: Name of each edge, such as ``C → D, line 7 → 8``.
        plans: Counters of each of `PLANS`. The last begins as paths, and is replaced by `plan_anew`.
        executed: What was executed.
        inside: Where control is: block and row; None: in no call.
        calls: Calls that have begun.
    """

    def __init__(self, function: Any) -> None:
        self._function = function
        self.graph = flow_graph_of(function.__code__, SiteChoice.DEFINITE)
        self.network: Network = network_of(self.graph)
        self.sites = sites_of(self.graph)
        self.lines = _lines(self.graph)
        letters = block_letters(self.graph)
        self.block_names = [
            f"{letter} ({_span(self._lines_of(block))})" for block, letter in enumerate(letters)
        ]
        self.edge_names = [self._edge_name(edge, letters) for edge in self.graph.edges]
        self.executed = _Executed([0] * len(self.network.tails))
        guess = guessed_frequencies(self.network)
        paths = path_plan(self.network, guess)
        self.plans = [
            PlanTally(plan, self.executed.copy())
            for plan in (
                Plan(PlanKind.SITE, self.network, frozenset()),
                block_plan(self.network),
                paths,
                tree_plan(self.network, guess),
                paths,
            )
        ]
        self.inside: Position | None = None
        self.calls = 0
        self._ended: Position | None = None
        self._window = self.executed.copy()

    def _lines_of(self, block: int) -> list[int]:
        found = self.graph.blocks[block]
        return [line for line in self.lines[found.start : found.end] if line > 0]

    def _edge_name(self, edge: Edge, letters: Sequence[str]) -> str:
        """Return the name of an edge, with the last line of where it begins and the first of where it leads."""
        last = self._lines_of(edge.source)[-1:] if edge.source != OUTSIDE else []
        first = self._lines_of(edge.target)[:1] if edge.target != OUTSIDE else []
        if edge.kind is EdgeKind.ENTRY:
            return f"call → {letters[edge.target]}"
        if edge.kind is EdgeKind.HANDLER:
            return f"exception → {letters[edge.target]}"
        if edge.target == OUTSIDE:
            op = self.graph.instructions.ops[self.graph.blocks[edge.source].last]
            return f"{letters[edge.source]} → {'passed on' if op in RAISES else 'return'}"
        name = f"{letters[edge.source]} → {letters[edge.target]}"
        return f"{name}, line {last[0]} → {first[0]}" if last and first else name

    def sites_in(self, visit: Visit) -> list[Site]:
        """Return the sites that were executed in a visit."""
        if visit.block == OUTSIDE:
            return []
        rows = set(visit.rows)
        return [site for site in self.graph.blocks[visit.block].sites if site.row in rows]

    def call(self, *arguments: Any) -> Iterable[Visit]:
        """Call the function; each visit has happened when it is returned."""
        self.calls += 1
        for visit in walk(self.graph, self._function, *arguments):
            self._take(visit)
            yield visit
        self.inside = None

    def _take(self, visit: Visit) -> None:
        executed = self.executed
        executed.taken[visit.edge] += 1
        kind = self.graph.edges[visit.edge].kind
        if self._ended is not None:
            # The exception arrives at its handler, which notes where it was raised.
            executed.raised[self._ended] = executed.raised.get(self._ended, 0) + 1
            self._ended = None
            assert kind is EdgeKind.HANDLER
        if visit.block == OUTSIDE:
            self.inside = None
            return
        edge = self.network.block_edges.get(visit.block)
        if edge is not None:
            executed.taken[edge] += 1
        for site in self.sites_in(visit):
            executed.executions[site.row] = executed.executions.get(site.row, 0) + 1
        self.inside = visit.block, visit.rows[-1]
        if visit.raised:
            self._ended = self.inside

    def plan_anew(self) -> int:
        """Replace the counters of the last plan by those off a tree of observed frequencies: what follows from its counters since the latest planning.

        Call it between two calls.

        Returns:
            How many counters stand at other places than before.
        """
        old = self.plans[OBSERVED]
        flows = PlanTally(old.plan, self._window).flows(self.executed, None)
        beyond = 2 * max(flows.values(), default=0) + 1
        frequencies = {
            edge: flows.get(edge, beyond) + 1e-6 * guess
            for edge, guess in guessed_frequencies(self.network).items()
        }
        frequencies |= {
            edge: flows[edge] for edge in self.network.block_edges.values() if edge in flows
        }
        plan = tree_plan(self.network, frequencies)
        self._window = self.executed.copy()
        self.plans[OBSERVED] = old.replaced(plan, self.executed)
        return len(plan.counted - old.plan.counted)

    def shares(self) -> list[float | None]:
        """Return for each plan its increments for each 100 executions of sites since the latest planning; None: there was no execution."""
        since = self.executed.since(self._window)
        executions = sum(since.executions.values())
        return [
            100 * PlanTally(tally.plan, self._window).increments(self.executed) / executions
            if executions
            else None
            for tally in self.plans
        ]


def block_letters(graph: FlowGraph) -> list[str]:
    """Return a letter for each block that can be reached, in the order of the code; empty for the others."""
    present = sorted(
        {each for edge in graph.edges for each in (edge.source, edge.target) if each != OUTSIDE}
    )
    names = {block: _letter(place) for place, block in enumerate(present)}
    return [names.get(block, "") for block in range(len(graph.blocks))]


def _letter(place: int) -> str:
    return chr(ord("A") + place) if place < 26 else f"A{place - 26}"


def _span(lines: Sequence[int]) -> str:
    if not lines:
        return "no line"
    first, last = min(lines), max(lines)
    return f"line {first}" if first == last else f"lines {first}-{last}"


def _lines(graph: FlowGraph) -> Sequence[int]:
    positions = list(graph.code.co_positions())
    first = graph.code.co_firstlineno - 1
    return [(positions[place][0] or first) - first for place in graph.instructions.places]
