"""The space "malloc heap": the chunks of all arenas in order of address.

A tile is a page, or a power of two of pages. Maps walks to streams; does not know memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.kit.streams import (
    U4_MAX,
    add_amount,
    add_bytes,
    add_count,
    hide,
    hide_all,
    show_names,
)
from gcspy_drivers.native_heap.arenas import Arena
from gcspy_drivers.native_heap.chunk_walk import SpanWalk
from gcspy_drivers.native_heap.malloc_reader import CHUNKS, PAGES, MallocReading
from gcspy_drivers.native_heap.walk_state import ChunkKind
from gcspy_drivers.remote.address import PAGE_BYTES
from gcspy_drivers.remote.pages.memory_ages import MemoryAges
from gcspy_server.api import Control, ExtentNames, Server, ServerStream

__all__ = ["HeapSpace"]

_MOST_TILE_BYTES: Final = 64 << 20

I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Part:
    """The tiles of one span: (tiles,) each."""

    bases: npt.NDArray[np.uint64]
    bytes: I64
    begins: I64
    holes: I64
    top: I64
    resident: I64 | None
    reclaimable: I64 | None
    unknown: npt.NDArray[np.bool_]


class HeapSpace:
    """The heap as a space.

    Args:
        server: The server to add the space to.
        ages: The ages of its memory; None: they are not followed.
    """

    def __init__(self, server: Server, *, ages: MemoryAges | None = None) -> None:
        self.space = server.add_space(
            "malloc heap",
            names=ExtentNames([], []),
            driver="malloc",
            tile_title="Memory ",
            unused_text="no chunk begins here, and none crosses it",
            main=True,
            description="Chunks of all arenas in order of address; a line separates heaps",
        )
        texts = (
            ("Used", "Bytes of chunks in use", (200, 60, 50)),
            ("Thread caches", "Bytes of freed chunks that threads keep", (220, 160, 40)),
            ("Fast bins", "Bytes of freed chunks that are not joined with neighbours", None),
            ("In bins", "Bytes of free chunks in bins", (60, 140, 200)),
            ("Top", "Free bytes above the last chunk of an arena", None),
        )
        self.extent = add_bytes(
            self.space, "Extent", "Bytes of the tile that belong to malloc", order=9
        )
        kinds = []
        for order, (name, about, colour) in enumerate(texts):
            kinds.append(
                add_amount(
                    self.space,
                    name,
                    about,
                    order=order,
                    most=_MOST_TILE_BYTES,
                    suffix=" bytes",
                    of=self.extent,
                    colour=colour,
                )
            )
        self.used, self.cached, self.fast, self.binned, self.top = kinds
        self.begins = add_count(
            self.space, "Chunks in use", "Chunks in use that begin in the tile", order=5
        )
        self.holes = add_bytes(
            self.space, "Largest hole", "The largest run of free chunks that begins here", order=6
        )
        self.resident = add_bytes(
            self.space, "Resident", "Bytes of the tile that are in memory", order=7
        )
        self.reclaimable = add_bytes(
            self.space,
            "Reclaimable",
            "Bytes of whole free pages in memory: trimming returns them to the system",
            order=8,
        )
        self.unused = (
            add_amount(
                self.space,
                "Not accessed for" if ages.sees_reads else "Not written for",
                "For how long the program has accessed nothing in the tile, at least"
                if ages.sees_reads
                else "For how long the program has written no page of the tile, at least; it may have read them",
                order=10,
                most=U4_MAX,
                suffix=" s",
            )
            if ages is not None
            else None
        )

    def fill(self, reading: MallocReading) -> None:
        """Fill the space from a reading of level 2, from lists alone, or more."""
        walked = reading.level >= CHUNKS
        parts = [
            part
            for arena, walks in zip(
                reading.arenas, reading.walks if walked else reading.maps(), strict=True
            )
            for walk in walks
            if len((part := _part_of(arena, walk, reading)).bases)
        ]
        parts.sort(key=lambda part: int(part.bases[0]))
        parts = _apart(parts, reading)
        cell_bytes = _cell_bytes(reading)
        bases = np.concatenate([*(part.bases for part in parts), np.zeros(0, dtype=np.uint64)])
        names = ExtentNames(bases, np.full(len(bases), cell_bytes, dtype=np.uint64))
        show_names(self.space, self.space.names if self.space.names == names else names)
        self.space.reset()
        if not parts:
            return
        rows = np.concatenate([part.bytes for part in parts], axis=1)
        for stream, kind in zip(
            (self.used, self.cached, self.fast, self.binned), ChunkKind, strict=True
        ):
            stream.data[:] = rows[kind]
        self.top.data[:] = np.concatenate([part.top for part in parts])
        self.extent.data[:] = rows.sum(axis=0) + self.top.data
        self.begins.data[:] = np.concatenate([part.begins for part in parts])
        self.holes.data[:] = np.concatenate([part.holes for part in parts])
        for stream, name in ((self.resident, "resident"), (self.reclaimable, "reclaimable")):
            columns = [getattr(part, name) for part in parts]
            if reading.level < PAGES or any(column is None for column in columns):
                hide_all([stream])
            else:
                stream.data[:] = np.concatenate(columns)
        if self.unused is not None:
            _fill_ages(self.unused, reading, bases, cell_bytes)
        if not walked:
            hide_all([self.begins, self.holes])
        if not reading.used_is_known:
            hide_all([self.used, self.cached, self.fast, self.begins])
        unknown = np.concatenate([part.unknown for part in parts])
        hide(self.space.streams, unknown)
        control = self.space.control
        control[:] = np.where(
            (rows.sum(axis=0) + self.top.data > 0) | unknown, Control.USED, Control.UNUSED
        )
        edges = np.cumsum([len(part.bases) for part in parts], dtype=np.int64)[:-1]
        control[edges] |= np.uint8(Control.SEPARATOR)
        self._summarise(reading, cell_bytes)

    def _summarise(self, reading: MallocReading, cell_bytes: int) -> None:
        total = sum(arena.system_bytes for arena in reading.arenas)
        for stream in (self.used, self.cached, self.fast, self.binned, self.top):
            known = stream.data if stream.known is None else stream.data[stream.known]
            stream.set_summary(int(known.sum()), max(total, 1))
        walks = [walk for each in reading.walks for walk in each]
        unknown = sum(walk.unknown_bytes for walk in walks)
        largest = max((walk.largest_hole for walk in walks), default=0)
        heaps = sum(map(len, reading.spans))
        text = [f"{len(reading.arenas)} arenas, {heaps} heaps, {total:,} bytes"]
        if walks:
            text.append(f"the largest hole has {largest:,} bytes")
            self.holes.set_summary(largest)
        else:
            text.append("from the lists of free chunks: the rest is in use")
        if unknown:
            text.append(f"{unknown:,} bytes changed during the read and are unknown")
        if reading.changed:
            text.append(f"{len(reading.changed)} arenas changed during the read")
        if cell_bytes > PAGE_BYTES:
            text.append(f"a tile is {cell_bytes >> 10} KiB")
        self.space.info = "; ".join(text)


def _fill_ages(
    stream: ServerStream, reading: MallocReading, bases: npt.NDArray[np.uint64], cell_bytes: int
) -> None:
    """Fill the least age of the pages of each tile; unknown where no page is followed."""
    if reading.ages is None:
        hide_all([stream])
        return
    places = np.arange(cell_bytes // PAGE_BYTES, dtype=np.uint64) * np.uint64(PAGE_BYTES)
    seconds = reading.ages.seconds((bases[:, None] + places).reshape(-1)).reshape(len(bases), -1)
    least = np.where(seconds < 0, U4_MAX, seconds).min(axis=1)
    known = least < U4_MAX
    stream.data[:] = np.where(known, least, 0)
    hide([stream], ~known)


def _cell_bytes(reading: MallocReading) -> int:
    return reading.cell_bytes


def _apart(parts: list[_Part], reading: MallocReading) -> list[_Part]:
    """Leave out a part that begins before the one before it ends: torn sizes may say so."""
    cell = np.uint64(_cell_bytes(reading))
    kept: list[_Part] = []
    for part in parts:
        if not kept or part.bases[0] >= kept[-1].bases[-1] + cell:
            kept.append(part)
    return kept


def _part_of(arena: Arena, walk: SpanWalk, reading: MallocReading) -> _Part:
    span, cell = walk.span, walk.cell_bytes
    end = span.end
    if span.has_top:
        end += arena.top_bytes or 0
    count = max(walk.bytes.shape[1], -(-(end - walk.first_cell) // cell))

    def grown(values: npt.NDArray[np.uint32]) -> I64:
        padding = [(0, 0)] * (values.ndim - 1) + [(0, count - values.shape[-1])]
        return np.pad(values.astype(np.int64), padding)

    edges = walk.first_cell + cell * np.arange(count + 1, dtype=np.int64)
    top = np.clip(edges[1:], span.end, end) - np.clip(edges[:-1], span.end, end)
    unknown = np.zeros(count, dtype=np.bool_)
    for low, high in walk.unknown.tolist():
        unknown[(low - walk.first_cell) // cell : -(-(high - walk.first_cell) // cell)] = True
    pages = reading.resident.get(span.begin)
    resident = reclaimable = None
    if pages is not None:
        per_cell = cell // PAGE_BYTES
        free = np.zeros(count * per_cell + 1, dtype=np.int64)
        first = (walk.runs[:, 0].astype(np.int64) - walk.first_cell) // PAGE_BYTES
        np.add.at(free, first, 1)
        np.add.at(free, first + walk.runs[:, 1].astype(np.int64), -1)
        whole = np.cumsum(free[:-1]) > 0
        here = np.zeros(count * per_cell, dtype=np.bool_)
        here[: min(len(pages), len(here))] = pages[: len(here)]
        resident = here.reshape(count, per_cell).sum(axis=1) * PAGE_BYTES
        reclaimable = (here & whole).reshape(count, per_cell).sum(axis=1) * PAGE_BYTES
    return _Part(
        bases=edges[:-1].astype(np.uint64),
        bytes=grown(walk.bytes),
        begins=grown(walk.begins),
        holes=grown(walk.holes),
        top=top,
        resident=resident,
        reclaimable=reclaimable,
        unknown=unknown,
    )
