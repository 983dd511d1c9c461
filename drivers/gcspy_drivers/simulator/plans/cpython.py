"""CPython's collector: counts of references, and three generations of containers in which cycles are looked for.

Every reference counts, also from roots; an object whose count falls to 0 is freed at once, with those that only it referred to. Objects with reference fields are
*containers*, and are in the list of a generation. A collection of a generation, which takes the younger ones with it, copies the counts of its containers,
takes away the references between them, and follows what is left: containers that are not reached are referred to from one another only. Survivors
are in the next generation.

It collects at the next allocation when there are more than `threshold0` new containers (those made less those freed), the second generation after more than
`threshold1` collections of the first, the third after more than `threshold2` of the second, and only if what came into it since
the last time is at least a quarter of what survived that.

*Finalisers* are called, once for each object, when its count falls to 0, or, for all objects of garbage cycles, before any of these is freed; an object that its finaliser
makes reachable again stays, with what it refers to. *Weak references* to garbage are cleared, and their callbacks called, before the finalisers of a cycle, and
after the finaliser of an object whose count fell to 0.

Source: CPython 3.12 and 3.13, `Python/gc.c`, `InternalDocs/garbage_collector.md`; 3.12 has a `threshold0` of 700, 3.13 of 2,000. Different here: atomic objects are those
without fields, and no container becomes atomic later; there is no free threading; memory comes from free lists, whose neighbours are
merged by full collections. CPython never collects because memory is short: its heap grows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from gcspy_drivers.simulator.facts import FinalisationCounts, Generations
from gcspy_drivers.simulator.heap import (
    HEADER_WORDS,
    LINK_SHIFT,
    NOTED,
    TYPE_SHIFT,
    WHITE,
    Heap,
    identity_of,
    link_of,
    set_age,
)
from gcspy_drivers.simulator.loops import Words
from gcspy_drivers.simulator.plan import (
    FULL,
    WHOLE,
    Collection,
    Knob,
    Phase,
    heap_knob,
)
from gcspy_drivers.simulator.plans._free_lists import FreeListPlan
from gcspy_drivers.simulator.policies.counted_lists import (
    CONTAINERS_FREED,
    FREED,
    FREED_WORDS,
    PENDING,
    CountedLists,
    assign,
    clear,
    copy_counts,
    release,
    subtract,
    trace,
)
from gcspy_drivers.simulator.policies.freelist import FreeListSpace
from gcspy_drivers.simulator.policies.reference_counts import wrong_counts

__all__ = ["GENERATIONS", "REGION_PHASES", "CPython"]

GENERATIONS: Final = ("generation 0", "generation 1", FULL)
"""Kinds of collection, by the oldest generation that they collect."""
REGION_PHASES: Final = (
    "copy counts",
    "subtract",
    "trace",
    "weak references",
    "finalisers",
    "check again",
    "clear",
)
_ONE: Final = 1 << LINK_SHIFT
_TYPES: Final = (1 << 12) - 1
_OLDEST: Final = 2

# Lists, by their sentinels.
GENERATION, _APART, _GARBAGE, INCREMENT, REACHED = 1, 4, 5, 6, 7
_LISTS: Final = 7


class CPython(FreeListPlan):
    """Counts and three generations, as in CPython 3.12 and 3.13.

    Args:
        threshold0: New containers that begin a collection of generation 0; 0: never.
        threshold1: Collections of generation 0 after which generation 1 is collected.
        threshold2: The same for generation 2.
        lists: As in `FreeListSpace`.

    Attributes:
        calls: What was called, in this order: ``finaliser`` or ``callback``, and the number of the object that it was for.
    """

    name = "cpython"
    title = "CPython: counts and generations"
    frees_early = True
    generation_names: ClassVar = ("generation 0", "generation 1", "generation 2")
    kinds: ClassVar = {
        GENERATIONS[0]: REGION_PHASES,
        GENERATIONS[1]: REGION_PHASES,
        FULL: (*REGION_PHASES, "merge"),
    }

    def __init__(
        self,
        heap: Heap,
        *,
        threads: int = 1,
        threshold0: int = 700,
        threshold1: int = 10,
        threshold2: int = 10,
        lists: int = 32,
    ) -> None:
        space = FreeListSpace(heap, heap.start, heap.end, lists=lists)
        super().__init__(heap, space, threads=threads)
        self._lists = CountedLists(heap, _LISTS)
        self._thresholds = [threshold0, threshold1, threshold2]
        self._counts = [0, 0, 0]
        self._collections, self._collected = [0, 0, 0], [0, 0, 0]
        self._oldest_before = self._came_since = 0
        self._generation = 0
        self._from = self._to = GENERATION
        self._to_label = 0
        self._todo: list[int] = []
        self._left = 0
        self._finalisers: dict[int, Callable[[int], None]] = {}
        self._finalised: set[int] = set()
        self._referents: dict[int, int] = {}
        self._weak: dict[int, list[int]] = {}
        self._callbacks: set[int] = set()
        self.calls: list[tuple[str, int]] = []
        self._called = self._resurrected = self._revived = self._cleared = 0

    # Operations of the program.

    def alloc(self, thread: int, size: int, fields: int, type_id: int) -> int:
        """Make an object, after a collection if one is due."""
        if self.collection is None:
            self._collect_if_due()
        cell = super().alloc(thread, size, fields, type_id)
        if fields:
            self._lists.add(GENERATION, cell)
            self._counts[0] += 1
        if type_id in self._finalisers:
            self.heap.words[cell] |= NOTED
        return cell

    def write(self, holder: int, number: int, target: int) -> None:
        """Store and count, and free what is at 0."""
        self._assign(self.heap.words, holder + HEADER_WORDS + number, target)

    def write_root(self, slot: int, target: int) -> None:
        """Store and count, and free what is at 0."""
        self._assign(self.heap.roots, slot, target)

    def finalise(self, type_id: int, call: Callable[[int], None]) -> None:
        """Call this with the address of each object of a type that is made from now on, once, before it is freed."""
        self._finalisers[type_id] = call

    def refer_weakly(self, weak: int, target: int, *, calls_back: bool) -> None:
        """Let an object be a weak reference to another one."""
        self._referents[weak] = target
        self._weak.setdefault(target, []).insert(0, weak)
        if calls_back:
            self._callbacks.add(weak)
        for cell in (weak, target):
            self.heap.words[cell] |= NOTED

    def weak_target(self, weak: int) -> int:
        """Return the object that a weak reference refers to; 0: it was cleared."""
        return self._referents.get(weak, 0)

    # Reports.

    def generations(self) -> Generations:
        """Return what each generation has, and what begins its collection."""
        return Generations(
            names=self.generation_names,
            objects=tuple(len(self._lists.members(GENERATION + one)) for one in range(3)),
            counts=tuple(self._counts),
            thresholds=tuple(self._thresholds),
            collections=tuple(self._collections),
            collected=tuple(self._collected),
        )

    def finalisation(self) -> FinalisationCounts:
        """Return what became of weak references and finalisers."""
        finalisers = sum(what == "finaliser" for what, _ in self.calls)
        return FinalisationCounts(
            weak=len(self._referents),
            cleared=self._cleared,
            callbacks=len(self.calls) - finalisers,
            finalisers=finalisers,
            resurrected=self._revived,
        )

    def check(self) -> list[str]:
        """Each count is the number of references to the object, each container is in the list that it should be in, and nothing is in question."""
        if self.collection is not None:
            return []
        objects = self.objects()
        found = wrong_counts(self.heap, objects)
        found += [
            f"object {one} is in question, and no collection is under way"
            for one in objects.where(objects.colours != WHITE).identities.tolist()
        ]
        listed = {cell: label for label, head in enumerate(self._heads()) for cell in self._lists.members(head)}  # fmt: skip
        containers = objects.where(objects.fields > 0)
        for cell, age in zip(containers.cells.tolist(), containers.ages.tolist(), strict=True):
            if listed.pop(cell, -1) != age:
                found.append(f"the container at word {cell} is not in the list of its generation")
        found += [f"a list has word {cell}, where there is no container" for cell in sorted(listed)]
        return found

    def _heads(self) -> Sequence[int]:
        """Sentinels of the lists, by the label that their objects have."""
        return range(GENERATION, GENERATION + 3)

    # Parameters.

    def knobs(self) -> Sequence[Knob]:
        """Size of the heap, and the thresholds."""
        return (
            heap_knob(self.heap, self._wanted),
            *(
                Knob(f"threshold{one}", f"Threshold {one}", value, (0, 100_000), "")
                for one, value in enumerate(self._thresholds)
            ),
        )

    def _turn(self, name: str, value: int | str) -> None:
        if name == "heap":
            self._resize(int(value))
        else:
            self._thresholds[int(name[-1])] = int(value)

    # Counting.

    def _assign(self, array: Words, at: int, target: int) -> None:
        assign(self.heap.words, array, at, target, self._lists.pending, self._lists.state)
        if self._lists.state[PENDING]:
            self._release()

    def _release(self) -> None:
        """Free what is at 0, after its finaliser and the callbacks of weak references to it."""
        lists = self._lists
        heads, tails, free = self._space.records
        words = self.heap.words
        while True:
            cell = release(words, lists.before, lists.after, lists.pending, lists.state, heads, tails, free)  # fmt: skip
            freed, lists.state[CONTAINERS_FREED] = int(lists.state[CONTAINERS_FREED]), 0
            self._forget(freed)
            if not cell:
                return
            lists.state[PENDING] -= 1
            if self._has_finaliser(cell):
                self._finalise(cell)
                if link_of(words, cell) > 0:
                    self._revived += 1
                    continue  # it was made reachable again
            self._clear_weak(cell, alive=None)
            self._drop_weak(cell)
            words[cell] &= ~NOTED
            lists.pending[lists.state[PENDING]] = cell
            lists.state[PENDING] += 1

    def _forget(self, freed: int) -> None:
        """Containers were freed."""
        self._counts[0] = max(0, self._counts[0] - freed)

    def _allocate(self, thread: int, size: int, status: int, identity: int) -> int:
        return self._space.allocate(size, status, identity)

    # Finalisers and weak references.

    def _has_finaliser(self, cell: int) -> bool:
        words = self.heap.words
        kind = (int(words[cell]) >> TYPE_SHIFT) & _TYPES
        return kind in self._finalisers and identity_of(words, cell) not in self._finalised

    def _finalise(self, cell: int) -> None:
        """Call an object's finaliser; meanwhile it has a reference more."""
        words = self.heap.words
        kind, number = (int(words[cell]) >> TYPE_SHIFT) & _TYPES, identity_of(words, cell)
        self._finalised.add(number)
        self.calls.append(("finaliser", number))
        words[cell + 1] += _ONE
        self._finalisers[kind](cell)
        words[cell + 1] -= _ONE

    def _clear_weak(self, cell: int, alive: set[int] | None) -> int:
        """Clear the weak references to an object, and call the callbacks of those that are not garbage themselves; return how many were cleared.

        Args:
            alive: Garbage of this collection: a weak reference in it has no callback any more. None: there is none.
        """
        cleared = self._weak.pop(cell, [])
        self._cleared += len(cleared)
        for weak in cleared:
            del self._referents[weak]
            if weak in self._callbacks and (alive is None or weak not in alive):
                self.calls.append(("callback", identity_of(self.heap.words, weak)))
            self._callbacks.discard(weak)
        return len(cleared)

    def _drop_weak(self, cell: int) -> None:
        """Forget a weak reference that is freed."""
        target = self._referents.pop(cell, 0)
        if target:
            self._weak[target].remove(cell)
            self._callbacks.discard(cell)

    # Collections.

    def _collect_if_due(self) -> None:
        """Collect the oldest generation that is due."""
        if not 0 < self._thresholds[0] < self._counts[0]:
            return
        for generation in range(_OLDEST, -1, -1):
            count, threshold = self._counts[generation], self._thresholds[generation]
            if count > threshold and not (
                generation == _OLDEST and self._came_since < self._oldest_before // 4
            ):
                what = "new containers" if generation == 0 else "collections of the younger one"
                self.collect(GENERATIONS[generation], f"{count:,} {what}")
                return

    def _begin(self, kind: str) -> Sequence[Phase]:
        generation = self._generation = GENERATIONS.index(kind)
        if generation < _OLDEST:
            self._counts[generation + 1] += 1
        self._counts[: generation + 1] = [0] * (generation + 1)
        for younger in range(generation):
            self._lists.merge(GENERATION + younger, GENERATION + generation)
        self._from = GENERATION + generation
        self._to_label = min(generation + 1, _OLDEST)
        self._to = GENERATION + self._to_label
        phases = self._region_phases()
        if kind != FULL:
            return phases
        return [*phases, Phase("merge", self._space.merge, "cells", self._space.begin_sweep)]

    def _region_phases(self) -> list[Phase]:
        """Phases that find the garbage cycles in the list `_from`, and put what survives into `_to`."""
        self._lists.state[[FREED, FREED_WORDS]] = 0
        self._called = len(self.calls)
        rewind = self._rewind
        return [
            Phase("copy counts", self._copy_counts, "objects", rewind),
            Phase("subtract", self._subtract, "objects", rewind),
            Phase("trace", self._trace, "objects", rewind),
            Phase("weak references", self._clear_references, "objects", self._keep_survivors),
            Phase("finalisers", self._call_finalisers, "objects", self._list_finalisers),
            Phase("check again", self._check_again, "objects", self._deduce_again),
            Phase("clear", self._clear),
        ]

    def _rewind(self) -> None:
        self._lists.rewind(self._from)

    def _copy_counts(self, limit: int) -> int:
        lists = self._lists
        return copy_counts(self.heap.words, lists.after, lists.refs, lists.state, self._from, limit)

    def _subtract(self, limit: int) -> int:
        lists = self._lists
        return subtract(self.heap.words, lists.after, lists.refs, lists.state, self._from, limit)

    def _trace(self, limit: int) -> int:
        lists = self._lists
        return trace(
            self.heap.words, lists.before, lists.after, lists.refs, lists.state, self._from, _APART, limit
        )  # fmt: skip

    def _keep_survivors(self) -> None:
        """Put what was reached into the older list, and list the garbage that weak references refer to."""
        lists = self._lists
        survived = lists.relabel(self._from, self._to_label)
        if self._from != self._to:
            lists.merge(self._from, self._to)
        self._survived(survived)
        self._todo = [one for one in lists.members(_APART) if one in self._weak]

    def _survived(self, objects: int) -> None:
        """So many containers survived the collection."""
        if self._generation == _OLDEST:
            self._oldest_before, self._came_since = objects, 0
        elif self._generation == _OLDEST - 1:
            self._came_since += objects

    def _clear_references(self, limit: int) -> int:
        garbage = set(self._lists.members(_APART)) if self._todo else set()
        done, self._todo = self._todo[:limit], self._todo[limit:]
        for cell in done:
            self._clear_weak(cell, garbage)
        return len(done)

    def _list_finalisers(self) -> None:
        noted = self.heap.words
        self._todo = [
            one
            for one in (self._lists.members(_APART) if self._finalisers else ())
            if noted[one] & NOTED and self._has_finaliser(one)
        ]

    def _call_finalisers(self, limit: int) -> int:
        done, self._todo = self._todo[:limit], self._todo[limit:]
        for cell in done:
            self._finalise(cell)
        return len(done)

    def _deduce_again(self) -> None:
        """Finalisers may have made objects reachable again: these survive, with all that they refer to."""
        lists, before = self._lists, self._from
        self._from = _APART
        for work in (copy_counts, subtract):
            lists.rewind(_APART)
            self._left = work(self.heap.words, lists.after, lists.refs, lists.state, _APART, WHOLE)
        lists.rewind(_APART)
        trace(self.heap.words, lists.before, lists.after, lists.refs, lists.state, _APART, _GARBAGE, WHOLE)  # fmt: skip
        self._resurrected = lists.relabel(_APART, self._to_label)
        self._revived += self._resurrected
        lists.merge(_APART, self._to)
        self._collected[self._generation] += len(lists.members(_GARBAGE))
        self._from = before

    def _check_again(self, limit: int) -> int:
        done = min(self._left, limit)
        self._left -= done
        return done

    def _clear(self, limit: int) -> int:
        lists, done = self._lists, 0
        while done < limit and (cell := lists.first(_GARBAGE)):
            set_age(self.heap.words, cell, self._to_label)
            clear(self.heap.words, lists.before, lists.after, lists.pending, lists.state, cell, self._to)  # fmt: skip
            self._release()
            done += 1
        return done

    def _end(self, collection: Collection) -> None:
        lists, state = self._lists, self._lists.state
        lists.whiten(self._to)
        self._collections[self._generation] += 1
        called = self.calls[self._called :]
        collection.counts.update(
            {"freed objects": int(state[FREED]), "freed words": int(state[FREED_WORDS])}
        )
        counted = {
            "finalisers called": sum(what == "finaliser" for what, _ in called),
            "callbacks called": sum(what == "callback" for what, _ in called),
            "objects resurrected": self._resurrected,
        }
        collection.counts.update({what: count for what, count in counted.items() if count})
        self._shrink()
