"""The Train: a mature space of cars, coupled to trains, of which one car is collected at a time; behind a nursery, or alone.

Cars are collected in the order of their trains, and of the cars in a train. An object of the first car that a root refers to moves to the end of the
newest train; one that another train refers to moves to that train; each takes along the objects that it refers to in that car. An object that only its
own train refers to moves to that train's end. The rest is garbage. So the objects of a structure gather in one train, whatever its size, and when
nothing outside refers into the first train, it is freed as a whole.

Source: R. L. Hudson and J. E. B. Moss, Incremental collection of mature objects, IWMM 1992. It is the GCspy paper's case study (sections 5.6 and 6.3); that
objects to which many references are remembered (*popular* ones) get a car of their own, which is then appended to another train without being copied, is what
the paper describes RJVM's. *Futile* collections, in which no object leaves the train because the program keeps moving its only root, are ended as J. Seligmann
and S. Grarup did (ECOOP 1995): an object that a root referred to then is taken for referred to until it has left.

Different here: remembered sets are exact (`policies/slotsets.py`). The nursery has no ages: every
survivor is promoted, to the train that refers to it, or the newest one, and a car is collected only
then, so that no young object refers into it. Objects larger than half a car have adjacent regions
of their own, and change trains without being copied. When cars are short, objects go to the end of
the newest train, whatever refers to them: then garbage may follow garbage there, and stays. A
collection of kind ``full`` collects cars until each train that existed at its beginning is gone;
then nothing unreachable is left, unless cars were short: it reports how many objects went to the
wrong train, and how many cars it had no room to collect, and another one finds some of the
remaining garbage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np
from gcspy_protocol.errors import LocalProtocolError

from gcspy_drivers.simulator.facts import Regions, RememberedSet
from gcspy_drivers.simulator.heap import HEADER_WORDS, WORD_BYTES, Heap, make_object
from gcspy_drivers.simulator.loops import Words
from gcspy_drivers.simulator.plan import (
    FULL,
    Collection,
    Knob,
    Phase,
    Plan,
    PlanSpace,
    heap_knob,
    nursery_knob,
)
from gcspy_drivers.simulator.plans import _train as loops
from gcspy_drivers.simulator.plans.generational import MINOR
from gcspy_drivers.simulator.policies.bump import BumpSpace
from gcspy_drivers.simulator.policies.slotsets import (
    COUNT,
    HEAD,
    KEY,
    KIND,
    LINKS,
    ROW,
    TOP,
    drop_all,
    first_run,
    members,
    set_faults,
)

__all__ = ["CAR", "Train"]

CAR: Final = "train"
"""A collection of the nursery, and then of one car; the paper's "train collection"."""
_NURSERY: Final = ("remembered", "roots")
_CAR: Final = ("count", "from roots", "from other trains", "from own train", "free")
_RESERVE: Final = 3
"""Cars: the objects of one fit into two, whatever their sizes, since none is larger than half a car; and one more because one car may be partly filled."""
_PATIENCE: Final = 3
"""Collections of a car that free none before all are collected."""
_LAST_TRIES: Final = 8
"""Collections of all cars before there is no room: where cars are short, each leaves garbage that the next one finds."""
_KINDS: Final = ("free", "car", "popular", "large", "large, continued", "withheld")


