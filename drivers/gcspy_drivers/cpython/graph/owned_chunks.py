"""`OwnedChunks`: memory of malloc that is no object, by the object in C or the library that owns it.

A type that is written in C keeps memory of its own behind a pointer in its objects: a buffer of
ctypes, of a file, of a compiled pattern. A chunk of malloc that exactly one object refers to, by
its very address, is counted as that object's. What such a chunk refers to in the same way is its
owner's as well, a few steps on. The rest is a library's if the writable data of one library alone
refers to it. A chunk that several refer to has no owner here, nor has one whose address is only on
stacks.

Types whose memory is known otherwise (`loops`) own nothing here. Source: glibc malloc/malloc.c
(malloc_chunk, IS_MMAPPED).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gcspy_drivers.cpython.graph.forms import DATA_WORD, Form, TypeForm
from gcspy_drivers.cpython.graph.heap_graph import HeapGraph
from gcspy_drivers.cpython.graph.machine_code import Loops
from gcspy_drivers.cpython.graph.memory_copy import MemoryCopy
from gcspy_drivers.kit.memory_map import MemoryKind, classify
from gcspy_drivers.remote.mapping_table import PRIVATE, WRITE

__all__ = ["SMALL_BYTES", "OwnedChunks", "malloc_heaps", "owned_chunks"]

I64 = NDArray[np.int64]

_MOST_CHUNKS: Final = 1 << 21
"""Chunks of one heap that are looked at; later ones have no owner."""
_MOST_OBJECT_WORDS: Final = 64
_MOST_CHUNK_WORDS: Final = 512
_STEPS: Final = 4
_HEAP_INFO_BYTES: Final = 32
_MOST_ARENA_HEAD: Final = 4096
_PAGE: Final = 4096
_MAPPED: Final = 2
_MOST_ZEROED_BYTES: Final = 1 << 20

SMALL_BYTES: Final = 512
"""A larger block is not pymalloc's. numpy has none of it."""


class OwnedChunks(NamedTuple):
    """Memory of malloc in which no object is.

    Attributes:
        by_object: (n,) resident bytes that each object of the graph owns.
        by_library: Resident bytes that each library owns, by the name of its file.
        unowned_bytes: Resident bytes of chunks without an owner.
    """

    by_object: I64
    by_library: dict[str, int]
    unowned_bytes: int


def owned_chunks(graph: HeapGraph, loops: Loops, in_arena: NDArray[np.bool_]) -> OwnedChunks:
    """Find the owners.

    Args:
        graph: All objects.
        loops: The loops, compiled or not.
        in_arena: (n,) whether each object is in a pool of pymalloc, and so in no chunk.
    """
    copy = graph.copy
    known = _known_addresses(graph, in_arena)
    start, size = _unknown_chunks(copy, known, loops)
    order = np.argsort(start)
    start, size = start[order], size[order]
    resident = np.zeros(len(start), dtype=np.int64)
    loops.residents(start - 16, start - 16 + size, copy.runs, resident)
    owner = np.full(len(start), -1, dtype=np.int64)
    paths, by_data = _pointers_of_libraries(graph, start, known)
    for found, by in (_pointers_of_objects(graph, start), by_data):
        _spread(copy, start, size, owner, found, by)
    amount = np.bincount(
        owner[owner >= 0], weights=resident[owner >= 0], minlength=graph.objects + len(paths)
    ).astype(np.int64)
    by_library: dict[str, int] = {}
    for path, one in zip(paths, amount[graph.objects :].tolist(), strict=True):
        name = path.rpartition("/")[2]
        by_library[name] = by_library.get(name, 0) + one
    return OwnedChunks(amount[: graph.objects], by_library, int(resident[owner < 0].sum()))


