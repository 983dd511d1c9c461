"""`read_traces`: what ``tracemalloc`` knows of the memory blocks of a process: the size of each, and the line that allocated it.

``tracemalloc`` keeps a hash table from each block to its size and its traceback. It is read from a
copy of the process's memory. No code runs in the process.

The tables are found by symbol (3.9 to 3.11) or offset (from 3.12 on). Where that fails, as in a
stripped program, its variables are searched for a pointer to a table of traces. An entry of it is
accepted only if its hash is that of its address and its traceback has frames.

Knows copies and layouts; does not know objects. Source: CPython 3.9 Modules/_tracemalloc.c, 3.12 Python/tracemalloc.c,
pycore_tracemalloc.h (struct _tracemalloc_runtime_state, tracemalloc_traceback, tracemalloc_frame), pycore_pymem.h
(struct _PyTraceMalloc_Config).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gcspy_drivers.cpython.allocations.hash_table import (
    HEAD_WORDS,
    Entries,
    hash_of_pointers,
    plausible_heads,
    read_table,
)
from gcspy_drivers.cpython.graph.memory_copy import MemoryCopy
from gcspy_drivers.cpython.graph.texts import text_at, text_of_bytes_at
from gcspy_drivers.cpython.layouts import VersionLayout
from gcspy_drivers.remote.elf.image import Image
from gcspy_drivers.remote.mapping_table import EXECUTE

__all__ = [
    "HOW_TO_TRACE",
    "Frame",
    "TracePlaces",
    "Traces",
    "file_name_at",
    "find_places",
    "frames_of",
    "read_traces",
]

HOW_TO_TRACE: Final = (
    "start the program with `python -X tracemalloc=10` or PYTHONTRACEMALLOC=10 to know"
)

_U32: Final = (1 << 32) - 1
_U16: Final = (1 << 16) - 1
_MOST_BLOCK_BYTES: Final = 1 << 47
_MOST_FRAMES: Final = 32
"""Frames of a traceback that are read; the innermost are the first."""

_TRACES_IN_STATE: Final = 184
_DOMAINS_IN_STATE: Final = 192
_TRACE_BYTES: Final = 80
"""Chunks of malloc for an entry of four words and a trace of two."""

_TRACEBACK_BYTES, _FRAME_BYTES = 16 + 20 + 48, 12
"""A traceback without frames in a chunk of malloc, and its own entry; and a frame."""

_CONSTANT: Final = "<unknown>"
"""The name of a file that the interpreter has as a constant, for frames without one; since 3.15."""

_MOST_DOMAINS: Final = 256
_SAMPLE: Final = 32
"""Entries by which a table that was searched for is verified."""

_SAMPLED_BUCKETS: Final = 1024
"""Buckets that are read for that."""

_MOST_CANDIDATES: Final = 256
"""Tables that are verified; a program has a dozen."""


class Frame(NamedTuple):
    """A line of a program.

    Attributes:
        file: Name of the file as the program has it.
        line: Number of the line.
    """

    file: str
    line: int


@dataclass(frozen=True)
class TracePlaces:
    """Where a process keeps the state of ``tracemalloc``.

    Attributes:
        config: Address of three numbers of 32 bits: whether it was initialised, whether it traces, and frames per traceback; 0: not known.
        traces: Address of the pointer to the table of traces; 0: not known.
        domains: Address of the pointer to the table of further tables, by domain; 0: not known.
        writable: Ranges of addresses to search if these are not known or not valid.
    """

    config: int
    traces: int
    domains: int
    writable: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Traces:
    """The traced blocks of one moment.

    Attributes:
        address: (t,) ascending, address of each block of the interpreter.
        size: (t,) its bytes.
        traceback: (t,) row of its traceback.
        others_size: (d,) bytes of blocks that extension modules report in domains of their own.
        others_traceback: (d,) the rows of their tracebacks.
        places: (b,) address of each traceback.
        file: (b,) address of the name of the file of its innermost frame; 0: it has no frame.
        line: (b,) line of that frame.
        missing: Number of traces that could not be read.
        table_bytes: Bytes that ``tracemalloc`` itself takes for all this, with the heads of malloc's chunks.
    """

    address: NDArray[np.int64]
    size: NDArray[np.int64]
    traceback: NDArray[np.int32]
    others_size: NDArray[np.int64]
    others_traceback: NDArray[np.int32]
    places: NDArray[np.int64]
    file: NDArray[np.int64]
    line: NDArray[np.int64]
    missing: int
    table_bytes: int

    def of(self, address: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return (n,) the traceback of the block that each address is in; -1: no block is known there."""
        if not len(self.address):
            return np.full(len(address), -1, dtype=np.int32)
        row = np.maximum(np.searchsorted(self.address, address, side="right") - 1, 0)
        inside = (address >= self.address[row]) & (address - self.address[row] < self.size[row])
        return np.where(inside, self.traceback[row], -1).astype(np.int32)


