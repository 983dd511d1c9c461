"""The table of places in the source of a code object, read as runs and written again for code that has grown.

An entry is a byte with its highest bit set and bytes without: kind, number of units, and what the kind needs. Lines are differences to the entry before.
Documented in CPython's `Objects/locations.md`. Columns are copied as they are and never decoded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from itertools import accumulate

__all__ = ["LineRuns", "line_table"]

_ENTRY = re.compile(rb"[\x80-\xff][\x00-\x7f]*", re.DOTALL)
_ONE_LINE_FORMS = 10
_NO_COLUMNS = 13
_LONG = 14
_NO_PLACE = 15
_MOST_UNITS = 8


class LineRuns:
    """The entries of a table: runs of units, each with one place in the source.

    Args:
        table: The table of a code object (`co_linetable`).
        first_line: Its first line (`co_firstlineno`).

    Attributes:
        entries: The bytes of each entry.
        starts: First unit of each; a last one where the code ends.
    """

    def __init__(self, table: bytes, first_line: int) -> None:
        self.entries: list[bytes] = _ENTRY.findall(table)
        self.starts = list(accumulate([(raw[0] & 7) + 1 for raw in self.entries], initial=0))
        self._first_line = first_line

    @cached_property
    def lines(self) -> list[int]:
        """Line of each entry; that of the entry before, where it has none."""
        line = self._first_line
        found = []
        for raw in self.entries:
            kind = _kind(raw)
            if kind in (_NO_COLUMNS, _LONG):
                line += _signed(raw, 1)[0]
            elif _ONE_LINE_FORMS <= kind < _NO_COLUMNS:
                line += kind - _ONE_LINE_FORMS
            found.append(line)
        return found


def _kind(raw: bytes) -> int:
    return (raw[0] >> 3) & 15


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


def _with_units(raw: bytes, units: int) -> bytes:
    return bytes([(raw[0] & 0xF8) | (units - 1)]) + raw[1:]


def _same_line(raw: bytes) -> bytes:
    """Return the bytes of an entry that has the same place as this one, and stands behind it."""
    kind = _kind(raw)
    if kind in (_NO_COLUMNS, _LONG):
        return raw[:1] + b"\0" + raw[_signed(raw, 1)[1] :]
    if _ONE_LINE_FORMS < kind < _NO_COLUMNS:
        return bytes([(raw[0] & 0x87) | _ONE_LINE_FORMS << 3]) + raw[1:]
    return raw


def line_table(
    runs: LineRuns, lengths: Iterable[tuple[int, int]], tail: Iterable[tuple[int, int]], hidden: int
) -> bytes:
    """Write the table of code that has grown.

    Args:
        runs: The runs of the original code.
        lengths: (index of the run, units) in the order of the code, each run at most once. A run in which no
            instruction begins only prolongs the one before, and is left out.
        tail: (index of the run whose line it has, units) of what was added behind the code.
        hidden: Units behind that, which have no line and are never traced.
    """
    out: list[bytes] = []
    entries = runs.entries
    index = -1
    for index, units in lengths:
        raw = entries[index]
        if units == (raw[0] & 7) + 1:
            out.append(raw)
        elif units <= _MOST_UNITS:
            out.append(_with_units(raw, units))
        else:
            out += _entries(raw, _same_line(raw), units)
    line = -1
    for at, units in tail:
        if line < 0:
            line = runs.lines[index]
        head = bytes([0x80 | _NO_COLUMNS << 3])
        out += _entries(head + _signed_bytes(runs.lines[at] - line), head + b"\0", units)
        line = runs.lines[at]
    if hidden:
        nowhere = bytes([0x80 | _NO_PLACE << 3])
        out += _entries(nowhere, nowhere, hidden)
    return b"".join(out)


def _entries(first: bytes, again: bytes, units: int) -> list[bytes]:
    """Return as many entries as a number of units needs; those behind the first have its place."""
    out = [_with_units(first, min(units, _MOST_UNITS))]
    out.extend(
        _with_units(again, min(units - done, _MOST_UNITS))
        for done in range(_MOST_UNITS, units, _MOST_UNITS)
    )
    return out
