"""Decoding in numpy, if there is no machine code. `layout` defines the words. Equivalent to `kernel`, to the bit.

The start of an event is known only when all previous ones in its buffer are. So the length of an
event is computed for every word as if it began there, and those that are reachable from the first
of a buffer are found by jumps of 1, 2, 4, 8, .. events, in all buffers at once.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gcspy_objects.anttracks.decoding.problem import Problem
from gcspy_objects.anttracks.decoding.tables import (
    FIXED_WORDS,
    HAS_ADDRESS,
    HAS_SITE,
    HAS_TYPE,
    SPARE_BITS,
    VALUE_LIMIT,
    Columns,
    SymbolTables,
)
from gcspy_objects.anttracks.layout import MAX_THREAD_NAME_WORDS, EventId
from gcspy_objects.names import TypeKind
from gcspy_objects.records import COLUMNS, UNKNOWN, RecordFlag, RecordKind

__all__ = ["decode"]

Longs: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

_IS_OUTSIDE = np.isin(
    np.arange(64), [EventId.IR_ALLOC_NORMAL, EventId.C1_ALLOC_NORMAL, EventId.C2_ALLOC_NORMAL]
)
_LIMIT = (1 << 31) - 1
_HIGH_SHIFT = 32


def decode(
    words: NDArray[np.int32],
    bounds: Longs,
    owners: NDArray[np.int32],
    base: int,
    anchor: int,
    tables: SymbolTables,
) -> tuple[Columns, int, int, int, int]:
    """Decode the events of whole buffers, up to the first that is not valid.

    Args:
        words: (w,) the payloads, one after the other.
        bounds: (b + 1,) where in `words` each buffer begins; the end.
        owners: (b,) row of each buffer's thread.
        base: Base of relative addresses.
        anchor: 1 if a word follows each event, else 0.
        tables: The symbols.

    Returns:
        Columns; the base after them; `Problem`, the word at which the event with it begins, its buffer.
    """
    events = _Events(words.astype(np.int64) & 0xFFFFFFFF, bounds, anchor, tables)
    events.fill(base)
    return events.result(owners, base)


class _Events:
    """The events of a chunk: their places, and their columns so far.

    Attributes:
        words: (w,) the words, as whole numbers that are not negative.
        at: (n,) the word at which each event begins.
        event: (n,) id of each.
        need: (n,) words of each, without the anchor.
        problem: (n,) the first `Problem` that was found with each.
        columns: Column's name to (n,) values.
    """

    def __init__(self, words: Longs, bounds: Longs, anchor: int, tables: SymbolTables) -> None:
        self.words = words
        self.bounds = bounds
        self.anchor = anchor
        self.tables = tables
        buffer_of_word = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        need = self._lengths()
        self.at = _reached(np.arange(len(words)) + need + anchor, bounds, buffer_of_word)
        self.need = need[self.at]
        self.first = words[self.at]
        self.event = self.first >> 26
        self._by_event = np.argsort(self.event.astype(np.uint8), kind="stable")
        self._first_of = np.concatenate([[0], np.cumsum(np.bincount(self.event, minlength=64))])
        self.buffer = buffer_of_word[self.at]
        self.end = bounds[self.buffer + 1]
        self.problem = np.zeros(len(self.at), np.int64)
        self.columns: dict[str, Longs] = {
            name: np.zeros(len(self.at), np.int64) for name in COLUMNS
        }
        self.pointers: tuple[Longs, Longs, Longs] = (np.zeros(0, np.int64),) * 3

    # Places of events.

    def _lengths(self) -> Longs:
        """How many words an event has, for each word as if one began there."""
        words, tables = self.words, self.tables
        event = words >> 26
        need: Longs = np.maximum(FIXED_WORDS[event], 1)
        long = HAS_SITE[event] & (event < EventId.SYNC_OBJ) & (words & 0x8000FF == 0xFF)
        need += long
        typed = np.flatnonzero(HAS_TYPE[event])
        where = typed + 1 + 2 * HAS_ADDRESS[event[typed]] + long[typed]
        kind = tables.type_kind[self._type_at(where)]
        sized = (kind == TypeKind.CLASS) & (event[typed] != EventId.C2_ALLOC_FAST_DEVIANT)
        need[typed] += sized | ((kind == TypeKind.ARRAY) & (event[typed] >= EventId.SYNC_OBJ))
        pointing = np.flatnonzero(
            (event >= EventId.GC_MOVE_SLOW_PTR) & (event <= EventId.GC_CROSSGENERATIONAL_PTR)
        )
        for shift in range(0, 24, 2):
            pair = words[pointing] >> shift & 3
            need[pointing] += np.where(pair < 3, pair, 0)
        self._name_lengths(np.flatnonzero(event == EventId.THREAD_ALIVE), need)
        return need

    def _name_lengths(self, threads: Longs, need: Longs) -> None:
        """Make room for names, which end with the first word that has a NUL."""
        open_ = np.ones(len(threads), bool)
        for more in range(MAX_THREAD_NAME_WORDS - 1):
            word = self._word(threads + 3 + more)
            for shift in range(0, 32, 8):
                open_ &= (word >> shift & 0xFF) != 0
            need[threads] += open_

    # Values at words; beyond the last word there is something, which is never used.

    def _word(self, where: Longs) -> Longs:
        found: Longs = self.words[np.minimum(where, len(self.words) - 1)]
        return found

    def _long(self, rows: Longs, where: Longs) -> Longs:
        """Return the u64 at each of `where`; values that are too high are noted as a problem of `rows`."""
        high = self._word(where + 1)
        self._note(rows, high >= VALUE_LIMIT >> _HIGH_SHIFT, Problem.TOO_HIGH)
        return self._word(where) | (high & 0x7FFFFFFF) << _HIGH_SHIFT

    def _type_at(self, where: Longs) -> NDArray[np.int32]:
        rows = self.tables.type_rows
        number = self._word(where)
        return np.where(number < len(rows), rows[np.minimum(number, len(rows) - 1)], UNKNOWN)

    def _note(self, rows: Longs, wrong: Mask, problem: Problem) -> None:
        found = rows[wrong]
        self.problem[found] = np.where(self.problem[found] == 0, problem, self.problem[found])

    def _rows(self, *events: int) -> Longs:
        """Return the rows of events of these kinds, in order for each kind."""
        return np.concatenate(
            [self._by_event[self._first_of[event] : self._first_of[event + 1]] for event in events]
        )

    def _set(self, rows: Longs, **values: Any) -> None:
        for name, value in values.items():
            self.columns[name][rows] = value

    # Fields of events. In each, errors are checked in the same order as in the kernel.

    def fill(self, base: int) -> None:
        """Fill the columns."""
        fixed = FIXED_WORDS[self.event]
        everything = np.arange(len(self.at))
        self._note(everything, fixed == 0, Problem.NO_EVENT)
        self._note(everything, self.at + fixed > self.end, Problem.CUT_SHORT)
        self._collections()
        self._spaces()
        self._threads()
        self._allocations()
        self._snapshots()
        self._moves(base)
        self._note(everything, self.at + self.need + self.anchor > self.end, Problem.CUT_SHORT)
        self._note(everything, self.columns["length"] > _LIMIT, Problem.TOO_LONG)
        self.columns["flags"] |= np.where(self.first & SPARE_BITS[self.event], RecordFlag.ODD, 0)

    def _collections(self) -> None:
        self._set(self._rows(EventId.NOP), kind=RecordKind.BARRIER)
        rows = self._rows(EventId.MARK)
        self._set(rows, kind=RecordKind.MARK, size=self._long(rows, self.at[rows] + 1))
        rows = self._rows(EventId.GC_START, EventId.GC_END)
        w, at = self.first[rows], self.at[rows]
        self._set(
            rows, kind=np.where(self.event[rows] == EventId.GC_START, RecordKind.COLLECTION_START, RecordKind.COLLECTION_END), detail=w >> 16 & 0xFF,
            type=w >> 8 & 0xFF, flags=np.where(w & 1, RecordFlag.FAILED, 0), length=self._word(at + 1), size=self._long(rows, at + 2),
            address=self._long(rows, at + 4),
        )  # fmt: skip
        rows = self._rows(EventId.GC_INFO)
        self._set(
            rows,
            kind=RecordKind.COLLECTS,
            length=self.first[rows] & 0xFFFFFF,
            size=self._word(self.at[rows] + 1),
        )
        rows = self._rows(EventId.GC_FAILED)
        self._set(rows, kind=RecordKind.FAILED, length=self.first[rows] & 0xFFFFFF)

    def _spaces(self) -> None:
        rows = self._rows(EventId.SPACE_CREATE, EventId.SPACE_REDEFINE)
        at = self.at[rows]
        flags = np.where(self.event[rows] == EventId.SPACE_REDEFINE, RecordFlag.REDEFINES, 0)
        self._set(
            rows,
            kind=RecordKind.SPACE_DEFINE,
            flags=flags,
            length=self._word(at + 1),
            address=self._long(rows, at + 2),
            size=self._long(rows, at + 4),
        )
        rows = self._rows(EventId.SPACE_ALLOC)
        w = self.first[rows]
        self._set(
            rows,
            kind=RecordKind.SPACE_KIND,
            detail=w >> 18 & 0xFF,
            type=w >> 10 & 0xFF,
            length=self._word(self.at[rows] + 1),
        )
        rows = self._rows(EventId.SPACE_RELEASE)
        self._set(rows, kind=RecordKind.SPACE_RELEASE, length=self._word(self.at[rows] + 1))
        rows = self._rows(EventId.SPACE_DESTROY)
        self._set(
            rows,
            kind=RecordKind.SPACE_DESTROY,
            length=self._word(self.at[rows] + 1),
            size=self._long(rows, self.at[rows] + 2),
        )

    def _threads(self) -> None:
        rows = self._rows(EventId.THREAD_ALIVE)
        kind = np.minimum(self.first[rows] >> 8 & 0xFFFF, 255)
        self._set(
            rows,
            kind=RecordKind.THREAD_BEGIN,
            detail=kind,
            address=self._long(rows, self.at[rows] + 1),
        )
        rows = self._rows(EventId.THREAD_DEATH)
        self._set(rows, kind=RecordKind.THREAD_END, address=self._long(rows, self.at[rows] + 1))
        rows = self._rows(EventId.TLAB_ALLOC, EventId.PLAB_ALLOC)
        kind = np.where(
            self.event[rows] == EventId.TLAB_ALLOC, RecordKind.BUFFER, RecordKind.GC_BUFFER
        )
        self._set(
            rows,
            kind=kind,
            size=self._long(rows, self.at[rows] + 1),
            address=self._long(rows, self.at[rows] + 3),
        )

    def _sites(self, rows: Longs) -> NDArray[np.int32]:
        """Return the rows of the sites that are named."""
        w, tables = self.first[rows], self.tables
        number = w & 0x7FFFFF
        big = np.where(
            number < len(tables.big_sites),
            tables.big_sites[np.minimum(number, len(tables.big_sites) - 1)],
            UNKNOWN,
        )
        site = np.where(w & 0x800000, big, tables.small_sites[w >> 8 & 0x7FFF])
        self._note(rows, site == UNKNOWN, Problem.NO_SITE)
        return site

    def _allocations(self) -> None:
        rows = self._rows(*np.flatnonzero(HAS_SITE[: EventId.SYNC_OBJ]).tolist())
        w, event, at = self.first[rows], self.event[rows], self.at[rows] + 1
        site = self._sites(rows)
        placed = HAS_ADDRESS[event]
        address = np.zeros(len(rows), np.int64)
        address[placed] = self._long(rows[placed], at[placed])
        at = at + 2 * placed
        long = w & 0x8000FF == 0xFF
        self._note(
            rows,
            long & (self.at[rows] + FIXED_WORDS[event] + 1 > self.end[rows]),
            Problem.CUT_SHORT,
        )
        length = np.where(w & 0x800000, 0, np.where(long, self._word(at), w & 0xFF))
        at = at + long
        named = HAS_TYPE[event]
        type_ = np.where(named, self._type_at(at), self.tables.site_type[site])
        sized = named & (event != EventId.C2_ALLOC_FAST_DEVIANT)
        flags = np.where(
            event == EventId.ALLOC_SLOW,
            RecordFlag.VM,
            np.where(event <= EventId.IR_ALLOC_FAST, RecordFlag.INTERPRETED, 0),
        )
        flags |= np.where(_IS_OUTSIDE[event], RecordFlag.OUTSIDE, 0)
        self._set(
            rows,
            kind=np.where(placed, RecordKind.ALLOCATE, RecordKind.ALLOCATE_NEXT),
            address=address,
        )
        self._note(rows, self.tables.type_kind[type_] == TypeKind.UNKNOWN, Problem.NO_TYPE)
        self._objects(rows, site, type_, length, flags, self._word(at + named), sized)

    def _snapshots(self) -> None:
        rows = self._rows(EventId.SYNC_OBJ, EventId.SYNC_OBJ_NARROW)
        at = self.at[rows] + 1
        site = self._sites(rows)
        type_ = self._type_at(at)
        kind = self.tables.type_kind[type_]
        self._note(rows, kind == TypeKind.UNKNOWN, Problem.NO_TYPE)
        moved = self.event[rows] == EventId.SYNC_OBJ
        address = self._long(rows, at + 1)
        to = address.copy()
        to[moved] = self._long(rows[moved], at[moved] + 3)
        at = at + 3 + 2 * moved
        array = kind == TypeKind.ARRAY
        self._note(
            rows,
            array & (self.at[rows] + FIXED_WORDS[self.event[rows]] + 1 > self.end[rows]),
            Problem.CUT_SHORT,
        )
        self._set(
            rows,
            kind=np.where(moved, RecordKind.SNAPSHOT_MOVE, RecordKind.SNAPSHOT_KEEP),
            address=address,
            to=to,
        )
        length = self._word(at)
        self._objects(
            rows,
            site,
            type_,
            length,
            np.zeros(len(rows), np.int64),
            self._word(at),
            np.ones(len(rows), bool),
        )

    def _objects(
        self,
        rows: Longs,
        site: NDArray[np.int32],
        type_: NDArray[np.int32],
        length: Longs,
        flags: Longs,
        told: Longs,
        sized: Mask,
    ) -> None:
        """Set the sizes of objects; the events of java.lang.Class contain them (`told`) where `sized`."""
        tables = self.tables
        kind = tables.type_kind[type_]
        array = kind == TypeKind.ARRAY
        told_here = sized & (kind == TypeKind.CLASS)
        self._note(
            rows, told_here & (self.at[rows] + self.need[rows] > self.end[rows]), Problem.CUT_SHORT
        )
        self._note(rows, array & (length > _LIMIT), Problem.TOO_LONG)
        flags = flags | np.where(
            ~array & (length != 0) & (self.event[rows] < EventId.SYNC_OBJ), RecordFlag.ODD, 0
        )
        length = np.where(array, length, 0)
        size = np.where(
            array,
            (tables.header_bytes[type_] + tables.element_bytes[type_] * length + 7) & ~7,
            tables.instance_bytes[type_],
        )
        flags = (
            flags
            | tables.site_flags[site]
            | np.where(tables.internal_site[site] & tables.filler_type[type_], RecordFlag.FILLER, 0)
        )
        self._set(
            rows,
            site=site,
            type=type_,
            length=length,
            size=np.where(told_here, told, size),
            flags=flags,
        )

    def _moves(self, base: int) -> None:
        collections = np.sort(self._rows(EventId.GC_START, EventId.GC_END))
        bases = np.concatenate([[base], self.columns["address"][collections]])

        def base_of(rows: Longs) -> Longs:
            found: Longs = bases[np.searchsorted(collections, rows)]
            return found

        rows = self._rows(EventId.GC_MOVE_FAST_NARROW)
        self._set(
            rows,
            kind=RecordKind.MOVE_NEXT,
            detail=self.first[rows] >> 24 & 3,
            address=base_of(rows) + ((self.first[rows] & 0xFFFFFF) >> 2) * 8,
        )
        rows = self._rows(EventId.GC_MOVE_FAST, EventId.GC_MOVE_FAST_PTR)
        near = base_of(rows) + self._word(self.at[rows] + 1) * 8
        self._set(rows, kind=RecordKind.MOVE_NEXT, detail=self.first[rows] >> 24 & 3, address=near)
        rows = self._rows(EventId.GC_MOVE_FAST_WIDE, EventId.GC_MOVE_FAST_WIDE_PTR)
        self._set(
            rows,
            kind=RecordKind.MOVE_NEXT,
            detail=self.first[rows] >> 24 & 3,
            address=self._long(rows, self.at[rows] + 1),
        )
        rows = self._rows(EventId.GC_MOVE_SLOW, EventId.GC_MOVE_SLOW_PTR, EventId.GC_MOVE_REGION)
        run = self.event[rows] == EventId.GC_MOVE_REGION
        ends = {
            "address": self._long(rows, self.at[rows] + 1),
            "to": self._long(rows, self.at[rows] + 3),
        }
        self._set(
            rows,
            kind=np.where(run, RecordKind.MOVE_RUN, RecordKind.MOVE),
            length=np.where(run, self.first[rows] & 0xFFFFFF, 0),
            **ends,
        )
        rows = self._rows(EventId.GC_KEEP_ALIVE, EventId.GC_KEEP_ALIVE_PTR)
        self._set(rows, kind=RecordKind.KEEP, address=self._long(rows, self.at[rows] + 1))
        first = EventId.GC_OBJ_PTR
        rows = self._rows(*range(first, EventId.GC_CROSSGENERATIONAL_PTR + 1))
        self._set(
            rows,
            kind=RecordKind.POINTERS,
            detail=self.event[rows] - first,
            address=self._long(rows, self.at[rows] + 1),
        )
        self._pointers()

    def _pointers(self) -> None:
        """Read the pointers: twelve times those of all events with at least that many."""
        rows = np.flatnonzero((self.event >= EventId.GC_MOVE_SLOW_PTR) & (self.problem == 0))
        self._note(rows, self.at[rows] + self.need[rows] > self.end[rows], Problem.CUT_SHORT)
        w, at = self.first[rows], self.at[rows] + FIXED_WORDS[self.event[rows]]
        target = np.zeros(
            len(rows), np.int64
        )  # of the previous pointer: from the object's new place, until there is an address
        known = np.zeros(len(rows), bool)
        kinds = np.zeros((len(rows), 12), np.int64)
        values = np.zeros((len(rows), 12), np.int64)
        for place in range(12):
            kind = w >> (22 - 2 * place) & 3
            word = self._word(at)
            target -= np.where(kind == 1, 8 * (word - ((word & 0x80000000) << 1)), 0)
            absolute = np.flatnonzero(kind == 2)
            target[absolute] = self._long(rows[absolute], at[absolute])
            known[absolute] = True
            kinds[:, place] = np.where(known & (kind == 1), 2, kind)
            values[:, place] = np.where((kind == 1) | (kind == 2), target, 0)
            at = at + np.where(kind < 3, kind, 0)
        row, column = np.nonzero(kinds)
        self.pointers = (rows[row], kinds[row, column], values[row, column])

    def result(self, owners: NDArray[np.int32], base: int) -> tuple[Columns, int, int, int, int]:
        """Return what `decode` does: the columns up to the first event with a problem."""
        wrong = np.flatnonzero(self.problem)
        count = int(wrong[0]) if len(wrong) else len(self.at)
        if len(wrong):
            problem, word, buffer = (
                int(self.problem[count]),
                int(self.at[count]),
                int(self.buffer[count]),
            )
        else:
            problem, word, buffer = 0, int(self.bounds[-1]), max(len(owners) - 1, 0)
        columns = self.columns
        columns["thread"] = owners[self.buffer].astype(np.int64)
        columns["buffer"] = self.buffer
        columns["offset"] = (self.at - self.bounds[self.buffer]) * 4
        made: dict[str, NDArray[Any]] = {
            name: value[:count].astype(COLUMNS[name]) for name, value in columns.items()
        }
        pointing, pointer_kind, pointer_value = (
            one[self.pointers[0] < count] for one in self.pointers
        )
        made |= {
            "pointer_record": pointing.astype(np.int32),
            "pointer_kind": pointer_kind.astype(np.uint8),
            "pointer_value": pointer_value,
        }
        result = Columns(**made)
        collections = np.flatnonzero(
            (made["kind"] == RecordKind.COLLECTION_START)
            | (made["kind"] == RecordKind.COLLECTION_END)
        )
        return (
            result,
            int(made["address"][collections[-1]]) if len(collections) else base,
            problem,
            word,
            buffer,
        )


def _reached(following: Longs, bounds: Longs, buffer_of_word: Longs) -> Longs:
    """Return the words at which events begin: those that are reachable from the first of each buffer.

    Args:
        following: (w,) for each word the one after the event, if one began there.
        bounds: (b + 1,) where buffers begin, and the end.
        buffer_of_word: (w,) the buffer of each word.
    """
    count = len(following)
    # A jump to the end of its buffer, or beyond it, is dropped: one extra word represents it, and
    # leads to itself.
    leap = np.append(np.where(following < bounds[buffer_of_word + 1], following, count), count)
    reached = bounds[:-1][np.diff(bounds) > 0]
    while len(reached):
        more = leap[reached]
        more = more[more < count]
        if not len(more):
            break
        reached = np.concatenate([reached, more])
        leap = leap[leap]
    begins = np.zeros(count, bool)
    begins[reached] = True
    return np.flatnonzero(begins)
