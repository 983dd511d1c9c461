"""Reading a heap of contiguous spaces: Serial's and Parallel's eden, from, to and old, Epsilon's one space.

A few words of the VM's own structures, in two calls if the JVM stands still, else in three. The
survivor spaces change their roles at each young collection, so the pointers to them are read before
and after their targets, together with the count of collections. If they differ, or if the words
contradict each other, all is read again, and after some tries it is unknown.

Knows addresses; knows neither tiles nor streams. Source: OpenJDK src/hotspot/share/gc/serial, gc/parallel and gc/epsilon, the classes
that are named here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt
from gcspy_protocol.errors import TargetError

from gcspy_drivers.hotspot.vm.tables import VmTables
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.pieces import Gather

__all__ = [
    "Generation",
    "GenerationalReader",
    "GenerationalReading",
    "HeapPart",
    "PartKind",
    "read_reserved",
]

_TRIES: Final = 5
_WORD: Final = 8

U64 = npt.NDArray[np.uint64]


class PartKind(IntEnum):
    """Role of a contiguous space of the heap."""

    EDEN = 0
    FROM = 1
    TO = 2
    OLD = 3


@dataclass(frozen=True, slots=True)
class HeapPart:
    """A contiguous space: used from ``bottom`` to ``top``, free from there to ``end``; addresses."""

    kind: PartKind
    bottom: int
    top: int
    end: int


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation's addresses: reserved from ``low`` to ``high``; the part between the other two is committed."""

    low: int
    committed_low: int
    committed_high: int
    high: int


@dataclass(frozen=True, slots=True)
class GenerationalReading:
    """One reading of a heap.

    Attributes:
        parts: Its spaces.
        generations: The young one, then the old one; one if there are none.
        collections: How many collections there were so far.
        collecting: Whether a collection was in progress, in which used ranges change in a way that
            is not visible from here.
    """

    parts: tuple[HeapPart, ...]
    generations: tuple[Generation, ...]
    collections: int
    collecting: bool


@dataclass(frozen=True, slots=True)
class _Form:
    """Addresses of the pointers to spaces and of the bounds of generations.

    Attributes:
        heads: Address of the pointer to each space, in the order of `PartKind`.
        part: Offsets of bottom, top and end in a space.
        bounds: Addresses of low, committed low, committed high and high, of each generation.
    """

    heads: tuple[int, ...]
    kinds: tuple[PartKind, ...]
    part: tuple[int, int, int]
    bounds: tuple[int, ...]


class GenerationalReader:
    """Reads the spaces of one JVM.

    Args:
        memory: The target's memory.
        tables: Its exports.
        heap: Address of its CollectedHeap.
        collector: ``Serial``, ``Parallel`` or ``Epsilon``.

    Raises:
        TargetError: A required field is not exported.
    """

    def __init__(self, memory: Memory, tables: VmTables, heap: int, collector: str) -> None:
        self._memory = memory
        self._form = {"Parallel": _parallel, "Epsilon": _epsilon}.get(collector, _serial)(
            memory, tables, heap
        )
        self._reserved = read_reserved(memory, tables, heap)
        count = heap + tables.need_offset("CollectedHeap", "_total_collections")
        active = heap + tables.need_offset("CollectedHeap", "_is_gc_active", "_is_stw_gc_active")
        self._heads = Gather(
            memory.process, np.array([count, active, *self._form.heads], dtype=np.uint64), _WORD
        )
        self._pointers: list[int] = []
        self._body: Gather | None = None

    @property
    def reserved(self) -> tuple[int, int]:
        """First and end address of the heap."""
        return self._reserved

    def counted(self) -> tuple[int, bool] | None:
        """Read how many collections there were, and whether one is under way; None: that is not readable. Raises as `read` does."""
        heads = self._read_heads()
        return None if heads is None else (heads[0], bool(heads[1]))

    def read(self, *, still: bool = False) -> GenerationalReading | None:
        """Read all spaces; None when they changed under each try.

        Args:
            still: Whether the JVM stands still meanwhile, so that pointers need not be read again.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
        """
        heads = self._read_heads()
        for _ in range(_TRIES):
            if heads is None:
                return None
            words = self._read_body(heads[2:])
            again = heads if still else self._read_heads()
            if words is not None and again is not None and heads == again:
                found = self._judge(words, heads)
                if found is not None:
                    return found
            heads = again
        return None

    def _read_heads(self) -> list[int] | None:
        self._heads.read()
        if not self._heads.ok.all():
            return None
        count, active, *pointers = self._heads.data.view("<u8")[:, 0].tolist()
        return [count & 0xFFFFFFFF, active & 0xFF, *pointers]

    def _read_body(self, pointers: list[int]) -> list[int] | None:
        if self._body is None or pointers != self._pointers:
            self._pointers = pointers
            addrs = [pointer + offset for pointer in pointers for offset in self._form.part]
            self._body = Gather(
                self._memory.process, np.array([*addrs, *self._form.bounds], dtype=np.uint64), _WORD
            )
        self._body.read()
        if not self._body.ok.all():
            return None
        words: list[int] = self._body.data.view("<u8")[:, 0].tolist()
        return words

    def _judge(self, words: list[int], heads: list[int]) -> GenerationalReading | None:
        """Make a reading of words that do not contradict each other."""
        kinds = self._form.kinds
        parts = tuple(
            HeapPart(kind, *words[3 * row : 3 * row + 3]) for row, kind in enumerate(kinds)
        )
        rest = words[3 * len(kinds) :]
        generations = tuple(Generation(*rest[at : at + 4]) for at in range(0, len(rest), 4))
        low, high = self._reserved
        if not all(
            low <= one.low <= one.committed_low <= one.committed_high <= one.high <= high
            for one in generations
        ):
            return None
        for part in parts:
            fits = any(
                one.committed_low <= part.bottom and part.end <= one.committed_high
                for one in generations
            )
            if (
                not fits
                or not part.bottom <= part.top <= part.end
                or (part.bottom | part.top | part.end) % _WORD
            ):
                return None
        return GenerationalReading(parts, generations, heads[0], bool(heads[1]))