def find_places(image: Image, layout: VersionLayout, runtime: int) -> TracePlaces:
    """Find where the state is, as far as symbols and offsets show it.

    Args:
        image: The file that the interpreter is in.
        layout: Offsets of its version.
        runtime: Address of ``_PyRuntime``.

    Raises:
        TargetError: The file is damaged.
    """
    if layout.tracemalloc:
        state = runtime + layout.tracemalloc
        return TracePlaces(
            state, state + _TRACES_IN_STATE, state + _DOMAINS_IN_STATE, image.writable
        )
    return TracePlaces(
        image.exported("_Py_tracemalloc_config") or 0,
        image.static("tracemalloc_traces") or 0,
        image.static("tracemalloc_domains") or 0,
        image.writable,
    )


def read_traces(copy: MemoryCopy, layout: VersionLayout, places: TracePlaces) -> Traces | str:
    """Read all traces.

    Args:
        copy: The memory.
        layout: Offsets of the version.
        places: Where the state is.

    Returns:
        The traces; or a sentence why there are none.
    """
    config = _config(copy, places.config)
    if config is not None and not config:
        return f"tracemalloc is off: {HOW_TO_TRACE}"
    reader = _Reader(copy, layout)
    found = None if config is None else reader.table(copy.word(places.traces) or 0)
    domains = places.domains
    if found is None or (not len(found.key) and found.missing):
        address, domains = _search(copy, layout, places)
        found = reader.table(address) if address else None
    if found is None:
        if config:
            return "tracemalloc is on, and its table of traces was not found or is torn"
        return f"no table of tracemalloc was found: if it is off, {HOW_TO_TRACE}"
    return reader.all(found, reader.others(copy.word(domains) or 0))


def _config(copy: MemoryCopy, address: int) -> bool | None:
    """Return whether tracemalloc is on; None if the words there are not its settings."""
    data = copy.bytes_at(address, 12) if address else None
    if data is None:
        return None
    initialised, tracing, frames = np.frombuffer(data, dtype="<i4").tolist()
    if initialised not in (0, 1, 2) or tracing not in (0, 1) or not 1 <= frames <= _U16:
        return None
    return bool(tracing)


@dataclass(frozen=True)
class _Reader:
    copy: MemoryCopy
    layout: VersionLayout

    def table(self, address: int) -> Entries | None:
        """Read the table of traces at an address; None: there is none."""
        entries = read_table(self.copy, address)
        if entries is None:
            return None
        good = entries.hash == hash_of_pointers(entries.key)
        return Entries(
            entries.key[good],
            entries.value[good],
            entries.hash[good],
            entries.missing + int(np.count_nonzero(~good)),
            entries.buckets,
        )

    def others(self, address: int) -> list[Entries]:
        """Read the tables of traces of all domains."""
        entries = read_table(self.copy, address) if address else None
        found: list[Entries] = []
        left = len(self.copy.words) // 4  # together they cannot have more than there is memory for
        for value in np.unique(entries.value)[:_MOST_DOMAINS].tolist() if entries else ():
            table = self.table(value) if left > 0 else None
            if table is not None:
                found.append(table)
                left -= len(table.key) + table.buckets
        return found

    def all(self, own: Entries, others: list[Entries]) -> Traces:
        tables = [own, *others]
        traces, ok = self.copy.many(np.concatenate([each.value for each in tables]), 2)
        ok &= (traces[:, 0] >= 0) & (traces[:, 0] < _MOST_BLOCK_BYTES)
        places, row = np.unique(traces[:, 1], return_inverse=True)
        words, valid = self.copy.many(places, 3)
        bits = words.view(np.uint64)
        frames = (words[:, 1] & _U16).astype(np.int64)
        # Packed: the name's address is in the upper half of one word and the lower one of the next.
        file = ((bits[:, 1] >> np.uint64(32)) | (bits[:, 2] << np.uint64(32))).view(np.int64)
        line = (bits[:, 2] >> np.uint64(32)).astype(np.int64)
        file = np.where(frames > 0, file, 0)
        line = np.where(frames > 0, line, 0)
        ok &= valid[row]
        missing = sum(each.missing for each in tables) + int(np.count_nonzero(~ok))
        first = np.arange(len(ok)) < len(own.key)
        mine, rest = ok & first, ok & ~first
        return Traces(
            own.key[ok[: len(own.key)]],
            traces[mine, 0],
            row[mine].astype(np.int32),
            traces[rest, 0],
            row[rest].astype(np.int32),
            places,
            file,
            line,
            missing,
            sum(map(_bytes_of_table, tables))
            + int(((_TRACEBACK_BYTES + _FRAME_BYTES * frames) & ~15).sum()),
        )


