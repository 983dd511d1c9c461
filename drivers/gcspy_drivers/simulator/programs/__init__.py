"""Programs to run on a simulated heap, by name; `docs/simulator.md` says how to write one's own."""

from __future__ import annotations

from typing import Final

from gcspy_protocol.errors import LocalProtocolError

from gcspy_drivers.simulator.mutator import Mutator
from gcspy_drivers.simulator.programs.adversary import CardMarking, Fragmentation, RingProgram
from gcspy_drivers.simulator.programs.churn import BinaryTrees, Queue, Reptile
from gcspy_drivers.simulator.programs.counted_function import CountedFunction
from gcspy_drivers.simulator.programs.finalisers import FinalisedFiles
from gcspy_drivers.simulator.programs.long_lifetimes import GCold, Leak, LRUCache, Paraffins
from gcspy_drivers.simulator.programs.program import Program, ProgramRun, from_file

__all__ = ["PROGRAMS", "Program", "ProgramRun", "from_file", "make_run"]

PROGRAMS: Final[dict[str, type[Program]]] = {
    program.name: program
    for program in (
        Reptile,
        GCold,
        Paraffins,
        BinaryTrees,
        Queue,
        LRUCache,
        Leak,
        Fragmentation,
        CardMarking,
        RingProgram,
        FinalisedFiles,
        CountedFunction,
    )
}


def make_run(name: str, mutator: Mutator) -> ProgramRun:
    """Begin the program of this name, or the one in a file whose name ends in ``.py``, on a mutator's heap."""
    if name.endswith(".py"):
        return ProgramRun(from_file(name)(mutator))
    if name not in PROGRAMS:
        raise LocalProtocolError(
            f"there is no program {name!r}: use one of {', '.join(PROGRAMS)}, or a Python file"
        )
    return ProgramRun(PROGRAMS[name](mutator))
