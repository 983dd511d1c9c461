"""The base class of plans. A plan is a collector: it has spaces, allocates objects, and collects in phases that can be stepped.

The split is mmtk's: how a space behaves is a policy (`policies`), which spaces there are and when they are collected a plan (`plans`), of some
hundred lines each.

A collection is a sequence of *phases*. A phase is one method, ``phase(limit)``, that does at most
`limit` units of its work (objects marked, cells swept, roots read) and returns how many it did; if
it returns fewer than `limit`, the phase is over. The plan holds the state between calls. So one
program can run a collection whole, phase by phase, object by object, or a bit at each allocation.

A `CollectionListener` receives the phases. A collection that an allocation needs runs within that
allocation, but `Plan.stride` sets how many units pass between two calls of the listener, and the
listener may take its time: so slow motion needs no thread.

Knows the heap. Does not know programs, drivers or `verify`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, NamedTuple

import numpy as np
from gcspy_protocol.errors import LocalProtocolError

from gcspy_drivers.simulator.facts import (
    AmbiguousWords,
    CardTable,
    FinalisationCounts,
    FreeLists,
    Generations,
    Regions,
    RememberedSet,
)
from gcspy_drivers.simulator.heap import FREE, HEADER_WORDS, WORD_BYTES, Heap, Objects, status_of
from gcspy_drivers.simulator.user_code.guard import StepGuard

__all__ = [
    "FULL",
    "WHOLE",
    "Choice",
    "Collection",
    "Knob",
    "CollectionListener",
    "OutOfHeap",
    "Phase",
    "Plan",
    "PlanSpace",
    "heap_knob",
    "nursery_knob",
]

WHOLE: Final = 1 << 60
"""A limit that no phase reaches."""
FULL: Final = "full"
"""The kind of collection that every plan has which collects at all."""


class OutOfHeap(Exception):
    """Not even a collection made room: what a program gets."""


class Phase(NamedTuple):
    """A part of a collection.

    Attributes:
        name: Such as ``mark``; the names of a kind of collection are in `Plan.kinds`.
        work: Does at most the given number of units and returns how many it did; fewer when the
            phase is over.
        unit: Unit of the count.
        prepare: Called once before the first step of the phase, if there is something to prepare then and not earlier.
    """

    name: str
    work: Callable[[int], int]
    unit: str = "objects"
    prepare: Callable[[], None] | None = None


@dataclass(eq=False)
class Collection:
    """One collection, under way or over.

    Attributes:
        number: Counted from 1.
        kind: One of the plan's.
        cause: The cause: ``allocation failure``, ``asked for``.
        phase: Name of the phase under way, or of the last one.
        work: Units done, by phase.
        used_before: Words of objects when it began; `used_after` when it ended.
        counts: Further counters of the plan: ``copied words``, ``promoted words``, ``freed objects``.
    """

    number: int
    kind: str
    cause: str
    used_before: int
    used_after: int = -1
    phase: str = ""
    work: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)


class CollectionListener:
    """Receives collections and their phases; override the methods you need. The program waits during a call, so a listener must change nothing."""

    def collection_starts(self, collection: Collection) -> None:
        """Nothing was done yet."""

    def phase_starts(self, collection: Collection, phase: str) -> None:
        """A phase begins; nothing of it was done yet."""

    def progress(self, collection: Collection, phase: str, done: int) -> None:
        """`done` units of a phase were just done, and it is not over: called in slow motion (`Plan.stride`) and at each step of a bit."""

    def phase_ends(self, collection: Collection, phase: str) -> None:
        """A phase is over; ``collection.work[phase]`` says how many units it took."""

    def collection_ends(self, collection: Collection) -> None:
        """Everything was done."""


class PlanSpace(NamedTuple):
    """A range of the heap with a purpose.

    Attributes:
        name: Such as ``From-space``; unique in a plan, and the same as long as the plan lives.
        role: Its use by the plan: ``bump``, ``cells``, ``from``, ``to``, ``nursery``, ``old``, ``idle``.
        start: Its first word; `end`: behind its last.
        top: Up to here it is covered by objects and free cells, and can be walked; what lies behind is free.
    """

    name: str
    role: str
    start: int
    end: int
    top: int


class Choice(NamedTuple):
    """Values of a knob that has names instead of numbers."""

    names: tuple[str, ...]


class Knob(NamedTuple):
    """A parameter that can be changed while the plan runs; see `Plan.knobs` and `Plan.turn`.

    Attributes:
        name: Such as ``tenuring``; title: for people.
        value: The present one.
        values: A range of numbers, ends included, or names.
        unit: Such as ``bytes``; may be empty.
    """

    name: str
    title: str
    value: int | str
    values: tuple[int, int] | Choice
    unit: str = ""


def heap_knob(heap: Heap, end: int) -> Knob:
    """Return the knob for the size of a plan's heap, which ends at word `end`, and may have at most all words that there are."""
    most = (heap.end - heap.start) * WORD_BYTES
    return Knob("heap", "Heap", (end - heap.start) * WORD_BYTES, (min(1024, most), most), "bytes")