def read_reserved(memory: Memory, tables: VmTables, heap: int) -> tuple[int, int]:
    """Read the range of addresses of a heap: first, and behind the last byte.

    Raises:
        TargetError: It is not exported, or not there yet.
    """
    place = heap + tables.need_offset("CollectedHeap", "_reserved")
    start = _word(memory, place + tables.need_offset("MemRegion", "_start"))
    size = _word(memory, place + tables.need_offset("MemRegion", "_word_size")) * _WORD
    if not start or not size or start + size > 1 << 57:
        raise TargetError(
            f"process {memory.process.pid}: its heap is {size} bytes at {start:#x}: it is starting"
        )
    return start, start + size


def _serial(memory: Memory, tables: VmTables, heap: int) -> _Form:
    holder = (
        "SerialHeap"
        if tables.offset("SerialHeap", "_young_gen") is not None
        else "GenCollectedHeap"
    )
    young_at = tables.offset(holder, "_young_gen")
    if young_at is None:  # JDK 8
        generations = heap + tables.need_offset("GenCollectedHeap", "_gens")
        young, old = _word(memory, generations), _word(memory, generations + _WORD)
    else:
        young = _word(memory, heap + young_at)
        old = _word(memory, heap + tables.need_offset(holder, "_old_gen"))
    survivors = [
        young + tables.need_offset("DefNewGeneration", f"_{name}_space")
        for name in ("eden", "from", "to")
    ]
    space = tables.offset("TenuredGeneration", "_the_space")
    kinds = [PartKind.EDEN, PartKind.FROM, PartKind.TO]
    if space is not None:
        survivors.append(old + space)
        kinds.append(PartKind.OLD)
    bounds = tables.need_offset("Generation", "_virtual_space")
    return _Form(
        heads=tuple(survivors),
        kinds=tuple(kinds),
        part=_part(tables, "ContiguousSpace"),
        bounds=tuple(
            one + bounds + offset for one in (young, old) for offset in _virtual_space(tables)
        ),
    )


def _parallel(memory: Memory, tables: VmTables, _heap: int) -> _Form:
    young = _word(memory, tables.need_static("ParallelScavengeHeap", "_young_gen"))
    old = _word(memory, tables.need_static("ParallelScavengeHeap", "_old_gen"))
    heads = [
        young + tables.need_offset("PSYoungGen", f"_{name}_space")
        for name in ("eden", "from", "to")
    ]
    heads.append(old + tables.need_offset("PSOldGen", "_object_space"))
    bounds = [
        _word(memory, young + tables.need_offset("PSYoungGen", "_virtual_space")),
        _word(memory, old + tables.need_offset("PSOldGen", "_virtual_space")),
    ]
    offsets = [
        tables.need_offset("PSVirtualSpace", f"_{name}_addr")
        for name in ("reserved_low", "committed_low", "committed_high", "reserved_high")
    ]
    return _Form(
        heads=tuple(heads),
        kinds=tuple(PartKind),
        part=_part(tables, "MutableSpace"),
        bounds=tuple(one + offset for one in bounds for offset in offsets),
    )


def _epsilon(_memory: Memory, tables: VmTables, heap: int) -> _Form:
    bounds = heap + tables.need_offset("EpsilonHeap", "_virtual_space")
    return _Form(
        heads=(heap + tables.need_offset("EpsilonHeap", "_space"),),
        kinds=(PartKind.EDEN,),
        part=_part(tables, "ContiguousSpace"),
        bounds=tuple(bounds + offset for offset in _virtual_space(tables)),
    )


def _part(tables: VmTables, kind: str) -> tuple[int, int, int]:
    bottom, top, end = (tables.need_offset(kind, name) for name in ("_bottom", "_top", "_end"))
    return bottom, top, end


def _virtual_space(tables: VmTables) -> tuple[int, ...]:
    names = ("_low_boundary", "_low", "_high", "_high_boundary")
    return tuple(tables.need_offset("VirtualSpace", name) for name in names)


def _word(memory: Memory, addr: int) -> int:
    return int.from_bytes(memory.read(addr, _WORD), "little")
