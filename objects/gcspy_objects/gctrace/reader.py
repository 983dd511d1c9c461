"""`GCspyTrace`: an object trace of ours as a `gcspy_objects.trace.Trace`; it may still be written.

Knows how its parts work together: files, definitions, events, and the order of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

import numpy as np
from gcspy_protocol.errors import LocalProtocolError
from numpy.typing import NDArray

from gcspy_objects.gctrace.accesses import decode_access
from gcspy_objects.gctrace.blocks import TraceBlock, read_payload, trace_damage
from gcspy_objects.gctrace.columns import ColumnError
from gcspy_objects.gctrace.definitions import Definitions
from gcspy_objects.gctrace.events import EventColumns, decode_events
from gcspy_objects.gctrace.layout import HAS_SITE, HAS_TYPE, IS_SIZED, BlockKind
from gcspy_objects.gctrace.order import order_events
from gcspy_objects.gctrace.parts import TracePart, find_parts
from gcspy_objects.names import Causes, Flaw, Sites, Thread, ThreadKind, Threads, Types
from gcspy_objects.records import (
    Access,
    AllocationOrigin,
    BufferMode,
    ReadPosition,
    RecordBatch,
    RecordKind,
)

__all__ = ["GCspyTrace"]

_BATCH_EVENTS: Final = 1 << 18
_MAX_ROUND_EVENTS: Final = 1 << 24
"""Between two watermarks; more are taken as if a watermark stood there."""
_LAST: Final = (1 << 62) - 1
_OF_TYPES: Final = (
    RecordKind.ALLOCATE,
    RecordKind.ALLOCATE_NEXT,
    RecordKind.SNAPSHOT_MOVE,
    RecordKind.SNAPSHOT_KEEP,
)
_COLUMNS: Final = ("kind", "detail", "flags", "address", "to", "size", "type", "site", "length")


class _Piece(NamedTuple):
    """Events of a block as records, before they are ordered."""

    block: TraceBlock
    events: EventColumns
    thread: NDArray[np.int32]
    stamp: NDArray[np.int64]
    accesses: tuple[Access, ...]


class GCspyTrace:
    """An object trace of ours, open for reading; see `gcspy_objects.trace.Trace`.

    Args:
        path: A file, or a folder of the files of one run.
        growing: It is still written: only what is complete is read, and `refresh` finds more.

    Attributes:
        header: What its HEADER says.
        files: Names of its files.
        late: Events that were read behind a watermark that should have covered them.
        unordered: Allocations and frees whose order between threads is not known, in what was read so far.

    Raises:
        TraceError: It is no trace, or its definitions are damaged.
    """

    def __init__(self, path: Path, *, growing: bool = False) -> None:
        self._closing = ExitStack()
        self.growing = growing
        self.definitions = Definitions()
        self.threads = Threads()
        self._thread_rows: dict[int, int] = {}
        self.late = self.unordered = 0
        with ExitStack() as opened:
            self._parts = find_parts(path, opened)
            self._scan()
            self._closing = opened.pop_all()
        self.header = self._parts[0].header
        self.name = self.header.get("name") or path.resolve().name
        self.files = tuple(part.span.name for part in self._parts)

    def _scan(self) -> bool:
        first = not hasattr(self, "types")
        grown = [part.scan(self.definitions) for part in self._parts]
        if first or any(grown):
            self.types: Types = self.definitions.type_table()
            self.sites: Sites = self.definitions.site_table()
            self.causes: Causes = self.definitions.causes
            for number, one in self.definitions.threads.items():
                if number not in self._thread_rows:
                    row = self._thread_rows[number] = self.threads.row_of(one.address or number)
                    if one.name:
                        self.threads.begin(row, Thread(one.name, one.kind))
        return any(grown)

    @property
    def size_bytes(self) -> int:
        """Bytes of all its files."""
        return sum(part.span.size for part in self._parts)

    @property
    def has_pointers(self) -> bool:
        """Whether its HEADER says that it has pointers."""
        return self.header.get("pointers", "none") != "none"

    @property
    def contiguous(self) -> bool:
        """Whether its HEADER says that objects follow each other without holes."""
        return self.header.get("contiguous") == "1"

    @property
    def ended(self) -> bool:
        """Whether its writer ended it: nothing is added any more."""
        return self._parts[-1].ended is not None

    @property
    def stored_events(self) -> int:
        """Events in the blocks that were found so far."""
        return sum(block.events for part in self._parts for block in part.blocks)

    def refresh(self) -> bool:
        """Look for what was written since; returns whether there is more."""
        return self._scan()

    def batches(self, place: ReadPosition | None = None) -> Iterator[RecordBatch]:
        """Yield the records, from the beginning or from `place`; see `gcspy_objects.trace.Trace.batches`."""
        place = place or ReadPosition()
        if not 0 <= place.file <= len(self._parts):
            raise LocalProtocolError(f"no place of {self.name}: {place}")
        while place.file < len(self._parts):
            part = self._parts[place.file]
            if part.header.get("order") == "stamps":
                found = self._by_stamps(part, place)
            else:
                found = self._by_file(part, place)
            for batch in found:
                yield batch
                place = batch.after
            if part.damage is not None:
                raise part.damage
            if place.file + 1 >= len(self._parts):
                return
            place = place._replace(file=place.file + 1, position=-1, base=0)

    def find_flaws(self) -> list[Flaw]:
        """Check what its definitions refer to."""
        flaws = []
        known = self.definitions
        missing = {
            frame for one in known.sites.values() for frame in one.frames
        } - known.frames.keys()
        if missing:
            flaws.append(
                Flaw(
                    self.files[0],
                    0,
                    "each frame of a site to be defined",
                    f"{len(missing):,} that are not, such as {min(missing):,}",
                )
            )
        return flaws

    def position_bytes(self, place: ReadPosition) -> int:
        """Return how many of `size_bytes` lie before `place`."""
        return sum(part.span.size for part in self._parts[: place.file]) + max(place.position, 0)

    def close(self) -> None:
        """Close its files."""
        self._closing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # In the order of the file

    def _by_file(self, part: TracePart, place: ReadPosition) -> Iterator[RecordBatch]:
        row = part.first_block(max(place.position, 0))
        skip = place.base
        while row < len(part.blocks):
            pieces: list[_Piece] = []
            count = 0
            while row < len(part.blocks) and (
                not pieces or count + part.blocks[row].events <= _BATCH_EVENTS
            ):
                pieces.append(self._piece(part, part.blocks[row], place.file))
                count += len(pieces[-1].events)
                row += 1
            end = part.blocks[row - 1].end
            yield from self._cut(part, pieces, None, place, end, skip)
            place = place._replace(
                position=end,
                event=place.event + count - skip,
                base=0,
                buffer=place.buffer + len(pieces),
            )
            skip = 0

    def _by_stamps(self, part: TracePart, place: ReadPosition) -> Iterator[RecordBatch]:
        """Yield what lies between watermarks, ordered."""
        position, skip = max(place.position, 0), place.base
        marks = {one.end: row for row, one in enumerate(part.watermarks)}
        if position and position not in marks:  # behind the last round
            return
        row = marks[position] + 1 if position else 0
        while True:
            last = part.watermarks[row - 1] if row else None
            final = row >= len(part.watermarks)
            if final and (self.growing and not self.ended):
                return
            low = last.stamp if last is not None else -1
            high, end = (
                (_LAST, part.scanned)
                if final
                else (part.watermarks[row].stamp, part.watermarks[row].end)
            )
            first = part.first_block(last.earliest if last is not None else 0)
            stop = part.first_block(end)
            pieces = []
            for block in part.blocks[first:stop]:
                if block.last_stamp > low or (last is not None and block.offset >= last.end):
                    piece = self._within(
                        self._piece(part, block, place.file), part.floor(block), low, high
                    )
                    if len(piece.events):
                        pieces.append(piece)
            count = sum(len(one.events) for one in pieces)
            if count:
                order = self._order(pieces)
                yield from self._cut(part, pieces, order, place, end, skip)
                place = place._replace(
                    event=place.event + count - skip, buffer=place.buffer + len(pieces)
                )
            skip = 0
            place = place._replace(position=end, base=0)
            if final:
                return
            row += 1

    def _within(self, piece: _Piece, floor: int, low: int, high: int) -> _Piece:
        """Return the events with stamps above `low` up to `high`; those that are late count as if they came just behind the watermark before their block."""
        stamp = np.maximum(piece.stamp, floor + 1)
        late = int(np.count_nonzero(stamp != piece.stamp))
        self.late += late
        inside = (stamp > low) & (stamp <= high)
        if inside.all():
            return piece._replace(stamp=stamp) if late else piece
        return piece._replace(
            events=_taken(piece.events, inside), thread=piece.thread[inside], stamp=stamp[inside]
        )

    def _order(self, pieces: list[_Piece]) -> NDArray[np.int64]:
        kind, address = (
            np.concatenate([getattr(one.events, name) for one in pieces])
            for name in ("kind", "address")
        )
        stamp, thread = (
            np.concatenate([getattr(one, name) for one in pieces]) for name in ("stamp", "thread")
        )
        found = order_events(kind, address, stamp, thread)
        self.unordered += found.unordered
        return found.rows

    # Blocks

    def _piece(self, part: TracePart, block: TraceBlock, file: int) -> _Piece:
        """Decode a block."""
        payload = read_payload(part.span, block)
        try:
            if block.kind == BlockKind.ACCESSED:
                access = decode_access(payload)
                events = _of_access(access)
                thread = np.zeros(1, np.int32)
                accesses: tuple[Access, ...] = (access,)
            else:
                events = decode_events(payload, block.events, one_thread=block.thread >= 0)
                thread = self._rows_of_threads(block, events)
                accesses = ()
        except ColumnError as error:
            raise trace_damage(part.span, block.offset, str(error)) from error
        if block.first_stamp >= _LAST or (
            len(events) and block.first_stamp + int(events.stamp[-1]) > min(block.last_stamp, _LAST)
        ):
            raise trace_damage(
                part.span,
                block.offset,
                f"stamps from {block.first_stamp:,} on, beyond the last one, {block.last_stamp:,}",
            )
        stamp = events.stamp + block.first_stamp
        if file and block.kind == BlockKind.EVENTS:
            again = (events.kind == RecordKind.ALLOCATE) & (
                events.detail == AllocationOrigin.EARLIER
            )
            if again.any():  # an earlier file has them
                events, thread, stamp = _taken(events, ~again), thread[~again], stamp[~again]
        self._resolve(events)
        events.size[IS_SIZED[events.kind] & (events.size == 0)] = (
            1  # of no bytes, and yet it has a place
        )
        return _Piece(block, events, thread, stamp, accesses)

    def _rows_of_threads(self, block: TraceBlock, events: EventColumns) -> NDArray[np.int32]:
        if events.thread is None:
            return np.full(len(events), self._row_of_thread(block.thread), np.int32)
        numbers, inverse = np.unique(events.thread, return_inverse=True)
        rows = np.array([self._row_of_thread(one) for one in numbers.tolist()], np.int32)
        found: NDArray[np.int32] = rows[inverse.reshape(-1)] if len(rows) else events.thread
        return found

    def _row_of_thread(self, number: int) -> int:
        row = self._thread_rows.get(number)
        if row is None:
            row = self._thread_rows[number] = self.threads.row_of(number)
        return row

    def _resolve(self, events: EventColumns) -> None:
        """Turn numbers of definitions into rows."""
        kind = events.kind
        events.site = self.definitions.site_rows.rows(events.site)
        of_types = np.isin(kind, _OF_TYPES)
        if of_types.all():
            events.type = self.definitions.type_rows.rows(events.type)
        elif events.type.any():
            events.type = np.where(
                of_types,
                self.definitions.type_rows.rows(np.where(of_types, events.type, 0)),
                events.type,
            )
        untyped = HAS_SITE[kind] & HAS_TYPE[kind] & (events.type == 0)
        if untyped.any():
            events.type = np.where(untyped, self.sites.type[events.site], events.type)
        for row in np.flatnonzero(
            (kind == RecordKind.THREAD_BEGIN) | (kind == RecordKind.THREAD_END)
        ).tolist():
            thread = self._row_of_thread(int(events.length[row]))
            events.length[row] = thread
            if kind[row] == RecordKind.THREAD_BEGIN:
                name = self.definitions.names.get(int(events.type[row]))
                said = int(events.detail[row])
                of = ThreadKind(said) if said in set(ThreadKind) else ThreadKind.UNKNOWN
                events.type[row] = (
                    self.threads.begin(thread, Thread(name, of)) if name is not None else 0
                )

    # Batches

    def _cut(
        self,
        part: TracePart,
        pieces: list[_Piece],
        order: NDArray[np.int64] | None,
        place: ReadPosition,
        end: int,
        skip: int,
    ) -> Iterator[RecordBatch]:
        """Yield the records of pieces, in batches that are not too large; the first `skip` are left out."""
        columns: dict[str, NDArray[Any]] = {
            name: np.concatenate([getattr(one.events, name) for one in pieces]) for name in _COLUMNS
        }
        columns["thread"] = np.concatenate([one.thread for one in pieces])
        stamps = np.concatenate([one.stamp for one in pieces])
        buffers = _Buffers(pieces)
        columns["buffer"] = buffers.rows
        accesses = [each for one in pieces for each in one.accesses]
        columns["length"][columns["kind"] == RecordKind.ACCESSED] = np.arange(len(accesses))
        count = len(stamps)
        if order is not None:
            columns = {name: column[order] for name, column in columns.items()}
            stamps = stamps[order]
        pointers = _Pointers(pieces, order)
        columns["offset"] = np.zeros(count, np.int32)
        start = skip
        while start < count:
            stop = min(start + _BATCH_EVENTS, count)
            last = stop == count
            here = place._replace(event=place.event + start - skip, base=start)
            after = (
                here._replace(
                    position=end,
                    event=place.event + count - skip,
                    base=0,
                    buffer=place.buffer + len(pieces),
                )
                if last
                else here._replace(event=place.event + stop - skip, base=stop)
            )
            part_of = slice(start, stop)
            cut = {
                name: column[part_of].copy() if not (start == 0 and last) else column
                for name, column in columns.items()
            }
            rows = np.flatnonzero(cut["kind"] == RecordKind.ACCESSED)
            mine = tuple(accesses[row] for row in cut["length"][rows].tolist())
            cut["length"][rows] = np.arange(len(rows))
            yield RecordBatch(
                here, after, part.span.name, **cut, buffer_position=buffers.position, buffer_mode=buffers.mode,
                **pointers.within(start, stop), accesses=mine, stamps=stamps[part_of],
            )  # fmt: skip
            start = stop


class _Buffers:
    """The buffers of pieces: those of their source where it is known, else the blocks."""

    def __init__(self, pieces: list[_Piece]) -> None:
        counts = [
            one.events.buffer_events
            if len(one.events.buffer_events)
            else np.array([len(one.events)])
            for one in pieces
        ]
        modes = [
            one.events.buffer_mode
            if len(one.events.buffer_events)
            else np.zeros(1, np.uint8) + np.uint8(BufferMode.PLAIN)
            for one in pieces
        ]
        all_counts = np.concatenate(counts)
        self.rows = np.repeat(np.arange(len(all_counts), dtype=np.int32), all_counts)
        self.mode = np.concatenate(modes)
        self.position = np.repeat(
            np.array([one.block.offset for one in pieces], np.int64), [len(one) for one in counts]
        )


class _Pointers:
    """The pointers of pieces, after the events were ordered."""

    def __init__(self, pieces: list[_Piece], order: NDArray[np.int64] | None) -> None:
        starts = np.cumsum([0, *(len(one.events) for one in pieces)])
        rows = np.concatenate(
            [
                one.events.pointer_event + start
                for one, start in zip(pieces, starts.tolist(), strict=False)
            ]
        )
        self._kind = np.concatenate([one.events.pointer_kind for one in pieces])
        self._value = np.concatenate([one.events.pointer_value for one in pieces])
        if order is not None and len(rows):
            places = np.empty(len(order), np.int64)
            places[order] = np.arange(len(order))
            rows = places[rows]
            sort = np.argsort(rows, kind="stable")
            rows, self._kind, self._value = rows[sort], self._kind[sort], self._value[sort]
        self._rows = rows

    def within(self, start: int, stop: int) -> dict[str, NDArray[Any]]:
        low, high = (int(one) for one in np.searchsorted(self._rows, (start, stop)))
        return {
            "pointer_record": (self._rows[low:high] - start).astype(np.int32),
            "pointer_kind": self._kind[low:high],
            "pointer_value": self._value[low:high],
        }


def _taken(events: EventColumns, mask: NDArray[np.bool_]) -> EventColumns:
    """Return those events that a mask names; buffers of the source are given up."""
    made = {one.name: getattr(events, one.name) for one in fields(events)}
    for name in (*_COLUMNS, "stamp"):
        made[name] = made[name][mask]
    if made["thread"] is not None:
        made["thread"] = made["thread"][mask]
    if len(events.pointer_event):
        rows = np.cumsum(mask) - 1
        kept = mask[events.pointer_event]
        made["pointer_event"] = rows[events.pointer_event[kept]]
        made["pointer_kind"], made["pointer_value"] = (
            events.pointer_kind[kept],
            events.pointer_value[kept],
        )
    made["buffer_events"], made["buffer_mode"] = np.zeros(0, np.int64), np.zeros(0, np.uint8)
    return EventColumns(**made)


def _of_access(access: Access) -> EventColumns:
    def column(value: int, dtype: type[np.generic]) -> NDArray[Any]:
        return np.full(1, value, dtype)

    return EventColumns(
        kind=column(RecordKind.ACCESSED, np.uint8), detail=column(access.granule_bits, np.uint8), flags=column(0, np.uint8),
        thread=None, address=column(access.address, np.int64), to=column(access.collection, np.int64),
        size=column(access.granules << access.granule_bits, np.int64), type=column(0, np.int32), site=column(0, np.int32),
        length=column(0, np.int32), stamp=column(0, np.int64),
    )  # fmt: skip
