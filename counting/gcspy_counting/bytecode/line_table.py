"""The table of places in the source of a code object, read as runs and written again for code that has grown.

An entry is a byte with its highest bit set and bytes without: kind, number of units, and what the kind needs. Lines are differences to the entry before.
Documented in CPython's `Objects/locations.md`. Columns are copied as they are and never decoded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["LineRun", "line_table", "read_line_table"]

_ENTRY = re.compile(rb"[\x80-\xff][\x00-\x7f]*", re.DOTALL)
_ONE_LINE_FORMS = 10
_NO_COLUMNS = 13
_LONG = 14
_NO_PLACE = 15
_MOST_UNITS = 8


@dataclass(frozen=True, slots=True)
class LineRun:
    """An entry: a run of units with one place in the source.

    Attributes:
        start: First unit.
        line: Line of the source; that of the entry before, where this one has none.
        raw: The entry's bytes.
        kind: Its kind, 0 to 15.
    """

    start: int
    line: int
    raw: bytes
    kind: int


def _signed(raw: bytes, at: int) -> tuple[int, int]:
    """Read a number with a sign; return it, and where it ends."""
    value = shift = 0
    while True:
        byte = raw[at]
        value |= (byte & 63) << shift
        shift += 6
        at += 1
        if not byte & 64:
            break
    return (-(value >> 1) if value & 1 else value >> 1), at


def _signed_bytes(value: int) -> bytes:
    rest = (-value << 1) | 1 if value < 0 else value << 1
    out = []
    while rest >= 64:
        out.append((rest & 63) | 64)
        rest >>= 6
    out.append(rest)
    return bytes(out)


def read_line_table(table: bytes, first_line: int) -> list[LineRun]:
    """Read the table of a code object (`co_linetable`, `co_firstlineno`)."""
    found = []
    unit, line = 0, first_line
    for match in _ENTRY.finditer(table):
        raw = match.group()
        kind = (raw[0] >> 3) & 15
        if kind in (_NO_COLUMNS, _LONG):
            line += _signed(raw, 1)[0]
        elif _ONE_LINE_FORMS <= kind < _NO_COLUMNS:
            line += kind - _ONE_LINE_FORMS
        found.append(LineRun(unit, line, raw, kind))
        unit += (raw[0] & 7) + 1
    return found


def _with_units(raw: bytes, units: int) -> bytes:
    return bytes([(raw[0] & 0xF8) | (units - 1)]) + raw[1:]


def _same_line(run: LineRun) -> bytes:
    """Return the bytes of an entry that has the same place as this one, and stands behind it."""
    raw = run.raw
    if run.kind in (_NO_COLUMNS, _LONG):
        return raw[:1] + b"\0" + raw[_signed(raw, 1)[1] :]
    if _ONE_LINE_FORMS < run.kind < _NO_COLUMNS:
        return bytes([(raw[0] & 0x87) | _ONE_LINE_FORMS << 3]) + raw[1:]
    return raw


def line_table(
    runs: list[LineRun], lengths: Iterable[tuple[int, int]], tail: Iterable[tuple[int | None, int]]
) -> bytes:
    """Write the table of code that has grown.

    Args:
        runs: The runs of the original code.
        lengths: (index of the run, units) in the order of the code, each run at most once. A run in which no
            instruction begins only prolongs the one before, and is left out.
        tail: (line, units) of what was added behind the code; without a line it is never traced.
    """
    out: list[bytes] = []
    line = 0
    for index, units in lengths:
        run = runs[index]
        out += _entries(run.raw, _same_line(run) if units > _MOST_UNITS else b"", units)
        line = run.line
    for at, units in tail:
        entry = again = bytes([0x80 | _NO_PLACE << 3])
        if at is not None:
            head = bytes([0x80 | _NO_COLUMNS << 3])
            entry, again = head + _signed_bytes(at - line), head + b"\0"
            line = at
        out += _entries(entry, again, units)
    return b"".join(out)


def _entries(first: bytes, again: bytes, units: int) -> list[bytes]:
    """Return as many entries as a number of units needs; those behind the first have its place."""
    out = [_with_units(first, min(units, _MOST_UNITS))]
    out.extend(
        _with_units(again, min(units - done, _MOST_UNITS))
        for done in range(_MOST_UNITS, units, _MOST_UNITS)
    )
    return out
