"""`AntTracksTrace`: a run's files as a `gcspy_objects.trace.Trace`.

Knows how its parts work together: files (`sources`), symbols, buffers, decoding; and what threads are called.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import numpy as np
from gcspy_protocol.errors import LocalProtocolError, TraceError

from gcspy_compiled.machine_code import want
from gcspy_objects.anttracks.buffers import CHUNK_BYTES, Chunk, read_chunk
from gcspy_objects.anttracks.decoding import Decoded, decode
from gcspy_objects.anttracks.decoding.problem import EXPECTED, Problem
from gcspy_objects.anttracks.decoding.tables import tables_of
from gcspy_objects.anttracks.flaws import find_flaws
from gcspy_objects.anttracks.layout import (
    BUFFER_HEADER_BYTES,
    DATA_OFFSET,
    MAX_THREAD_NAME_WORDS,
    EventId,
)
from gcspy_objects.anttracks.sources import find_run
from gcspy_objects.anttracks.symbols import Symbols, read_symbols
from gcspy_objects.archive import FileSpan
from gcspy_objects.names import Flaw, Thread, ThreadKind, Threads
from gcspy_objects.records import ReadPosition, RecordBatch, RecordKind

__all__ = ["AntTracksTrace"]

_WORTH_COMPILING: Final = 16 << 20
"""Bytes of a trace that numpy decodes before numba is loaded."""
_MAX_THREADS: Final = 1 << 20


class AntTracksTrace:
    """The trace of a run, open for reading; see `gcspy_objects.trace.Trace`.

    Args:
        path: A folder, an archive, or a trace file.
        chunk_bytes: About how many bytes of payload make a batch.

    Raises:
        TraceError: No trace, or its symbols are damaged.
    """

    def __init__(self, path: Path, *, chunk_bytes: int = CHUNK_BYTES) -> None:
        run = find_run(path)
        self._closing = run.closing
        self._spans = run.traces
        self._chunk_bytes = chunk_bytes
        self._symbols_file = run.symbols, run.symbols_name
        with self._closing.pop_all() as kept:
            self._symbols: Symbols = read_symbols(run.symbols, run.symbols_name)
            self._closing = kept.pop_all()
        self._tables = tables_of(self._symbols)
        self.name = path.resolve().name
        self.types = self._symbols.types
        self.sites = self._symbols.sites
        self.causes = self._symbols.causes
        self.threads = Threads()
        self.has_pointers = self._symbols.has_pointers
        self.contiguous = True
        self.files = tuple(span.name for span in self._spans)
        self.size_bytes = sum(span.size for span in self._spans)
        if self.size_bytes > _WORTH_COMPILING:
            want()

    def batches(self, place: ReadPosition | None = None) -> Iterator[RecordBatch]:
        """Yield the records, from the beginning or from `place`; see `gcspy_objects.trace.Trace.batches`."""
        place = place or ReadPosition()
        if not 0 <= place.file <= len(self._spans):
            raise LocalProtocolError(f"no place of {self.name}: {place}")
        while place.file < len(self._spans):
            span = self._spans[place.file]
            if place.position < 0:
                place = place._replace(position=DATA_OFFSET)
            if place.position >= span.size:
                # Each file of a rotated trace begins with a collection, and so with its own base.
                place = place._replace(file=place.file + 1, position=-1)
                continue
            batch, error = self._batch(span, place)
            if len(batch) or batch.after != place:
                yield batch
            if error is not None:
                raise error
            place = batch.after

    def find_flaws(self) -> list[Flaw]:
        """Check the symbols file for contradictions."""
        return find_flaws(*self._symbols_file)

    def position_bytes(self, place: ReadPosition) -> int:
        """Return how many of `size_bytes` lie before `place`."""
        return sum(span.size for span in self._spans[: place.file]) + max(place.position, 0)

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

    def _batch(self, span: FileSpan, place: ReadPosition) -> tuple[RecordBatch, TraceError | None]:
        """Return the batch at a place, and the error behind it."""
        chunk = read_chunk(span, place.position, place.buffer, chunk_bytes=self._chunk_bytes)
        decoded = decode(
            chunk, place.base, int(self._symbols.has_anchors), self._tables, self.threads
        )
        if len(self.threads) > _MAX_THREADS:
            raise TraceError(
                f"{span.name}: more than {_MAX_THREADS:,} threads wrote buffers",
                file=span.name,
                offset=place.position,
                buffer=place.buffer,
            )
        columns = decoded.columns
        self._name_threads(chunk, decoded)
        event = place.event + len(columns.kind)
        after = ReadPosition(
            place.file, chunk.end, place.buffer + len(chunk.owners), event, decoded.base
        )
        batch = RecordBatch(
            place,
            after,
            span.name,
            **columns._asdict(),
            buffer_position=chunk.positions,
            buffer_mode=chunk.modes,
        )
        return batch, chunk.error if decoded.problem == Problem.NONE else self._wrong(
            span, place, chunk, decoded, event
        )

    def _name_threads(self, chunk: Chunk, decoded: Decoded) -> None:
        """Give the records of threads that begin and end their rows, and the threads their names."""
        columns = decoded.columns
        for row in np.flatnonzero(
            (columns.kind == RecordKind.THREAD_BEGIN) | (columns.kind == RecordKind.THREAD_END)
        ).tolist():
            thread = self.threads.row_of(int(columns.address[row]))
            columns.length[row] = thread
            if columns.kind[row] == RecordKind.THREAD_BEGIN:
                buffer = int(columns.buffer[row])
                word = int(chunk.bounds[buffer]) + int(columns.offset[row]) // 4 + 3
                name = chunk.words[
                    word : min(word + MAX_THREAD_NAME_WORDS, int(chunk.bounds[buffer + 1]))
                ]
                text = name.astype(">i4").tobytes().partition(b"\0")[0].decode("utf-8", "replace")
                detail = int(columns.detail[row])
                kind = ThreadKind(detail) if detail in set(ThreadKind) else ThreadKind.UNKNOWN
                columns.type[row] = self.threads.begin(thread, Thread(text, kind))

    def _wrong(
        self, span: FileSpan, place: ReadPosition, chunk: Chunk, decoded: Decoded, event: int
    ) -> TraceError:
        """Describe the error of an event."""
        buffer = decoded.buffer
        position = int(chunk.positions[buffer])
        offset = (decoded.word - int(chunk.bounds[buffer])) * 4
        word = int(chunk.words[decoded.word]) & 0xFFFFFFFF
        number = word >> 26
        name = EventId(number).name if number in set(EventId) else f"id {number}"
        at = (
            f"{position + BUFFER_HEADER_BYTES + offset:,}"
            if not self._is_packed(span, position)
            else f"{position:,}"
        )
        return TraceError(
            f"{span.name}: damaged at byte {at}: event {event:,}, {name} (word {word:#010x}), {offset:,} bytes into the payload of buffer "
            f"{place.buffer + buffer:,} at byte {position:,}: {EXPECTED[decoded.problem]}",
            file=span.name, offset=position, buffer=place.buffer + buffer, event=event,
        )  # fmt: skip

    @staticmethod
    def _is_packed(span: FileSpan, position: int) -> bool:
        return span.read(position + BUFFER_HEADER_BYTES - 1, 1)[0] >= 0x80
