"""A plan made of a student's file: its functions are the phases, and each of their steps is a step of the collection.

The file has generator functions ``mark(heap)`` and ``sweep(heap)``, or those that its ``phases`` names. With ``incremental = True`` the program runs
between two steps, and a function ``write(heap, holder, old, new)``, if there is one, is called before each store: the write barrier.

Allocation is by free lists, as in mark-sweep. What is wrong is told with the line: freeing what the program can reach, using what was freed, garbage
that is left, a loop without end. Nothing moves.

Knows plans and the student's heap; does not know how a file is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar, Final

from gcspy_protocol.errors import CommandError

from gcspy_drivers.simulator.facts import FreeLists
from gcspy_drivers.simulator.heap import BLACK, COLOUR_SHIFT, HEADER_WORDS, Heap
from gcspy_drivers.simulator.plan import FULL, WHOLE, Collection, Phase, Plan, PlanSpace
from gcspy_drivers.simulator.policies.freelist import FreeListSpace
from gcspy_drivers.simulator.user_code.objects import HeapObject, UserHeap
from gcspy_drivers.simulator.user_code.source import UserFile

__all__ = ["UserCollector", "collector_from_file"]

_START_PERCENT: Final = 75
"""An incremental collection begins when so much of the heap is in use."""
_WORDS_A_STEP: Final = 2
"""Words of allocation that pay for a step of an incremental collection."""
_MOST_STEPS: Final = 200
"""Steps of a phase for each object: more have no end."""
_BLACK_BIT: Final = BLACK << COLOUR_SHIFT


class UserCollector(Plan):
    """A collector of a student; `collector_from_file` derives from it.

    Class attributes:
        file: The file with its functions.
    """

    file: ClassVar[UserFile]

    def __init__(self, heap: Heap, *, threads: int = 1) -> None:
        super().__init__(heap, threads=threads)
        self.guard = self.file.guard
        self._space = FreeListSpace(heap, heap.start, heap.end)
        self._user_heap = UserHeap(heap, self._space, self.file.path, threads)
        self._steps: Iterator[object] = iter(())
        self._done = self._most = 0
        self._debt = 0
        has_barrier = self.incremental and self.file.has("write")
        self._barrier: Callable[..., Any] | None = (
            self.file.function("write", "heap", "holder", "old", "new") if has_barrier else None
        )

    def alloc(self, thread: int, size: int, fields: int, type_id: int) -> int:
        """Do some steps of an incremental collection, or begin one; then make an object."""
        if self.incremental:
            if self.collection is not None:
                self._debt += size
                steps, self._debt = divmod(self._debt, _WORDS_A_STEP)
                if steps:
                    self.step(steps)
            elif self.used_words() * 100 >= self.heap_words * _START_PERCENT and (
                self.last is None or self.used_words() > self.last.used_after
            ):
                self.begin(FULL, f"{_START_PERCENT} % in use")
        self._user_heap.stale = True
        return super().alloc(thread, size, fields, type_id)

    def write(self, holder: int, number: int, target: int) -> None:
        """Store, after the student's barrier."""
        words, heap = self.heap.words, self._user_heap
        if self._barrier is not None and self.collection is not None:
            old = int(words[holder + HEADER_WORDS + number])
            things = [HeapObject(heap, cell) if cell else None for cell in (holder, old, target)]
            with self._abandoned_by_errors(), self.file.guard.watching():
                self._barrier(heap, *things)
        words[holder + HEADER_WORDS + number] = target
        heap.stale = True

    def write_root(self, slot: int, target: int) -> None:
        """Store, without a barrier."""
        self.heap.roots[slot] = target
        self._user_heap.stale = True

    def step(self, limit: int = WHOLE) -> bool:
        """Do some steps; a collection whose code has failed is over, and the program may be unwound."""
        with self._abandoned_by_errors():
            return super().step(limit)

    @contextmanager
    def _abandoned_by_errors(self) -> Iterator[None]:
        try:
            yield
        except CommandError:
            self.abandon()
            raise

    def spaces(self) -> Sequence[PlanSpace]:
        """One: the whole heap."""
        return [PlanSpace("Heap", "cells", self._space.start, self._space.end, self._space.end)]

    def used_words(self) -> int:
        """Words in no free list."""
        return self._space.used_words

    def free_lists(self) -> FreeLists:
        """Return the free lists."""
        return self._space.lists()

    @property
    def position(self) -> str:
        """The line of the file at which the collection stands."""
        frame = getattr(self._steps, "gi_frame", None)
        return "" if frame is None else f"{self.file.path.name}:{frame.f_lineno}"

    def _allocate(self, thread: int, size: int, status: int, identity: int) -> int:
        black = self.incremental and self.collection is not None
        return self._space.allocate(size, status | _BLACK_BIT if black else status, identity)

    def _make_room(self, thread: int, size: int, status: int, identity: int) -> int:
        if self.collection is not None:
            self.finish()
            cell = self._allocate(thread, size, status, identity)
            if cell:
                return cell
        return super()._make_room(thread, size, status, identity)

    def _begin(self, kind: str) -> Sequence[Phase]:
        self._debt = 0
        self._user_heap.begin()
        return tuple(
            Phase(name, self._advance, "steps", partial(self._start, name))
            for name in self.kinds[kind]
        )

    def _start(self, name: str) -> None:
        """Call the function of a phase."""
        with self.file.guard.watching():
            self._steps = getattr(self.file.module, name)(self._user_heap)
        self._done = 0
        self._most = _MOST_STEPS * (len(self._user_heap.objects) + 100)

    def _advance(self, limit: int) -> int:
        """Run a phase for some steps."""
        done = 0
        while done < limit and self.file.guard.step(self._steps):
            done += 1
            self._done += 1
            if self._done > self._most:
                raise CommandError(
                    f"{self.file.path}:{self._line()}: this phase has taken {self._done:,} steps for {len(self._user_heap.objects):,} objects: "
                    "check that an object is not visited twice"
                )
        return done

    def _line(self) -> int:
        frame = getattr(self._steps, "gi_frame", None)
        return 1 if frame is None else int(frame.f_lineno)

    def _end(self, collection: Collection) -> None:
        objects, words = self._user_heap.freed
        collection.counts.update({"freed objects": objects, "freed words": words})
        self._check_garbage(collection)
        self._space.begin_sweep()
        self._space.merge(WHOLE)
        for thing in self._user_heap.objects:
            thing.marked = False

    def _check_garbage(self, collection: Collection) -> None:
        """Refuse garbage that is left: of all, if the program stood still."""
        garbage = self._user_heap.garbage()
        freed = self._user_heap.freed[0]
        if not garbage or (self.incremental and freed):
            return
        last = self.kinds[collection.kind][-1]
        line = getattr(self.file.module, last).__code__.co_firstlineno
        first = garbage[0]
        raise CommandError(
            f"{self.file.path}:{line}: {last} has ended, and {len(garbage):,} objects that nothing refers to were not freed "
            f"({freed:,} were): {first!r} ({first.type}, {'marked' if first.marked else 'not marked'}) is the first"
        )


def collector_from_file(path: str) -> type[UserCollector]:
    """Make a plan of a student's file.

    Raises:
        CommandError: The file has an error; with the line.
    """
    file = UserFile(path, "collector")
    phases = getattr(file.module, "phases", ("mark", "sweep"))
    if (
        not isinstance(phases, (tuple, list))
        or not phases
        or not all(isinstance(one, str) for one in phases)
    ):
        raise CommandError(
            f'{path}:1: phases is {phases!r}: write the names of functions, phases = ("mark", "sweep")'
        )
    for name in phases:
        file.steps(name, "heap")
    runs = bool(getattr(file.module, "incremental", False))

    class FromFile(UserCollector):
        name = file.path.stem
        title = file.title
        incremental = runs
        exact = not runs
        kinds: ClassVar = {FULL: tuple(phases)}

    FromFile.file = file
    return FromFile
