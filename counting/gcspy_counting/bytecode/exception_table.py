"""The table of exception handlers of a code object: which instructions are covered by which handler."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

__all__ = ["Cover", "exception_table", "read_exception_table"]


class Cover(NamedTuple):
    """A run of units that one handler covers.

    Attributes:
        start: First unit.
        end: First unit behind it.
        target: Unit of the handler.
        depth: Values that stay on the stack.
        keeps_place: Whether the place of the exception is pushed.
    """

    start: int
    end: int
    target: int
    depth: int
    keeps_place: bool


def _numbers(table: bytes) -> Iterator[int]:
    value = 0
    for byte in table:
        value = (value << 6) | (byte & 63)
        if not byte & 64:
            yield value
            value = 0


def read_exception_table(table: bytes) -> list[Cover]:
    """Read the table of a code object (`co_exceptiontable`).

    Raises:
        ValueError: The table ends in the middle of an entry.
    """
    numbers = list(_numbers(table))
    if len(numbers) % 4:
        raise ValueError("the table of exception handlers ends in the middle of an entry")
    found = []
    for start, length, target, kind in zip(*[iter(numbers)] * 4, strict=True):
        found.append(Cover(start, start + length, target, kind >> 1, bool(kind & 1)))
    return found


def _bytes_of(value: int, first: bool) -> list[int]:
    out = [value & 63]
    value >>= 6
    while value:
        out.append((value & 63) | 64)
        value >>= 6
    out.reverse()
    if first:
        out[0] |= 128
    return out


def exception_table(covers: Iterable[Cover]) -> bytes:
    """Write a table; the covers are in the order of their units and do not overlap."""
    out: list[int] = []
    for cover in covers:
        out += _bytes_of(cover.start, True)
        out += _bytes_of(cover.end - cover.start, False)
        out += _bytes_of(cover.target, False)
        out += _bytes_of(cover.depth << 1 | cover.keeps_place, False)
    return bytes(out)