def _spread(copy: MemoryCopy, start: I64, size: I64, owner: I64, found: I64, by: I64) -> None:
    """Give chunks to their owners, and what these refer to, and so on.

    Args:
        copy: The memory.
        start: (c,) address of each chunk, ascending.
        size: (c,) its bytes.
        owner: (c,) set; -1: none.
        found: (k,) chunks that somebody refers to.
        by: (k,) who refers to them.
    """
    for _ in range(_STEPS):
        new = _claim(owner, found, by)
        if not len(new):
            return
        words, row = _words_at(copy, start[new], np.minimum(size[new] // 8 - 1, _MOST_CHUNK_WORDS))
        found, there = _rows_of(start, words)
        by = owner[new][row[there]]


def malloc_heaps(copy: MemoryCopy) -> Iterator[tuple[Sequence[int], int]]:
    """Return where the first chunk of each heap of malloc may be, and the heap's end."""
    maps = copy.maps
    kind = classify(maps, ())
    for row in np.flatnonzero(kind == MemoryKind.MALLOC).tolist():
        first, last = int(maps.start[row]), int(maps.end[row])
        if maps.path[row] == "[heap]":
            yield (first, first + 8), last
            continue
        size = copy.word(first + 16)
        if size is not None and 0 < size <= last - first:
            # Behind its header, and in an arena's first heap behind the arena's, whose length
            # depends on the version.
            yield range(first + _HEAP_INFO_BYTES, first + _MOST_ARENA_HEAD, 16), first + size


def _known_addresses(graph: HeapGraph, in_arena: NDArray[np.bool_]) -> I64:
    """Return addresses in chunks whose use is known, ascending: objects, and their tables, items, data and state."""
    form = graph.forms[graph.kind, TypeForm.FORM]
    found = [graph.address[~in_arena]]
    large = (graph.elsewhere > SMALL_BYTES) | (form == Form.NDARRAY)
    for each, word in DATA_WORD.items():
        found.append(_word_of(graph, np.flatnonzero((form == each) & large), word))
    if graph.layout.graph is not None:
        modules = np.flatnonzero(form == Form.MODULE)
        found.append(_word_of(graph, modules, graph.layout.graph.module_state // 8))
    arrays = np.flatnonzero(form == Form.NDARRAY)
    found.append(_word_of(graph, arrays, 4))
    deques = np.flatnonzero(form == Form.DEQUE)
    found += [_word_of(graph, deques, 3), _word_of(graph, deques, 4)]
    types = np.flatnonzero(form == Form.TYPE)
    found.append(_word_of(graph, types, graph.layout.objects.cached_keys_at // 8))
    values = np.flatnonzero((graph.forms[graph.kind, TypeForm.ATTRIBUTES] != 0) & large)
    found.append(_word_of(graph, values, -4))  # 3.11: the values of an instance
    return np.unique(np.concatenate(found))


def _word_of(graph: HeapGraph, chosen: I64, word: int) -> I64:
    """Return (k,) a word of each of some objects; 0: not copied."""
    words, _ = _words_at(
        graph.copy, graph.address[chosen] + 8 * word, np.ones(len(chosen), dtype=np.int64)
    )
    return words


def _unknown_chunks(copy: MemoryCopy, known: I64, loops: Loops) -> tuple[I64, I64]:
    """Return address and size of each chunk in use in which nothing known is."""
    starts, sizes = [], []
    start, size = np.zeros(_MOST_CHUNKS, dtype=np.int64), np.zeros(_MOST_CHUNKS, dtype=np.int64)
    for firsts, last in malloc_heaps(copy):
        for first in firsts:
            count = int(
                loops.malloc_unknown(
                    first, last, copy.words, copy.runs, copy.granules, known, start, size
                )
            )
            if count >= 0:
                starts.append(start[:count].copy())
                sizes.append(size[:count].copy())
                break
    for at, length in _mapped_chunks(copy):
        inside = np.searchsorted(known, (at + 16, at + length))
        if inside[0] == inside[1]:
            starts.append(np.array([at + 16]))
            sizes.append(np.array([length]))
    if not starts:
        return start[:0], size[:0]
    return np.concatenate(starts), np.concatenate(sizes)


def _mapped_chunks(copy: MemoryCopy) -> Iterator[tuple[int, int]]:
    """Return address and size of each chunk that has a mapping of its own, which the kernel may have merged with others."""
    maps = copy.maps
    kind = classify(maps, ())
    for row in np.flatnonzero(kind == MemoryKind.ANONYMOUS).tolist():
        first, last = int(maps.start[row]), int(maps.end[row])
        page = np.arange(first, last, _PAGE)
        words, _ = _words_at(copy, page, np.full(len(page), 2))
        length = words[1::2] & ~7
        is_chunk = (words[::2] == 0) & (words[1::2] & 7 == _MAPPED) & (length % _PAGE == 0)
        is_chunk &= (length > 0) & (length <= last - page)
        behind = first
        for each in np.flatnonzero(is_chunk).tolist():
            if page[each] >= behind:
                behind = int(page[each] + length[each])
                yield int(page[each]), int(length[each])


def _pointers_of_objects(graph: HeapGraph, start: I64) -> tuple[I64, I64]:
    """Return chunks that objects of types in C refer to, and the objects."""
    count = np.minimum(graph.forms[:, TypeForm.BASIC_BYTES] // 8, _MOST_OBJECT_WORDS) - 2
    # A class has a copy of its docstring; all else of it is known.
    in_c = np.isin(graph.forms[:, TypeForm.FORM], (Form.PLAIN, Form.TYPE)) & (count > 0)
    chosen = np.flatnonzero(in_c[graph.kind])
    words, row = _words_at(graph.copy, graph.address[chosen] + 16, count[graph.kind[chosen]])
    found, there = _rows_of(start, words)
    return found, chosen[row[there]]


def _pointers_of_libraries(
    graph: HeapGraph, start: I64, known: I64
) -> tuple[list[str], tuple[I64, I64]]:
    """Return the files whose writable data is mapped; and chunks that this data refers to, with n + the number of the file.

    Zeroed data has no file: it is behind the mapping of the file, up to anything that is known.
    """
    copy = graph.copy
    maps = copy.maps
    writable = (maps.inode != 0) & (maps.permissions & (WRITE | PRIVATE) == (WRITE | PRIVATE))
    rows = np.flatnonzero(writable)
    paths = [maps.path[row] for row in rows.tolist()]
    first = maps.start[rows].astype(np.int64)
    behind = np.minimum(rows + 1, len(maps) - 1)
    zeroed = (maps.start[behind] == maps.end[rows]) & (maps.inode[behind] == 0)
    of_file = maps.end[rows].astype(np.int64)
    end = np.where(zeroed, maps.end[behind].astype(np.int64), of_file)
    bounds = np.append(np.sort(np.concatenate((known, start))), np.iinfo(np.int64).max)
    end = np.minimum(
        end, np.minimum(of_file + _MOST_ZEROED_BYTES, bounds[np.searchsorted(bounds, of_file)])
    )
    found, by = [start[:0]], [start[:0]]
    for number, (low, high) in enumerate(zip(first.tolist(), end.tolist(), strict=True)):
        for words in _words_between(copy, low, high):
            rows, _ = _rows_of(start, words)
            found.append(rows)
            by.append(np.full(len(rows), graph.objects + number))
    return paths, (np.concatenate(found), np.concatenate(by))


def _claim(owner: I64, found: I64, by: I64) -> I64:
    """Give each chunk without an owner to the one object that refers to it; returns those chunks."""
    free = owner[found] < 0
    pairs = np.unique(np.stack((found[free], by[free]), axis=1), axis=0)
    chunk, count = np.unique(pairs[:, 0], return_counts=True)
    alone = np.isin(pairs[:, 0], chunk[count == 1])
    owner[pairs[alone, 0]] = pairs[alone, 1]
    claimed: I64 = pairs[alone, 0]
    return claimed


def _rows_of(start: I64, words: I64) -> tuple[I64, I64]:
    """Return of words that are the address of a chunk: the chunk's row, and the word's."""
    if not len(start):
        return start, start
    between = np.flatnonzero((words >= start[0]) & (words <= start[-1]))
    row = np.searchsorted(start, words[between])
    there = start[row] == words[between]
    return row[there], between[there]


def _words_between(copy: MemoryCopy, low: int, high: int) -> Iterator[I64]:
    """Return what was copied of a range, run by run."""
    first = max(int(np.searchsorted(copy.runs[:, 0], low, side="right")) - 1, 0)
    for start, end, at in copy.runs[first:].tolist():
        if start >= high:
            return
        begin, stop = max(start, low), min(end, high)
        if begin < stop:
            yield copy.words[at + (begin - start) // 8 : at + (stop - start) // 8]


def _words_at(copy: MemoryCopy, address: I64, count: I64) -> tuple[I64, I64]:
    """Return the words at some addresses, as many as each has, and the row of each word; 0: not copied."""
    row = np.repeat(np.arange(len(address)), count)
    behind = np.cumsum(count)
    at = address[row] + 8 * (np.arange(len(row)) - (behind - count)[row])
    if not len(copy.runs):
        return np.zeros(len(at), dtype=np.int64), row
    run = np.maximum(np.searchsorted(copy.runs[:, 0], at, side="right") - 1, 0)
    inside = (at >= copy.runs[run, 0]) & (at < copy.runs[run, 1])
    place = copy.runs[run, 2] + (at - copy.runs[run, 0]) // 8
    words: I64 = np.where(inside, copy.words[np.where(inside, place, 0)], 0)
    return words, row
