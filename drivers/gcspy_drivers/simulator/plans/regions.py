"""Garbage-first: a heap of regions, of which a pause evacuates as many as its goal allows, those with the most garbage first.

The program allocates in eden regions. A collection evacuates the *collection set*: all eden and
survivor regions (``young``), and after a marking also old ones with little live data (``mixed``),
from roots and from the regions' remembered sets, without reading the rest of the heap. A marking
computes the live data of each region, and frees regions without any.

Source: D. Detlefs, C. Flood, S. Heller and T. Printezis, Garbage-first garbage collection, ISMM
2004. Different here: the marking stops the program (theirs runs concurrently, from a snapshot at
the beginning); the pause goal is a number of regions, not milliseconds; remembered sets are exact
(`policies/slotsets.py`; theirs are cards, refined concurrently); a marking clears the fields of
dead objects at once, which removes them from the remembered sets; a collection of kind ``full``
slides live objects together within the order of regions (`policies/sliding.py`). Objects larger
than half a region have adjacent regions of their own, and do not move. Eden grows while there are
regions for all objects that might survive, so an evacuation never fails once it has begun.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np
from gcspy_protocol.errors import LocalProtocolError

from gcspy_drivers.simulator.facts import Regions, RememberedSet
from gcspy_drivers.simulator.heap import (
    HEADER_WORDS,
    MAX_AGE,
    WHITE,
    WORD_BYTES,
    Heap,
    make_object,
    paint,
)
from gcspy_drivers.simulator.loops import Words
from gcspy_drivers.simulator.plan import FULL, Collection, Knob, Phase, Plan, PlanSpace
from gcspy_drivers.simulator.plans import _regions as loops
from gcspy_drivers.simulator.policies.marking import Marking
from gcspy_drivers.simulator.policies.sliding import Sliding
from gcspy_drivers.simulator.policies.slotsets import (
    COUNT,
    KEY,
    KIND,
    LINKS,
    ROW,
    TOP,
    drop_all,
    empty,
    first_run,
    members,
    set_faults,
)

__all__ = ["MARK", "MIXED", "YOUNG", "GarbageFirst"]

YOUNG: Final = "young"
MIXED: Final = "mixed"
MARK: Final = "mark"
_KINDS: Final = ("free", "eden", "survivor", "old", "large", "large, continued")
_WORTH: Final = 85
"""Percent of a region that may live if it is to be evacuated: HotSpot's G1MixedGCLiveThresholdPercent."""


