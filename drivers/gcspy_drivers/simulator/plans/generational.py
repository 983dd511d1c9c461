"""Generational: objects are made in a young generation, which is collected often; those that survive are promoted to an old one.

Source: H. Lieberman and C. Hewitt, A real-time garbage collector based on the lifetimes of objects, CACM 26(6), 1983, and D. Ungar, Generation
scavenging, 1984, for promotion by age; RJVM, of the GCspy paper's section 5.6, is a semi-space young generation before a mark-sweep or mark-compact
old one, with cards. The young generation here is two halves, or a nursery that is emptied each time; `policies/cards.py` has the records of the barrier.

Different from these: there is no eden beside the halves. A survivor that the old generation has no room for stays young. When half
of the young generation is full of survivors, the next collection promotes everything. A collection of kind ``full`` marks both
generations at once; the young one is slid together in any case, the old one swept or slid, in which case young objects are slid into it as far as there is room.
Large objects are made in the old generation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np
from gcspy_protocol.errors import LocalProtocolError

from gcspy_drivers.simulator.facts import CardTable, FreeLists, RememberedSet
from gcspy_drivers.simulator.heap import FREE, HEADER_WORDS, MAX_AGE, NOTED, WORD_BYTES, Heap
from gcspy_drivers.simulator.loops import Words
from gcspy_drivers.simulator.plan import (
    FULL,
    WHOLE,
    Collection,
    Knob,
    Phase,
    Plan,
    PlanSpace,
    heap_knob,
    nursery_knob,
)
from gcspy_drivers.simulator.plans import _young as loops
from gcspy_drivers.simulator.policies.bump import BumpSpace
from gcspy_drivers.simulator.policies.cards import OldToYoung
from gcspy_drivers.simulator.policies.freelist import FreeListSpace
from gcspy_drivers.simulator.policies.marking import Marking
from gcspy_drivers.simulator.policies.sliding import Sliding

__all__ = ["MINOR", "YOUNG", "Generational", "GenerationalCompact"]

MINOR: Final = "minor"
"""A collection of the young generation."""
YOUNG: Final = ("semispace", "bump")


def _nothing(_: int) -> int:
    return 0


class Generational(Plan):
    """Two generations; the old one is swept.

    Args:
        young: ``semispace``: two halves; ``bump``: a nursery, of which everything is promoted.
        young_bytes: Size of the young generation; 0: a quarter of the heap.
        tenuring: Collections that an object survives in the young generation before the next one promotes it.
        barrier: ``cards`` or ``set``: the record of references from old to young objects.
        card_bytes: Size of a card.
        buffer_bytes: Size of a thread's allocation buffer.
        lists: How many free lists the old generation has; see `FreeListSpace`.
    """

    name = "generational"
    title = "Generational"
    moves = True
    lists_all_free = False
    kinds: ClassVar = {
        FULL: ("roots", "mark", "forward", "update", "move", "sweep", "barrier"),
        MINOR: ("roots", "remembered", "copy"),
    }
    _slides: ClassVar[bool] = False

    def __init__(
        self,
        heap: Heap,
        *,
        threads: int = 1,
        young: str = "semispace",
        young_bytes: int = 0,
        tenuring: int = 2,
        barrier: str = "cards",
        card_bytes: int = 512,
        buffer_bytes: int = 256,
        lists: int = 32,
    ) -> None:
        super().__init__(heap, threads=threads)
        size = heap.end - heap.start
        count = 2 if young == "semispace" else 1
        part = (
            (young_bytes // WORD_BYTES or size // 4)
            // (count * heap.align_words)
            * heap.align_words
        )
        if young not in YOUNG or not 0 < count * part < size or not 0 <= tenuring <= MAX_AGE:
            raise LocalProtocolError(
                f"a young generation {young!r} of {young_bytes} bytes, tenuring {tenuring}: give one of {', '.join(YOUNG)}, less than the heap's "
                f"{size * WORD_BYTES} bytes, 0 to {MAX_AGE}"
            )
        self._parts = [
            BumpSpace(
                heap,
                heap.start + i * part,
                heap.start + (i + 1) * part,
                threads=threads,
                buffer_bytes=buffer_bytes,
            )
            for i in range(count)
        ]
        self._part = self._limit = part
        self._size = self._wanted = size
        start = heap.start + count * part
        self._old_start = start
        self._bump = BumpSpace(heap, start, heap.end)
        self._cells = None if self._slides else FreeListSpace(heap, start, heap.end, lists=lists)
        self._records = OldToYoung(
            heap, (start, heap.end), (heap.start, start), barrier=barrier, card_bytes=card_bytes
        )
        self._marking, self._sliding = Marking(heap), Sliding(heap)
        self._queue: Words = np.empty(part // HEADER_WORDS + 1, dtype=np.int64)
        self._state: Words = np.zeros(loops.STATES, dtype=np.int64)
        self._tenuring, self._promote_all = tenuring, count == 1
        self._largest = self._slot = self._noted = 0

    # Operations of the program.

    def write(self, holder: int, number: int, target: int) -> None:
        """Store, and record a reference from an old object to a young one."""
        field = holder + HEADER_WORDS + number
        self.heap.words[field] = target
        if holder >= self._old_start > target > 0:
            self._records.record(holder, field)

    def _allocate(self, thread: int, size: int, status: int, identity: int) -> int:
        if 2 * size <= self._young_limit:
            self._largest = max(self._largest, size)
            return self._parts[0].allocate(thread, size, status, identity)
        cell = (
            self._cells.allocate(size, status, identity)
            if self._cells
            else self._bump.allocate(0, size, status, identity)
        )
        if cell:
            self._records.begins(cell, size)
        return cell

    def _make_room(self, thread: int, size: int, status: int, identity: int) -> int:
        large = 2 * size > self._young_limit
        for kind, everything in ((MINOR, False), (MINOR, True), (FULL, False), (MINOR, True)):
            if kind == MINOR and (
                large
                or not self._may_promote()
                or (everything and self._parts[0].top == self._parts[0].start)
            ):
                continue
            self._promote_all = everything or len(self._parts) == 1
            self.collect(kind, "allocation failure")
            self._promote_all = len(self._parts) == 1
            cell = self._allocate(thread, size, status, identity)
            if cell:
                return cell
        return 0

    def _may_promote(self) -> bool:
        """Return whether a collection of the young generation will find room for all that might survive."""
        needed = self._parts[0].top - self._parts[0].start
        if len(self._parts) == 2:
            return True
        if self._cells is None:
            return needed <= self._bump.free_words
        # First fit fills a cell until less is left than the largest object needs.
        lost = max(self._largest - 1, 0)
        if self._cells.free_words - self._cells.free_cells * lost >= needed:
            return True
        return int(np.maximum(self._cells.lists().sizes - lost, 0).sum()) >= needed

    # Collections.

    def _begin(self, kind: str) -> Sequence[Phase]:
        for part in self._parts:
            part.retire()
        self._slot = 0
        return self._begin_minor() if kind == MINOR else self._begin_full()

    def _begin_minor(self) -> Sequence[Phase]:
        if not self._may_promote():
            # Requested, but a nursery can only be emptied into an old generation with room: do
            # nothing.
            return [Phase(name, _nothing) for name in self.kinds[MINOR]]
        source, target = self._parts[0], self._parts[-1]
        state = self._state
        state[:] = 0
        state[[loops.FROM_START, loops.FROM_END, loops.TO_TOP]] = (
            source.start,
            source.start + self._part,
            target.start,
        )
        state[[loops.YOUNG_START, loops.YOUNG_END]] = self.heap.start, self._old_start
        state[loops.TENURING] = 0 if self._promote_all else self._tenuring
        state[[loops.BUMP_OLD, loops.OLD_TOP, loops.OLD_END]] = (
            self._slides,
            self._old_top(),
            self._old_end,
        )
        self._noted = self._records.count
        return (
            Phase("roots", self._roots, "roots"),
            Phase("remembered", self._remembered, "cards or objects"),
            Phase("copy", self._copy),
        )

    def _common(self) -> tuple[Words, Words, Words, Words, Words, Words, Words]:
        heads, tails, free = (
            self._cells.records if self._cells else (self._state, self._state, self._state)
        )
        return (
            self._queue,
            heads,
            tails,
            free,
            self._records.starts,
            self._records.state,
            self._state,
        )

    def _roots(self, limit: int) -> int:
        heap, first = self.heap, self._slot
        self._slot = min(first + limit, len(heap.roots))
        loops.copy_from_roots(heap.words, heap.roots, *self._common(), first, self._slot)
        return self._slot - first

    def _remembered(self, limit: int) -> int:
        words, records = self.heap.words, self._records
        if records.barrier == "cards":
            return loops.copy_from_cards(words, records.table, *self._common(), limit)
        return loops.copy_from_noted(words, records.noted, *self._common(), self._noted, limit)

    def _copy(self, limit: int) -> int:
        return loops.copy_from_queue(
            self.heap.words, self._records.table, self._records.noted, *self._common(), limit
        )

    def _begin_full(self) -> Sequence[Phase]:
        marking, sliding, records, active = (
            self._marking,
            self._sliding,
            self._records,
            self._parts[0],
        )
        marking.begin()
        records.forget()
        moving = [(active.start, active.start + self._part, active.top)]
        if self._slides:
            sliding.begin([(self._old_start, self._old_end, self._bump.top), *moving])
        else:
            sliding.begin(moving, [(self._old_start, self._old_end)])
        phases = [
            Phase("roots", marking.roots, "roots"),
            Phase("mark", marking.trace),
            Phase("forward", sliding.plan, "cells", sliding.rewind),
            Phase("update", sliding.update, "roots and cells", sliding.rewind),
            Phase("move", sliding.slide, "cells", sliding.rewind),
        ]
        if self._cells is not None:
            phases.append(Phase("sweep", self._cells.sweep, "cells", self._cells.begin_sweep))
        return [*phases, Phase("barrier", self._record_again, "cells")]

    def _record_again(self, limit: int) -> int:
        return self._records.record_again(
            int(self._sliding.news[0]) if self._slides else self._old_end, limit
        )

    def _end(self, collection: Collection) -> None:
        counts = collection.counts
        if collection.kind == FULL:
            objects, words = self._sliding.moved
            counts.update({"moved objects": objects, "moved words": words})
            news = self._sliding.news.tolist()
            if self._slides:
                self._bump.reset(news[0])
            self._parts[0].reset(news[-1])
        elif len(self._state) and self._state[loops.FROM_END]:
            state = self._state
            counts.update(
                {
                    "copied objects": int(state[loops.COPIED]),
                    "copied words": int(state[loops.COPIED_WORDS]),
                }
            )
            counts.update(
                {
                    "promoted objects": int(state[loops.PROMOTED]),
                    "promoted words": int(state[loops.PROMOTED_WORDS]),
                }
            )
            counts["not promoted for lack of room"] = int(state[loops.REFUSED])
            if self._slides:
                self._bump.reset(int(state[loops.OLD_TOP]))
            source, target = self._parts[0], self._parts[-1]
            source.reset()
            target.reset(int(state[loops.TO_TOP]))
            self._parts.reverse()
            self._largest = 0 if target.top == target.start else self._largest
            state[loops.FROM_END] = 0
        self._limited()
        self._resize()
        counts["freed words"] = collection.used_before - self.used_words()
        counts["dirty cards"] = int(np.count_nonzero(self._records.table))
        counts["remembered objects"] = self._records.count

    def _limited(self) -> None:
        for part in self._parts:
            part.end = part.start + self._young_limit

    def _share(self, words: int) -> int:
        """The size of a part of the heap after the heap is made smaller: all parts shrink by the same factor."""
        return words * self._wanted // (self._size * self.heap.align_words) * self.heap.align_words

    @property
    def _young_limit(self) -> int:
        return min(self._limit, self._share(self._part))

    @property
    def _old_end(self) -> int:
        return self._cells.end if self._cells else self._bump.end

    def _resize(self) -> None:
        """Let the old generation end where it is requested: not before its last object. The free cells there are others then."""
        wanted = self._old_start + self._share(self.heap.end - self._old_start)
        if self._cells is None:
            self._bump.end = max(wanted, self._bump.top)
        elif wanted != self._cells.end:
            self._cells.resize(wanted)
            self._records.forget()
            self._records.record_again(self._cells.end, WHOLE)

    # Content for drivers and `verify`.

    def _old_top(self) -> int:
        return self._bump.top if self._slides else self._old_end

    def spaces(self) -> Sequence[PlanSpace]:
        """The halves of the young generation, or the nursery; the old generation."""
        active, other = self._parts[0], self._parts[-1]
        minor = bool(self._phases) and self._state[loops.FROM_END] > 0
        roles = {
            id(other): ("to", int(self._state[loops.TO_TOP])) if minor else ("idle", other.start)
        }
        sliding = (
            bool(self._phases) and self.collection is not None and self.collection.kind == FULL
        )
        top = int(self._sliding.tops[-1]) if sliding else active.top
        roles[id(active)] = ("from" if minor else "nursery", top)
        old_top = self._old_top()
        if self._slides and (minor or sliding):
            old_top = int(self._state[loops.OLD_TOP] if minor else self._sliding.tops[0])
        names = (
            ("Nursery",) if len(self._parts) == 1 else ("Young, lower half", "Young, upper half")
        )
        parts = sorted(self._parts, key=lambda part: part.start)
        found = [
            PlanSpace(
                name, roles[id(part)][0], part.start, part.start + self._part, roles[id(part)][1]
            )
            for name, part in zip(names, parts, strict=True)
        ]
        return [*found, PlanSpace("Old", "old", self._old_start, self._old_end, old_top)]

    def used_words(self) -> int:
        """Words given out of both generations, garbage included."""
        return self._parts[0].used_words + (
            self._cells.used_words if self._cells else self._bump.used_words
        )

    def free_lists(self) -> FreeLists | None:
        """Return those of the old generation, if it is swept."""
        return self._cells.lists() if self._cells else None

    def cards(self) -> CardTable | None:
        """Return the card table, if there is one."""
        records = self._records
        return (
            CardTable(records.start, records.card_words, records.table.copy())
            if records.barrier == "cards"
            else None
        )

    def remembered_sets(self) -> Sequence[RememberedSet]:
        """Return the old objects that refer to young ones, if they are kept."""
        records = self._records
        return (
            ()
            if records.barrier == "cards"
            else (
                RememberedSet(
                    "Young generation", self.heap.start, self._old_start, records.holders()
                ),
            )
        )

    def check(self) -> list[str]:
        """Say which old objects refer to young ones, and are not recorded."""
        words, records, found = self.heap.words.tolist(), self._records, []
        noted = set(records.holders().tolist())
        for cell in self.heap.cells(self._old_start, self._old_top()).tolist():
            if words[cell] & FREE:
                continue
            first = cell + HEADER_WORDS
            for field in range(first, first + ((words[cell] >> 24) & 0xFFFF)):
                if 0 < words[field] < self._old_start:
                    by_card = records.barrier == "cards" and bool(
                        records.table[(field - records.start) // records.card_words]
                    )
                    if not by_card and not (cell in noted and words[cell] & NOTED):
                        found.append(
                            f"word {field} of the old object at {cell} refers to the young one at {words[field]}: the {records.barrier} missed it"
                        )
        return found

    def knobs(self) -> Sequence[Knob]:
        """Size of the heap, of which both generations have their share; how much of the young one is used, and when an object is old."""
        heap = heap_knob(self.heap, self.heap.start + self._wanted)
        nursery = nursery_knob(self._limit, self._part)
        return (
            (heap, nursery)
            if len(self._parts) == 1
            else (
                heap,
                nursery,
                Knob("tenuring", "Collections until promotion", self._tenuring, (0, MAX_AGE)),
            )
        )

    def _turn(self, name: str, value: int | str) -> None:
        if name == "tenuring":
            self._tenuring = int(value)
        elif name == "heap":
            self._wanted = self.heap.aligned(int(value) // WORD_BYTES)
            self._limited()
            if self.collection is None:
                self._resize()
        else:
            self._limit = int(value) // WORD_BYTES
            self._limited()


class GenerationalCompact(Generational):
    """Two generations; the old one is compacted."""

    name = "generational-compact"
    title = "Generational, compacting"
    kinds: ClassVar = {
        FULL: ("roots", "mark", "forward", "update", "move", "barrier"),
        MINOR: Generational.kinds[MINOR],
    }
    _slides = True
