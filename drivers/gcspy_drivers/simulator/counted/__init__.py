"""A small function whose allocations are counted, edge by edge: for the lesson on path counting."""

from gcspy_drivers.simulator.counted.execution import PLANS, CountedExecution, PlanTally
from gcspy_drivers.simulator.counted.sample import sort_out
from gcspy_drivers.simulator.counted.walk import Visit, walk

__all__ = ["PLANS", "CountedExecution", "PlanTally", "Visit", "sort_out", "walk"]
