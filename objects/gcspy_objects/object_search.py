"""Search for objects in a snapshot: by type, allocation site, thread, size and address, from a text.

    type:java.util.HashMap size:24..64

Terms are separated by spaces and all must match; a value with spaces is quoted. ``type``, ``site``
and ``thread`` match a part of a name, ignoring case, and with ``=`` in place of the colon the whole
name; a site is any of its frames. ``size`` and ``address`` take a number or an inclusive range
``A..B``, of which one end may be missing; a single address is any inside the object. A term without
a colon is a part of a type's name. Of a trace with records of accesses, ``accesses`` is the number of
intervals between collections in which an object was accessed, and ``idle`` for how many it has not been:
``idle:2..`` finds what was idle for two or more.

Knows snapshots and names.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from gcspy_protocol.errors import CommandError
from numpy.typing import NDArray

from gcspy_objects.access.history import AccessesUntil
from gcspy_objects.heap.views import HeapSnapshot
from gcspy_objects.trace import Trace

__all__ = ["Range", "ObjectSearch", "rows_of", "sought_of"]

Range = tuple[int, int]
"""First and last number, both among it."""

_MOST: Final = (1 << 63) - 1
_UNITS: Final = {
    "": 1,
    "b": 1,
    "kb": 1000,
    "mb": 1000**2,
    "gb": 1000**3,
    "kib": 1024,
    "mib": 1024**2,
    "gib": 1024**3,
}
_KEYS: Final = ("type", "site", "thread", "size", "address", "accesses", "idle")
_RANGES: Final = ("size", "address", "accesses", "idle")
_LONGEST: Final = 2000


@dataclass(frozen=True, kw_only=True, slots=True)
class ObjectSearch:
    """The search; empty or None fields match everything.

    Attributes:
        names: For ``type``, ``site`` and ``thread`` the texts and whether each is a whole name.
        size: In bytes.
        address: Objects that have a byte there.
        accesses: In how many intervals between collections an object was accessed.
        idle: For how many observed intervals it was not accessed.
    """

    names: tuple[tuple[str, str, bool], ...] = field(default=())
    size: Range | None = None
    address: Range | None = None
    accesses: Range | None = None
    idle: Range | None = None


def sought_of(text: str) -> ObjectSearch:
    """Parse a search.

    Raises:
        CommandError: A word means nothing.
    """
    if len(text) > _LONGEST:
        raise CommandError(f"the search has {len(text):,} characters, more than {_LONGEST:,}")
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise CommandError(f"{text!r}: {error}; close the quotes") from error
    names: list[tuple[str, str, bool]] = []
    ranges: dict[str, Range] = {}
    for word in words:
        match = re.fullmatch(r"([A-Za-z]+)([:=])(.+)", word, re.DOTALL)
        key = match[1].lower() if match else "type"
        if match is None:
            names.append(("type", word.lower(), False))
        elif key in _RANGES:
            ranges[key] = _range(key, match[3])
        elif key in _KEYS:
            names.append((key, match[3].lower(), match[2] == "="))
        else:
            raise CommandError(f"{word!r}: nothing is called {match[1]!r}; say {', '.join(_KEYS)}")
    return ObjectSearch(
        names=tuple(names),
        size=ranges.get("size"),
        address=ranges.get("address"),
        accesses=ranges.get("accesses"),
        idle=ranges.get("idle"),
    )


def _range(key: str, text: str) -> Range:
    first, dots, last = text.partition("..")
    low = _number(key, first) if first else 0
    high = low if not dots else _number(key, last) if last else _MOST
    if low > high or (dots and not (first or last)):
        raise CommandError(f"{key}:{text}: no range; write {key}:A..B with A no more than B")
    return low, high


def _number(key: str, text: str) -> int:
    match = re.fullmatch(r"(0[xX][0-9a-fA-F]+|\d[\d,_]*)\s*([A-Za-z]*)", text)
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None or (key == "address" and match[2]):
        example = "0x7f0012345678" if key == "address" else "64, 100kB or 2MiB"
        raise CommandError(f"{key}:{text}: no number; write it as {example}")
    value = (
        int(
            match[1].replace(",", "").replace("_", ""),
            0 if match[1].lower().startswith("0x") else 10,
        )
        * unit
    )
    if value > _MOST:
        raise CommandError(f"{key}:{text}: too large")
    return value


def rows_of(
    heap: HeapSnapshot,
    trace: Trace,
    sought: ObjectSearch,
    accesses: AccessesUntil | None = None,
) -> NDArray[np.int64]:
    """Return (n,) rows of the program's objects that are sought, by address.

    Args:
        heap: The objects.
        trace: Their names.
        sought: The search.
        accesses: The accesses to all of these objects; None: not known.

    Raises:
        CommandError: Accesses are sought, and not known.
    """
    there = ~heap.filler
    for key, wanted in (("accesses", sought.accesses), ("idle", sought.idle)):
        if wanted is None:
            continue
        if accesses is None:
            raise CommandError(f"{key}: the trace has no records of accesses")
        number = accesses.accesses if key == "accesses" else accesses.idle
        there &= accesses.known & (number >= wanted[0]) & (number <= wanted[1])
    if sought.size is not None:
        there &= (heap.size >= sought.size[0]) & (heap.size <= sought.size[1])
    if sought.address is not None:
        there &= (heap.address + heap.size > sought.address[0]) & (
            heap.address <= sought.address[1]
        )
    for key, text, whole in sought.names:
        column, matches = _named(heap, trace, key)
        present = np.unique(column[there])
        good = [
            row
            for row in present.tolist()
            if any(text == one if whole else text in one for one in matches(row))
        ]
        there &= np.isin(column, good)
    return np.flatnonzero(there)


def _named(
    heap: HeapSnapshot, trace: Trace, key: str
) -> tuple[NDArray[np.int32], Callable[[int], Sequence[str]]]:
    """A column of categories, and the name of each, in lower case."""
    if key == "type":
        return heap.type, lambda row: (
            trace.types.names[row].lower(),
            trace.types.internal[row].lower(),
        )
    if key == "thread":
        return heap.thread, lambda row: (trace.threads.name(row).lower(),)
    sites = trace.sites
    return heap.site, lambda row: (
        sites.labels[row].lower(),
        *(one.method.lower() for one in sites.frames(row)),
    )
