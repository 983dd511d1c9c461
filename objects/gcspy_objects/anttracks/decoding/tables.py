"""Tables for decoding: the symbols as arrays, sizes of events, and the output arrays."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gcspy_objects.anttracks.symbols import Symbols
from gcspy_objects.records import COLUMNS, RecordFlag

__all__ = [
    "SPARE_BITS",
    "FIXED_WORDS",
    "HAS_ADDRESS",
    "HAS_SITE",
    "HAS_TYPE",
    "VALUE_LIMIT",
    "Columns",
    "SymbolTables",
    "columns_for",
    "tables_of",
]

VALUE_LIMIT: Final = 1 << 62
"""Addresses and sizes stay below: two of them can be added."""

_POINTER_EVENTS: Final = {39: 5, 40: 3, 41: 2, 42: 3, 43: 3, 44: 3, 45: 3, 46: 3}
_WORDS: Final = {
    0: 1, 1: 3, 2: 6, 3: 6, 4: 2, 5: 1, 6: 6, 7: 2, 8: 2, 9: 6, 10: 4, 11: 4, 12: 3, 13: 5, 14: 5,
    15: 4, 16: 3, 17: 4, 18: 3, 19: 1, 20: 3, 21: 4, 22: 3, 23: 1, 25: 3, 26: 4, 27: 3, 28: 1, 29: 2,
    30: 5, 31: 3, 32: 2, 33: 1, 34: 5, 35: 3, 36: 6, 37: 4, **_POINTER_EVENTS,
}  # fmt: skip

FIXED_WORDS: Final = np.array([_WORDS.get(one, 0) for one in range(64)], np.int64)
"""(64,) minimum number of words of each event; 0 for unused ids."""
_HIGH, _ALL = 3 << 24, (1 << 26) - 1
SPARE_BITS: Final = np.zeros(64, np.int64)
"""(64,) bits of an event's first word that are always 0, for events that occurred in real traces, most of them thousands of times."""
SPARE_BITS[[0, 6, 12, 13, 14, 30]] = _ALL
SPARE_BITS[[4, *range(15, 24), *range(25, 30), 34, 39, *range(43, 47)]] = _HIGH
SPARE_BITS[[2, 3]] = _HIGH | 0xFE
SPARE_BITS[7] = 0x3FF
SPARE_BITS[11] = _HIGH | 0xFF
SPARE_BITS[33] = 3
_SITES: Final = [*range(15, 24), *range(25, 30), 36, 37]
HAS_SITE: Final = np.isin(np.arange(64), _SITES)
"""(64,) events whose first word names a site."""
HAS_ADDRESS: Final = np.isin(np.arange(64), [15, 16, 17, 18, 20, 21, 22, 25, 26, 27])
"""(64,) allocations with an address."""
HAS_TYPE: Final = np.isin(np.arange(64), [15, 17, 21, 26, 29, 36, 37])
"""(64,) events that name a type."""


class SymbolTables(NamedTuple):
    """The symbols as arrays; by row of type or site unless noted otherwise.

    Attributes:
        small_sites: (32768,) row of a small site.
        big_sites: (b,) row of a big site.
        site_type: (s,) row of its type.
        site_flags: (s,) flags of the site's allocations, FILLER only if it applies to every type.
        type_rows: (t,) row of a type's id.
        type_kind: (n,) `names.TypeKind`.
        instance_bytes: (n,) of an instance.
        header_bytes: (n,) of an array's header.
        element_bytes: (n,) of an array's element.
        filler_type: (n,) 1 for types that fill the rest of a TLAB.
        internal_site: (s,) 1 for the site at which the VM fills the rest of a TLAB.
    """

    small_sites: NDArray[np.int32]
    big_sites: NDArray[np.int32]
    site_type: NDArray[np.int32]
    site_flags: NDArray[np.uint8]
    type_rows: NDArray[np.int32]
    type_kind: NDArray[np.uint8]
    instance_bytes: NDArray[np.int64]
    header_bytes: NDArray[np.int64]
    element_bytes: NDArray[np.int64]
    filler_type: NDArray[np.uint8]
    internal_site: NDArray[np.uint8]


def tables_of(symbols: Symbols) -> SymbolTables:
    """Make the tables of a trace's symbols."""
    types, sites = symbols.types, symbols.sites
    flags = np.zeros(len(sites), np.uint8)
    internal = np.zeros(len(sites), np.uint8)
    # Of the VM's sites, 2 and 3 are the collector's: rests of PLABs and dead space; at 1, int[] and
    # Object are fillers.
    for number in (2, 3):
        flags[symbols.small_sites[number]] = RecordFlag.FILLER | (
            RecordFlag.BY_COLLECTOR if number == 2 else 0
        )
    internal[symbols.small_sites[1]] = 1
    flags[0] = internal[0] = 0
    filler = np.isin(np.array(types.internal), ["[I", "java.lang.Object"]).astype(np.uint8)
    return SymbolTables(
        symbols.small_sites, symbols.big_sites, sites.type, flags, symbols.type_rows, types.kind, types.instance_bytes,
        types.header_bytes, types.element_bytes, filler, internal,
    )  # fmt: skip


class Columns(NamedTuple):
    """Arrays to fill: those of `records.RecordBatch` of these names."""

    kind: NDArray[np.uint8]
    detail: NDArray[np.uint8]
    flags: NDArray[np.uint8]
    thread: NDArray[np.int32]
    buffer: NDArray[np.int32]
    offset: NDArray[np.int32]
    address: NDArray[np.int64]
    to: NDArray[np.int64]
    size: NDArray[np.int64]
    type: NDArray[np.int32]
    site: NDArray[np.int32]
    length: NDArray[np.int32]
    pointer_record: NDArray[np.int32]
    pointer_kind: NDArray[np.uint8]
    pointer_value: NDArray[np.int64]


def columns_for(words: int) -> Columns:
    """Make arrays with room for what `words` words can hold: an event each, and pointers for them (six, all null, in each of two)."""
    pointers = 6 * words
    room = {name: np.empty(words, dtype) for name, dtype in COLUMNS.items()}
    return Columns(
        **room,
        pointer_record=np.empty(pointers, np.int32),
        pointer_kind=np.empty(pointers, np.uint8),
        pointer_value=np.empty(pointers, np.int64),
    )
