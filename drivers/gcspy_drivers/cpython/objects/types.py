"""Determines which addresses are types, their names, and the layout of their objects.

A word at the place of an object's type is accepted only if there is a type at that address: its own
type is a type, and so on up to ``type`` itself within a few steps, its sizes are possible, and its
name is UTF-8, of any length and with any characters. Types are remembered, and checked again at
each gathering, since a class can be
dropped and another made in its place.

Knows types, and not where objects are. Source: CPython 3.9 to 3.15 Include/cpython/object.h (struct _typeobject),
Include/object.h (Py_TPFLAGS_*), Include/internal/pycore_object.h (_PyType_PreHeaderSize).
"""

from __future__ import annotations

import codecs
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.layouts import ObjectLayout
from gcspy_drivers.cpython.objects.containers import ContainerKind, container_kind_of, pointers_of
from gcspy_drivers.remote.address import PAGE_BYTES
from gcspy_drivers.remote.maps import LiveMaps
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.pieces import Neighbours

__all__ = ["MOST_TYPES", "TypeColumns", "TypeTable", "distinct"]

MOST_TYPES: Final = 1 << 20
"""Types that are remembered; a program that makes more loses the names of the latest."""

_TYPE = np.dtype(
    [
        ("refcount", "<u8"),
        ("type", "<u8"),
        ("size", "<i8"),
        ("name", "<u8"),
        ("basic_bytes", "<i8"),
        ("item_bytes", "<i8"),
        ("_slots", "V120"),
        ("flags", "<u8"),
        ("_more", "V80"),
        ("base", "<u8"),
    ]
)
_HAVE_GC, _READY = 1 << 14, 1 << 12
_UNICODE, _TYPE_SUBCLASS = 1 << 28, 1 << 31
_LASTING_FLAGS = np.uint64(_HAVE_GC | _UNICODE | _TYPE_SUBCLASS | 0x1C)
_OFFSETS = {name: field[1] for name, field in (_TYPE.fields or {}).items()}
_EVERY_BIT = np.uint64(2**64 - 1)
_LASTING_FIELDS = ("type", "name", "basic_bytes", "item_bytes", "flags")
_MOST_BASIC, _MOST_ITEM = 1 << 20, 1 << 16
_DEPTH = 4  # metaclasses of metaclasses
_BASES = 64  # classes from one to the built-in type that it comes from
_NAME_BYTES = 512  # of a longer name the rest is left out
_NO_NAME = "(no name)"
_REFUSED_BITS = 16
_MOST_REFUSED = 1 << 18
_MULTIPLIERS = 32
_MOST_BITS = 24
_GOLDEN = 0x9E3779B97F4A7C15

U64 = npt.NDArray[np.uint64]
I32 = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
Records = npt.NDArray[np.void]


class TypeColumns(NamedTuple):
    """A kernel's table of types; see `kernels.look_into`.

    Attributes:
        slots: Number of the type whose address has this slot; -1.
        multiplier, shift, mask: How an address becomes a slot.
        address: (types,).
        forms: (types, 5) `TypeTable.prefix_bytes`, `TypeTable.least_bytes`, `TypeTable.collected`, `TypeTable.pointers`.
        refused: Words that are no types, each where ``refused_shift`` puts it; not a copy.
        refused_shift, refused_mask: The same with the multiplier ``golden``.
    """

    slots: I32
    multiplier: int
    shift: int
    mask: int
    address: npt.NDArray[np.int64]
    forms: npt.NDArray[np.int64]
    refused: npt.NDArray[np.int64]
    golden: int
    refused_shift: int
    refused_mask: int


