"""Finds pymalloc's state in a target: by the layout's offset or a symbol, or by a search if these fail.

No table of CPython's covers pymalloc, a stripped 3.11 does not name its variables, and the offset
has moved within a minor version before. So every place is verified before use, and if verification
fails, the memory that must contain it is searched for a valid one. On each tested build the search
had exactly one hit.

Knows the structures' numbers from the layout and reads nothing but candidates. Source: CPython 3.11 Objects/obmalloc.c,
3.12 pycore_obmalloc.h; that a stripped build may have ``maxarenas`` 16 bytes before ``arenas`` was measured on Debian 3.11.2.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from gcspy_protocol.errors import TargetError

from gcspy_drivers.cpython.layouts import ObmallocHome, PoolGeometry, VersionLayout
from gcspy_drivers.cpython.layouts.structures import ARENA_OBJECT, POOL_HEADER
from gcspy_drivers.cpython.pymalloc.obmalloc import (
    MAX_ARENAS,
    ObmallocPlace,
    judge_arenas,
    plausible_table_length,
    unused_entries_are_linked,
)
from gcspy_drivers.cpython.pymalloc.pools import judge
from gcspy_drivers.remote.address import Addr
from gcspy_drivers.remote.elf.image import Image
from gcspy_drivers.remote.maps import LiveMaps
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.vectors import MAX_READ_BYTES

__all__ = ["Locator"]

_TABLE_HEAD: Final = 16  # entries that every table has
_NEAR_BYTES: Final = 64  # maximum distance of two static variables of one file, for the search
_USED_LISTS: Final = 64  # pointers in usedpools
_TRIES: Final = 3  # of a target that makes and frees arenas all the time, every third table was torn when it was read
_MOST_SEARCHED: Final = (
    64 << 20
)  # bytes of static variables that are searched; CPython's own are 2 MB

U64 = npt.NDArray[np.uint64]
U32 = npt.NDArray[np.uint32]


class Locator:
    """Finds the state of pymalloc of each interpreter of one target.

    Args:
        memory: The target's memory.
        maps: The target's maps.
        layout: Offsets of its version.
        image: The executable or library that has the interpreter in it.
    """

    def __init__(self, memory: Memory, maps: LiveMaps, layout: VersionLayout, image: Image) -> None:
        self._memory = memory
        self._maps = maps
        self._layout = layout
        self._image = image

    def find(self, interpreter: Addr) -> ObmallocPlace | None:
        """Find the state that an interpreter allocates from.

        Interpreters may share one: then the place is the same.

        Args:
            interpreter: Its PyInterpreterState.

        Returns:
            The place; None if the interpreter has none of its own: pymalloc is not in use, or
            (3.12) it uses the main
            interpreter's.

        Raises:
            TargetError: There must be one, and neither the known place nor any other is valid.
            TargetGone: The target has ended.
        """
        home = self._layout.obmalloc_home
        if home is ObmallocHome.STATIC:
            return self._find_static()
        offset = self._layout.interpreter_obmalloc or 0
        state = self._state_at(interpreter, offset)
        if state is not None:
            if self._verify_state(state):
                return self._place_of_state(state)
            if self._is_unused_state(state):
                return None
        found = self._search_interpreter(interpreter)
        if len(found) != 1:
            raise TargetError(
                f"process {self._memory.process.pid}: pymalloc's state is not at offset {offset} of the interpreter at "
                f"{interpreter:#x}, and {len(found)} places in its first {self._layout.interpreter_bytes} bytes look like it: "
                "it is starting (try again), or it is a build that is not known here"
            )
        return found[0]

    def _state_at(self, interpreter: Addr, offset: int) -> Addr | None:
        if self._layout.obmalloc_home is ObmallocHome.EMBEDDED:
            return Addr(interpreter + offset)
        found = self._memory.try_read(interpreter + offset, 8)
        if found is None:
            return None
        state = int.from_bytes(found, "little")
        covered = self._maps.covers(
            np.array([state], dtype=np.uint64), self._layout.obmalloc.size_bytes
        )[0]
        return Addr(state) if covered else None

    def _place_of_state(self, state: Addr) -> ObmallocPlace:
        layout = self._layout.obmalloc
        return ObmallocPlace(
            arenas=Addr(state + layout.arenas),
            maxarenas=Addr(state + layout.maxarenas),
            counters=Addr(state + layout.arenas_now),
        )

    def _verify_state(self, state: Addr) -> bool:
        layout = self._layout.obmalloc
        found = self._memory.try_read(state + layout.arenas, layout.arenas_most + 8 - layout.arenas)
        if found is None:
            return False
        where = int.from_bytes(found[0:8], "little")
        length = int.from_bytes(found[8:12], "little")
        now, _, most = (
            int(number)
            for number in np.frombuffer(found[layout.arenas_now - layout.arenas :], dtype="<u8")
        )
        return 0 < now <= most <= length and self._is_table(where, length, arenas_now=now)

    def _is_unused_state(self, state: Addr) -> bool:
        """Return whether this is a state from which nothing was ever allocated: each list of used pools points to itself."""
        lists = self._memory.try_read(state, 8 * _USED_LISTS)
        head = self._memory.try_read(state + self._layout.obmalloc.arenas, 16)
        if lists is None or head is None or any(head[:12]):
            return False
        pointers = np.frombuffer(lists, dtype="<u8")
        pair = np.arange(_USED_LISTS, dtype=np.uint64) & ~np.uint64(1)
        own = np.uint64(state) + np.uint64(8) * pair - np.uint64(16)
        # An interpreter that shares the main one's state may have left its own as zeros.
        return bool((pointers == own).all() or not pointers.any())

    def _is_table(self, where: int, length: int, *, arenas_now: int | None) -> bool:
        """Return whether this is a table of arena_objects: its arenas exist, and their first pools point back."""
        if not plausible_table_length(length):
            return False
        size_bytes = length * ARENA_OBJECT.itemsize
        if not self._maps.maps.cover(where, size_bytes):
            return False
        found = self._memory.try_read(where, size_bytes)
        if found is None:
            return False
        table = np.frombuffer(found, dtype=ARENA_OBJECT)
        arenas, implausible = judge_arenas(table, self._maps, self._layout.geometry)
        # The target runs: one arena may have been added or removed, and one may be incomplete.
        if not len(arenas) or implausible > 1 or np.count_nonzero(~arenas.valid) > 1:
            return False
        if arenas_now is None:
            if not unused_entries_are_linked(table, where):
                return False
        elif abs(len(arenas) - arenas_now) > 1:
            return False
        carved = arenas.rows(arenas.valid & (arenas.carved_end > arenas.first_pool))
        if not len(carved):
            return False
        data, ok = self._memory.read_many(carved.first_pool, POOL_HEADER.itemsize)
        good = ok & judge(
            data.view(POOL_HEADER)[:, 0], carved.first_pool, carved.slot, self._layout.geometry
        )
        return int(np.count_nonzero(good)) >= max(1, len(good) - 1 - len(good) // 10)

    def _search_interpreter(self, interpreter: Addr) -> list[ObmallocPlace]:
        """Search for the state, or a pointer to one, at every 8 bytes of an interpreter."""
        layout = self._layout.obmalloc
        embedded = self._layout.obmalloc_home is ObmallocHome.EMBEDDED
        extent = self._layout.interpreter_bytes + (layout.arenas_most + 8 if embedded else 0)
        found = self._memory.try_read(interpreter, extent & ~7)
        if found is None:
            return []
        words = np.frombuffer(found, dtype="<u8")
        if embedded:
            states = np.uint64(interpreter) + np.arange(
                self._layout.interpreter_bytes // 8, dtype=np.uint64
            ) * np.uint64(8)
        else:
            states = np.unique(
                words[(words % 8 == 0) & self._maps.maps.covers(words, layout.size_bytes)]
            )
        if not len(states):
            return []
        data, ok = self._memory.read_many(
            states + np.uint64(layout.arenas), layout.arenas_most + 8 - layout.arenas
        )
        length = data[:, 8:12].copy().view("<u4")[:, 0]
        counters = data[:, layout.arenas_now - layout.arenas :].copy().view("<u8")
        now, most = counters[:, 0], counters[:, 2]
        looks = ok & _plausible_lengths(length) & (now > 0) & (now <= most) & (most <= length)
        return [
            self._place_of_state(Addr(int(state)))
            for state in states[looks]
            if self._verify_state(Addr(int(state)))
        ]

    def _find_static(self) -> ObmallocPlace | None:
        arenas, length = self._image.static("arenas"), self._image.static("maxarenas")
        counters = self._static_counters()
        for _ in range(_TRIES):
            if arenas is not None and length is not None:
                head, count = self._memory.read(arenas, 8), self._memory.read(length, 4)
                if not any(head) and not any(count):
                    return None
                if self._is_table(
                    int.from_bytes(head, "little"), int.from_bytes(count, "little"), arenas_now=None
                ):
                    return ObmallocPlace(arenas=arenas, maxarenas=length, counters=counters)
            found = self._search_image()
            if len(found) > 1:
                raise TargetError(
                    f"process {self._memory.process.pid}: {len(found)} places in {self._image.path} look like pymalloc's table of arenas"
                )
            if found:
                return found[0]
        return None

    def _static_counters(self) -> Addr | None:
        """Return where the three counters are, if they are where the source has them: behind each other."""
        names = ("narenas_currently_allocated", "ntimes_arena_allocated", "narenas_highwater")
        now, ever, most = (self._image.static(name) for name in names)
        return now if now is not None and ever == now + 8 and most == now + 16 else None

    def _search_image(self) -> list[ObmallocPlace]:
        """Search the image's variables for a pointer to a table of arenas, with the table's length nearby."""
        self._maps.refresh()  # memory mapped since would look like a pointer to nowhere
        places = []
        for first, end in self._image.writable:
            size_bytes = min(end - first, _MOST_SEARCHED, MAX_READ_BYTES) & ~7
            begin = Addr((first + 7) & ~7)
            found = self._memory.try_read(begin, size_bytes - 8)
            if found is not None:
                places += self._search_variables(begin, found)
        return places

    def _search_variables(self, begin: Addr, found: bytes) -> list[ObmallocPlace]:
        words: U64 = np.frombuffer(found, dtype="<u8")
        numbers: U32 = np.frombuffer(found, dtype="<u4")
        lengths = np.flatnonzero(_plausible_lengths(numbers))
        head_bytes = _TABLE_HEAD * ARENA_OBJECT.itemsize
        candidates = np.flatnonzero(
            (words % 8 == 0) & (words != 0) & self._maps.maps.covers(words, head_bytes)
        )
        candidates = candidates[_have_near(candidates * 2, lengths)]
        data, ok = self._memory.read_many(words[candidates], head_bytes)
        looks = ok & _heads_of_tables(data.view(ARENA_OBJECT), self._maps, self._layout.geometry)
        places = []
        for row in candidates[looks]:
            near = lengths[np.abs(lengths - 2 * row) <= _NEAR_BYTES // 4]
            place = self._with_length(begin, int(row), int(words[row]), near, numbers)
            if place is not None:
                places.append(place)
        return places

    def _with_length(
        self, begin: Addr, row: int, where: int, near: npt.NDArray[np.intp], numbers: U32
    ) -> ObmallocPlace | None:
        """Choose the variable that has the length of a table: the longest that holds, and of several the nearest."""
        order = sorted(near, key=lambda index: (-int(numbers[index]), abs(int(index) - 2 * row)))
        for index in order:
            if self._is_table(where, int(numbers[index]), arenas_now=None):
                return ObmallocPlace(
                    arenas=Addr(begin + 8 * row),
                    maxarenas=Addr(begin + 4 * int(index)),
                    counters=None,
                    guessed=True,
                )
        return None


def _plausible_lengths(numbers: U32) -> npt.NDArray[np.bool_]:
    return np.asarray(
        (numbers >= _TABLE_HEAD)
        & (numbers <= MAX_ARENAS)
        & (numbers & (numbers - np.uint32(1)) == 0)
    )


def _have_near(
    places: npt.NDArray[np.intp], lengths: npt.NDArray[np.intp]
) -> npt.NDArray[np.bool_]:
    """Determine which places (in units of 4 bytes) have one of the lengths within `_NEAR_BYTES`."""
    reach = _NEAR_BYTES // 4
    first = np.searchsorted(lengths, places - reach, side="left")
    return np.asarray(first < np.searchsorted(lengths, places + reach, side="right"))


def _heads_of_tables(
    tables: npt.NDArray[np.void], maps: LiveMaps, geometry: PoolGeometry
) -> npt.NDArray[np.bool_]:
    """Determine which (n, 16) records may be the beginning of a table of arena_objects, before a full check."""
    filled = tables["address"] != 0
    total = tables["ntotalpools"]
    pools = geometry.arena_bytes // geometry.pool_bytes
    like_arena = (total <= pools) & (total >= pools - 1) & (tables["nfreepools"] <= total)
    like_arena &= maps.maps.covers(tables["address"], geometry.arena_bytes)
    return np.asarray((~filled | like_arena).all(axis=1) & filled.any(axis=1))
