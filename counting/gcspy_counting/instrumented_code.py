"""One code object with counters: made by a plan, read as counts of its sites.

A counter is an iterator over `None` without end: the code takes one item of it, which no other thread can interrupt, and how many are left is known at any time.
"""

from __future__ import annotations

import operator
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from types import CodeType
from typing import Any

from gcspy_counting.bytecode.assembler import Additions, Assembled, assemble
from gcspy_counting.bytecode.opcodes import OP
from gcspy_counting.flow_graph import OUTSIDE, Block, Edge, EdgeKind, FlowGraph
from gcspy_counting.plans.plan import Plan, PlanKind
from gcspy_counting.sites import Site
from gcspy_counting.solver import FlowSolver

__all__ = ["HOOK_CODE", "LARGEST", "InstrumentedCode", "Position", "counter_value"]

LARGEST = sys.maxsize
"""What a counter has left before it is incremented."""
_AT_TARGET = -1
"""Row of a position in a block before all of its instructions."""

Position = tuple[int, int]
"""Where control left a block, or is: (block, row)."""


def _counter() -> Any:
    return repeat(None, LARGEST)


def counter_value(counter: Any) -> int:
    """Return how often a counter was incremented."""
    return LARGEST - operator.length_hint(counter)


class _HandlerHook:
    """A call at the entry of a handler: counts that, and the instruction that raised, if this handler sees the exception first.

    Attributes:
        entered: Counter of the exceptions after which the handler goes on.
        call: The function.
    """

    def __init__(self, owner: InstrumentedCode, graph: FlowGraph, handler: int) -> None:
        self.entered = _counter()
        kinds = graph.goes_on_after(handler) if handler >= 0 else BaseException
        depends = any(graph.goes_on_after(each) is not BaseException for each in graph.handlers)
        self.call = _hook_function(owner, handler, kinds, self.entered, {}, depends)


def _hook_function(
    owner: InstrumentedCode,
    handler: int,
    kinds: type[BaseException],
    entered: Any,
    seen: dict[int, Any],
    depends: bool,
) -> Callable[[], None]:
    """Return the function that a handler calls.

    Args:
        owner: The code.
        handler: First row of the handler; -1 for that of exceptions that no handler covers.
        kinds: Exceptions after which it goes on.
        entered: Counter of these.
        seen: Counter by byte offset of the instruction that raised, as far as it was looked up; None: another handler counts it.
        depends: Whether it depends on the exception which handler counts an instruction.
    """

    def hook() -> None:
        kind, _, trace = sys.exc_info()
        if kind is None or not issubclass(kind, kinds):
            return
        next(entered)
        if trace is None or trace.tb_frame is not sys._getframe(1):
            return
        place = trace.tb_lasti
        if depends or place not in seen:
            position = owner.position_of_raise(place, kind, handler)
            counter = None if position is None else owner.raised.setdefault(position, _counter())
            seen[place] = counter
        else:
            counter = seen[place]
        if counter is not None:
            next(counter)

    return hook


HOOK_CODE = next(each for each in _hook_function.__code__.co_consts if isinstance(each, CodeType))
"""Code of the call at a handler: while a thread is in it, its counts are not complete."""