class TypeTable:
    """The types of one process, numbered in the order in which they were met. Numbers are never used again.

    Args:
        memory: The target's memory.
        maps: Its maps.
        layout: Layout of objects in its version.
        root: Address of ``type`` itself.

    Attributes:
        names: Name of each; a class of a program has its own name without a module's.
        prefix_bytes: (types,) bytes of an object before its reference count: collector's head, dictionary and weak references.
        least_bytes: (types,) bytes that a block must have for one, prefix included.
        collected: (types,) whether the collector may track its objects.
        container: (types,) `containers.ContainerKind` of its objects.
        pointers: (types, 2) offsets of the pointers to its objects' blocks, bytes from the reference count; 0: none.
        version: Changes when what was examined before may look otherwise now: a type was dropped, or is where none was.
    """

    def __init__(self, memory: Memory, maps: LiveMaps, layout: ObjectLayout, root: int) -> None:
        self._memory = memory
        self._maps = maps
        self._layout = layout
        self._root = root
        self._refused: U64 = np.zeros(1 << _REFUSED_BITS, dtype=np.uint64)
        self._address: U64 = np.zeros(0, dtype=np.uint64)
        self._records: Records = np.zeros(0, dtype=_TYPE)
        self._living: Mask = np.zeros(0, dtype=np.bool_)
        self.names: list[str] = []
        self.prefix_bytes: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.least_bytes: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.collected: Mask = np.zeros(0, dtype=np.bool_)
        self.container: npt.NDArray[np.int8] = np.zeros(0, dtype=np.int8)
        self.pointers: npt.NDArray[np.int64] = np.zeros((0, 2), dtype=np.int64)
        self._containers: dict[int, ContainerKind] = {}
        self._again: Neighbours | None = None
        self._before: dict[str, npt.NDArray[Any]] = {}
        self._ever_refused: U64 = np.zeros(0, dtype=np.uint64)
        self.version = 0
        self._rebuild()
        self.learn(np.array([root], dtype=np.uint64))

    def __len__(self) -> int:
        return len(self.names)

    @property
    def address(self) -> U64:
        """(types,) where each is; not a copy."""
        return self._address

    @property
    def basic_bytes(self) -> npt.NDArray[np.int64]:
        """(types,) bytes of an object without its items, from the reference count on; not a copy."""
        found: npt.NDArray[np.int64] = self._records["basic_bytes"]
        return found

    @property
    def item_bytes(self) -> npt.NDArray[np.int64]:
        """(types,) bytes of an item; not a copy."""
        found: npt.NDArray[np.int64] = self._records["item_bytes"]
        return found

    @property
    def flags(self) -> U64:
        """(types,) their ``tp_flags``; not a copy."""
        found: U64 = self._records["flags"]
        return found

    @property
    def base(self) -> U64:
        """(types,) address of the base of each; 0: none; not a copy."""
        found: U64 = self._records["base"]
        return found

    def read_from(self, memory: Memory, maps: LiveMaps) -> None:
        """Have everything read from another memory of the same process from now on, such as a copy."""
        if memory is not self._memory:
            self._memory, self._maps, self._again = memory, maps, None

    def begin(self) -> None:
        """Check all remembered types again, before a gathering; changed ones are dropped, and refused words too.

        Raises:
            TargetGone: The target has ended.
        """
        self._refused.fill(0)
        self._maps.refresh()
        living = self._sorted_number
        if self._again is None:
            self._again = Neighbours(self._memory.process, self._sorted, _TYPE.itemsize)
            self._before = {name: self._records[name][living] for name in _LASTING_FIELDS}
        again = self._again
        again.read()
        same = again.ok.copy()
        for name, before in self._before.items():
            changed = again.column(_OFFSETS[name], "<u8") ^ before.view("<u8")
            same &= changed & (_LASTING_FLAGS if name == "flags" else _EVERY_BIT) == 0
        if not same.all():
            gone = living[~same]
            self._living[gone] = False
            self._containers.clear()
            self.version += 1
            self._rebuild()
            self.learn(self._address[gone].copy())

    def find(self, words: U64) -> I32:
        """Return the number of the type at each address, (n,); -1 where none is known. New."""
        if not len(self._sorted):
            return np.full(len(words), -1, dtype=np.int32)
        if self._slots is None:  # so many types that no table of a reasonable size keeps them apart
            row = np.minimum(np.searchsorted(self._sorted, words), len(self._sorted) - 1)
            return np.where(self._sorted[row] == words, self._sorted_number[row], np.int32(-1))
        number = self._slots[(words * self._multiplier) >> self._shift]
        return np.where(self._address[number] == words, number, np.int32(-1))

    def columns(self) -> TypeColumns | None:
        """Return a kernel's table of types, for this moment; None if there are too many for a collision-free table."""
        if self._slots is None:
            return None
        return TypeColumns(
            slots=self._slots,
            multiplier=_signed(int(self._multiplier)),
            shift=int(self._shift),
            mask=len(self._slots) - 1,
            address=self._address.view(np.int64),
            forms=np.column_stack(
                (
                    self.prefix_bytes,
                    self.least_bytes,
                    self.collected.astype(np.int64),
                    self.pointers,
                )
            ),
            refused=self._refused.view(np.int64),
            golden=_signed(_GOLDEN),
            refused_shift=64 - _REFUSED_BITS,
            refused_mask=(1 << _REFUSED_BITS) - 1,
        )

    def mapped(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return first addresses and ends of the mappings, at the start of the gathering."""
        start, end = self._maps.maps.readable
        # Nothing of a program is in the upper half, and of the kernel's page there nothing is a type.
        lower = end < np.uint64(1 << 63)
        return start[lower].astype(np.int64), end[lower].astype(np.int64)

    def is_address(self, words: U64) -> Mask:
        """Determine which words are mapped addresses, at the start of the gathering; new."""
        return self._maps.maps.covers(words)

    def learn(self, words: U64) -> bool:
        """Check addresses that may be types, and remember the types.

        Args:
            words: (n,) candidates, with repetitions; known ones cost nothing.

        Returns:
            Whether a type was found that was not known.

        Raises:
            TargetGone: The target has ended.
        """
        maps = self._maps.maps
        if not len(maps) or len(self) >= MOST_TYPES:
            return False
        # Cheap tests first: most words are small numbers, and of the others most were refused before.
        new = words[(words & np.uint64(7)) == 0]
        new = new[(new >= maps.start[0]) & (new < maps.end[-1])]
        new = new[self._refused[_refused_slot(new)] != new]
        new = distinct(new)
        new = new[(self.find(new) < 0) & maps.covers(new, _TYPE.itemsize)]
        if not len(new):
            return False
        data, ok = self._memory.read_many(new, _TYPE.itemsize)
        records = data.view(_TYPE)[:, 0]
        good = ok & self._plausible(records)
        good[good] = self._are_types(records["type"][good], depth=_DEPTH)
        names = self._names(records["name"][good])
        rows = (
            np.flatnonzero(good)[[name is not None for name in names]]
            if len(names)
            else np.flatnonzero(good)
        )
        taken = np.zeros(len(new), dtype=np.bool_)
        taken[rows] = True
        refused = new[~taken]
        self._refuse(refused)
        if not len(rows):
            return False
        self._add(new[rows], records[rows], [name for name in names if name is not None])
        if np.isin(new[rows], self._ever_refused).any():
            self.version += 1
        return True

    def _refuse(self, words: U64) -> None:
        """Note words that are no types."""
        self._refused[_refused_slot(words)] = words
        if len(words):
            self._ever_refused = distinct(np.concatenate((self._ever_refused, words)))
            if len(self._ever_refused) > _MOST_REFUSED:
                self._ever_refused = self._ever_refused[:0]
                self.version += 1

    def _add(self, address: U64, records: Records, names: list[str]) -> None:
        flags = records["flags"]
        collected = (flags & np.uint64(_HAVE_GC)) != 0
        before = (flags & np.uint64(self._layout.prefix_flags)) != 0
        prefix = (
            collected * self._layout.gc_head_bytes + before * self._layout.prefix_bytes
        ).astype(np.int64)
        # An object of str, or with items, may be smaller than the type says.
        fixed = (records["item_bytes"] == 0) & ((flags & np.uint64(_UNICODE)) == 0)
        self._address = np.concatenate((self._address, address))
        self._records = np.concatenate((self._records, records))
        self._living = np.concatenate((self._living, np.ones(len(address), dtype=np.bool_)))
        self.names += names
        self.collected = np.concatenate((self.collected, collected))
        self.prefix_bytes = np.concatenate((self.prefix_bytes, prefix))
        self.least_bytes = np.concatenate(
            (self.least_bytes, prefix + np.where(fixed, records["basic_bytes"], 16))
        )
        kinds = [
            self._container_of(int(where), name, record)
            for where, name, record in zip(address, names, records, strict=True)
        ]
        self.container = np.concatenate((self.container, np.array(kinds, dtype=np.int8)))
        pointers = np.array([pointers_of(each, self._layout) for each in kinds], dtype=np.int64)
        self.pointers = np.concatenate((self.pointers, pointers.reshape(-1, 2)))
        self._rebuild()

    def _container_of(self, address: int, name: str | None, record: np.void) -> ContainerKind:
        """Say what its objects are: what the type says of itself, or the nearest of its bases that does."""
        chain = []
        found: ContainerKind | None = None
        for _ in range(_BASES):
            found = self._containers.get(address)
            if found is not None:
                break
            chain.append(address)
            found = container_kind_of(name or "", int(record["flags"]))
            address = int(record["base"])
            data = None if found is not None or not address else self._record(address)
            if data is None:
                break
            record = data
            name = (
                self._name(int(record["name"]))
                if self._maps.maps.cover(int(record["name"]))
                else None
            )
        for each in chain:
            self._containers[each] = ContainerKind.NONE if found is None else found
        return ContainerKind.NONE if found is None else found

    def _record(self, address: int) -> np.void | None:
        if not self._maps.maps.cover(address, _TYPE.itemsize):
            return None
        data = self._memory.try_read(address, _TYPE.itemsize)
        record: np.void | None = None if data is None else np.frombuffer(data, dtype=_TYPE)[0]
        return record

    def _plausible(self, records: Records) -> Mask:
        basic, item = records["basic_bytes"], records["item_bytes"]
        ready = (records["flags"] & np.uint64(_READY)) != 0
        return np.asarray(
            ready & (basic >= 16) & (basic <= _MOST_BASIC) & (item >= 0) & (item <= _MOST_ITEM)
        )

    def _are_types(self, words: U64, *, depth: int) -> Mask:
        """Determine which addresses are types of types, up to the root."""
        distinct, inverse = np.unique(words, return_inverse=True)
        good = distinct == np.uint64(self._root)
        rest = np.flatnonzero(
            ~good
            & (distinct % np.uint64(8) == 0)
            & self._maps.maps.covers(distinct, _TYPE.itemsize)
        )
        if depth and len(rest):
            data, ok = self._memory.read_many(distinct[rest], _TYPE.itemsize)
            records = data.view(_TYPE)[:, 0]
            meta = (
                ok
                & ((records["flags"] & np.uint64(_TYPE_SUBCLASS)) != 0)
                & self._plausible(records)
            )
            meta[meta] = self._are_types(records["type"][meta], depth=depth - 1)
            good[rest] = meta
        return np.asarray(good[inverse])

    def _names(self, where: U64) -> list[str | None]:
        found: list[str | None] = []
        covered = self._maps.maps.covers(where)
        for addr, readable in zip(where.tolist(), covered.tolist(), strict=True):
            found.append(self._name(addr) if readable else None)
        return found

    def _name(self, addr: int) -> str | None:
        in_page = PAGE_BYTES - addr % PAGE_BYTES
        data = self._memory.try_read(addr, min(_NAME_BYTES, in_page)) or b""
        if b"\0" not in data and in_page < _NAME_BYTES:
            data += self._memory.try_read(addr + in_page, _NAME_BYTES - in_page) or b""
        text, end, _ = data.partition(b"\0")
        if not end and len(data) < _NAME_BYTES:
            return None
        try:
            name, _ = codecs.utf_8_decode(text, "strict", bool(end))
        except UnicodeDecodeError:
            return None
        return (name if end else f"{name}…") or _NO_NAME

    def _rebuild(self) -> None:
        """Make the table for `find`: one slot for each type, so that a look-up is one multiplication."""
        living = np.flatnonzero(self._living).astype(np.int32)
        living = living[np.argsort(self._address[living], kind="stable")]
        self._sorted, self._sorted_number = self._address[living], living
        self._again = None
        self._slots: I32 | None = None
        for bits in range(len(living).bit_length() + 6, _MOST_BITS + 1):
            shift = np.uint64(64 - bits)
            for attempt in range(_MULTIPLIERS):
                multiplier = np.uint64((_GOLDEN * (2 * attempt + 1)) & (2**64 - 1))
                slot = (self._sorted * multiplier) >> shift
                if len(np.unique(slot)) == len(living):
                    self._multiplier, self._shift = multiplier, shift
                    self._slots = np.full(1 << bits, -1, dtype=np.int32)
                    self._slots[slot] = living
                    return


def distinct(words: U64) -> U64:
    """Return the words in order, each once; new.

    Not `numpy.unique`, which since 2.3 hashes: addresses, all multiples of 16, took it 2.8 of the 5.0 seconds of reading 3,200,000 blocks.
    """
    found = np.sort(words)
    return found[np.concatenate(([True], found[1:] != found[:-1]))] if len(found) else found


def _signed(word: int) -> int:
    return word - (1 << 64) if word >= 1 << 63 else word


def _refused_slot(words: U64) -> U64:
    """Return the place of each in the table of refused words; of two with the same the later one is remembered."""
    return np.asarray((words * np.uint64(_GOLDEN)) >> np.uint64(64 - _REFUSED_BITS))
