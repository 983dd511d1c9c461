"""The start options of a simulation: the collector, the program, the heap size and how the heap is observed.

Knows no server; the command line and lessons are turned to this.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gcspy_protocol.errors import LocalProtocolError

__all__ = ["LEVELS", "MOST_HEAP_BYTES", "SimulationOptions", "parse_size"]

LEVELS: Final = (
    "What takes constant time",
    "As 1, and small structures: free lists, cards, remembered sets",
    "As 2, and objects",
    "As 3, and references: roots, and what is live",
)
"""Data gathered at each level (the paper's table 2)."""

MOST_HEAP_BYTES: Final = 120 << 20
_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def parse_size(text: str) -> int:
    """``256KiB``, ``1 MiB``, ``64k`` or ``4096`` as bytes; the letters count 1024 each.

    Raises:
        LocalProtocolError: There is no such simulation.
    """
    match = re.fullmatch(r"\s*(\d{1,12})\s*([kmg]?)(?:i?b)?\s*", text.lower())
    if match is None:
        raise LocalProtocolError(f"{text!r} is not a size: write it as 65536, 256KiB or 1MiB")
    return int(match[1]) * _UNITS[match[2]]


@dataclass(frozen=True, kw_only=True)
class SimulationOptions:
    """A simulation.

    Attributes:
        collector: Name of a plan.
        program: Name of a program, or a Python file with one.
        seed: Of the program's dice.
        heap_bytes: All the memory there is.
        tile_bytes: Of a tile of the heap; 0: such that there are about a thousand.
        threads: How many allocate.
        align_bytes: Objects begin at multiples of it.
        clock_bytes: An event each time this many bytes were allocated; 0: a thirty-second of the
            heap.
        pace_millis: Between two events, so that people can follow.
        level: How much is gathered.
        slow: Units of a collection between two events; 0: none in between.
        steps: The program ends after this many steps; 0: the program decides.
        plan: More options of the collector, by name; program_options: initial values of the program's knobs.
        lesson: Name of the lesson that this is; empty: none.
        accesses: Whether the program's accesses to objects are shown.
        trace: File for an object trace; empty: none.
        costs: Whether the costs of the collector are shown: pauses, throughput, utilisation.
        beside: Another collector in the same session, with the same program; empty: there is none. `beside_options`: options of it.
        graph: Whether there are spaces of all objects and references, for heaps small enough for that.
    """

    collector: str = "marksweep"
    program: str = "reptile"
    seed: int = 1
    heap_bytes: int = 1 << 20
    tile_bytes: int = 0
    threads: int = 1
    align_bytes: int = 8
    clock_bytes: int = 0
    pace_millis: int = 100
    level: int = 4
    slow: int = 0
    steps: int = 0
    plan: Mapping[str, Any] = field(default_factory=dict)
    program_options: Mapping[str, Any] = field(default_factory=dict)
    lesson: str = ""
    accesses: bool = False
    trace: str = ""
    graph: bool = False
    costs: bool = False
    beside: str = ""
    beside_options: Mapping[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        """Refuse what no simulation can be.

        Raises:
            LocalProtocolError: A number is out of its range.
        """
        if not 4096 <= self.heap_bytes <= MOST_HEAP_BYTES or self.heap_bytes % self.align_bytes:
            raise LocalProtocolError(
                f"a heap of {self.heap_bytes} bytes: give 4 KiB to 120 MiB, a multiple of {self.align_bytes}"
            )
        if self.tile_bytes and not (
            self.tile_bytes >= 8 and self.heap_bytes // self.tile_bytes <= 1 << 20
        ):
            raise LocalProtocolError(
                f"tiles of {self.tile_bytes} bytes: give at least 8, for at most 1,048,576 tiles"
            )
        if not 1 <= self.level <= len(LEVELS):
            raise LocalProtocolError(f"level {self.level}: give 1 to {len(LEVELS)}")

    @property
    def tile_size(self) -> int:
        """Bytes of a tile, chosen where none was given: a power of two."""
        if self.tile_bytes:
            return self.tile_bytes
        return max(64, 1 << max(0, (self.heap_bytes // 1024 - 1)).bit_length())

    @property
    def clock_step(self) -> int:
        """Bytes allocated between two events of the clock."""
        return self.clock_bytes or max(256, self.heap_bytes // 32)
