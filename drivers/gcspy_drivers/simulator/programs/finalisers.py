"""A program whose objects have finalisers and weak references."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from gcspy_drivers.simulator.plan import Knob
from gcspy_drivers.simulator.programs.program import Program
from gcspy_drivers.simulator.programs.stack import Stack

__all__ = ["FinalisedFiles"]

_CACHED = 6


class FinalisedFiles(Program):
    """Files that refer to their buffers and these to them, so that no count falls to 0; weak references to files in a cache; and now and then an object that its finaliser makes reachable again.

    Runs on collectors that have finalisers: `cpython`, `cpython-incremental`.
    """

    name = "files"
    title = "Files with finalisers"
    about = "Files and their buffers in cycles, with finalisers; a cache has weak references to the files; some objects are resurrected."
    settings: ClassVar[Sequence[Knob]] = (
        Knob("cycles", "Files in cycles, of 100", 50, (0, 100), "%"),
        Knob("revived", "Turns between objects that are resurrected", 10, (0, 1000), "turns"),
    )

    def work(self, stack: Stack) -> Iterator[None]:
        """Open files and drop them."""
        with stack.scope() as whole:
            saved = whole.empty()
            cache = whole.new("Cache", fields=_CACHED)
            stack.finalise("File")
            stack.finalise("Phoenix", saved)
            turn = 0
            while True:
                turn += 1
                with stack.scope() as here:
                    file, buffer = here.new("File", fields=1, data=1), here.empty()
                    file[0] = buffer.new("Buffer", fields=1, data=2)
                    if self.chance(self.value("cycles")):
                        buffer[0] = file
                    cache[self.up_to(_CACHED)] = here.empty().weak(file, calls_back=True)
                    every = self.value("revived")
                    if every and turn % every == 0:
                        phoenix, ash = here.new("Phoenix", fields=1), here.new("Ash", fields=1)
                        phoenix[0], ash[0] = ash, phoenix
                yield
