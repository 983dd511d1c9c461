"""A trace of any length of a program that was never run: valid to the byte, so that the rebuilt heap has nothing to find fault with.

Four threads fill an eden of 16 MiB, one TLAB after the other, with cells of 24 bytes and every
eighth time an array. A minor collection moves every 31st object to a survivor space; every fourth
survivor goes to the old space, and the others die. A full collection follows each 64th minor
collection; it keeps the oldest few thousand objects, moved together, and nothing else. Each cycle
is about 500,000 events, and the heap has the same size after any number of cycles as after ten:
memory that grows with the length of the trace is a leak of ours.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from gcspy_objects.anttracks.layout import EventId
from gcspy_objects.records import BufferMode
from numpy.typing import NDArray

from benchmarks.targets.anttracks_writer import SymbolsWriter, TraceWriter, alloc, head, long, word

__all__ = ["SMALL", "Sizes", "Synthetic", "Written"]

_INTS, _OBJECT, _CELL = 1, 2, 3
_INTERNAL, _COLLECTOR, _CELLS, _ARRAYS = 1, 2, 20, 21
_CELL_BYTES: Final = 24
_EDEN, _LOW, _HIGH = 1, 2, 3
_BASE: Final = 0xC0000000
_MUTATORS, _COLLECTORS, _VM = (
    (0x7F1000, 0x7F2000, 0x7F3000, 0x7F4000),
    (0x7F8000, 0x7F9000),
    0x7FA000,
)
_BUFFER_WORDS: Final = 4000
_SURVIVES, _PROMOTED = 31, 4


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the heap is.

    Attributes:
        eden: Bytes of eden; a survivor space has an eighth, the old space three times as many.
        tlab: Bytes of a TLAB.
        plab: Bytes of a PLAB.
        full_every: Minor collections from one full one to the next.
    """

    eden: int = 16 << 20
    tlab: int = 256 << 10
    plab: int = 32 << 10
    full_every: int = 64

    @property
    def spaces(self) -> list[tuple[int, int]]:
        """Start and bytes of each space: old, eden, and the survivors."""
        return [
            (_BASE - 3 * self.eden, 3 * self.eden),
            (_BASE, self.eden),
            (_BASE + self.eden, self.eden // 8),
            (_BASE + self.eden * 9 // 8, self.eden // 8),
        ]


SMALL: Final = Sizes(eden=64 << 10, tlab=8 << 10, plab=1 << 10, full_every=3)
"""A heap of which a whole life is some ten thousand events."""


@dataclass(frozen=True, slots=True)
class Written:
    """Counts of the written records.

    Attributes:
        events: How many events.
        objects: How many objects the program allocated.
        minor: How many minor collections.
        full: How many full ones.
        live: Objects that are live after the last collection, fillers left out.
    """

    events: int
    objects: int
    minor: int
    full: int
    live: int


@dataclass(frozen=True, slots=True)
class _Plab:
    """A buffer to copy into, as offsets from its start.

    Attributes:
        first: The first of the objects that go into it, as an index into what is copied.
        last: The one after the last.
        filled: Bytes of objects; the rest is a filler.
    """

    first: int
    last: int
    filled: int


def _filler(site: int, address: int, size: int) -> bytes:
    """Return the filler of the rest of a buffer: an int[] of `size` bytes."""
    return (
        alloc(EventId.ALLOC_SLOW, site, address=address, length=(size - 16) // 4, type_id=_INTS)
        if size
        else b""
    )


def _plabs(sizes: list[int], room: int) -> list[_Plab]:
    """Put objects into buffers one after the other; the rest of a buffer is empty, or enough for a filler."""
    made, first, filled = [], 0, 0
    for at, size in enumerate(sizes):
        left = room - filled - size
        if left < 0 or 0 < left < 16:
            made.append(_Plab(first, at, filled))
            first, filled = at, 0
        filled += size
    return [*made, _Plab(first, len(sizes), filled)] if filled else made


class Synthetic:
    """A program and its collections.

    Args:
        packed: Whether the program's buffers are compressed.
        sizes: How large its heap is.
    """

    def __init__(self, *, packed: bool = False, sizes: Sizes | None = None) -> None:
        self.sizes = sizes or Sizes()
        self._old, _, *survivors = (start for start, _ in self.sizes.spaces)
        self._survivor_starts = dict(zip((_LOW, _HIGH), survivors, strict=True))
        made, words, lengths = self._tlab(self.sizes.tlab)
        self.objects_a_tlab = len(made)
        self._filled = sum(made)
        starts = np.arange(0, self.sizes.eden, self.sizes.tlab)
        offsets = np.cumsum([0, *made[:-1]])
        chosen = np.arange(0, len(made), _SURVIVES)
        writer = TraceWriter()
        for tlab, start in enumerate(starts.tolist()):
            self._tlab_buffers(
                writer, _MUTATORS[tlab % len(_MUTATORS)], _BASE + start, words, packed=packed
            )
        self._program = bytes(writer.buffers)
        # The words themselves, and of each TLAB its announcement, and its filler if there is one.
        self.events_a_cycle = len(starts) * (len(made) + 1 + (self._filled < self.sizes.tlab))
        self._from_eden: NDArray[np.int64] = (starts[:, None] + offsets[chosen]).ravel()
        self._survivors = np.tile(np.array(made)[chosen], len(starts)).tolist()
        self._lengths: list[int] = np.tile(np.array(lengths)[chosen], len(starts)).tolist()
        self._to_survivor = _plabs(self._survivors, self.sizes.plab)
        places = np.concatenate(
            [
                number * self.sizes.plab
                + np.cumsum([0, *self._survivors[plab.first : plab.last - 1]])
                for number, plab in enumerate(self._to_survivor)
            ]
        )
        self._old_from = places[::_PROMOTED]
        self._promoted = self._survivors[::_PROMOTED]
        self._to_old = _plabs(self._promoted, self.sizes.plab)

    @staticmethod
    def _tlab(room: int) -> tuple[list[int], list[bytes], list[int]]:
        """The objects that the program puts into each TLAB: sizes, events, and lengths (-1: a cell); a filler has room behind, or there is none."""
        chance = np.random.default_rng(3)
        sizes: list[int] = []
        words: list[bytes] = []
        lengths: list[int] = []
        while sum(sizes) < room - 512:
            for _ in range(7):
                sizes.append(_CELL_BYTES)
                words.append(alloc(EventId.C2_ALLOC_FAST, _CELLS))
            length = int(chance.integers(0, 40))
            lengths += [-1] * 7 + [length]
            sizes.append((16 + 4 * length + 7) & ~7)
            words.append(alloc(EventId.C1_ALLOC_FAST, _ARRAYS, length=length))
        return sizes, words, lengths

    def _tlab_buffers(
        self, writer: TraceWriter, owner: int, start: int, words: list[bytes], *, packed: bool
    ) -> None:
        announced = head(EventId.TLAB_ALLOC) + long(self.sizes.tlab) + long(start)
        events = [
            announced,
            *words,
            _filler(_INTERNAL, start + self._filled, self.sizes.tlab - self._filled),
        ]
        for first in range(0, len(events), _BUFFER_WORDS):
            writer.buffer(owner, *events[first : first + _BUFFER_WORDS], packed=packed)

    def symbols(self) -> SymbolsWriter:
        """The symbols."""
        made = SymbolsWriter()
        made.cause(0, "System.gc()")
        made.cause(14, "Allocation Failure")
        for number, name in (
            (_INTERNAL, "VM internal"),
            (_COLLECTOR, "VM GC"),
            (3, "VM GC Dead Space"),
        ):
            made.vm_site(number, name)
        made.type(_INTS, "[I", 16 << 8 | 4)
        made.type(_OBJECT, "Ljava/lang/Object;", 16, [])
        made.type(_CELL, "Lapp/Cell;", _CELL_BYTES, [("I", "x", 2)])
        made.site(_CELLS, [("app.Main.cell()Lapp/Cell;", 3)], _CELL)
        made.site(_ARRAYS, [("app.Main.array(I)[I", 5)], _INTS)
        return made

    def write(self, folder: Path, events: int, *, rotated: bool = False) -> Written:
        """Write a run with at least this many events, ending after a collection.

        Args:
            folder: Where to.
            events: How many.
            rotated: Whether a new file begins with the collection after each full one.
        """
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "symbols").write_bytes(self.symbols().data())
        with ExitStack() as files:
            return self._write(folder, files, events, rotated=rotated)

    def _write(self, folder: Path, files: ExitStack, events: int, *, rotated: bool) -> Written:
        index = 0
        file = files.enter_context((folder / ("trace_0" if rotated else "trace")).open("wb"))
        writer = TraceWriter()
        written = self._begin(writer)
        file.write(writer.data())
        writer.buffers.clear()
        collections = minor = full = kept = live = 0
        old, survivors, first_batch = self._old, False, 0
        while written < events:
            file.write(self._program)
            written += self.events_a_cycle
            collections, minor = collections + 1, minor + 1
            to = _LOW + minor % 2
            batch = old
            snapshot = rotated and bool(kept) and not survivors
            if snapshot:
                index += 1
                file = files.enter_context((folder / f"trace_{index}").open("wb"))
                file.write(TraceWriter(index).data())
                written += self._begin(writer)
            count, old = self._minor(
                writer, collections, to, old, promotes=survivors, snapshot=snapshot
            )
            written += count
            first_batch = first_batch or (batch if survivors else 0)
            promoted = len(self._promoted) * survivors
            live += promoted
            survivors = True
            if minor % self.sizes.full_every == 0:
                collections, full = collections + 1, full + 1
                count, old = self._full(writer, collections, 0 if kept else first_batch)
                kept = live = len(self._promoted)
                survivors = False
                written += count
            file.write(writer.buffers)
            writer.buffers.clear()
        return Written(
            written,
            minor * self.sizes.eden // self.sizes.tlab * self.objects_a_tlab,
            minor,
            full,
            live + len(self._survivors) * survivors,
        )

    def _begin(self, writer: TraceWriter) -> int:
        """Write spaces and threads; returns how many events."""
        for index, ((start, size), kind) in enumerate(
            zip(self.sizes.spaces, (2, 0, 1, 1), strict=True)
        ):
            writer.buffer(
                _VM,
                head(EventId.SPACE_CREATE) + word(index) + long(start) + long(size),
                mode=BufferMode.ORDERED,
            )
            writer.buffer(
                _VM, head(EventId.SPACE_ALLOC, kind << 18) + word(index), mode=BufferMode.ORDERED
            )
        for kind, threads in ((3, _MUTATORS), (1, _COLLECTORS), (0, (_VM,))):
            for thread in threads:
                writer.buffer(
                    thread,
                    head(EventId.THREAD_ALIVE, kind << 8)
                    + long(thread)
                    + word(int.from_bytes(b"t%02x\0" % (thread >> 12 & 0xFF))),
                )
        return 8 + len(_MUTATORS) + len(_COLLECTORS) + 1

    @staticmethod
    def _bound(event: EventId, number: int, kind: int, cause: int) -> bytes:
        """The start or the end of a collection."""
        return (
            head(event, kind << 16 | cause << 8)
            + word(number)
            + long(10 * number + (event == EventId.GC_END))
            + long(_BASE)
        )

    def _minor(
        self, writer: TraceWriter, number: int, to: int, old: int, *, promotes: bool, snapshot: bool
    ) -> tuple[int, int]:
        """Write a minor collection, which reports all live objects if it is a `snapshot`; returns how many events, and where the old space is free from then on."""
        source = _LOW + _HIGH - to
        writer.buffer(
            _VM,
            self._bound(EventId.GC_START, number, 3 if snapshot else 0, 14),
            mode=BufferMode.FULL,
        )
        writer.buffer(
            _VM,
            *(head(EventId.GC_INFO, space) + word(number) for space in (_EDEN, source)),
            head(EventId.NOP),
            mode=BufferMode.ORDERED,
        )
        count = 5
        if snapshot:
            count += self._tell(writer, self._survivor_starts[to])
        else:
            count += self._copy(
                writer,
                self._from_eden,
                self._survivors,
                self._to_survivor,
                1,
                self._survivor_starts[to],
            )
        if promotes:
            count += self._copy(
                writer,
                self._old_from + (self._survivor_starts[source] - _BASE),
                self._promoted,
                self._to_old,
                2,
                old,
            )
            old += len(self._to_old) * self.sizes.plab
        writer.buffer(_VM, self._bound(EventId.GC_END, number, 0, 14), mode=BufferMode.FULL)
        return count, old

    def _tell(self, writer: TraceWriter, start: int) -> int:
        """Write a snapshot: what is copied from eden, and what is kept in the old space; returns how many events."""
        count = 0
        for at, plab in enumerate(self._to_survivor):
            here = start + at * self.sizes.plab
            events = [head(EventId.PLAB_ALLOC) + long(self.sizes.plab) + long(here)]
            to = here
            for row in range(plab.first, plab.last):
                events.append(
                    self._object(
                        EventId.SYNC_OBJ,
                        self._lengths[row],
                        long(_BASE + int(self._from_eden[row])) + long(to),
                    )
                )
                to += self._survivors[row]
            filler = _filler(_COLLECTOR, to, here + self.sizes.plab - to)
            writer.buffer(_COLLECTORS[at % len(_COLLECTORS)], *events, filler)
            count += len(events) + bool(filler)
        kept, here = [], self._old
        for size, length in zip(self._promoted, self._lengths[::_PROMOTED], strict=True):
            kept.append(self._object(EventId.SYNC_OBJ_NARROW, length, long(here)))
            here += size
        writer.buffer(_COLLECTORS[0], *kept)
        return count + len(kept)

    @staticmethod
    def _object(event: EventId, length: int, where: bytes) -> bytes:
        """An object of a snapshot, in full."""
        if length < 0:
            return head(event, _CELLS << 8) + word(_CELL) + where
        return head(event, _ARRAYS << 8) + word(_INTS) + where + word(length)

    def _copy(
        self,
        writer: TraceWriter,
        sources: NDArray[np.int64],
        sizes: list[int],
        plabs: list[_Plab],
        kind: int,
        start: int,
    ) -> int:
        """Write the moves of objects, with their buffers; returns how many events."""
        words = (EventId.GC_MOVE_FAST_NARROW << 26 | kind << 24 | sources // 8 << 2).astype("<u4")
        count = len(sizes)
        for at, plab in enumerate(plabs):
            here = start + at * self.sizes.plab
            filler = _filler(_COLLECTOR, here + plab.filled, self.sizes.plab - plab.filled)
            announced = head(EventId.PLAB_ALLOC) + long(self.sizes.plab) + long(here)
            writer.buffer(
                _COLLECTORS[at % len(_COLLECTORS)],
                announced,
                words[plab.first : plab.last].tobytes(),
                filler,
            )
            count += 1 + bool(filler)
        return count

    def _full(self, writer: TraceWriter, number: int, first_batch: int) -> tuple[int, int]:
        """Write a full collection: the first objects that were ever promoted are kept; returns events, and where the old space is free."""
        writer.buffer(_VM, self._bound(EventId.GC_START, number, 1, 0), mode=BufferMode.FULL)
        writer.buffer(_VM, head(EventId.NOP), mode=BufferMode.ORDERED)
        free = self._old + sum(self._promoted)
        if not first_batch:
            regions = [head(EventId.GC_MOVE_REGION, len(self._promoted)) + 2 * long(self._old)]
        else:
            regions, to = [], self._old
            for at, plab in enumerate(self._to_old):
                regions.append(
                    head(EventId.GC_MOVE_REGION, plab.last - plab.first)
                    + long(first_batch + at * self.sizes.plab)
                    + long(to)
                )
                to += plab.filled
        writer.buffer(_COLLECTORS[0], *regions)
        writer.buffer(_VM, self._bound(EventId.GC_END, number, 1, 0), mode=BufferMode.FULL)
        return 3 + len(regions), free
