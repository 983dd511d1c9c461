"""A second collector in the same session: the same program with the same seed on a heap of its own, which keeps step with the first by allocated bytes.

It has its spaces, their names begin with its own, and no events. So a lesson, a recording, a page or a class sees both. Two windows side by side are
`lockstep`'s.

Knows a plan, a program and spaces; does not know the session.
"""

from __future__ import annotations

from gcspy_protocol.errors import LocalProtocolError

from gcspy_drivers.simulator.driver.cost_meter import CostMeter
from gcspy_drivers.simulator.driver.cost_spaces import BothSpace, cost_spaces
from gcspy_drivers.simulator.driver.event_view import EventView
from gcspy_drivers.simulator.driver.heap_space import SimulatedHeapSpace, parts_of
from gcspy_drivers.simulator.driver.options import SimulationOptions
from gcspy_drivers.simulator.driver.other_spaces import GenerationSpace, OtherSpace
from gcspy_drivers.simulator.heap import WORD_BYTES, Heap
from gcspy_drivers.simulator.mutator import Mutator
from gcspy_drivers.simulator.plan import OutOfHeap, Plan
from gcspy_drivers.simulator.plans import make_plan
from gcspy_drivers.simulator.programs import make_run
from gcspy_server.api import GatherRequest, Server

__all__ = ["Companion"]


class Companion:
    """A second collector with its program.

    Args:
        options: Options of the simulation; `beside` names the collector.
        roots: Root slots of the heap.
        server: Whose spaces it gets.

    Attributes:
        plan: The collector.
        over: Why its program ended; empty: it has not.
        meter: Its costs.
    """

    def __init__(self, options: SimulationOptions, *, roots: int, server: Server) -> None:
        if options.beside == options.collector:
            raise LocalProtocolError(
                f"{options.beside} is the first collector as well: choose two that differ"
            )
        heap = Heap(
            options.heap_bytes,
            roots=roots,
            align_words=max(1, options.align_bytes // WORD_BYTES),
        )
        self.plan: Plan = make_plan(
            options.beside, heap, threads=options.threads, **options.beside_options
        )
        self._run = make_run(options.program, Mutator(self.plan, seed=options.seed))
        for name, value in options.program_options.items():
            self._run.program.turn(name, value)
        self.over = ""
        self.meter = CostMeter(self.plan)
        self.plan.listener = self.meter
        self._seen = 0
        prefix = f"{self.plan.name}: "
        self._heaps = [
            SimulatedHeapSpace(
                server,
                self.plan,
                part,
                tile_bytes=options.tile_size,
                main=False,
                prefix=prefix,
            )
            for part in parts_of(self.plan.spaces())
        ]
        self._others: list[OtherSpace] = cost_spaces(server, self.plan, self.meter, prefix)
        if self.plan.generations() is not None:
            self._others.append(GenerationSpace(server, self.plan, prefix=prefix))

    def compare(self, server: Server, plan: Plan, meter: CostMeter) -> None:
        """Add spaces with the costs of the first collector beside those of this one."""
        plans, meters = (plan, self.plan), (meter, self.meter)
        self._others += [
            BothSpace(server, plans, meters, pauses=pauses) for pauses in (False, True)
        ]

    def turn(self, name: str, value: int | str) -> None:
        """Set a knob of its program as the first one's was."""
        self._run.program.turn(name, value)

    def follow(self, allocated_words: int) -> None:
        """Run until as much was allocated as by the first."""
        while not self.over and self.plan.heap.allocated_words < allocated_words:
            try:
                if not self._run.step():
                    self.over = "the program has ended"
            except OutOfHeap as error:
                self.over = str(error)
                self.plan.abandon()
                self._heaps[0].space.info = f"The program has ended: {error}"

    def gather(self, request: GatherRequest, level: int) -> None:
        """Fill its spaces."""
        moment = EventView(self.plan, seen=self._seen, old_before=None, newest_before=0)
        for heap in self._heaps:
            heap.fit()
            if request.wants(heap.space):
                heap.gather(request, moment, level)
        if level >= 2:
            for other in self._others:
                other.gather(request)
        self._seen = self.plan.heap.identities

    def close(self) -> None:
        """Let its program go."""
        self._run.close()
