"""Instructions of a code object, as columns."""

from __future__ import annotations

from dataclasses import dataclass
from types import CodeType

from gcspy_counting.bytecode.opcodes import (
    CACHES,
    EXTENDED_ARG,
    JUMPS,
    NORMALISED,
    is_backward,
    normal_argument,
)

__all__ = ["Instructions", "instructions_of"]


@dataclass(frozen=True, slots=True)
class Instructions:
    """Columns with a row for each instruction; prefixes and inline caches have no rows of their own.

    Attributes:
        ops: Numbers of the instructions.
        arguments: Their whole arguments.
        starts: First unit of two bytes of each, prefixes included.
        places: Unit of each itself, behind its prefixes: what a traceback names.
        targets: Row of a jump's target; -1 where there is none.
        row_at: Row by its first unit.
        row_at_place: Row by its own unit.
        units: Number of units in all.
    """

    ops: list[int]
    arguments: list[int]
    starts: list[int]
    places: list[int]
    targets: list[int]
    row_at: dict[int, int]
    row_at_place: dict[int, int]
    units: int

    @property
    def normal_arguments(self) -> list[int]:
        """Arguments as in code with additions: see `normal_argument`."""
        if NORMALISED.isdisjoint(self.ops):
            return self.arguments
        return [
            normal_argument(op, argument) if op in NORMALISED else argument
            for op, argument in zip(self.ops, self.arguments, strict=True)
        ]

    def __len__(self) -> int:
        return len(self.ops)


def instructions_of(code: CodeType) -> Instructions:
    """Read a code object's instructions.

    Raises:
        ValueError: A jump leads into the middle of an instruction, or out of the code.
    """
    raw = code.co_code
    units = len(raw) // 2
    ops: list[int] = []
    arguments: list[int] = []
    starts: list[int] = []
    places: list[int] = []
    jumps: list[tuple[int, int]] = []
    row_at: dict[int, int] = {}
    row_at_place: dict[int, int] = {}
    unit = start = extension = 0
    while unit < units:
        op = raw[2 * unit]
        argument = raw[2 * unit + 1] | extension
        if op == EXTENDED_ARG:
            extension = argument << 8
            unit += 1
            continue
        row = len(ops)
        row_at[start] = row
        row_at_place[unit] = row
        ops.append(op)
        arguments.append(argument)
        starts.append(start)
        places.append(unit)
        unit += 1 + CACHES[op]
        if op in JUMPS:
            jumps.append((row, unit - argument if is_backward(op) else unit + argument))
        start, extension = unit, 0
    targets = [-1] * len(ops)
    for row, target in jumps:
        if target not in row_at:
            raise ValueError(f"the jump at unit {places[row]} leads to unit {target}")
        targets[row] = row_at[target]
    return Instructions(ops, arguments, starts, places, targets, row_at, row_at_place, units)