def nursery_knob(used: int, whole: int) -> Knob:
    """Return the knob for how many words of a nursery are used, of those that it has: an eighth at least."""
    bounds = whole // 8 * WORD_BYTES, whole * WORD_BYTES
    return Knob("nursery", "Size of the nursery", used * WORD_BYTES, bounds, "bytes")


class Plan(ABC):
    """A collector of a heap; see the top of this module and `docs/simulator.md`.

    Class attributes, of which a plan says those that differ:
        name: Textbook name, one word; title: for people.
        moves: It may move objects. Otherwise an object stays where it was made.
        remembers: It keeps a remembered set of each of its `regions`.
        generation_names: Names of its generations, if the age of an object is the number of its generation; empty: an age counts collections.
        lists_all_free: Each free cell that is large enough is in one of its free lists, when no collection is under way.
        exact: After a whole collection of kind FULL nothing unreachable is left.
        frees_early: It may free objects when no collection is under way.
        incremental: The program may run between two steps of a collection. Otherwise one that was begun is ended first.
        kinds: Kinds of collections, each with the names of its phases in their order; empty: it never collects.

    Attributes:
        heap: The memory, whose roots are the plan's to read and, at collections, to write.
        threads: How many threads allocate, numbered from 0.
        listener: Notified of collections.
        stride: Units between two calls of the listener during a collection that runs within an
            allocation.
        collection: The one under way, or None.
        collections: How many there were.
        last: The last one that ended, or None.
        guard: Runs the code of a user's file; None: the collector is ours.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    moves: ClassVar[bool] = False
    remembers: ClassVar[bool] = False
    exact: ClassVar[bool] = True
    frees_early: ClassVar[bool] = False
    incremental: ClassVar[bool] = False
    lists_all_free: ClassVar[bool] = True
    generation_names: ClassVar[tuple[str, ...]] = ()
    kinds: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def __init__(self, heap: Heap, *, threads: int = 1) -> None:
        self.heap = heap
        self.threads = threads
        self.listener = CollectionListener()
        self.stride = WHOLE
        self.collection: Collection | None = None
        self.collections = 0
        self.last: Collection | None = None
        self.guard: StepGuard | None = None
        self._phases: Sequence[Phase] = ()
        self._at = 0
        self._running = False

    # Operations of the program.

    def alloc(self, thread: int, size: int, fields: int, type_id: int) -> int:
        """Make an object with null fields, after a collection if there is no room.

        Args:
            thread: Whose allocation buffer is used.
            size: Words in all: at least ``HEADER_WORDS + fields``.

        Returns:
            Its address. It is not reachable yet: who calls this makes it so before anything else.

        Raises:
            OutOfHeap: No collection made room for it.
        """
        heap = self.heap
        size = -(-size // heap.align_words) * heap.align_words
        if self.program_waits:
            self.finish()
        identity = (heap.identities + 1) & 0xFFFF_FFFF
        status = status_of(size, fields, type_id)
        cell = self._allocate(thread, size, status, identity) or self._make_room(
            thread, size, status, identity
        )
        if not cell:
            raise OutOfHeap(
                f"{size * WORD_BYTES} bytes do not fit: {self.used_words() * WORD_BYTES} bytes of the heap's {self.heap_words * WORD_BYTES} are in use "
                f"after {self.collections} collections; use a larger heap"
            )
        heap.identities = identity
        heap.allocated_words += size
        return cell

    def read(self, holder: int, number: int) -> int:
        """Return what a reference field holds: the read barrier."""
        return int(self.heap.words[holder + HEADER_WORDS + number])

    def write(self, holder: int, number: int, target: int) -> None:
        """Let a reference field hold an object, or 0: the write barrier."""
        self.heap.words[holder + HEADER_WORDS + number] = target

    def write_root(self, slot: int, target: int) -> None:
        """Store an object, or 0, in a root. Most plans read roots when they collect, and need no barrier here."""
        self.heap.roots[slot] = target

    def finalise(self, type_id: int, call: Callable[[int], None]) -> None:
        """Call this with the address of each object of a type that is made from now on, once, before it is freed.

        Raises:
            LocalProtocolError: The collector has no finalisers.
        """
        raise LocalProtocolError(f"{self.name} has no finalisers: use cpython")

    def refer_weakly(self, weak: int, target: int, *, calls_back: bool) -> None:
        """Let an object be a weak reference to another one.

        Args:
            weak: The weak reference, which was just made.
            target: The other object.
            calls_back: Whether a callback is called when the reference is cleared.

        Raises:
            LocalProtocolError: The collector has no weak references.
        """
        raise LocalProtocolError(f"{self.name} has no weak references: use cpython")

    def weak_target(self, weak: int) -> int:
        """Return the object that a weak reference refers to; 0: it was cleared, or is no weak reference."""
        return 0

    # Collections.

    def collect(self, kind: str = FULL, cause: str = "asked for") -> None:
        """Run a collection of this kind, whole; one that is under way is ended first. A plan that never collects does nothing."""
        if not self.kinds:
            return
        self.finish()
        self.begin(kind, cause)
        self.finish()

    def begin(self, kind: str = FULL, cause: str = "asked for") -> None:
        """Begin a collection: from now on `step` drives it."""
        if kind not in self.kinds:
            raise LocalProtocolError(
                f"{self.name} has no collection {kind!r}: ask for one of {', '.join(self.kinds) or 'none'}"
            )
        if self.collection is not None:
            raise LocalProtocolError(
                f"{self.name}: a collection is under way: step or finish it first"
            )
        self.collections += 1
        self.collection = Collection(self.collections, kind, cause, self.used_words())
        self._at = -1
        self.listener.collection_starts(self.collection)
        self._phases = self._begin(kind)

    def step(self, limit: int = WHOLE) -> bool:
        """Do at most `limit` units of the phase under way: one phase at most.

        Returns:
            Whether the collection is over, or none is running.
        """
        collection = self.collection
        if collection is None:
            return True
        if limit < 1:
            raise LocalProtocolError(f"a step of {limit} units: give at least 1")
        if not self._running:
            self._at += 1
            self._running = True
            phase = self._phases[self._at]
            collection.phase = phase.name
            collection.work[phase.name] = 0
            self.listener.phase_starts(collection, phase.name)
            if phase.prepare is not None:
                phase.prepare()
        phase = self._phases[self._at]
        done = phase.work(limit)
        collection.work[phase.name] += done
        if done >= limit:
            self.listener.progress(collection, phase.name, done)
            return False
        self._running = False
        self.listener.phase_ends(collection, phase.name)
        if self._at + 1 < len(self._phases):
            return False
        self._end(collection)
        self.last, self.collection, self._phases = collection, None, ()
        collection.used_after = self.used_words()
        self.listener.collection_ends(collection)
        return True

    def finish(self) -> None:
        """Drive the collection that is under way, if any, to its end."""
        while not self.step(self.stride):
            pass

    def abandon(self) -> None:
        """Forget the collection that is under way: its code has failed, and the program will not run again."""
        self.collection, self._phases, self._running = None, (), False

    @property
    def unit(self) -> str:
        """Unit of the phase under way, or of the last one; empty: none is."""
        return self._phases[self._at].unit if 0 <= self._at < len(self._phases) else ""

    def phases_left(self) -> tuple[str, ...]:
        """Names of the phases that the collection under way has not ended yet."""
        return tuple(phase.name for phase in self._phases[max(self._at + (not self._running), 0) :])

    # Methods that plans define.

    @abstractmethod
    def _allocate(self, thread: int, size: int, status: int, identity: int) -> int:
        """Make an object if there is room, without a collection; otherwise return 0."""

    def _make_room(self, thread: int, size: int, status: int, identity: int) -> int:
        """Collect because there was no room, then allocate; return 0 if there is still no room. A plan with several kinds begins with the cheapest."""
        self.collect(FULL, "allocation failure")
        return self._allocate(thread, size, status, identity)

    def _begin(self, kind: str) -> Sequence[Phase]:
        """Prepare a collection; return its phases, named as in `kinds`."""
        raise LocalProtocolError(f"{self.name} does not say how it does a {kind} collection")

    def _end(self, collection: Collection) -> None:
        """The last phase is over: put right what the program must not see otherwise, and count into `Collection.counts`."""
        return

    @abstractmethod
    def spaces(self) -> Sequence[PlanSpace]:
        """Return the spaces, in the order of their addresses. Always the same names."""

    @abstractmethod
    def used_words(self) -> int:
        """Return how many words are not free, as far as the plan knows: garbage that was not found yet counts."""

    # Read by drivers and `verify`.

    @property
    def position(self) -> str:
        """Where in a user's file the collection under way stands; empty: in none."""
        return ""

    @property
    def program_waits(self) -> bool:
        """Whether a collection is under way during which the program must not run."""
        return self.collection is not None and not self.incremental

    @property
    def heap_words(self) -> int:
        """Words that it manages now: the sum of its spaces."""
        return sum(space.end - space.start for space in self.spaces())

    def extents(self) -> list[tuple[int, int]]:
        """Return the ranges that can be walked, in order, at any step. A plan whose spaces have holes says which ranges have none."""
        return [(space.start, space.top) for space in self.spaces() if space.top > space.start]

    def cells(self) -> Objects:
        """Return all objects and free cells, dead ones and old copies included."""
        found = [self.heap.cells(start, end) for start, end in self.extents()]
        return self.heap.columns(np.concatenate(found) if found else np.empty(0, dtype=np.int64))

    def objects(self) -> Objects:
        """Return all objects, dead ones and old copies (FORWARDED) included, in the order of their addresses."""
        cells = self.cells()
        return cells.where(~cells.having(FREE))

    def generations(self) -> Generations | None:
        """Return what each of its generations has, if it counts that."""
        return None

    def finalisation(self) -> FinalisationCounts | None:
        """Return what became of weak references and finalisers; None: the program has none."""
        return None

    def free_lists(self) -> FreeLists | None:
        """Return its free lists, as they are now, if it has any."""
        return None

    def cards(self) -> CardTable | None:
        """Return its card table, if it has one."""
        return None

    def lines(self) -> CardTable | None:
        """Return its line table, if it marks lines."""
        return None

    def remembered_sets(self) -> Sequence[RememberedSet]:
        """Return its remembered sets."""
        return ()

    def ambiguous(self) -> AmbiguousWords | None:
        """Return the words that it takes for references if they look like some, if it is conservative."""
        return None

    def current(self, cell: int) -> int:
        """Return where the object is that a field refers to: elsewhere while a collector moves objects beside the program."""
        return cell

    def regions(self) -> Regions | None:
        """Return the regions, blocks or cars that its spaces are made of, if any."""
        return None

    def check(self) -> list[str]:
        """Say what is wrong with the plan's own records; called by `verify` when no collection is under way."""
        return []

    def knobs(self) -> Sequence[Knob]:
        """Return what can be changed while it runs."""
        return ()

    def turn(self, name: str, value: int | str) -> None:
        """Change a knob; it takes effect now, or at the next collection where it must."""
        knob = next((one for one in self.knobs() if one.name == name), None)
        if knob is None:
            known = ", ".join(one.name for one in self.knobs()) or "none"
            raise LocalProtocolError(f"{self.name} has no knob {name!r}: it has {known}")
        if isinstance(knob.values, Choice):
            fits, wanted = value in knob.values.names, f"one of {', '.join(knob.values.names)}"
        else:
            low, high = knob.values
            fits, wanted = (
                isinstance(value, int) and low <= value <= high,
                f"a number from {low} to {high}",
            )
        if not fits:
            raise LocalProtocolError(f"{name} of {self.name} cannot be {value!r}: give {wanted}")
        self._turn(name, value)

    def _turn(self, name: str, value: int | str) -> None:
        """Change a knob, whose value was checked."""
        raise LocalProtocolError(f"{self.name} does not say how {name} is set to {value}")
