"""Lives of a program that never ran, and the expected results about them, computed object by object in plain Python."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
from gcspy_objects.analysis.store import LIFE_COLUMNS, CollectionTable, LifeStore, Lives, Names

TYPES = ("(unknown)", "Node", "byte[]", "Tree$Leaf")
SITES = ("(unknown)", "List.add() @ 3", "Main.main() @ 7", "List.add() @ 3")
"""Rows 1 and 3 are one place: two compilers met it."""


@dataclass
class Life:
    """One object."""

    type: int
    site: int
    size: int
    birth_bytes: int
    born_after: int
    born_old: bool = False
    promoted_in: int = 0
    died_in: int = 0
    freed_bytes: int = -1
    freed_after: int = 0
    filler: bool = False
    looks: list[int] = field(default_factory=list)
    """Numbers of the collections that visited it and let it live."""

    @property
    def age(self) -> int:
        """Return how many those are."""
        return len(self.looks)


@dataclass
class MadeUp:
    """A program's lives and collections."""

    lives: list[Life]
    full: list[bool]
    bytes: list[int]
    total_bytes: int

    @property
    def last(self) -> int:
        """Number of the last collection."""
        return len(self.full)

    def own(self) -> list[Life]:
        """Return the lives of the program's own objects."""
        return [life for life in self.lives if not life.filler]

    def at(self, number: int) -> int:
        """Return what was allocated before a collection; 0 at number 0."""
        return self.bytes[number - 1] if number else 0

    def store(self, batch: int = 1000, memory_bytes: int = 128 << 20) -> LifeStore:
        """Return a store with these lives, added in batches."""
        store = LifeStore(memory_bytes=memory_bytes)
        for first in range(0, len(self.lives), batch):
            store.add(columns_of(self.lives[first : first + batch]))
        kinds = ["full" if full else "minor" for full in self.full]
        collections = CollectionTable(
            np.array(self.full, bool),
            kinds,
            ["made up"] * self.last,
            np.array(self.bytes, np.int64),
            self.total_bytes,
        )
        store.finish(collections, Names(TYPES, SITES, SITES))
        return store


def columns_of(lives: list[Life]) -> Lives:
    """Return lives as columns."""
    kinds = {"BOOLEAN": np.bool_, "INTEGER": np.int32, "BIGINT": np.int64}
    return {
        name: np.array([getattr(life, name, 0) for life in lives], kinds[kind])
        for name, kind in LIFE_COLUMNS.items()
    }


def made_up(seed: int, *, objects: int = 1200, collections: int = 9) -> MadeUp:
    """Return a program in which each object lives, ages and dies by chance, as a generational collector would find out."""
    chance = random.Random(seed)
    lives: list[Life] = []
    full: list[bool] = []
    clock: list[int] = []
    total = 0
    for number in range(1, collections + 2):
        for _ in range(chance.randrange(objects // collections)):
            size, filler = 8 * chance.randint(2, 40), chance.random() < 0.05
            lives.append(
                Life(
                    chance.randint(1, 3),
                    chance.randint(1, 3),
                    size,
                    total,
                    number - 1,
                    chance.random() < 0.03,
                    filler=filler,
                )
            )
            total += 0 if filler else size
        if number > collections:
            break
        full.append(chance.random() < 0.3)
        clock.append(total)
        for life in lives:
            if not life.died_in and (full[-1] or not (life.born_old or life.promoted_in)):
                collect(life, number, chance, promotes=full[-1])
    return MadeUp(lives, full, clock, total)


def collect(life: Life, number: int, chance: random.Random, *, promotes: bool) -> None:
    """Let a collection visit a life."""
    if life.filler or chance.random() < (0.8 if not life.looks else 0.3):
        life.died_in = number
        return
    life.looks.append(number)
    if not (life.born_old or life.promoted_in) and (promotes or len(life.looks) > 2):
        life.promoted_in = number
