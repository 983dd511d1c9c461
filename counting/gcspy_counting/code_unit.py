"""A code object of the program with all versions of it that have run, and the counts of its sites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from gcspy_counting.flow_graph import FlowGraph
from gcspy_counting.instrumented_code import InstrumentedCode, Position
from gcspy_counting.network import Network
from gcspy_counting.sites import Site, bytes_of

__all__ = ["CodeUnit", "SitePlace", "sums_of"]


@dataclass(frozen=True, slots=True)
class SitePlace:
    """A site before it runs.

    Attributes:
        file: Source file.
        line: Line; 0 if the code names none.
        column: Column of the expression, from 1; 0 if the code names none.
        function: Qualified name of the function.
        what: What the site makes.
        always: Whether it allocates each time.
        size: Bytes that each execution allocates, without what the program puts in later; None: they differ, or are not known.
    """

    file: str
    line: int
    column: int
    function: str
    what: str
    always: bool
    size: int | None


@dataclass(slots=True)
class CodeUnit:
    """A code object of the program.

    Attributes:
        graph: Its flow graph; None if it cannot be counted.
        network: The same as a network.
        original: The code object.
        children: Code objects nested in it, by their place among its constants.
        versions: Its instrumented versions, the latest last.
        code: What runs from now on.
        rows: Row of each of its sites, in the order of their places.
        places: Its sites.
    """

    graph: FlowGraph | None
    network: Network | None
    original: CodeType
    children: list[tuple[int, CodeUnit]]
    versions: list[InstrumentedCode] = field(default_factory=list)
    code: CodeType | None = None
    rows: tuple[int, ...] = ()
    places: tuple[SitePlace, ...] = ()

    @property
    def latest(self) -> InstrumentedCode | None:
        """The version that runs from now on; None: it has no counters."""
        return self.versions[-1] if self.versions else None

    def constants(self) -> tuple[Any, ...]:
        """Return its constants, with the latest code of those nested in it."""
        constants = list(self.original.co_consts)
        for index, child in self.children:
            constants[index] = child.code
        return tuple(constants)

    def find_sites(self) -> None:
        """Set its sites, once it has a version."""
        if self.graph is None or self.latest is None:
            return
        counted = self.latest.counted_rows
        sites: list[Site] = [
            *self.graph.direct,
            *(each for block in self.graph.blocks for each in block.sites),
        ]
        sites = [site for site in sites if site.row in counted]
        self.rows = tuple(site.row for site in sites)
        if not sites:
            return
        found = self.graph.instructions
        file, function = self.original.co_filename, self.original.co_qualname
        positions = list(self.original.co_positions())
        places = []
        for site in sites:
            line, _, column, _ = positions[found.places[site.row]]
            size = bytes_of(found.ops[site.row], found.arguments[site.row])
            places.append(
                SitePlace(
                    file, line or 0, _from_one(column), function, site.what, site.always, size
                )
            )
        self.places = tuple(places)


def sums_of(
    unit: CodeUnit,
    values: Sequence[Sequence[int]],
    left: Sequence[Mapping[Position, int]],
) -> list[int | None]:
    """Return the count of each site of a code object; None where its counters contradict each other.

    Args:
        unit: The code object.
        values: For each version the values of its counters.
        left: For each version how often control left a block in its middle, or is there now.
    """
    sums: dict[int, int | None] = dict.fromkeys(unit.rows, 0)
    for version, mine, out in zip(unit.versions, values, left, strict=False):
        for row, count in version.counts_of(mine, out).items():
            before = sums[row]
            sums[row] = None if before is None or count < 0 else before + count
    return list(sums.values())


def _from_one(column: int | None) -> int:
    return 0 if column is None else column + 1
