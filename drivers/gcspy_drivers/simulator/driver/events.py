"""The kinds of event of a simulation: beginning and end, a clock of allocated bytes, and those of its collector (the paper's section 5.6).

Each kind of collection has its start, the end of each phase, its end; ``Progress`` is a step of any phase, in slow motion. Knows names only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["CLOCK", "ENDS", "PROGRESS", "STARTS", "Kinds"]

STARTS, CLOCK, PROGRESS, ENDS = "Program starts", "Allocation", "Progress", "Program ends"


class Kinds:
    """The kinds of event of one collector, and of the program.

    Args:
        kinds: Those of its collections, with the names of their phases.
        own: Those of the program.

    Attributes:
        names: By number.
    """

    def __init__(self, kinds: Mapping[str, tuple[str, ...]], own: Sequence[str] = ()) -> None:
        names = [STARTS, CLOCK, *own]
        for kind, phases in kinds.items():
            names.append(self.start(kind))
            names += [self.phase(kind, phase) for phase in phases]
            names.append(self.end(kind))
        names += [PROGRESS, ENDS]
        self.names = tuple(dict.fromkeys(names))
        self._numbers = {name: number for number, name in enumerate(self.names)}

    def number(self, name: str) -> int:
        """Return the number of a kind."""
        return self._numbers[name]

    @staticmethod
    def start(kind: str) -> str:
        """A collection of this kind starts."""
        return f"{kind.capitalize()} collection starts"

    @staticmethod
    def end(kind: str) -> str:
        """A collection of this kind has ended."""
        return f"{kind.capitalize()} collection ends"

    @staticmethod
    def phase(kind: str, phase: str) -> str:
        """A phase of it has ended."""
        return f"{kind.capitalize()}: {phase} ends"
