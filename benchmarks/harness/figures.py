"""The figures with a budget, passed from each benchmark to the program that runs them all.

A benchmark prints its own table, and passes the few numbers with a budget in the design to `tell`.
Run alone, it passes them to nobody.

Knows files; judges nothing.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["VARIABLE", "Figure", "told_in", "tell"]

VARIABLE = "GCSPY_BENCH_FIGURES"
"""Names the file to which figures are appended, a JSON object a line."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """A number that was measured.

    Attributes:
        what: Of what.
        value: The number.
        unit: Its unit; "" for a ratio.
        budget: Limit of the design; "" if there is none.
    """

    what: str
    value: float
    unit: str = ""
    budget: str = ""

    def __str__(self) -> str:
        return f"{self.value:,.4g} {self.unit}".rstrip()


def tell(what: str, value: float, unit: str = "", budget: str = "") -> None:
    """Pass on a figure, if the benchmark was started with a file for it."""
    path = os.environ.get(VARIABLE)
    if path:
        figure = Figure(what=what, value=float(value), unit=unit, budget=budget)
        with Path(path).open("a") as file:
            file.write(json.dumps(asdict(figure)) + "\n")


def told_in(path: Path) -> list[Figure]:
    """The figures in a file, in order; what a benchmark that was killed wrote half is left out."""
    if not path.exists():
        return []
    lines = path.read_text().splitlines(keepends=True)
    return [Figure(**json.loads(line)) for line in lines if line.endswith("\n")]