class GarbageFirst(Plan):
    """Regions of one size.

    Args:
        region_bytes: Size of a region; 0: so that there are 32, or fewer if these were of less than 256 bytes.
        pause_regions: Regions in a collection set, at most; 0: a quarter of all.
        tenuring: Collections that an object survives in survivor regions before the next one promotes it.
        marking_percent: How much of the heap is old when a marking is due: HotSpot's InitiatingHeapOccupancyPercent.
    """

    name = "regions"
    title = "Garbage-first regions"
    moves = True
    remembers = True
    kinds: ClassVar = {
        FULL: ("roots", "mark", "forward", "update", "move", "remember"),
        YOUNG: ("roots", "remembered"),
        MIXED: ("roots", "remembered"),
        MARK: ("roots", "mark", "scrub"),
    }

    def __init__(
        self,
        heap: Heap,
        *,
        threads: int = 1,
        region_bytes: int = 0,
        pause_regions: int = 0,
        tenuring: int = 2,
        marking_percent: int = 45,
    ) -> None:
        super().__init__(heap, threads=threads)
        self._size, self._count = heap.regions_of(region_bytes)
        if (
            self._count < 8
            or self._size < 32
            or not 0 <= pause_regions <= self._count
            or not 0 <= tenuring <= MAX_AGE
            or not 0 < marking_percent <= 100
        ):
            raise LocalProtocolError(
                f"{self._count} regions of {self._size * WORD_BYTES} bytes, {pause_regions} in a pause, tenuring {tenuring}, marking at {marking_percent} %: "
                f"give at least 8 of at least 256 bytes, 0 to as many in a pause, 0 to {MAX_AGE}, 1 to 100"
            )
        self._rows: Words = np.zeros((self._count + 1) * ROW, dtype=np.int64)
        self._table = self._rows.reshape(-1, ROW)[:-1]
        self._links: Words = np.zeros(len(heap.words) * LINKS, dtype=np.int64)
        self._chosen: Words = np.zeros(self._count, dtype=np.int64)
        self._born: Words = np.zeros(self._count, dtype=np.int64)
        self._queue: Words = np.empty((heap.end - heap.start) // HEADER_WORDS + 1, dtype=np.int64)
        self._state: Words = np.zeros(loops.STATES, dtype=np.int64)
        self._state[[loops.START, loops.SIZE, loops.COUNT_OF, loops.FREE_REGIONS]] = (
            heap.start,
            self._size,
            self._count,
            self._count,
        )
        self._state[[loops.SURVIVOR_REGION, loops.OLD_REGION]] = -1
        self._marking, self._sliding = Marking(heap), Sliding(heap)
        self._current = [-1] * threads
        self._pause, self._tenuring, self._percent = (
            pause_regions or max(self._count // 4, 2),
            tenuring,
            marking_percent,
        )
        self._marked_at = self._slot = self._freed = self._withheld = 0
        self._slid: list[int] = []

    # Operations of the program.

    def write(self, holder: int, number: int, target: int) -> None:
        """Store, and let the field be in the set that it belongs into now."""
        slot = holder + HEADER_WORDS + number
        self.heap.words[slot] = target
        loops.renote(self.heap.words, self._links, self._rows, self._state, slot)

    def _start_of(self, region: int) -> int:
        return self.heap.start + region * self._size

    @property
    def _free(self) -> int:
        """Number of further regions that may be used; below 0 after the heap was shrunk, until a full collection has made room."""
        return int(self._state[loops.FREE_REGIONS]) - self._withheld

    def _needed_for(self, words: int) -> int:
        """Return how many regions hold this many words of survivors and promoted objects, whatever their sizes."""
        return -(-words // (self._size - self._size // 2 + 1)) + 2 if words else 0

    def _of_kind(self, *kinds: int) -> list[int]:
        found: list[int] = np.flatnonzero(np.isin(self._table[:, KIND], kinds)).tolist()
        return found

    def _words_in(self, regions: Sequence[int]) -> int:
        return (
            int(self._table[regions, TOP].sum()) - sum(self._start_of(region) for region in regions)
            if len(regions)
            else 0
        )

    def _allocate(self, thread: int, size: int, status: int, identity: int) -> int:
        cell = self._place_large(size) if 2 * size > self._size else self._place(thread, size)
        if cell:
            make_object(self.heap.words, cell, status, identity)
        return cell

    def _place(self, thread: int, size: int) -> int:
        region = self._current[thread]
        if region < 0 or self._table[region, TOP] + size > self._start_of(region + 1):
            young = self._of_kind(loops.EDEN, loops.SURVIVOR)
            # The program may still fill up the eden regions in use.
            most = (len(young) + 1) * self._size
            goal = self._pause if not self._candidates() else max(self._pause // 2, 1)
            survivors = len(self._of_kind(loops.SURVIVOR))
            if len(young) >= max(goal, survivors + 1) or self._free - 1 < self._needed_for(most):
                return 0
            region = self._current[thread] = loops.take_region(self._rows, self._state, loops.EDEN)
            self._born[region] = self.collections
        cell = int(self._table[region, TOP])
        self._table[region, TOP] = cell + size
        return cell

    def _place_large(self, size: int) -> int:
        """Take adjacent regions; return their first word, or 0."""
        needed = -(-size // self._size)
        young = self._of_kind(loops.EDEN, loops.SURVIVOR)
        if self._free - needed < self._needed_for(len(young) * self._size):
            return 0
        first = first_run(self._table[:, KIND] == loops.FREE_REGION, needed)
        if first < 0:
            return 0
        self._table[first : first + needed, [KEY, KIND]] = -1, loops.CONTINUED
        self._table[first, [KIND, TOP]] = loops.LARGE, self._start_of(first) + size
        self._born[first : first + needed] = self.collections
        self._state[loops.FREE_REGIONS] -= needed
        return self._start_of(first)

    def _make_room(self, thread: int, size: int, status: int, identity: int) -> int:
        old = len(self._of_kind(loops.OLD, loops.LARGE, loops.CONTINUED))
        due = 100 * old >= self._percent * self._count and self.collections - self._marked_at > 4
        kinds = [MARK] if due else []
        kinds.append(MIXED if due or self._candidates() else YOUNG)
        for kind in (*kinds, FULL):
            self.collect(kind, "allocation failure")
            cell = self._allocate(thread, size, status, identity)
            if cell:
                return cell
        return 0

    def _candidates(self) -> list[int]:
        """Return the old regions that are worth evacuating, the one with the least in it first."""
        table = self._table
        worth = (
            (table[:, KIND] == loops.OLD)
            & (table[:, KEY] >= 0)
            & (100 * table[:, KEY] <= _WORTH * self._size)
        )
        found = np.flatnonzero(worth)
        ordered: list[int] = found[np.argsort(table[found, KEY], kind="stable")].tolist()
        return ordered

    # Collections.

    def _begin(self, kind: str) -> Sequence[Phase]:
        self._slot = self._freed = 0
        self._state[
            [loops.COPIED, loops.COPIED_WORDS, loops.PROMOTED_WORDS, loops.REGION, loops.CELL]
        ] = 0
        if kind in (YOUNG, MIXED):
            self._choose(mixed=kind == MIXED)
            return Phase("roots", self._pull_roots), Phase("remembered", self._pull_sets)
        marking, sliding = self._marking, self._sliding
        marking.begin()
        marks = (Phase("roots", marking.roots, "roots"), Phase("mark", marking.trace))
        if kind == MARK:
            return *marks, Phase("scrub", self._scrub, "cells")
        self._slid = self._of_kind(loops.EDEN, loops.SURVIVOR, loops.OLD)
        large = self._of_kind(loops.LARGE)
        tops = self._table[:, TOP].tolist()
        sliding.begin(
            [(self._start_of(one), self._start_of(one + 1), tops[one]) for one in self._slid],
            [(self._start_of(one), tops[one]) for one in large],
        )
        return (
            *marks,
            Phase("forward", sliding.plan, "cells", sliding.rewind),
            Phase("update", sliding.update, "roots and cells", sliding.rewind),
            Phase("move", sliding.slide, "cells", sliding.rewind),
            Phase("remember", self._remember, "cells", self._apply_slide),
        )

    def _choose(self, *, mixed: bool) -> None:
        """Choose the collection set: all that is young, then old regions while the goal and the free regions allow."""
        state, chosen = self._state, self._of_kind(loops.EDEN, loops.SURVIVOR)
        if self._needed_for(self._words_in(chosen)) > self._free:
            # Requested, or survivors left too much unused: evacuate nothing; a full collection
            # comes next.
            chosen, mixed = [], False
        for region in self._candidates() if mixed else ():
            more = [*chosen, region]
            if len(more) > self._pause or self._needed_for(self._words_in(more)) > self._free:
                break
            chosen = more
        self._chosen[:] = 0
        self._chosen[chosen] = 1
        state[[loops.CURSOR, loops.QUEUE_HEAD, loops.FIELD]] = 0
        state[loops.TENURING] = self._tenuring
        state[loops.SURVIVOR_REGION] = -1
        if state[loops.OLD_REGION] >= 0 and self._chosen[state[loops.OLD_REGION]]:
            state[loops.OLD_REGION] = -1

    def _pull_roots(self, limit: int) -> int:
        return loops.pull_from_roots(
            self.heap.words,
            self.heap.roots,
            self._links,
            self._rows,
            self._chosen,
            self._queue,
            self._state,
            limit,
        )

    def _pull_sets(self, limit: int) -> int:
        return loops.pull_from_sets(
            self.heap.words, self._links, self._rows, self._chosen, self._queue, self._state, limit
        )

    def _scrub(self, limit: int) -> int:
        return loops.scrub(self.heap.words, self._links, self._rows, self._state, limit)

    def _apply_slide(self) -> None:
        """Objects were moved: say which regions are in use, and empty all remembered sets."""
        for region in range(self._count):
            empty(self._links, self._rows, region)
        for region, top in zip(self._slid, self._sliding.news.tolist(), strict=True):
            if top > self._start_of(region):
                self._table[region, [KEY, KIND, TOP]] = top - self._start_of(region), loops.OLD, top
            else:
                self._release(region, 1)
        for region in self._of_kind(loops.LARGE):
            cell = self._start_of(region)
            if (int(self.heap.words[cell]) >> 56) & 3:
                paint(self.heap.words, cell, WHITE)
            else:
                self._release(region, self._regions_at(region))
        self._slid = []
        self._current = [-1] * self.threads
        self._state[[loops.SURVIVOR_REGION, loops.OLD_REGION]] = -1
        self._state[[loops.REGION, loops.CELL]] = 0

    def _remember(self, limit: int) -> int:
        return loops.renote_all(self.heap.words, self._links, self._rows, self._state, limit)

    def _regions_at(self, region: int) -> int:
        """Return how many regions belong to the one that begins here."""
        return max(-(-(int(self._table[region, TOP]) - self._start_of(region)) // self._size), 1)

    def _release(self, region: int, regions: int) -> None:
        self._table[region : region + regions, [KEY, KIND, TOP]] = 0
        self._state[loops.FREE_REGIONS] += regions
        self._freed += regions

    def _free_region(self, region: int) -> None:
        """Free a region, after taking what lies in it out of remembered sets."""
        drop_all(self._links, self._rows, self._start_of(region), int(self._table[region, TOP]))
        self._release(region, self._regions_at(region))

    def _end(self, collection: Collection) -> None:
        counts, state = collection.counts, self._state
        if state[loops.FAILED]:
            raise LocalProtocolError(
                "an evacuation found no free region: a defect of what sees to it that there are some"
            )
        if collection.kind in (YOUNG, MIXED):
            chosen = np.flatnonzero(self._chosen).tolist()
            for region in chosen:
                self._free_region(region)
            self._current = [-1] * self.threads
            new = [
                one
                for one in self._of_kind(loops.SURVIVOR, loops.OLD)
                if self._born[one] < 0 or one in chosen
            ]
            self._born[new] = collection.number
            counts.update(
                {
                    "collection set": len(chosen),
                    "copied objects": int(state[loops.COPIED]),
                    "copied words": int(state[loops.COPIED_WORDS]),
                }
            )
            counts["promoted words"] = int(state[loops.PROMOTED_WORDS])
        elif collection.kind == MARK:
            for region in self._of_kind(loops.OLD, loops.LARGE):
                if self._table[region, KEY] == 0:
                    self._free_region(region)
            counts["live words"] = int(np.maximum(self._table[:, KEY], 0).sum())
            self._marked_at = collection.number
            state[loops.OLD_REGION] = -1
        else:
            objects, words = self._sliding.moved
            counts.update({"moved objects": objects, "moved words": words})
            self._marked_at = collection.number
        self._born[self._table[:, KIND] == loops.FREE_REGION] = -1
        counts["freed regions"] = self._freed
        counts["freed words"] = collection.used_before - self.used_words()
        counts["remembered references"] = int(self._table[:, COUNT].sum())

    # Content for drivers and `verify`.

    def spaces(self) -> Sequence[PlanSpace]:
        """One: all regions."""
        end = self._start_of(self._count)
        return [PlanSpace("Regions", "regions", self.heap.start, end, end)]

    def extents(self) -> list[tuple[int, int]]:
        """Each region in use, up to its top."""
        tops = self._table[:, TOP].tolist()
        for region, top in zip(self._slid, self._sliding.tops.tolist(), strict=False):
            tops[region] = top
        regions = self._of_kind(loops.EDEN, loops.SURVIVOR, loops.OLD, loops.LARGE)
        return [
            (self._start_of(one), tops[one]) for one in regions if tops[one] > self._start_of(one)
        ]

    def used_words(self) -> int:
        """Words given out of regions, garbage included."""
        return self._words_in(self._of_kind(loops.EDEN, loops.SURVIVOR, loops.OLD, loops.LARGE))

    def regions(self) -> Regions:
        """The regions: what each is, how much was found alive in it, whether it is in the collection set, and its age in collections."""
        table = self._table
        starts = self.heap.start + np.arange(self._count, dtype=np.int64) * self._size
        heads = np.maximum.accumulate(
            np.where(table[:, KIND] == loops.CONTINUED, 0, np.arange(self._count))
        )
        tops = np.clip(table[heads, TOP], starts, starts + self._size)
        free = table[:, KIND] == loops.FREE_REGION
        none = np.full(self._count, -1, dtype=np.int64)
        live = np.where(free, 0, table[:, KEY])
        ages = np.where(free, 0, self.collections - np.maximum(self._born, 0))
        return Regions(
            "region",
            starts,
            starts + self._size,
            tops,
            table[:, KIND].copy(),
            _KINDS,
            none,
            none.copy(),
            live,
            self._chosen.copy(),
            ages,
        )

    def remembered_sets(self) -> Sequence[RememberedSet]:
        """The fields that refer into each region in use, from others that are not young."""
        found = []
        for region in self._of_kind(loops.EDEN, loops.SURVIVOR, loops.OLD, loops.LARGE):
            holders = members(self._links, self._rows, region)
            end = self._start_of(region + self._regions_at(region))
            found.append(RememberedSet(f"Region {region}", self._start_of(region), end, holders))
        return found

    def check(self) -> list[str]:
        """Say which references are in no set, or in a wrong one, and whether regions are counted rightly."""
        words, expected = self.heap.words, {}
        kinds = self._table[:, KIND].tolist()
        for start, end in self.extents():
            for slot in self.heap.field_slots(start, end):
                holder = (slot - self.heap.start) // self._size
                target = int(words[slot])
                at = (target - self.heap.start) // self._size
                if target and holder != at and kinds[holder] not in (loops.EDEN, loops.SURVIVOR):
                    expected[slot] = at
        found = set_faults(self._links, self._rows, self._count, "region", expected)
        if self._state[loops.FREE_REGIONS] != len(self._of_kind(loops.FREE_REGION)):
            found.append(f"{self._state[loops.FREE_REGIONS]} regions are said to be free")
        return found

    def knobs(self) -> Sequence[Knob]:
        """How many of the regions may be used, the pause goal, when an object is old, and when a marking is due."""
        region, most = self._size * WORD_BYTES, self._count - self._withheld
        return (
            Knob("heap", "Heap", most * region, (8 * region, self._count * region), "bytes"),
            Knob("pause", "Regions in a pause", self._pause, (1, self._count), "regions"),
            Knob("tenuring", "Collections until promotion", self._tenuring, (0, MAX_AGE)),
            Knob(
                "marking",
                "Old part of the heap at which it is marked",
                self._percent,
                (1, 100),
                "%",
            ),
        )

    def _turn(self, name: str, value: int | str) -> None:
        if name == "heap":
            self._withheld = self._count - int(value) // (self._size * WORD_BYTES)
        elif name == "pause":
            self._pause = int(value)
        elif name == "tenuring":
            self._tenuring = int(value)
        else:
            self._percent = int(value)
