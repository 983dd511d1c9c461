"""Blocks outside of pymalloc that objects lead to: objects of more than 512 bytes, and tables, items and buffers of that size.

pymalloc passes larger requests to the C allocator, whose data structures are not read here. Blocks are found from objects: objects that the
collector tracks are on its lists, wherever they are, and a container has the pointers to its blocks in it (`containers`). The size of a
block is the number of bytes that ``sys.getsizeof`` counts for it: as many as the program requested, or a little fewer, without the C
allocator's rounding. Of some objects (frames, generators) only the interpreter knows the size: it is unknown here.

Texts, bytes, numbers, and tuples that the collector does not track are found where references are
searched (`references`): at the address of one. Not found: memory without such a pointer, such as
that of extension modules.

While the program runs, a block may have moved between two reads. Blocks that are not completely
mapped, or overlap another, are dropped and counted.

Knows objects, addresses and sizes; knows no tiles. Source: CPython 3.9 to 3.15 Objects/dictobject.c (_PyDict_KeysSize, keys sizes),
Objects/setobject.c, Objects/bytearrayobject.c, Modules/_collectionsmodule.c (block, deque_sizeof), Objects/typeobject.c (type___sizeof__).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.layouts import ObjectLayout
from gcspy_drivers.cpython.objects.containers import HOLDER_WORDS, ContainerKind
from gcspy_drivers.cpython.objects.lists import Lists
from gcspy_drivers.cpython.objects.pool_index import Outward, PoolIndex
from gcspy_drivers.cpython.objects.types import TypeTable, distinct
from gcspy_drivers.remote.maps import LiveMaps
from gcspy_drivers.remote.memory import Memory

__all__ = ["KINDS", "NOT_TRACKED", "NO_BYTES", "BlockRole", "LargeBlocks", "LargeReader"]

NOT_TRACKED: Final = -2
"""The list of a block whose owner the collector does not track."""

NO_BYTES: Final = -1
"""The size of a block whose size is unknown."""

_LEAST_BYTES: Final = 488
"""Smaller memory is in a pool, including the 24 bytes of the debug hooks."""

_MOST_BYTES: Final = 1 << 46
_HEAD_BYTES: Final = 16 + 8 * HOLDER_WORDS
_DEQUE_BLOCK: Final = 528
_DEQUE_LINK: Final = 520
_DEQUE_ITEMS: Final = 64
_MOST_LINKS: Final = 256
"""Blocks of one deque that are gone through, each known only from the one before, for some 0.1 ms each."""

_OWNS_DATA: Final = 4
_MOST_DIMENSIONS: Final = 64
_U32: Final = (1 << 32) - 1

_SMALL_SET: Final = 7
_UNSIZED: Final = ("frame", "generator", "coroutine", "async_generator")
"""They have items, and another field where others have their number."""

_INT, _BYTES, _UNICODE = 1 << 24, 1 << 27, 1 << 28
_BYTES_HEAD = 33
_PIECE: Final = 480
"""Bytes that are read of a block in one piece: no block has fewer."""

_PIECES: Final = 1 << 16
_MOST_DEPTH: Final = 16
"""Maximum chain of untracked objects, each known only from the previous one: tuples in tuples."""

_SPLIT: Final = 2
_LEGACY_HEAD, _COMPACT_HEAD = 40, 32

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
I8 = npt.NDArray[np.int8]
Mask = npt.NDArray[np.bool_]


class BlockRole(IntEnum):
    """The role of a block for its owner."""

    OBJECT = 0
    ITEMS = 1
    DICT_TABLE = 2
    SHARED_TABLE = 3
    DICT_VALUES = 4
    SET_TABLE = 5
    BUFFER = 6
    DEQUE_BLOCK = 7
    TEXT = 8
    ORDER_TABLE = 9


KINDS: Final = (
    "object",
    "items of a list",
    "table of a dict",
    "names shared by instances",
    "values of an instance",
    "table of a set",
    "buffer",
    "block of a deque",
    "text",
    "order of a dict",
)
"""Name of each `BlockRole`."""


@dataclass(frozen=True, eq=False)
class LargeBlocks:
    """The blocks that were found, in order of address, none in another.

    Attributes:
        address: (n,) where each begins.
        size: (n,) bytes; `NO_BYTES` where they are not known.
        kind: (n,) `BlockRole`.
        type: (n,) number of the owner's type.
        owner: (n,) address of the object that the block is, or belongs to.
        of_list: (n,) number of the collector's list that the owner is on; `NOT_TRACKED`; -1: not known.
        elsewhere: Blocks of which it is known that they are, and not where.
        elsewhere_bytes: Bytes of those.
        torn: Blocks that were led to and are not as they should be.
    """

    address: U64
    size: I64
    kind: I8
    type: I32
    owner: U64
    of_list: I8
    elsewhere: int
    elsewhere_bytes: int
    torn: int

    def __len__(self) -> int:
        return len(self.address)


@dataclass(frozen=True, eq=False)
class _Holders:
    """Objects that may lead to blocks: where, type, list, and the words behind the type, (n, `HOLDER_WORDS`)."""

    address: I64
    type: I32
    of_list: I8
    words: I64


@dataclass
class _Found:
    """The blocks found so far: row of the holder, address, bytes and kind of each."""

    rows: list[npt.NDArray[np.intp]]
    address: list[I64]
    size: list[I64]
    kind: list[I8]
    elsewhere: int = 0
    elsewhere_bytes: int = 0
    torn: int = 0

    def add(
        self, rows: npt.NDArray[np.intp], address: I64, size: I64, kind: BlockRole | I8
    ) -> None:
        """Add blocks of some holders."""
        self.rows.append(rows)
        self.address.append(address)
        self.size.append(size)
        self.kind.append(
            np.full(len(rows), kind, dtype=np.int8) if isinstance(kind, BlockRole) else kind
        )


class _Tables(NamedTuple):
    """Tables of dictionaries: bytes, 0 if there is none; room for entries; whether several share it."""

    size: I64
    entries: I64
    shared: Mask


class LargeReader:
    """Finds the large blocks of one process.

    Args:
        memory: Its memory.
        maps: Its maps, for this gathering.
        types: Its types.
        layout: Layout of its objects.
        index: Places of its pools.
    """

    def __init__(
        self,
        memory: Memory,
        maps: LiveMaps,
        types: TypeTable,
        layout: ObjectLayout,
        index: PoolIndex,
    ) -> None:
        self._memory = memory
        self._maps = maps
        self._types = types
        self._layout = layout
        self._index = index

    def read(self, holders: I64, lists: Lists | None, leads: I64 | None = None) -> LargeBlocks:
        """Find the blocks.

        Args:
            holders: (n, 10) as in `scan.Objects.holders`, of all heaps.
            lists: The collector's lists; None: they could not be read.
            leads: (m,) addresses outside of pools that references of objects in pools lead to;
                None: untracked objects are not searched for.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
        """
        found = _Found([], [], [], [])
        outside = self._outside(lists, found)
        inside = self._inside(holders, lists)
        together = _Holders(
            np.concatenate((outside.address, inside.address)),
            np.concatenate((outside.type, inside.type)),
            np.concatenate((outside.of_list, inside.of_list)),
            np.concatenate((outside.words, inside.words)),
        )
        every = np.arange(len(outside.address))
        prefix = self._types.prefix_bytes[outside.type]
        found.add(every, outside.address - prefix, self._own_bytes(outside), BlockRole.OBJECT)
        self._parts(together, found)
        blocks = self._together(together, found)
        if leads is None:
            return blocks
        return self._with_untracked(blocks, together, found, leads)

    def _with_untracked(
        self, blocks: LargeBlocks, holders: _Holders, found: _Found, leads: I64
    ) -> LargeBlocks:
        """Search for untracked objects at the targets of references, then at those of large blocks, and so on."""
        outward = Outward.of(self._index, self._maps.maps)
        inner = blocks.kind != BlockRole.BUFFER
        inner &= (blocks.kind != BlockRole.TEXT) & (blocks.size != NO_BYTES)
        where, size = blocks.address[inner].astype(np.int64), blocks.size[inner]
        known = distinct(np.concatenate((blocks.owner, blocks.address))).view(np.int64)
        for _ in range(_MOST_DEPTH):
            together = np.concatenate((leads, self._leads_of(where, size, outward)))
            leads = np.setdiff1d(outward.choose(together), known)
            if not len(leads):
                break
            known = np.union1d(known, leads)
            more, own = self._objects_at(leads)
            begin = len(holders.address)
            holders = _Holders(
                np.concatenate((holders.address, more.address)),
                np.concatenate((holders.type, more.type)),
                np.concatenate((holders.of_list, more.of_list)),
                np.concatenate((holders.words, more.words)),
            )
            where, size = more.address - self._types.prefix_bytes[more.type], own
            found.add(begin + np.arange(len(own)), where, own, BlockRole.OBJECT)
            # Of these only objects with references lead further.
            plain = self._types.flags[more.type] & np.uint64(_INT | _BYTES | _UNICODE) != 0
            where, size, leads = where[~plain], size[~plain], leads[:0]
        return self._together(holders, found)

    def _leads_of(self, where: I64, size: I64, outward: Outward) -> I64:
        """Return where the words of some blocks lead to outside of the pools, each of at least `_PIECE` bytes."""
        keep = size >= _PIECE
        where, size = where[keep], size[keep] & ~7
        pieces = -(-size // _PIECE)
        block = np.repeat(np.arange(len(size)), pieces)
        number = np.arange(len(block)) - (np.cumsum(pieces) - pieces)[block]
        # The last piece ends where the block does, and has some of the one before.
        at = where[block] + np.minimum(number * _PIECE, size[block] - _PIECE)
        found = [np.zeros(0, dtype=np.int64)]
        for begin in range(0, len(at), _PIECES):
            data, _ = self._memory.read_many(at[begin : begin + _PIECES].astype(np.uint64), _PIECE)
            found.append(outward.choose(data.view(np.int64).reshape(-1)))
        return np.concatenate(found)

    def _objects_at(self, address: I64) -> tuple[_Holders, I64]:
        """Return the untracked objects among some addresses that are too large for a pool, and their bytes."""
        data, ok = self._memory.read_many((address - 16).astype(np.uint64), 16 + _HEAD_BYTES)
        words = data.view(np.int64).reshape(len(address), -1)
        count = words[:, 2] & ~np.uint64(self._layout.refcount_flags).astype(np.int64)
        likely = np.flatnonzero(ok & (count > 0) & (count <= self._layout.most_references))
        types = self._types
        kinds = words[likely, 3].view(np.uint64)
        types.learn(kinds.copy())
        kind = types.find(kinds)
        # Tracked objects are known from their list, or the list was changing.
        good = (kind >= 0) & ~(types.collected[kind] & (words[likely, 0] & ~3 != 0))
        # A class that the collector does not track was not allocated: it is in the interpreter, or in a module.
        good &= types.container[kind] != ContainerKind.TYPE
        likely, kind = likely[good], kind[good]
        more = _Holders(
            address[likely], kind, np.full(len(kind), NOT_TRACKED, dtype=np.int8), words[likely, 4:]
        )
        size = self._own_bytes(more)
        text = types.flags[kind] & np.uint64(_UNICODE) != 0
        size[text] = self._text_bytes(more.words[text])
        large = (size > _LEAST_BYTES) & (size < _MOST_BYTES)
        large[large] = self._maps.maps.covers(more.address[large], size[large])
        chosen = _Holders(
            more.address[large], more.type[large], more.of_list[large], more.words[large]
        )
        return chosen, size[large]

    def _text_bytes(self, words: I64) -> I64:
        """Return the bytes of texts; 0 if they are not in their object."""
        state, length = words[:, 2], words[:, 0]
        width, inside, ascii_only = (state >> 2) & 7, state & 32 != 0, state & 64 != 0
        head = np.where(ascii_only, self._layout.ascii_at, self._layout.text_at)
        good = inside & np.isin(width, (1, 2, 4)) & (length >= 0) & (length < _MOST_BYTES)
        return np.where(good, head + (length + 1) * width, 0)

    def _outside(self, lists: Lists | None, found: _Found) -> _Holders:
        """Read the tracked objects that are in no pool."""
        none = np.zeros(0, dtype=np.int64)
        address, kind, number = none, none.astype(np.int32), none.astype(np.int8)
        if lists is not None:
            address = lists.outside.address.astype(np.int64) + 16
            kind, number = lists.outside.type, lists.of_node[len(lists.inside) :]
            mine = self._index.outside(address)
            address, kind, number = address[mine], kind[mine], number[mine]
        data, ok = self._memory.read_many(address.astype(np.uint64), _HEAD_BYTES)
        words = data.view(np.int64).reshape(len(address), -1)
        good = ok & (words[:, 1].view(np.uint64) == self._types.address[kind])
        found.torn += int(np.count_nonzero(~good))
        return _Holders(address[good], kind[good], number[good], words[good, 2:])

    def _inside(self, holders: I64, lists: Lists | None) -> _Holders:
        """Get the objects in pools, and the list of each."""
        address, kind = holders[:, 0], holders[:, 1].astype(np.int32)
        number = np.full(len(address), NOT_TRACKED, dtype=np.int8)
        if lists is None:
            number[self._types.collected[kind]] = -1
        elif len(lists.inside):
            heads = lists.inside.address
            head = (address - 16).astype(np.uint64)
            row = np.minimum(np.searchsorted(heads, head), len(heads) - 1)
            on_list = self._types.collected[kind] & (heads[row] == head)
            number[on_list] = lists.of_node[row[on_list]]
        return _Holders(address, kind, number, holders[:, 2:])

    def _own_bytes(self, outside: _Holders) -> I64:
        """Return the bytes of objects including their prefix, as ``sys.getsizeof`` counts; `NO_BYTES` if unknown."""
        types, kind = self._types, outside.type
        item, flags = types.item_bytes[kind], types.flags[kind]
        count = np.abs(outside.words[:, 0])
        if self._layout.digits_shift:
            digits = outside.words[:, 0] >> self._layout.digits_shift
            count = np.where(flags & np.uint64(_INT), digits, count)
        # A class has items of its own, which are not counted by anybody.
        count = np.where(
            types.container[kind] == ContainerKind.TYPE, 0, np.minimum(count, _MOST_BYTES)
        )
        size: I64 = types.prefix_bytes[kind] + types.basic_bytes[kind] + item * count
        unsized = [number for number in np.unique(kind).tolist() if types.names[number] in _UNSIZED]
        size[(item > 0) & np.isin(kind, unsized)] = NO_BYTES
        return size

    def _parts(self, holders: _Holders, found: _Found) -> None:
        container = self._types.container[holders.type]
        ways: tuple[
            tuple[ContainerKind, Callable[[_Holders, npt.NDArray[np.intp], _Found], None]], ...
        ] = (
            (ContainerKind.TYPE, self._names_of_classes),
            (ContainerKind.LIST, self._items),
            (ContainerKind.DICT, self._dicts),
            (ContainerKind.ORDERED_DICT, self._ordered),
            (ContainerKind.SET, self._sets),
            (ContainerKind.BYTEARRAY, self._bytearrays),
            (ContainerKind.DEQUE, self._deques),
            (ContainerKind.ARRAY, self._arrays),
            (ContainerKind.NDARRAY, self._ndarrays),
            (ContainerKind.TEXT, self._texts),
        )
        for which, way in ways:
            rows = np.flatnonzero(container == which)
            if len(rows):
                way(holders, rows, found)

    def _items(self, holders: _Holders, rows: npt.NDArray[np.intp], found: _Found) -> None:
        words = holders.words[rows]
        found.add(rows, words[:, 1], 8 * np.clip(words[:, 2], 0, _MOST_BYTES), BlockRole.ITEMS)

    def _sets(self, holders: _Holders, rows: npt.NDArray[np.intp], found: _Found) -> None:
        rows = rows[holders.words[rows, 2] > _SMALL_SET]  # a small one has its table in itself
        words = holders.words[rows]
        found.add(
            rows, words[:, 3], 16 * np.clip(words[:, 2] + 1, 0, _MOST_BYTES), BlockRole.SET_TABLE
        )

    def _bytearrays(self, holders: _Holders, rows: npt.NDArray[np.intp], found: _Found) -> None:
        rows = rows[holders.words[rows, 1] > 0]
        words = holders.words[rows]
        head = _BYTES_HEAD if self._layout.bytearray_object else 0
        at = words[:, 5 if self._layout.bytearray_object else 2]
        found.add(rows, at, np.minimum(words[:, 1], _MOST_BYTES) + head, BlockRole.BUFFER)

    def _texts(self, holders: _Holders, rows: npt.NDArray[np.intp], found: _Found) -> None:
        words = holders.words[rows]
        width = (words[:, 2] >> 2) & 7
        at = words[:, (self._layout.text_at - 16) // 8]
        found.add(rows, at, (np.clip(words[:, 0], 0, _MOST_BYTES) + 1) * width, BlockRole.TEXT)

    def _arrays(self, holders: _Holders, rows: npt.NDArray[np.intp], found: _Found) -> None:
        words = holders.words[rows]
        # The size of an item is in a description that all arrays of one type code share.
        where, inverse = np.unique(words[:, 3], return_inverse=True)
        data, ok = self._memory.read_many(where.astype(np.uint64), 8)
        width = np.where(ok, data.view(np.int32).reshape(len(where), 2)[:, 1], 0)[inverse].astype(
            np.int64
        )
        found.add(
            rows,
            words[:, 1],
            np.clip(words[:, 2], 0, _MOST_BYTES) * np.clip(width, 0, 16),
            BlockRole.BUFFER,
        )

    def _ndarrays(self, holders: _Holders, rows: npt.NDArray[np.intp], found: _Found) -> None:
        """Add the data of arrays of numpy; a view has another one's."""
        words = holders.words[rows]
        dimensions = words[:, 1] & _U32
        own = (words[:, 6] & _OWNS_DATA != 0) & (dimensions <= _MOST_DIMENSIONS)
        rows, words, dimensions = rows[own], words[own], dimensions[own]
        # The size of an item is in a description that arrays of one type share.
        where, inverse = np.unique(words[:, 5], return_inverse=True)
        data, ok = self._memory.read_many(where.astype(np.uint64), 48)
        described = data.view(np.int64).reshape(len(where), -1)
        # numpy 1 has the size as 32 bits, beside its alignment; numpy 2 as 64, behind flags.
        beside = described[:, 4] >> 32 != 0
        width = np.where(beside, described[:, 4] & _U32, described[:, 5])
        total = np.where(ok, np.clip(width, 0, _MOST_BYTES), 0)[inverse].astype(np.float64)
        for count in np.unique(dimensions[dimensions > 0]).tolist():
            chosen = np.flatnonzero(dimensions == count)
            data, ok = self._memory.read_many(words[chosen, 2].astype(np.uint64), 8 * count)
            extents = data.view(np.int64).reshape(len(chosen), count)
            ok &= (extents >= 0).all(axis=1)
            # As floats: a product of wrong numbers may be too large for 64 bits. All products that are kept are exact.
            total[chosen] *= np.where(ok, extents.astype(np.float64).prod(axis=1), 0)
        size = np.minimum(total, _MOST_BYTES).astype(np.int64)
        found.add(rows, words[:, 0], size, BlockRole.BUFFER)

    def _names_of_classes(
        self, holders: _Holders, rows: npt.NDArray[np.intp], found: _Found
    ) -> None:
        where = (holders.address[rows] + self._layout.cached_keys_at).astype(np.uint64)
        data, ok = self._memory.read_many(where, 8)
        at = data.view(np.int64)[:, 0]
        rows, at = rows[ok & (at != 0)], at[ok & (at != 0)]
        found.add(rows, at, self._tables(at).size, BlockRole.SHARED_TABLE)

    def _dicts(self, holders: _Holders, rows: npt.NDArray[np.intp], found: _Found) -> None:
        # Two columns of them: a program has more dictionaries than anything else.
        table, values = holders.words[rows, 2], holders.words[rows, 3]
        wanted = self._index.outside(table)
        split = (
            values != 0 if not self._layout.compact_keys else np.zeros(len(rows), dtype=np.bool_)
        )
        if split.any():
            # A table in a pool need not be looked into, but for how many values stand beside it.
            wanted |= split & self._index.outside(values)
        if not wanted.all():
            rows, table, values, split = rows[wanted], table[wanted], values[wanted], split[wanted]
        tables = self._tables(table)
        kind = np.where(tables.shared, BlockRole.SHARED_TABLE, BlockRole.DICT_TABLE).astype(np.int8)
        found.add(rows, table, tables.size, kind)
        if split.any():
            found.add(rows[split], values[split], 8 * tables.entries[split], BlockRole.DICT_VALUES)

    def _ordered(self, holders: _Holders, rows: npt.NDArray[np.intp], found: _Found) -> None:
        self._dicts(holders, rows, found)
        words = holders.words[rows]
        found.add(
            rows, words[:, 6], 8 * np.clip(words[:, 7], 0, _MOST_BYTES), BlockRole.ORDER_TABLE
        )

    def _tables(self, where: I64) -> _Tables:
        """Read the heads of dictionaries' tables."""
        address, inverse = np.unique(where, return_inverse=True)
        data, ok = self._memory.read_many(address.view(np.uint64), _COMPACT_HEAD)
        words = data.view(np.int64).reshape(len(address), -1)
        if self._layout.compact_keys:
            bits, index_bits, kind = (data[:, at].astype(np.int64) for at in (8, 9, 10))
            good = (bits <= 44) & (index_bits <= 47) & (kind <= _SPLIT)
            bits, index_bits = np.where(good, bits, 0), np.where(good, index_bits, 0)
            entries = (2 << bits) // 3
            size = _COMPACT_HEAD + (1 << index_bits) + entries * np.where(kind == 0, 24, 16)
        else:
            slots = words[:, 1]
            good = (slots >= 1) & (slots <= 1 << 44) & (slots & (slots - 1) == 0)
            slots = np.where(good, slots, 8)
            width = np.select([slots <= 0xFF, slots <= 0xFFFF, slots <= 0xFFFFFFFF], [1, 2, 4], 8)
            entries = (slots << 1) // 3
            size = _LEGACY_HEAD + slots * width + entries * 24
        good &= ok & (words[:, 0] > 0)
        shared = words[:, 0] > 1
        return _Tables(
            np.where(good, size, 0)[inverse], np.where(good, entries, 0)[inverse], shared[inverse]
        )

    def _deques(self, holders: _Holders, rows: npt.NDArray[np.intp], found: _Found) -> None:
        words = holders.words[rows]
        count = (words[:, 3] + words[:, 0] + _DEQUE_ITEMS - 1) // _DEQUE_ITEMS
        good = (words[:, 0] >= 0) & (words[:, 0] < _MOST_BYTES) & (words[:, 3] >= 0)
        left, at = np.where(good, np.maximum(count, 1), 0), words[:, 1]
        for _ in range(_MOST_LINKS):
            going = np.flatnonzero(left > 0)
            if not len(going):
                return
            there = self._maps.maps.covers(at[going], _DEQUE_BLOCK)
            found.torn += int(np.count_nonzero(~there))
            left[going[~there]] = 0
            going = going[there]
            found.add(
                rows[going],
                at[going].copy(),
                np.full(len(going), _DEQUE_BLOCK),
                BlockRole.DEQUE_BLOCK,
            )
            left[going] -= 1
            going = going[left[going] > 0]
            data, _ = self._memory.read_many((at[going] + _DEQUE_LINK).astype(np.uint64), 8)
            at[going] = data.view(np.int64)[:, 0]
        found.elsewhere += int(left.sum())
        found.elsewhere_bytes += int(left.sum()) * _DEQUE_BLOCK

    def _together(self, holders: _Holders, found: _Found) -> LargeBlocks:
        """Sort the blocks, each once, and drop impossible ones."""
        row = np.concatenate(found.rows).astype(np.intp)
        address, size = np.concatenate(found.address), np.concatenate(found.size)
        kind = np.concatenate(found.kind)
        wanted = (size == NO_BYTES) | (kind == BlockRole.OBJECT) | (size > _LEAST_BYTES)
        wanted &= (address > 0) & self._index.outside(address)
        # For a table that several share the first is reported, which is the class if there is one.
        chosen = np.flatnonzero(wanted)
        chosen = chosen[np.unique(address[chosen], return_index=True)[1]]
        row, address, size, kind = row[chosen], address[chosen], size[chosen], kind[chosen]
        known = np.where(size == NO_BYTES, _HEAD_BYTES, size)
        whole = self._maps.maps.covers(address, known)
        torn = found.torn + int(np.count_nonzero(~whole))
        keep = np.flatnonzero(whole)
        while len(keep):
            runs_into = address[keep[:-1]] + known[keep[:-1]] > address[keep[1:]]
            if not runs_into.any():
                break
            torn += int(np.count_nonzero(runs_into))
            keep = keep[~np.append(runs_into, False)]
        row = row[keep]
        return LargeBlocks(
            address=address[keep].astype(np.uint64),
            size=size[keep],
            kind=kind[keep],
            type=holders.type[row],
            owner=holders.address[row].astype(np.uint64),
            of_list=holders.of_list[row],
            elsewhere=found.elsewhere,
            elsewhere_bytes=found.elsewhere_bytes,
            torn=torn,
        )