def _bytes_of_table(table: Entries) -> int:
    return _TRACE_BYTES * len(table.key) + 8 * table.buckets


def file_name_at(copy: MemoryCopy, layout: VersionLayout, address: int) -> str | None:
    """Read the name of a file of a frame.

    Args:
        copy: The memory.
        layout: Offsets of the version.
        address: Address of the name.

    Returns:
        The name; None if it is none, or was not copied.
    """
    if layout.tracemalloc_bytes:
        row = copy.maps.row_of(address) if address > 0 else None
        if row is not None and copy.maps.inode[row] and copy.place(address & ~7) is None:
            return _CONSTANT  # in a file's memory that is not writable, and so not copied
        return text_of_bytes_at(copy, address)
    return text_at(copy, layout.objects, address)


def frames_of(copy: MemoryCopy, layout: VersionLayout, traceback: int) -> list[Frame]:
    """Read the frames of a traceback, the innermost first; those that cannot be read are left out.

    Args:
        copy: The memory.
        layout: Offsets of the version.
        traceback: Its address.
    """
    head = copy.bytes_at(traceback + 8, 2)
    count = 0 if head is None else min(int.from_bytes(head, "little"), _MOST_FRAMES)
    data = copy.bytes_at(traceback + 12, 12 * count)
    if data is None:
        return []
    found = []
    for at in range(0, len(data), 12):
        name = file_name_at(copy, layout, int.from_bytes(data[at : at + 8], "little"))
        if name is not None:
            found.append(Frame(name, int.from_bytes(data[at + 8 : at + 12], "little")))
    return found


def _search(copy: MemoryCopy, layout: VersionLayout, places: TracePlaces) -> tuple[int, int]:
    """Search an image's variables for the tables: address of the table of traces, and where the pointer to the domains is; 0: none."""
    traces = domains = 0
    for first, end in places.writable:
        begin = (first + 7) & ~7
        at = begin + 8 * np.arange(max(0, end - begin) // 8, dtype=np.int64)
        words, ok = copy.many(at, 1)
        pointers = words[:, 0]
        ok &= (pointers > 0) & (pointers % 8 == 0)
        at, pointers = at[ok], pointers[ok]
        heads, ok = copy.many(pointers, HEAD_WORDS)
        ok &= plausible_heads(heads, len(copy.words) // 4) & (heads[:, 0] > 0)
        ok &= (
            _is_code(copy, heads[:, 3]) & _is_code(copy, heads[:, 4]) & _is_code(copy, heads[:, 5])
        )
        pointers, row = np.unique(pointers[ok], return_index=True)
        at = at[ok][row]
        for where, address in zip(
            at[:_MOST_CANDIDATES].tolist(), pointers[:_MOST_CANDIDATES].tolist(), strict=True
        ):
            if _is_of_traces(copy, layout, address):
                traces = traces or address
            elif _is_of_domains(copy, layout, address):
                domains = domains or where
    return traces, domains


def _is_code(copy: MemoryCopy, address: NDArray[np.int64]) -> NDArray[np.bool_]:
    maps = copy.maps
    row = maps.rows_of(address)
    return np.asarray((row >= 0) & ((maps.permissions[row] & EXECUTE) != 0))


def _is_of_traces(copy: MemoryCopy, layout: VersionLayout, address: int) -> bool:
    """Return whether a table has traces: of some entries all have the hash of their address, a size, and a file."""
    entries = read_table(copy, address, most_buckets=_SAMPLED_BUCKETS)
    if entries is None or not len(entries.key):
        return False
    good = entries.hash == hash_of_pointers(entries.key)
    if np.mean(good) < 0.9:  # it is torn while it grows
        return False
    traces = _Reader(copy, layout).all(_some(entries, good), [])
    named = [file_name_at(copy, layout, file) is not None for file in set(traces.file.tolist())]
    return bool(len(traces.address)) and any(named)


def _is_of_domains(copy: MemoryCopy, layout: VersionLayout, address: int) -> bool:
    """Return whether a table leads to tables of traces: its hashes are its keys."""
    entries = read_table(copy, address, most_buckets=_SAMPLED_BUCKETS)
    if entries is None or not len(entries.key) or (entries.hash != entries.key).any():
        return False
    return any(_is_of_traces(copy, layout, each) for each in entries.value[:4].tolist())


def _some(entries: Entries, good: NDArray[np.bool_]) -> Entries:
    key, value, hashes = entries.key[good], entries.value[good], entries.hash[good]
    return Entries(key[:_SAMPLE], value[:_SAMPLE], hashes[:_SAMPLE], 0, 0)
