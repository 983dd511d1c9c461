"""`lines_of_code`: the lines of a code object, from its table of lines.

Knows the three formats; does not know objects. Source: CPython 3.9 Objects/lnotab_notes.txt, 3.10 PEP 626
(Objects/lnotab_notes.txt), 3.11 to 3.14 Objects/locations.md (since 3.14 InternalDocs/code_objects.md).
"""

from __future__ import annotations

from typing import Final

import numpy as np

__all__ = ["lines_of_code"]

_NO_LINE: Final = -128
_LONG, _NO_COLUMNS, _ONE_LINE, _NO_LOCATION = 14, 13, 10, 15


def lines_of_code(version: tuple[int, int], first_line: int, table: bytes) -> set[int]:
    """Return the lines that a function's instructions have, without those of functions inside it.

    Args:
        version: Version of CPython.
        first_line: The function's first line.
        table: Its table of lines.
    """
    if version >= (3, 11):
        return _lines_of_locations(first_line, table)
    pairs = np.frombuffer(table[: len(table) // 2 * 2], dtype="u1").reshape(-1, 2)
    bytecodes, delta = pairs[:, 0], pairs[:, 1].view("i1").astype(np.int64)
    if version == (3, 10):
        lines = first_line + np.cumsum(np.where(delta == _NO_LINE, 0, delta))
        return set(lines[(bytecodes > 0) & (delta != _NO_LINE)].tolist())
    lines = np.append(first_line, first_line + np.cumsum(delta))
    # A line has instructions if the next pair is behind it; the last one has the rest.
    return set(lines[np.append(bytecodes > 0, True)].tolist())


def _lines_of_locations(first_line: int, table: bytes) -> set[int]:
    found: set[int] = set()
    line, at = first_line, 0
    while at < len(table):
        form = table[at] >> 3 & 15
        begin = at + 1
        at = begin
        while at < len(table) and not table[at] & 128:  # the first byte of an entry has this bit
            at += 1
        if form == _NO_LOCATION:
            continue
        if form in (_LONG, _NO_COLUMNS):
            line += _signed(table[begin:at])
        elif form >= _ONE_LINE:
            line += form - _ONE_LINE
        if (
            begin > 1
        ):  # the first entry is that of the function's beginning, in the line of its `def`
            found.add(line)
    return found


def _signed(data: bytes) -> int:
    """Return the first number of some: six bits a byte, the lowest first, and the sign in the lowest bit."""
    number = 0
    for place, byte in enumerate(data[:6]):
        number |= (byte & 63) << 6 * place
        if not byte & 64:
            break
    return -(number >> 1) if number & 1 else number >> 1
