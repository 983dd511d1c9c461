"""The collectors, by their textbook names; a plan that is written is entered here, and every test of the behaviour suite runs on it."""

from __future__ import annotations

from typing import Any, Final

from gcspy_protocol.errors import LocalProtocolError

from gcspy_drivers.simulator.heap import Heap
from gcspy_drivers.simulator.plan import Plan
from gcspy_drivers.simulator.plans.conservative import Conservative
from gcspy_drivers.simulator.plans.cpython import CPython
from gcspy_drivers.simulator.plans.cpython_incremental import CPythonIncremental
from gcspy_drivers.simulator.plans.generational import Generational, GenerationalCompact
from gcspy_drivers.simulator.plans.immix import Immix
from gcspy_drivers.simulator.plans.incremental import Incremental
from gcspy_drivers.simulator.plans.markcompact import MarkCompact
from gcspy_drivers.simulator.plans.marksweep import MarkSweep
from gcspy_drivers.simulator.plans.nogc import NoGC
from gcspy_drivers.simulator.plans.refcount import RefCount
from gcspy_drivers.simulator.plans.regions import GarbageFirst
from gcspy_drivers.simulator.plans.relocation import Relocating
from gcspy_drivers.simulator.plans.semispace import SemiSpace
from gcspy_drivers.simulator.plans.train import Train
from gcspy_drivers.simulator.user_code.collector import collector_from_file
from gcspy_drivers.simulator.user_code.source import is_user_file

__all__ = ["PLANS", "make_plan"]

_PLANS: Final[tuple[type[Plan], ...]] = (
    NoGC,
    MarkSweep,
    Conservative,
    Incremental,
    RefCount,
    CPython,
    CPythonIncremental,
    Immix,
    SemiSpace,
    MarkCompact,
    Generational,
    GenerationalCompact,
    Train,
    GarbageFirst,
    Relocating,
)
PLANS: Final[dict[str, type[Plan]]] = {plan.name: plan for plan in _PLANS}


def make_plan(name: str, heap: Heap, *, threads: int = 1, **options: Any) -> Plan:
    """Make the plan of this name for a new heap, or the one in a file whose name ends in ``.py``.

    Args:
        options: Options of that plan: see its class.
    """
    if is_user_file(name):
        if options:
            raise LocalProtocolError(
                f"{name} has no options: change the file instead of giving {', '.join(options)}"
            )
        return collector_from_file(name)(heap, threads=threads)
    if name not in PLANS:
        raise LocalProtocolError(
            f"there is no collector {name!r}: use one of {', '.join(PLANS)}, or a Python file"
        )
    return PLANS[name](heap, threads=threads, **options)
