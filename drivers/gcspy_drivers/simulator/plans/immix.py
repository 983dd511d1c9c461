"""Immix: mark-region, with opportunistic evacuation of blocks that have become fragmented.

Source: S. M. Blackburn and K. S. McKinley, Immix: a mark-region garbage collector with space efficiency, fast collection, and mutator performance, PLDI
2008. We differ in this: lines are marked exactly, for each line an object touches, where the paper leaves the last one of a small object to be skipped
when holes are looked for; blocks to be evacuated are those with the fewest lines in use, up to half full and as many as there is free room for, where the paper
takes those with the most holes; large objects have whole blocks of this space, not a space of their own; dead objects turn into free cells when
their block is swept, so that a heap can be walked, which the paper need not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from gcspy_drivers.simulator.facts import CardTable, Regions
from gcspy_drivers.simulator.heap import WORD_BYTES, Heap
from gcspy_drivers.simulator.plan import (
    FULL,
    Choice,
    Collection,
    Knob,
    Phase,
    Plan,
    PlanSpace,
    heap_knob,
)
from gcspy_drivers.simulator.policies.marking import Marking
from gcspy_drivers.simulator.policies.markregion import (
    ABSENT,
    KIND_NAMES,
    LARGE,
    RECYCLABLE,
    BlockSpace,
    reach_roots,
    trace,
)

__all__ = ["Immix"]


class Immix(Plan):
    """Blocks of lines.

    Args:
        block_bytes, line_bytes: Their sizes.
        evacuate: Whether objects of fragmented blocks are moved while they are marked.
    """

    name = "immix"
    title = "Immix: mark-region"
    moves = True
    kinds: ClassVar = {FULL: ("roots", "mark", "sweep")}

    def __init__(
        self,
        heap: Heap,
        *,
        threads: int = 1,
        block_bytes: int = 4096,
        line_bytes: int = 128,
        evacuate: bool = True,
    ) -> None:
        super().__init__(heap, threads=threads)
        # Never more than a block of forty, as in the paper; one at least.
        reserve = max((heap.end - heap.start) // (block_bytes // 8) // 40, 1) if evacuate else 0
        self._space = BlockSpace(
            heap,
            heap.start,
            heap.end,
            threads=threads,
            block_bytes=block_bytes,
            line_bytes=line_bytes,
            reserve=reserve,
        )
        self._marking = Marking(heap)
        self._reserve, self._evacuate, self._used = reserve, evacuate, 0
        self._wanted = heap.end
        # Lines of each block that survivors of the last collection are in.
        self._survived = self._space.lines_in_use()

    def spaces(self) -> Sequence[PlanSpace]:
        """One: as much of the heap as whole blocks are."""
        return [PlanSpace("Blocks", "blocks", self._space.start, self._space.end, self._space.end)]

    def used_words(self) -> int:
        """Words of objects: those that survived, and those made since."""
        return self._used

    def regions(self) -> Regions:
        """The blocks; their tops are their ends, and what is in use of each are its lines: not known while they are marked anew."""
        space = self._space
        starts = np.arange(space.start, space.end, space.block_words, dtype=np.int64)
        nothing = np.full(len(starts), -1, dtype=np.int64)
        ends = starts + space.block_words
        marked = self.collection is None or not self.collection.phase
        used = space.lines_in_use() * space.line_words if marked else nothing
        return Regions(
            "block",
            starts,
            ends,
            ends,
            space.kinds.astype(np.int64),
            KIND_NAMES,
            nothing,
            nothing,
            used=used,
        )

    @property
    def heap_words(self) -> int:
        """Words of the blocks that are in the heap."""
        return int((self._space.kinds != ABSENT).sum()) * self._space.block_words

    @property
    def _blocks_wanted(self) -> int:
        return max((self._wanted - self.heap.start) // self._space.block_words, 2 + self._reserve)

    def lines(self) -> CardTable:
        """The lines, and whether each is in use."""
        return CardTable(
            self._space.start, self._space.line_words, self._space.lines.copy(), ("free", "in use")
        )

    def check(self) -> list[str]:
        """Each object lies in lines that are in use."""
        if self.collection is not None:
            return []
        space, objects = self._space, self.objects()
        first = (objects.cells - space.start) // space.line_words
        last = (objects.cells + objects.sizes - 1 - space.start) // space.line_words
        in_use = np.concatenate(([0], np.cumsum(space.lines, dtype=np.int64)))
        wrong = objects.where(in_use[last + 1] - in_use[first] != last + 1 - first)
        return [f"object {one} lies in lines that are free" for one in wrong.identities.tolist()]

    def knobs(self) -> Sequence[Knob]:
        """Size of the heap, which changes by blocks, and whether it evacuates."""
        return (
            heap_knob(self.heap, self._wanted),
            Knob(
                "evacuate",
                "Move objects out of fragmented blocks",
                "yes" if self._evacuate else "no",
                Choice(("yes", "no")),
            ),
        )

    def _turn(self, name: str, value: int | str) -> None:
        if name == "heap":
            self._wanted = self.heap.start + int(value) // WORD_BYTES
            self._space.resize(self._blocks_wanted)
            return
        self._evacuate = value == "yes"
        self._space.reserve = self._reserve if self._evacuate else 0

    def _allocate(self, thread: int, size: int, status: int, identity: int) -> int:
        cell = self._space.allocate(thread, size, status, identity)
        if cell:
            self._used += size
        return cell

    def _make_room(self, thread: int, size: int, status: int, identity: int) -> int:
        """Collect; what is kept for survivors is given away before a program ends for want of it."""
        cell = super()._make_room(thread, size, status, identity)
        if not cell and self._space.reserve:
            kept, self._space.reserve = self._space.reserve, 0
            cell = self._allocate(thread, size, status, identity)
            self._space.reserve = kept
        return cell

    def _begin(self, kind: str) -> Sequence[Phase]:
        self._choose()
        self._space.begin()
        self._marking.begin()
        return (
            Phase("roots", self._roots, "roots"),
            Phase("mark", self._trace),
            Phase("sweep", self._space.sweep, "blocks", self._space.begin_sweep),
        )

    def _choose(self) -> None:
        """Choose the blocks that are evacuated: those with the fewest lines in use, as many as survivors have room for."""
        space = self._space
        space.leaving[:] = 0
        if not self._evacuate:
            return
        per_block = space.block_words // space.line_words
        # As the last sweep found it: since then threads have taken the holes, and most objects in
        # those will have died.
        in_use = self._survived
        sparse = np.flatnonzero((space.kinds == RECYCLABLE) & (in_use * 2 <= per_block))
        sparse = sparse[np.argsort(in_use[sparse], kind="stable")]
        room = space.free_blocks * per_block
        space.leaving[sparse[np.cumsum(in_use[sparse]) <= room]] = 1

    def _roots(self, limit: int) -> int:
        heap, space, marking = self.heap, self._space, self._marking
        behind = min(marking.slot + limit, len(heap.roots))
        reach_roots(
            heap.words, space.lines, space.kinds, space.leaving, space.geometry, space.state, space.survivors,
            marking.stack, marking.top, heap.roots, marking.slot, behind,
        )  # fmt: skip
        done, marking.slot = behind - marking.slot, behind
        return done

    def _trace(self, limit: int) -> int:
        space, marking = self._space, self._marking
        return trace(
            self.heap.words, space.lines, space.kinds, space.leaving, space.geometry, space.state, space.survivors,
            marking.stack, marking.top, limit,
        )  # fmt: skip

    def _end(self, collection: Collection) -> None:
        self._space.leaving[:] = 0
        self._used = self._space.live_words
        self._survived = self._space.lines_in_use()
        self._space.resize(self._blocks_wanted)
        collection.counts.update(self._space.counts())
        collection.counts["large blocks"] = int((self._space.kinds == LARGE).sum())
