"""Spaces of a function whose sites are counted: its sites, blocks and edges, and the plans for counters.

Level 2. What was executed is known from a trace of the function; what is computed follows from the counters that are shown, and from nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from gcspy_counting.flow_graph import OUTSIDE

from gcspy_drivers.kit.streams import I4_MAX, add_amount, add_count, add_enumeration, hide
from gcspy_drivers.simulator.counted import PLANS
from gcspy_drivers.simulator.counted.execution import CountedExecution, PlanTally
from gcspy_drivers.simulator.driver.other_spaces import OtherSpace
from gcspy_drivers.simulator.plan import Plan
from gcspy_drivers.simulator.programs.counted_function import CountedFunction
from gcspy_server.api import (
    GatherRequest,
    PaintStyle,
    Presentation,
    Server,
    ServerStream,
    StringNames,
)

__all__ = ["counted_spaces"]

_NOTHING, _COUNTER, _CALL = 0, 1, 2
_MOST = 1 << 12
_COMPUTED_COLOUR, _TRUE_COLOUR = (60, 150, 80), (60, 110, 190)
_COUNTER_COLOUR = (194, 87, 0)


def _fill(stream: ServerStream, values: Iterable[int | None]) -> None:
    """Set the values of a stream; None: unknown."""
    found = list(values)
    stream.data[:] = [0 if each is None else each for each in found]
    hide((stream,), np.array([each is None for each in found], dtype=np.bool_))


def _differences(computed: Sequence[int | None], executed: Sequence[int]) -> list[int | None]:
    return [
        None if one is None else one - other for one, other in zip(computed, executed, strict=True)
    ]


class _CountedSpace(OtherSpace):
    """A space of the function.

    Args:
        server: Whose space it becomes.
        plan: The collector.
        program: The program.
        name: Name of the space.
        names: Names of its tiles.
        tile_title: What a tile is.
        description: What the space is.
    """

    def __init__(
        self,
        server: Server,
        plan: Plan,
        program: CountedFunction,
        name: str,
        names: Sequence[str],
        tile_title: str,
        description: str,
    ) -> None:
        super().__init__(plan)
        self._program = program
        self._tiles = StringNames(list(names))
        self.space = server.add_space(
            name,
            names=self._tiles,
            driver="simulator",
            tile_title=tile_title,
            description=description,
        )

    @property
    def _execution(self) -> CountedExecution:
        return self._program.execution

    @property
    def _shown(self) -> PlanTally:
        return self._execution.plans[self._program.shown]

    def _names(self) -> StringNames:
        return self._tiles

    def _add_count(
        self, name: str, about: str, order: int, colour: tuple[int, int, int] | None = None
    ) -> ServerStream:
        return add_count(self.space, name, about, order=order, most=I4_MAX, colour=colour)

    def _add_difference(self, order: int) -> ServerStream:
        return self.space.add_stream(
            "Difference",
            dtype="i4",
            minimum=-_MOST,
            maximum=_MOST,
            presentation=Presentation.PLUS,
            order=order,
            description="What is computed less what was executed: always 0, wherever control is.",
        )


class _FlowSpace(_CountedSpace):
    """Edges, or blocks: how often control came along, and what follows from the counters."""

    _flow = "Taken"

    def _add_streams(self) -> None:
        self._taken = self._add_count(
            self._flow, "How often, by the trace of the calls.", 1, _TRUE_COLOUR
        )
        self._carries = add_enumeration(
            self.space,
            "Carries",
            ("nothing", "a counter", "the call of a handler"),
            "What the instrumented function executes there.",
            order=2,
            paint_style=PaintStyle.ZERO,
        )
        self._counter = self._add_count(
            "Counter", "Value of the counter that stands there.", 3, _COUNTER_COLOUR
        )
        self._computed = self._add_count(
            "Computed", "What follows from the counters alone.", 4, _COMPUTED_COLOUR
        )
        self._difference = self._add_difference(5)

    def _fill_flows(
        self,
        taken: list[int],
        carries: list[int],
        counters: list[int | None],
        computed: list[int | None],
    ) -> None:
        self._taken.data[:] = taken
        self._carries.data[:] = carries
        _fill(self._counter, counters)
        _fill(self._computed, computed)
        _fill(self._difference, _differences(computed, taken))
        execution = self._execution
        place = "between two calls"
        if execution.inside is not None:
            block, row = execution.inside
            line = execution.lines[row]
            place = f"call {execution.calls}, in block {execution.block_names[block]}"
            place += f", line {line}" if line else ""
        self.space.info = f"{PLANS[self._program.shown]}; {place}"


class _EdgeSpace(_FlowSpace):
    """The edges, a tile each."""

    def __init__(self, server: Server, plan: Plan, program: CountedFunction) -> None:
        super().__init__(
            server,
            plan,
            program,
            "Edges",
            program.execution.edge_names,
            "Edge ",
            "One tile an edge of the flow graph: a way from a block to another.",
        )
        self._add_streams()
        self._from = self._add_block("From", "Block where it begins, by number; -1: outside.", 6)
        self._to = self._add_block("To", "Block where it leads, by number; -1: outside.", 7)
        graph = program.execution.graph
        present = sorted({each for edge in graph.edges for each in (edge.source, edge.target)})
        number = {block: place for place, block in enumerate(present, start=-1)}
        self._begins = [number[edge.source] for edge in graph.edges]
        self._ends = [number[edge.target] for edge in graph.edges]

    def _add_block(self, name: str, about: str, order: int) -> ServerStream:
        return self.space.add_stream(
            name,
            dtype="i4",
            minimum=-1,
            maximum=len(self._execution.graph.blocks),
            zero=-1,
            default=-1,
            presentation=Presentation.PLUS,
            paint_style=PaintStyle.ZERO,
            order=order,
            description=about,
        )

    def gather(self, request: GatherRequest) -> None:
        """Read the counters, and compute the rest."""
        if not request.wants(self.space):
            return
        self.space.reset()
        self._from.data[:] = self._begins
        self._to.data[:] = self._ends
        execution, shown = self._execution, self._shown
        network, values = execution.network, shown.values(execution.executed)
        flows = shown.flows(execution.executed, execution.inside)
        edges = range(len(execution.graph.edges))
        self._fill_flows(
            [execution.executed.taken[edge] for edge in edges],
            [
                _COUNTER
                if edge in values
                else _CALL
                if edge in network.known and flows
                else _NOTHING
                for edge in edges
            ],
            [values.get(edge) for edge in edges],
            [flows.get(edge) for edge in edges],
        )


class _BlockSpace(_FlowSpace):
    """The blocks, a tile each."""

    _flow = "Entered"

    def __init__(self, server: Server, plan: Plan, program: CountedFunction) -> None:
        execution = program.execution
        self._into = {
            block: [n for n, edge in enumerate(execution.graph.edges) if edge.target == block]
            for block in range(len(execution.graph.blocks))
        }
        self._blocks = [block for block, edges in self._into.items() if edges]
        super().__init__(
            server,
            plan,
            program,
            "Blocks",
            [execution.block_names[block] for block in self._blocks],
            "Block ",
            "One tile a block: instructions that are executed one after the other.",
        )
        self._add_streams()
        self._control = add_enumeration(
            self.space,
            "Control",
            ("elsewhere", "here"),
            "Where control is.",
            order=6,
            paint_style=PaintStyle.ZERO,
        )

    def gather(self, request: GatherRequest) -> None:
        """Read the counters, and compute the rest."""
        if not request.wants(self.space):
            return
        self.space.reset()
        execution, shown = self._execution, self._shown
        values = shown.values(execution.executed)
        flows = shown.flows(execution.executed, execution.inside)
        own = execution.network.block_edges
        taken = execution.executed.taken
        counters = [values.get(own.get(block, -1)) for block in self._blocks]
        self._fill_flows(
            [sum(taken[edge] for edge in self._into[block]) for block in self._blocks],
            [_NOTHING if each is None else _COUNTER for each in counters],
            counters,
            [_into(flows, self._into[block], own.get(block, -1)) for block in self._blocks],
        )
        inside = OUTSIDE if execution.inside is None else execution.inside[0]
        self._control.data[:] = [int(block == inside) for block in self._blocks]


def _into(flows: dict[int, int], edges: Sequence[int], own: int) -> int | None:
    """Return the flow into a block; None: it does not follow."""
    if own in flows:
        return flows[own]
    if all(edge in flows for edge in edges):
        return sum(flows[edge] for edge in edges)
    return None


class _SiteSpace(_CountedSpace):
    """The allocation sites, a tile each."""

    def __init__(self, server: Server, plan: Plan, program: CountedFunction) -> None:
        execution = program.execution
        super().__init__(
            server,
            plan,
            program,
            "Sites",
            [f"line {execution.lines[site.row]}: {site.what}" for site in execution.sites],
            "",
            "One tile an allocation site of the function.",
        )
        self._executions = self._add_count(
            "Executions", "How often it allocated, by the trace of the calls.", 1, _TRUE_COLOUR
        )
        self._computed = self._add_count(
            "Computed", "What follows from the counters alone.", 2, _COMPUTED_COLOUR
        )
        self._difference = self._add_difference(3)
        self._carriers = self._add_count(
            "Counters", "From how many counters its count follows.", 4, _COUNTER_COLOUR
        )

    def gather(self, request: GatherRequest) -> None:
        """Compute the counts."""
        if not request.wants(self.space):
            return
        self.space.reset()
        execution, shown = self._execution, self._shown
        rows = [site.row for site in execution.sites]
        counts = shown.site_counts(execution.executed, execution.inside)
        executions = [execution.executed.executions.get(row, 0) for row in rows]
        computed: list[int | None] = [counts.get(row) for row in rows]
        self._executions.data[:] = executions
        _fill(self._computed, computed)
        _fill(self._difference, _differences(computed, executions))
        self._carriers.data[:] = [shown.carriers(execution.graph.block_of[row]) for row in rows]
        self.space.info = f"{sum(executions):,} executions; calls: {execution.calls:,}"


class _PlanSpace(_CountedSpace):
    """The plans, a tile each."""

    def __init__(self, server: Server, plan: Plan, program: CountedFunction) -> None:
        super().__init__(
            server,
            plan,
            program,
            "Plans",
            PLANS,
            "Plan: ",
            "One tile a plan for the places of counters; all count the same calls.",
        )
        self._increments = self._add_count(
            "Increments", "How often a counter was incremented.", 1, _COUNTER_COLOUR
        )
        self._share = add_amount(
            self.space,
            "Per 100 executions",
            "Increments for each 100 executions of sites, since the latest planning.",
            order=2,
            most=200,
            presentation=Presentation.PLUS,
            colour=_COMPUTED_COLOUR,
            dtype="i4",
        )
        self._counters = self._add_count("Counters", "Number of counters.", 3)

    def gather(self, request: GatherRequest) -> None:
        """Sum up."""
        if not request.wants(self.space):
            return
        self.space.reset()
        execution = self._execution
        self._increments.data[:] = [each.increments(execution.executed) for each in execution.plans]
        _fill(
            self._share,
            [None if each is None else round(each) for each in execution.shares()],
        )
        self._counters.data[:] = [each.counters for each in execution.plans]
        executions = sum(execution.executed.executions.values())
        self.space.info = f"{executions:,} executions; calls: {execution.calls:,}"


def counted_spaces(server: Server, plan: Plan, program: CountedFunction) -> list[OtherSpace]:
    """Make the spaces of a function that is counted.

    Args:
        server: Whose spaces they become.
        plan: The collector.
        program: The program.
    """
    made: list[OtherSpace] = [
        kind(server, plan, program) for kind in (_SiteSpace, _BlockSpace, _EdgeSpace, _PlanSpace)
    ]
    return made
