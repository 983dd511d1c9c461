"""The walk over the chunks in a window, without the library: the same results as ``walk.c``, more slowly.

Chunks are found one after the other, and summed all at once. Knows words; does not know where they come from.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.native_heap.walk_state import (
    AGES,
    CLASSES,
    ChunkKind,
    Damage,
    Outcome,
    WalkState,
    WalkSums,
)

__all__ = ["size_classes", "walk_chunks"]

_PREVIOUS_IN_USE, _MAPPED, _NON_MAIN, _FLAGS = 1, 2, 4, 7
_LEAST, _FENCE_BYTES = 32, 16
_PAGE, _LINKS = 4096, 48
_U32_MAX: Final = (1 << 32) - 1

U64 = npt.NDArray[np.uint64]


def walk_chunks(state: WalkState, sums: WalkSums, words: U64, base: int) -> Outcome:
    """Walk from the state's position as far as a window goes.

    Args:
        state: Changed as C changes it.
        sums: The arrays behind its pointers; added to.
        words: (n,) the window.
        base: Its address, a multiple of 8.
    """
    walked = _Walked(state, sums)
    outcome = walked.go(memoryview(words.data), base)
    walked.add()
    return outcome


def size_classes(sizes: U64) -> npt.NDArray[np.int64]:
    """Return the class of each size, (n,), numbered as malloc numbers its bins."""
    found = np.full(len(sizes), 126, dtype=np.int64)
    whole = sizes.astype(np.int64)
    for shift, most, first in (
        (18, 2, 124),
        (15, 4, 119),
        (12, 10, 110),
        (9, 20, 91),
        (6, 48, 48),
    ):
        fits = whole >> shift <= most
        found[fits] = first + (whole[fits] >> shift)
    small = whole < 1024
    found[small] = whole[small] >> 4
    return found


class _Walked:
    def __init__(self, state: WalkState, sums: WalkSums) -> None:
        self._state, self._sums = state, sums
        self._chunks: list[int] = []
        self._sizes: list[int] = []
        self._kinds: list[int] = []
        self._cached, self._fast = set(sums.cached.tolist()), set(sums.fast.tolist())

    def go(self, words: memoryview, base: int) -> Outcome:
        """Find the chunks, and whole free pages."""
        state = self._state
        limit = base + 8 * len(words)
        while state.position < state.end:
            chunk = state.position
            if chunk < base or limit - base < 16 or chunk > limit - 16:
                return Outcome.WINDOW_ENDS
            if state.run_at >= state.run_room:
                return Outcome.ROOM_ENDS
            head = words[(chunk - base) // 8 + 1]
            size = head & ~_FLAGS
            if size in (0, _FENCE_BYTES) and not head & _MAPPED:
                self._close_hole(chunk)
                state.damage = Damage.FENCE
                return Outcome.SPAN_ENDS if state.end - chunk <= _LEAST else Outcome.BROKEN
            if size < _LEAST or size & 15 or head & _MAPPED or size > state.end - chunk:
                return self._broken(Damage.SIZE)
            following = chunk + size
            if following <= limit - 16:
                place = (following - base) // 8
                footer, ahead = words[place], words[place + 1]
            elif following == state.ahead_at:
                footer, ahead = state.ahead
            else:
                return Outcome.WINDOW_ENDS
            damage = self._damage(head, size, footer, ahead)
            if damage is not Damage.NONE:
                return self._broken(damage)
            self._take(chunk, size, self._kind(chunk, ahead))
        state.damage = Damage.NONE
        return Outcome.SPAN_ENDS

    def add(self) -> None:
        """Sum what was found."""
        state, sums = self._state, self._sums
        chunks = np.array(self._chunks, dtype=np.uint64)
        sizes = np.array(self._sizes, dtype=np.uint64)
        kinds = np.array(self._kinds, dtype=np.int64)
        classes = size_classes(sizes)
        flat = kinds * CLASSES + classes
        sums.counts += (
            np.bincount(flat, minlength=4 * CLASSES).reshape(4, CLASSES).astype(np.uint64)
        )
        weights = np.bincount(flat, weights=sizes, minlength=4 * CLASSES)
        sums.sums += weights.reshape(4, CLASSES).astype(np.uint64)
        first = (chunks - np.uint64(state.first_cell)) >> np.uint64(state.cell_shift)
        used = kinds == ChunkKind.USED
        inside = first < state.cells
        np.add.at(sums.begins, first[used & inside].astype(np.intp), 1)
        last = (chunks + sizes - np.uint64(1 + state.first_cell)) >> np.uint64(state.cell_shift)
        for kind in ChunkKind:
            which = (kinds == kind) & (last < state.cells)
            alone = which & (first == last)
            np.add.at(
                sums.bytes[kind], first[alone].astype(np.intp), sizes[alone].astype(np.uint32)
            )
            for row in np.flatnonzero(which & ~alone).tolist():
                self._spread(kind, int(chunks[row]), int(chunks[row] + sizes[row]))
        if len(sums.ages):
            for row in np.flatnonzero(used).tolist():
                self._sum_ages(int(classes[row]), int(chunks[row]), int(chunks[row] + sizes[row]))
        self._answer(chunks, sizes, kinds)

    def _age_of(self, address: int) -> int:
        unit = (address - self._state.first_unit) >> self._state.unit_shift
        age = int(self._sums.ages[unit]) if 0 <= unit < len(self._sums.ages) else 0
        return age if age < AGES else 0

    def _sum_ages(self, size_class: int, begin: int, end: int) -> None:
        aged, unit = self._sums.aged, 1 << self._state.unit_shift
        if unit < _PAGE:
            least = min(self._age_of(at) for at in range(begin + unit, end + 1, unit))
            aged[least, size_class] += np.uint64(end - begin)
            return
        while begin < end:
            edge = min(end, (begin | (_PAGE - 1)) + 1)
            aged[self._age_of(begin), size_class] += np.uint64(edge - begin)
            begin = edge

    def _spread(self, kind: int, begin: int, end: int) -> None:
        state = self._state
        while begin < end:
            cell = (begin - state.first_cell) >> state.cell_shift
            edge = min(end, state.first_cell + ((cell + 1) << state.cell_shift))
            self._sums.bytes[kind, cell] += edge - begin
            begin = edge

    def _answer(self, chunks: U64, sizes: U64, kinds: npt.NDArray[np.int64]) -> None:
        state, sums = self._state, self._sums
        if not len(chunks) or state.wanted_at >= len(sums.wanted):
            return
        behind = chunks[-1] + sizes[-1]
        end = int(np.searchsorted(sums.wanted, behind, side="left"))
        rows = np.arange(state.wanted_at, max(end, state.wanted_at))
        row = np.searchsorted(chunks, sums.wanted[rows], side="right") - 1
        inside = row >= 0
        inside &= sums.wanted[rows] < (chunks + sizes)[row]
        hit, row = rows[inside], row[inside]
        sums.found[hit] = np.stack([chunks[row], sizes[row], kinds[row].astype(np.uint64)], axis=1)
        state.wanted_at = max(end, state.wanted_at)

    def _broken(self, damage: Damage) -> Outcome:
        self._state.damage = damage
        return Outcome.BROKEN

    def _damage(self, head: int, size: int, footer: int, ahead: int) -> Damage:
        state = self._state
        if (not head & _PREVIOUS_IN_USE) != bool(state.after_free):
            return Damage.NEIGHBOUR
        if not ahead & _PREVIOUS_IN_USE:
            if footer != size:
                return Damage.FOOTER
            return Damage.NEIGHBOUR if state.after_free else Damage.NONE
        return Damage.ARENA if bool(head & _NON_MAIN) != bool(state.non_main) else Damage.NONE

    def _kind(self, chunk: int, ahead: int) -> ChunkKind:
        if not ahead & _PREVIOUS_IN_USE:
            return ChunkKind.FREE
        if chunk in self._cached:
            return ChunkKind.CACHED
        return ChunkKind.FAST if chunk in self._fast else ChunkKind.USED

    def _take(self, chunk: int, size: int, kind: ChunkKind) -> None:
        state, pins = self._state, self._sums.pins
        if kind >= ChunkKind.FAST:
            state.hole = state.hole or chunk
        else:
            self._close_hole(chunk)
        if kind == ChunkKind.USED:
            if state.pin_at < state.pin_room:
                pins[state.pin_at] = chunk, size
            state.pin_at += 1
            state.last_used, state.last_used_size = chunk, size
        self._chunks.append(chunk)
        self._sizes.append(size)
        self._kinds.append(kind)
        state.after_free = kind == ChunkKind.FREE
        state.position = chunk + size

    def _close_hole(self, end: int) -> None:
        state, sums = self._state, self._sums
        if not state.hole:
            return
        begin, state.hole = state.hole, 0
        cell = (begin - state.first_cell) >> state.cell_shift
        if cell < state.cells:
            sums.holes[cell] = max(int(sums.holes[cell]), min(end - begin, _U32_MAX))
        page = (begin + _LINKS + _PAGE - 1) & -_PAGE
        if end - page >= _PAGE:
            sums.runs[state.run_at] = page, (end - page) // _PAGE
            state.run_at += 1