class Train(Plan):
    """A nursery, and cars.

    Args:
        young_bytes: Size of the nursery; 0: objects are made in cars; -1: a quarter of the heap.
        car_bytes: Size of a car; 0: so that there are 32, or fewer if these were of less than 128 bytes.
        train_cars: Cars of the newest train before another one is begun for what roots refer to.
        popular: References into an object from other cars that make it popular; 0: none is.
        buffer_bytes: Size of a thread's allocation buffer in the nursery.
    """

    name = "train"
    title = "Train"
    moves = True
    remembers = True
    exact = False
    kinds: ClassVar = {FULL: (*_NURSERY, "trains"), MINOR: _NURSERY, CAR: (*_NURSERY, *_CAR)}

    def __init__(
        self,
        heap: Heap,
        *,
        threads: int = 1,
        young_bytes: int = -1,
        car_bytes: int = 0,
        train_cars: int = 4,
        popular: int = 8,
        buffer_bytes: int = 256,
    ) -> None:
        super().__init__(heap, threads=threads)
        size = heap.end - heap.start
        young = heap.aligned(size // 4 if young_bytes < 0 else young_bytes // WORD_BYTES)
        self._car_words = heap.aligned(car_bytes // WORD_BYTES or max((size - young) // 32, 16))
        self._count = (size - young) // self._car_words
        if self._count < 2 * _RESERVE or self._car_words < 16 or train_cars < 1 or popular < 0:
            raise LocalProtocolError(
                f"{self._count} cars of {self._car_words * WORD_BYTES} bytes, behind a nursery of {young * WORD_BYTES}: give cars of at least 128 bytes, "
                f"of which the heap has at least {2 * _RESERVE}, trains of at least 1 car, and popular objects at least 0"
            )
        self._nursery = BumpSpace(
            heap, heap.start, heap.start + young, threads=threads, buffer_bytes=buffer_bytes
        )
        self._young, self._start = young, heap.start + young
        self._end_word = self._start + self._count * self._car_words
        self._cars: Words = np.zeros((self._count + 1) * ROW, dtype=np.int64)
        self._table = self._cars.reshape(-1, ROW)
        self._links: Words = np.zeros(len(heap.words) * LINKS, dtype=np.int64)
        self._queue: Words = np.empty(
            max(young, self._car_words) // HEADER_WORDS + 1, dtype=np.int64
        )
        self._state: Words = np.zeros(loops.STATES, dtype=np.int64)
        state = self._state
        state[[loops.START, loops.CAR_WORDS, loops.CARS, loops.FREE_CARS, loops.RESERVE]] = (
            self._start,
            self._car_words,
            self._count,
            self._count,
            _RESERVE,
        )
        state[[loops.CACHED, loops.FROM, loops.NEXT_CAR]] = -1, -1, 1
        self._train_cars, self._popular, self._limit = train_cars, popular, young
        self._size = self._wanted = size
        self._highest = self._extra = self._last_train = self._sub = self._freed_cars = 0
        self._whole = self._relinked = False
        self._limited()

    # Operations of the program.

    def write(self, holder: int, number: int, target: int) -> None:
        """Store, and let the field be in the set that it belongs into now."""
        slot = holder + HEADER_WORDS + number
        self.heap.words[slot] = target
        if holder >= self._start:
            loops.renote(self.heap.words, self._links, self._cars, self._state, slot)

    def _allocate(self, thread: int, size: int, status: int, identity: int) -> int:
        if 2 * size > self._car_words:
            cell = self._place_large(size)
        elif self._young:
            return self._nursery.allocate(thread, size, status, identity)
        else:
            self._state[loops.KEEP] = 1
            cell = loops.place(self._cars, self._state, self._target(-1), size)
        if cell:
            make_object(self.heap.words, cell, status, identity)
        return cell

    def _place_large(self, size: int) -> int:
        """Take adjacent regions; return their first word, or 0."""
        needed = -(-size // self._car_words)
        if self._free_cars - needed < _RESERVE + self._cars_for(
            self._nursery.top - self._nursery.start
        ):
            return 0
        first = first_run(self._table[:-1, KIND] == loops.FREE_CAR, needed)
        if first < 0:
            return 0
        key = self._target(-1) << loops.TRAIN_SHIFT | int(self._state[loops.NEXT_CAR])
        self._state[loops.NEXT_CAR] += 1
        self._state[loops.FREE_CARS] -= needed
        self._table[first : first + needed, KEY] = key
        self._table[first : first + needed, KIND] = loops.CONTINUED
        self._table[first, KIND] = loops.LARGE
        cell = self._start + first * self._car_words
        self._table[first, TOP] = cell + size
        self._limited()
        return cell

    def _make_room(self, thread: int, size: int, status: int, identity: int) -> int:
        futile = 0
        while futile < _PATIENCE:
            free = self._free_cars
            self.collect(
                CAR if futile or not self._young or free < self._cars_wanted // 2 else MINOR,
                "allocation failure",
            )
            roomy = (
                not self._young or self._nursery.end - self._nursery.start >= self._young_limit // 2
            )
            cell = self._allocate(thread, size, status, identity) if roomy else 0
            if cell:
                return cell
            futile += self._free_cars <= free
        cell = self._allocate(thread, size, status, identity)
        for _ in range(_LAST_TRIES):
            if cell:
                break
            used = self.used_words()
            self.collect(FULL, "allocation failure")
            cell = self._allocate(thread, size, status, identity)
            if self.used_words() >= used:
                break
        return cell

    @property
    def _free_cars(self) -> int:
        return int(self._state[loops.FREE_CARS])

    def _cars_for(self, words: int) -> int:
        """Return how many cars hold this many words of objects, whatever their sizes."""
        return -(-words // (self._car_words - self._car_words // 2 + 1))

    def _limited(self) -> None:
        """Let the nursery be no larger than what there are cars for: then a collection of it never fails."""
        room = max(self._free_cars - _RESERVE, 0) * (self._car_words - self._car_words // 2 + 1)
        self._nursery.end = self._nursery.start + min(self._young_limit, room)

    @property
    def _young_limit(self) -> int:
        return min(
            self._limit,
            self._young
            * self._wanted
            // (self._size * self.heap.align_words)
            * self.heap.align_words,
        )

    @property
    def _cars_wanted(self) -> int:
        return max(self._count * self._wanted // self._size, 2 * _RESERVE)

    def _withhold(self) -> None:
        """Withhold as many cars as the heap is to be smaller, of those that are free and not needed for survivors; give back what is withheld too much."""
        kinds = self._table[:-1, KIND]
        withheld = np.flatnonzero(kinds == loops.WITHHELD)
        more = self._count - self._cars_wanted - len(withheld)
        if more < 0:
            chosen, kind = withheld[:-more], loops.FREE_CAR
        else:
            spare = (
                self._free_cars - _RESERVE - self._cars_for(self._nursery.top - self._nursery.start)
            )
            chosen, kind = (
                np.flatnonzero(kinds == loops.FREE_CAR)[::-1][: max(min(more, spare), 0)],
                loops.WITHHELD,
            )
        self._table[chosen, KIND] = kind
        self._state[loops.FREE_CARS] += len(chosen) if more < 0 else -len(chosen)
        self._limited()

    def _target(self, collected: int) -> int:
        """Return the train that roots' objects go to: the newest one, or a new one, but not the one that is collected."""
        used = self._table[:-1][self._table[:-1, KIND] != loops.FREE_CAR]
        trains = used[:, KEY] >> loops.TRAIN_SHIFT
        newest = int(trains.max()) if len(trains) else 0
        self._highest = max(self._highest, newest)
        full = (
            int(((trains == newest) & (used[:, KIND] != loops.CONTINUED)).sum()) >= self._train_cars
        )
        return newest if newest not in (0, collected) and not full else self._highest + 1

    # Collections.

    def _begin(self, kind: str) -> Sequence[Phase]:
        self._nursery.retire()
        state, nursery = self._state, self._nursery
        state[
            [
                loops.COPIED,
                loops.COPIED_WORDS,
                loops.LEFT,
                loops.KEEP,
                loops.LIMIT_POPULAR,
                loops.ASTRAY,
            ]
        ] = 0
        self._freed_cars, self._whole, self._relinked = 0, False, False
        self._last_train = 0
        self._from(self._count, 0, nursery.start, nursery.top)
        # Whatever the trains that survivors go to leave unused, there are cars for all of them.
        state[loops.RESERVE] = _RESERVE + self._cars_for(nursery.top - nursery.start)
        young = (
            Phase("remembered", self._pull_set, "objects"),
            Phase("roots", self._pull_roots, "objects", self._first_slot),
        )
        if kind == MINOR:
            return young
        if kind == FULL:
            self._extra = 0
            return *young, Phase("trains", self._trains, "objects", self._begin_trains)
        work = (
            self._count_references,
            self._pull_roots,
            self._pull_others,
            self._pull_set,
            self._free,
        )
        prepare = (self._begin_car, self._first_slot, self._first_entry, None, None)
        return *young, *(
            Phase(name, one, "entries" if name == "count" else "objects", before)
            for name, one, before in zip(_CAR, work, prepare, strict=True)
        )

    def _from(self, row: int, train: int, start: int, end: int) -> None:
        """Say what is collected."""
        state = self._state
        state[[loops.FROM, loops.FROM_TRAIN, loops.FROM_START, loops.FROM_END]] = (
            row,
            train,
            start,
            end,
        )
        state[loops.TARGET] = max(self._target(train), self._last_train + 1)
        state[[loops.QUEUE_HEAD, loops.CACHED, loops.LEFT]] = 0, -1, 0

    def _first_slot(self) -> None:
        self._state[loops.CURSOR] = 0

    def _first_entry(self) -> None:
        self._state[loops.CURSOR] = (
            self._cars[self._state[loops.FROM] * ROW + HEAD] if self._evacuates else 0
        )

    @property
    def _evacuates(self) -> bool:
        """Whether objects are copied: not if there is no car, if the whole train is garbage, or if the car only changes its place."""
        return self._state[loops.FROM] >= 0 and not self._whole and not self._relinked

    def _pull(self, source: int, limit: int) -> int:
        if not self._evacuates:
            return 0
        return loops.pull(
            self.heap.words,
            self.heap.roots,
            self._links,
            self._cars,
            self._queue,
            self._state,
            source,
            limit,
        )

    def _pull_roots(self, limit: int) -> int:
        if self._extra and self._evacuates:
            self._extra = loops.evacuate(
                self.heap.words,
                self._cars,
                self._queue,
                self._state,
                self._extra,
                int(self._state[loops.TARGET]),
            )
            if int(self._state[loops.FROM]) < self._count and self._train_at(self._extra) != int(
                self._state[loops.FROM_TRAIN]
            ):
                self._extra = 0
        return self._pull(loops.FROM_ROOTS, limit)

    def _pull_others(self, limit: int) -> int:
        return self._pull(loops.FROM_OTHER_TRAINS, limit)

    def _pull_set(self, limit: int) -> int:
        return self._pull(loops.FROM_SET, limit)

    def _train_at(self, cell: int) -> int:
        return int(self._cars[loops.region_of(self._state, cell) * ROW + KEY]) >> loops.TRAIN_SHIFT

    def _cars_in_order(self) -> list[int]:
        """Return the regions where cars begin, in the order in which they will be collected."""
        kinds = self._table[:-1, KIND]
        begins = np.flatnonzero(
            (kinds != loops.FREE_CAR) & (kinds != loops.CONTINUED) & (kinds != loops.WITHHELD)
        )
        found: list[int] = begins[np.argsort(self._table[begins, KEY])].tolist()
        return found

    def _begin_car(self) -> None:
        """The nursery is empty: choose the first car of the first train, and decide how to collect it."""
        self._empty_nursery()
        self._state[loops.RESERVE] = _RESERVE
        order = self._cars_in_order()
        if not order:
            self._state[loops.FROM] = -1
            return
        car = order[0]
        train = int(self._table[car, KEY]) >> loops.TRAIN_SHIFT
        start = self._start + car * self._car_words
        self._from(car, train, start, int(self._table[car, TOP]))
        self._whole = self._relinked = False
        cars = [one for one in order if self._table[one, KEY] >> loops.TRAIN_SHIFT == train]
        reached = [self._referenced(one, train) for one in cars]
        if all(one in (0, train) for one in reached):
            self._whole = True
        elif self._table[car, KIND] in (loops.LARGE, loops.POPULAR):
            self._relinked = True
            self._relink_to = reached[0]
        elif self._free_cars < _RESERVE - 1:
            # The objects that it refers to might not fit.
            self._state[loops.FROM] = -1
        self._state[loops.LIMIT_POPULAR] = self._popular
        self._first_entry()
        if self._popular == 0:
            self._state[loops.CURSOR] = 0

    def _referenced(self, car: int, train: int) -> int:
        start = self._start + car * self._car_words
        if start <= self._extra < self._table[car, TOP]:
            return int(self._state[loops.TARGET])
        return loops.referenced(self.heap.roots, self._links, self._cars, self._state, car, train)

    def _count_references(self, limit: int) -> int:
        return loops.count_references(self.heap.words, self._links, self._state, limit)

    def _free(self, _: int) -> int:
        """Free the car, or the train; or append the car to the train it belongs to. It only changes a table, and is not done in steps."""
        state, car = self._state, int(self._state[loops.FROM])
        if car < 0:
            return 0
        train = int(state[loops.FROM_TRAIN])
        if self._whole:
            for one in self._cars_in_order():
                if self._table[one, KEY] >> loops.TRAIN_SHIFT == train:
                    self._free_car(one)
        elif self._relinked and self._relink_to:
            self._relink(car, self._relink_to)
        else:
            self._free_car(car)
            self._end_futility(train)
        state[loops.FROM] = -1
        state[loops.LIMIT_POPULAR] = 0
        return 0

    def _free_car(self, car: int) -> None:
        start, top = self._start + car * self._car_words, int(self._table[car, TOP])
        drop_all(self._links, self._cars, start, top)
        regions = -(-(top - start) // self._car_words) or 1
        self._table[car : car + regions, [KEY, KIND, TOP]] = 0
        self._state[loops.FREE_CARS] += regions
        self._freed_cars += 1

    def _relink(self, car: int, train: int) -> None:
        """Append a car to a train as it is."""
        start, top = self._start + car * self._car_words, int(self._table[car, TOP])
        regions = -(-(top - start) // self._car_words)
        self._table[car : car + regions, KEY] = train << loops.TRAIN_SHIFT | int(
            self._state[loops.NEXT_CAR]
        )
        self._state[loops.NEXT_CAR] += 1
        self._state[loops.LEFT] += train != self._state[loops.FROM_TRAIN]
        common = self.heap.words, self._links, self._cars, self._state
        loops.renote_object(*common, start)
        loops.renote_set(*common, car)
        if start <= self._extra < top and train != self._state[loops.FROM_TRAIN]:
            self._extra = 0

    def _end_futility(self, train: int) -> None:
        """If nothing left the train, take an object that a root refers to for referred to from now on: the program cannot move that."""
        if (
            self._state[loops.LEFT]
            or self._extra
            or (self.collection is not None and self.collection.kind == FULL)
        ):
            return
        for cell in self.heap.roots.tolist():
            if cell >= self._start and self._train_at(cell) == train:
                self._extra = cell
                return

    def _begin_trains(self) -> None:
        self._empty_nursery()
        order = self._cars_in_order()
        self._last_train = int(self._table[order[-1], KEY]) >> loops.TRAIN_SHIFT if order else 0
        self._sub = 0

    def _trains(self, limit: int) -> int:
        """Collect cars until the trains that there were are gone, or there is no room."""
        work = (
            self._count_references,
            self._pull_roots,
            self._pull_others,
            self._pull_set,
            self._free,
        )
        done = 0
        while True:
            if self._sub == 0:
                order = self._cars_in_order()
                if (
                    not order
                    or int(self._table[order[0], KEY]) >> loops.TRAIN_SHIFT > self._last_train
                ):
                    return done
                self._begin_car()
                if self._state[loops.FROM] < 0:
                    return done  # what it holds might not fit; a train that goes as a whole, or a car that only changes its place, needs no room
                self._sub = 1
            asked = limit - done
            did = work[self._sub - 1](asked)
            done += did
            if did >= asked:
                return done
            if self._sub == 1:
                self._first_slot()
            elif self._sub == 2:
                self._first_entry()
            self._sub = (self._sub + 1) % (len(work) + 1)

    def _empty_nursery(self) -> None:
        self._nursery.reset()

    def _end(self, collection: Collection) -> None:
        if collection.kind == MINOR:
            self._empty_nursery()
        state = self._state
        collection.counts.update(
            {
                "copied objects": int(state[loops.COPIED]),
                "copied words": int(state[loops.COPIED_WORDS]),
                "freed cars": self._freed_cars,
            }
        )
        collection.counts["freed words"] = collection.used_before - self.used_words()
        order = self._cars_in_order()
        collection.counts.update(
            {
                "cars": len(order),
                "trains": len({int(self._table[one, KEY]) >> loops.TRAIN_SHIFT for one in order}),
            }
        )
        collection.counts["popular objects"] = int((self._table[:-1, KIND] == loops.POPULAR).sum())
        collection.counts["remembered references"] = int(self._table[:, COUNT].sum())
        if state[loops.ASTRAY]:
            collection.counts["objects put into another train, as cars are short"] = int(
                state[loops.ASTRAY]
            )
        if collection.kind == FULL:
            left = [
                one
                for one in order
                if self._table[one, KEY] >> loops.TRAIN_SHIFT <= self._last_train
            ]
            if left:
                collection.counts[
                    "cars left with their garbage, as none was free to go on with"
                ] = len(left)
        state[loops.FROM] = -1
        state[loops.RESERVE] = _RESERVE
        self._withhold()
        if state[loops.FAILED]:
            raise LocalProtocolError(
                "the train ran out of cars in the middle of a collection: a defect of its reserve"
            )

    # Content for drivers and `verify`.

    def spaces(self) -> Sequence[PlanSpace]:
        """The nursery, if there is one, and the mature space."""
        cars = PlanSpace("Cars", "cars", self._start, self._end_word, self._end_word)
        if not self._young:
            return [cars]
        return [
            PlanSpace("Nursery", "nursery", self._nursery.start, self._start, self._nursery.top),
            cars,
        ]

    def extents(self) -> list[tuple[int, int]]:
        """The nursery up to its top, and each car."""
        found = (
            [(self._nursery.start, self._nursery.top)]
            if self._nursery.top > self._nursery.start
            else []
        )
        for car in sorted(self._cars_in_order()):
            start, top = self._start + car * self._car_words, int(self._table[car, TOP])
            if top > start:
                found.append((start, top))
        return found

    def used_words(self) -> int:
        """Words given out of the nursery and of cars, garbage included."""
        order = self._cars_in_order()
        return (
            self._nursery.used_words
            + int(self._table[order, TOP].sum())
            - sum(self._start + car * self._car_words for car in order)
        )

    def regions(self) -> Regions:
        """The physical regions: what each is, and which car of which train; a car's number counts from 1 in its train."""
        table = self._table[:-1]
        starts = self._start + np.arange(self._count, dtype=np.int64) * self._car_words
        unused = (table[:, KIND] == loops.FREE_CAR) | (table[:, KIND] == loops.WITHHELD)
        groups = np.where(unused, -1, table[:, KEY] >> loops.TRAIN_SHIFT)
        numbers = np.full(self._count, -1, dtype=np.int64)
        seen: dict[int, int] = {}
        for car in self._cars_in_order():
            seen[int(groups[car])] = seen.get(int(groups[car]), 0) + 1
            numbers[(table[:, KEY] == table[car, KEY]) & (groups >= 0)] = seen[int(groups[car])]
        heads = np.maximum.accumulate(
            np.where(table[:, KIND] == loops.CONTINUED, 0, np.arange(self._count))
        )
        tops = np.clip(table[heads, TOP], starts, starts + self._car_words)
        return Regions(
            "car",
            starts,
            starts + self._car_words,
            tops,
            table[:, KIND].copy(),
            _KINDS,
            groups,
            numbers,
        )

    def remembered_sets(self) -> Sequence[RememberedSet]:
        """The fields of mature objects that refer into the nursery, and into each car from later ones, in the order of trains."""
        regions, found = self.regions(), []
        rows = [(self._count, "Nursery", self._nursery.start, self._start)] if self._young else []
        for car in self._cars_in_order():
            start = self._start + car * self._car_words
            rows.append(
                (
                    car,
                    f"Car {regions.groups[car]}.{regions.numbers[car]}",
                    start,
                    max(int(self._table[car, TOP]), start + self._car_words),
                )
            )
        for row, name, start, end in rows:
            found.append(RememberedSet(name, start, end, members(self._links, self._cars, row)))
        return found

    def check(self) -> list[str]:
        """Say which references are in no set, or in a wrong one."""
        words, expected = self.heap.words, {}
        keys = self._table[:, KEY].tolist()
        for start, end in self.extents():
            if start < self._start:
                continue
            for slot in self.heap.field_slots(start, end):
                target = int(words[slot])
                in_nursery = target < self._start
                at = self._count if in_nursery else (target - self._start) // self._car_words
                holder = (slot - self._start) // self._car_words
                if target and (in_nursery or keys[holder] > keys[at]):
                    expected[slot] = at
        found = set_faults(self._links, self._cars, self._count + 1, "car", expected)
        if self._free_cars != int((self._table[:-1, KIND] == loops.FREE_CAR).sum()):
            found.append(f"{self._free_cars} cars are said to be free")
        return found

    def knobs(self) -> Sequence[Knob]:
        """Size of the heap, of which nursery and cars have their share; how much of the nursery is used, how long the newest train gets, and what is popular."""
        heap = heap_knob(self.heap, self.heap.start + self._wanted)
        nursery = nursery_knob(self._limit, self._young)
        cars = Knob(
            "train_cars",
            "Cars before a new train is begun",
            self._train_cars,
            (1, self._count),
            "cars",
        )
        popular = Knob(
            "popular",
            "References that make an object popular",
            self._popular,
            (0, 1 << 16),
            "references",
        )
        return (heap, nursery, cars, popular) if self._young else (heap, cars, popular)

    def _turn(self, name: str, value: int | str) -> None:
        if name == "nursery":
            self._limit = int(value) // WORD_BYTES
            self._limited()
        elif name == "heap":
            self._wanted = int(value) // WORD_BYTES
            if self.collection is None:
                self._withhold()
        elif name == "train_cars":
            self._train_cars = int(value)
        else:
            self._popular = int(value)
