"""A program that calls a small function again and again, one edge of its flow graph a step, with the counters of several plans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from gcspy_counting.flow_graph import OUTSIDE

from gcspy_drivers.simulator.counted import PLANS, CountedExecution, Visit, sort_out
from gcspy_drivers.simulator.mutator import Mutator
from gcspy_drivers.simulator.plan import Choice, Knob
from gcspy_drivers.simulator.programs.program import Program
from gcspy_drivers.simulator.programs.stack import Ref, Stack

__all__ = ["CountedFunction"]

_ROWS = 6
"""Rows of a call."""
_LIMIT = 50
"""What the function compares a row with."""

EDGE, RAISED, RETURNED, PLANNED = "Edge taken", "Exception raised", "Call ends", "Counters placed"


class CountedFunction(Program):
    """Calls a function whose sites are counted.

    Each call is a real one, of which the edges are shown one by one; what its sites allocate is allocated on the simulated heap.

    Attributes:
        execution: What was executed, and the counters.
    """

    name = "counted"
    title = "A function with counters"
    about = "Calls a function of 13 lines, an edge of its flow graph a step, and counts its allocation sites by the counters of five plans."
    kinds: ClassVar[Sequence[str]] = (EDGE, RAISED, RETURNED, PLANNED)
    settings: ClassVar[Sequence[Knob]] = (
        Knob("counters", "Counters shown", PLANS[0], Choice(PLANS)),
        Knob("replan", "Calls between two plannings (0: none)", 0, (0, 1000), "calls"),
        Knob("small", "Rows below 50, of 100", 20, (0, 100), "%"),
        Knob("texts", "Rows that are texts, of 100", 5, (0, 100), "%"),
    )

    def __init__(self, mutator: Mutator) -> None:
        super().__init__(mutator)
        self.execution = CountedExecution(sort_out)
        self._happened: list[tuple[str, str]] = []
        self._planned_at = 0
        self._is_in_call = False

    @property
    def shown(self) -> int:
        """Place in `PLANS` of the plan whose counters are shown."""
        return self.value("counters")

    def happened(self) -> Sequence[tuple[str, str]]:
        """Return what happened in the latest step."""
        found, self._happened = self._happened, []
        return found

    def work(self, stack: Stack) -> Iterator[None]:
        """Call the function; threads take turns, a call each."""
        while True:
            while self._is_in_call:
                yield
            self._is_in_call = True
            every = self.value("replan")
            if every and self.execution.calls - self._planned_at >= every:
                self._planned_at = self.execution.calls
                moved = self.execution.plan_anew()
                self._happened.append((PLANNED, f"{moved} counters at other places"))
                yield
            yield from self._call(stack)
            self._is_in_call = False

    def _call(self, stack: Stack) -> Iterator[None]:
        rows: list[Any] = [self._row() for _ in range(_ROWS)]
        with stack.scope() as here:
            latest, made = here.empty(), here.empty()
            for visit in self.execution.call(rows):
                self._allocate(visit, latest, made)
                kind = RAISED if visit.raised else RETURNED if visit.block == OUTSIDE else EDGE
                self._happened.append((kind, self._cause(visit)))
                yield

    def _cause(self, visit: Visit) -> str:
        execution = self.execution
        if visit.raised:
            line = execution.lines[visit.rows[-1]]
            return f"in block {execution.block_names[visit.block]}, at line {line}"
        return execution.edge_names[visit.edge]

    def _row(self) -> int | str:
        if self.chance(self.value("texts")):
            return "text"
        if self.chance(self.value("small")):
            return self.up_to(_LIMIT)
        return _LIMIT + self.up_to(_LIMIT)

    def _allocate(self, visit: Visit, latest: Ref, made: Ref) -> None:
        """Make what the sites made that were executed, each with a reference to the one before."""
        for site in self.execution.sites_in(visit):
            made.new(site.what, fields=1, data=1)
            made[0] = latest
            latest.be(made)