class InstrumentedCode:
    """A code object with counters, and what they mean.

    Args:
        plan: Where counters stand.
        constants: Constants of the code object; nested code objects may have counters, too.

    Attributes:
        plan: The plan.
        code: The new code object; the original if it has no sites.
        raised: How often an exception left a block, by position.
    """

    def __init__(self, plan: Plan, constants: tuple[Any, ...]) -> None:
        self.plan = plan
        self.raised: dict[Position, Any] = {}
        graph = plan.network.graph
        self._graph = graph
        self._counters: dict[int, Any] = {}
        self._site_counters: dict[int, Any] = {}
        self._hooks: dict[int, _HandlerHook] = {}
        self._solver: FlowSolver | None = None
        additions = self._additions(plan, graph)
        self._assembled: Assembled | None = None
        self.code: CodeType
        if additions is None:
            changed = constants is not graph.code.co_consts
            self.code = graph.code.replace(co_consts=constants) if changed else graph.code
            return
        self._assembled = assemble(
            graph.code, graph.instructions, graph.covers, additions, constants
        )
        self.code = self._assembled.code

    def _additions(self, plan: Plan, graph: FlowGraph) -> Additions | None:
        additions = Additions(body=graph.body)
        sites: Iterable[Site] = graph.direct
        if plan.kind is PlanKind.SITE:
            sites = [
                *graph.direct,
                *(s for block in plan.network.block_edges for s in graph.blocks[block].sites),
            ]
        for site in sites:
            counter = self._site_counters[site.row] = _counter()
            additions.inside.setdefault(self._before_call(site.row), []).append(counter)
        if plan.kind is PlanKind.SITE:
            return additions if self._site_counters else None
        # Where control leaves by exceptions only, all may follow from these, without any counter.
        if plan.network.block_edges:
            block_of = {edge: block for block, edge in plan.network.block_edges.items()}
            ways_in = Counter(edge.target for edge in graph.edges)
            for edge in plan.counted:
                counter = self._counters[edge] = _counter()
                if edge in block_of:
                    _place_in(additions, graph.blocks[block_of[edge]], counter)
                else:
                    _place(additions, graph, graph.edges[edge], ways_in, counter)
            for row in graph.handlers:
                self._hooks[row] = _HandlerHook(self, graph, row)
                additions.handlers[row] = self._hooks[row].call
            self._hooks[-1] = _HandlerHook(self, graph, -1)
            additions.uncovered = self._hooks[-1].call
            self._solver = FlowSolver(plan.network, plan.counted, plan.network.block_edges.values())
        return additions if self._hooks or self._site_counters else None

    def _before_call(self, row: int) -> int:
        """Return the row before which a counter of a site stands: names of arguments belong to the call."""
        ops = self._graph.instructions.ops
        return row - 1 if row and ops[row - 1] == OP.get("KW_NAMES", -1) else row

    # ------------------------------------------------------------------ positions

    def position_of_raise(
        self, place: int, kind: type[BaseException], handler: int
    ) -> Position | None:
        """Return the position that an exception left, if a handler is the first to see it; None otherwise.

        Args:
            place: Byte offset of the instruction in the new code.
            kind: Type of the exception.
            handler: First row of the handler; -1 for that of exceptions that no handler covers.
        """
        assert self._assembled is not None
        row, jumped = self._assembled.row_at(place)
        if row < 0 or self._graph.counted_by(row, kind) != handler:
            return None
        return self._position(row, jumped)

    def _position(self, row: int, jumped: bool) -> Position | None:
        if jumped:
            return self._graph.block_of[self._graph.instructions.targets[row]], _AT_TARGET
        block = self._graph.raised_at(row)
        if block == OUTSIDE:
            return None
        return block, row if self._graph.block_of[row] == block else _AT_TARGET

    def position_of_frame(self, place: int) -> Position | None:
        """Return where a frame that runs this code is; None if that is in no block.

        Args:
            place: Byte offset of the instruction that runs (`f_lasti`).
        """
        if self._assembled is None or self._solver is None:
            return None
        row, jumped = self._assembled.row_at(place)
        return None if row < 0 else self._position(row, jumped)

    # --------------------------------------------------------------------- counts

    def all_counters(self) -> list[Any]:
        """Return all counters, in an order that stays: those of sites, of edges, and of handlers that were entered."""
        entered = (hook.entered for hook in self._hooks.values())
        return [*self._site_counters.values(), *self._counters.values(), *entered]

    def increments(self) -> int:
        """Return how often a counter was incremented."""
        counters = [*self._counters.values(), *self._site_counters.values()]
        return sum(counter_value(each) for each in counters)

    @property
    def value_count(self) -> int:
        """Number of `all_counters`."""
        return self.counter_count() + len(self._hooks)

    def counter_count(self) -> int:
        """Return the number of counters."""
        return len(self._counters) + len(self._site_counters)

    def raises(self) -> int:
        """Return how many exceptions left an instruction in the middle of a block."""
        return sum(counter_value(each) for each in tuple(self.raised.values()))

    def flows_of(self, values: Sequence[int], left: Mapping[Position, int]) -> dict[int, int]:
        """Return the flow along each edge that follows from the counters.

        Args:
            values: Those of `all_counters`.
            left: How often control left a block in its middle, or is there now, by position.
        """
        if self._solver is None:
            return {}
        network = self.plan.network
        first = len(self._site_counters)
        counts = dict(zip(self._counters, values[first:], strict=False))
        entered = dict(zip(self._hooks, values[first + len(counts) :], strict=True))
        for edge in network.known:
            row = self._graph.blocks[self._graph.edges[edge].target].start
            counts[edge] = entered[row]
        leaving: dict[int, int] = {}
        for (block, _), count in left.items():
            vertex = network.left[block]
            leaving[vertex] = leaving.get(vertex, 0) + count
        return self._solver.flows(counts, leaving)

    @property
    def counted_rows(self) -> set[int]:
        """Rows of the sites that have a count."""
        found = set(self._site_counters)
        if self._solver is not None:
            for block in self.plan.network.block_edges:
                found.update(site.row for site in self._graph.blocks[block].sites)
        return found

    def counts_of(self, values: Sequence[int], left: Mapping[Position, int]) -> dict[int, int]:
        """Return how often each site ran, by its row; the arguments are those of `flows_of`."""
        found = dict(zip(self._site_counters, values, strict=False))
        if self._solver is None:
            return found
        flows = self.flows_of(values, left)
        by_block: dict[int, list[tuple[int, int]]] = {}
        for (block, row), count in left.items():
            by_block.setdefault(block, []).append((row, count))
        for block, edge in self.plan.network.block_edges.items():
            entered = flows[edge]
            for site in self._graph.blocks[block].sites:
                missed = sum(count for row, count in by_block.get(block, ()) if row < site.row)
                found[site.row] = entered - missed
        return found

    def carriers(self) -> dict[int, int]:
        """Return from how many counters the count of each site follows, by its row."""
        found = dict.fromkeys(self._site_counters, 1)
        if self._solver is not None:
            for block, edge in self.plan.network.block_edges.items():
                number = self._solver.carriers(edge)
                found.update((site.row, number) for site in self._graph.blocks[block].sites)
        return found

    def counts(self) -> dict[int, int]:
        """Return how often each site ran, by its row; for code in which no frame is."""
        return self.counts_of(*self._now())

    def flows(self) -> dict[int, int]:
        """Return the flow along each edge that follows from the counters; for code in which no frame is."""
        return self.flows_of(*self._now())

    def _now(self) -> tuple[list[int], dict[Position, int]]:
        left = {position: counter_value(each) for position, each in tuple(self.raised.items())}
        return [counter_value(each) for each in self.all_counters()], left


def _place(
    additions: Additions, graph: FlowGraph, edge: Edge, ways_in: Mapping[int, int], counter: Any
) -> None:
    """Put the counter of an edge where exactly the control along it passes.

    Args:
        additions: What is added.
        graph: The flow graph.
        edge: The edge.
        ways_in: Number of edges into each block.
        counter: The counter.
    """
    if edge.kind in (EdgeKind.EXIT, EdgeKind.GOTO):
        additions.inside.setdefault(graph.blocks[edge.source].last, []).append(counter)
    elif ways_in[edge.target] == 1 and edge.kind is not EdgeKind.ENTRY:
        _place_in(additions, graph.blocks[edge.target], counter)
    elif edge.kind is EdgeKind.JUMP:
        additions.jumps.setdefault(graph.blocks[edge.source].last, []).append(counter)
    else:
        additions.before.setdefault(graph.blocks[edge.target].start, []).append(counter)


def _place_in(additions: Additions, block: Block, counter: Any) -> None:
    """Put a counter at the beginning of a block; behind it, if it is nothing but the end of a loop."""
    place = additions.inside if block.begin < block.end else additions.before
    place.setdefault(block.begin, []).append(counter)
