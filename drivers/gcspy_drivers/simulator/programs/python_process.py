"""A process that runs a simulated program with real objects of the Python that runs it: what a real collector does with the same program.

Started by `driver.python_companion`. Each line of standard input is a number of words: the program runs until it has allocated so many, and a line with what
the interpreter says of its collector is written. The program is the same code with the same dice; only the operations of the mutator differ: a root slot is an
element of a list, an object an instance of a class with that many ``__slots__``, one without fields an ``object()``, which the collector does not track.

What was there before the program begins is frozen (`gc.freeze`), so that the generations have what the program made, and the scopes and names that it works with.

Knows `gc` and programs. Does not know plans, heaps or servers.
"""

from __future__ import annotations

import gc
import json
import sys
from types import SimpleNamespace
from typing import Any, Final, cast

import numpy as np
from gcspy_protocol.errors import LocalProtocolError

from gcspy_drivers.simulator.heap import HEADER_WORDS, WORD_BYTES
from gcspy_drivers.simulator.mutator import Mutator
from gcspy_drivers.simulator.programs import make_run

__all__ = ["RealMutator", "main", "numbers"]

_GENERATIONS: Final = 3


class SimulatedObject:
    """The base of all containers that the program makes."""

    __slots__ = ()


class RealMutator:
    """The operations of a program, with objects of this interpreter; as `Mutator`, whose documentation they share.

    Args:
        heap_bytes: Size of the heap that the program believes to have.
        slots: Root slots.
        seed: Of the dice.
        align_words: As of the simulated heap, for the number of words allocated.

    Attributes:
        allocated_words: Words that the objects would have in the simulation.
    """

    def __init__(self, heap_bytes: int, slots: int, seed: int, align_words: int = 1) -> None:
        self.dice = np.random.default_rng(seed)
        self.plan = SimpleNamespace(heap_words=heap_bytes // WORD_BYTES, threads=1)
        self.heap = self
        self.allocated_words = 0
        self._align = align_words
        self._slots: list[Any] = [None] * slots
        self._kinds: list[str] = ["object"]
        self._classes: dict[tuple[int, int], type] = {}
        self._count = 0

    def type_id(self, name: str) -> int:
        """Return the number of a type."""
        if name not in self._kinds:
            self._kinds.append(name)
        return self._kinds.index(name)

    def stack(self, _thread: int) -> range:
        """Return the slots of the only thread."""
        return range(len(self._slots))

    def new(self, slot: int, fields: int, data: int = 0, *, type_id: int = 0, **_: object) -> None:
        """Make an object and let a slot hold it."""
        kind = self._classes.get((type_id, fields)) if fields else object
        if kind is None:
            names = tuple(f"f{number}" for number in range(fields))
            gc.disable()  # a class is containers, too, and none of the program's
            kind = type(self._kinds[type_id], (SimulatedObject,), {"__slots__": names})
            gc.enable()
            self._classes[type_id, fields] = kind
        made = kind()
        for number in range(fields):
            setattr(made, f"f{number}", None)
        self._slots[slot] = made
        size = HEADER_WORDS + fields + data
        self.allocated_words += -(-size // self._align) * self._align
        self._count += 1

    def load(self, to: int, slot: int, field: int) -> bool:
        """Copy a field's reference to a slot."""
        self._slots[to] = getattr(self._slots[slot], f"f{field}")
        return self._slots[to] is not None

    def store(self, slot: int, field: int, value: int | None) -> None:
        """Let a field hold what a slot holds, or nothing."""
        setattr(self._slots[slot], f"f{field}", None if value is None else self._slots[value])

    def copy(self, to: int, slot: int) -> None:
        """Let a slot hold what another one holds."""
        self._slots[to] = self._slots[slot]

    def clear(self, slot: int) -> None:
        """Let a slot hold nothing."""
        self._slots[slot] = None

    def holds(self, slot: int) -> bool:
        """Return whether a slot holds an object."""
        return self._slots[slot] is not None

    def finalise(self, *_: object) -> None:
        """Refuse: objects of this process have no finalisers."""
        raise LocalProtocolError("objects of a real Python have no finalisers here")

    def same(self, slot: int, other: int) -> bool:
        """Return whether two slots hold the same object."""
        return self._slots[slot] is self._slots[other]

    def fields(self, slot: int) -> int:
        """Return how many fields the object in a slot has."""
        held = self._slots[slot]
        return 0 if type(held) is object or held is None else len(type(held).__slots__)


def numbers() -> list[int]:
    """Return what the interpreter says of its collector: objects of the program in each generation, counts, thresholds, collections, objects collected; other containers."""
    count = gc.get_count()
    mine, others = [], 0
    for generation in range(_GENERATIONS):
        objects = gc.get_objects(generation=generation)
        found = 0
        for one in objects:
            if isinstance(one, SimulatedObject):
                found += 1
        mine.append(found)
        others += len(objects) - found
        one = None
        objects.clear()  # it may have what refers to it: no cycle is left behind
    stats = gc.get_stats()
    collections = [each["collections"] for each in stats]
    collected = [each["collected"] for each in stats]
    return [*mine, *count, *gc.get_threshold(), *collections, *collected, others]


def main() -> None:
    """Read the program's options as a line of JSON, then run it as far as each line says.

    A line is a number of words, or knobs of the program as JSON. To a number it answers with `numbers`, and why the program has ended.
    """
    options = json.loads(sys.stdin.readline())
    mutator = RealMutator(
        options["heap_bytes"], options["slots"], options["seed"], options["align_words"]
    )
    run = make_run(options["program"], cast(Mutator, mutator))
    for name, value in options["program_options"].items():
        run.program.turn(name, value)
    if options["thresholds"]:
        gc.set_threshold(*options["thresholds"])
    gc.collect()
    gc.freeze()
    before = numbers()[-7:-1]
    over = ""
    for line in sys.stdin:
        if line.startswith("{"):
            for name, value in json.loads(line).items():
                run.program.turn(name, value)
            continue
        while not over and mutator.allocated_words < int(line):
            try:
                if not run.step():
                    over = "the program has ended"
            except LocalProtocolError as error:
                over = str(error)
        gc.disable()  # what is made here is none of the program's
        now = numbers()
        now[-7:-1] = [one - other for one, other in zip(now[-7:-1], before, strict=True)]
        sys.stdout.write(f"{' '.join(map(str, now))} {over}\n")
        sys.stdout.flush()
        gc.enable()


if __name__ == "__main__":
    main()
