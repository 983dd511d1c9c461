"""The rows that CSV and Parquet have in common.

Summaries: one row a number of each summary. Tiles: one row a tile of each stream that an event gathered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from gcspy_protocol.errors import RecordingError
from gcspy_protocol.interpreter import ClientInterpreter, StreamState
from gcspy_protocol.model import Presentation, Stream
from gcspy_protocol.streams.names import TileNameTable
from numpy.typing import NDArray

from gcspy_replay.file.cursor import RecordedEvent
from gcspy_replay.file.reader import Recording
from gcspy_replay.file.series import summaries

__all__ = [
    "SUMMARY_COLUMNS",
    "TILE_COLUMNS",
    "Batch",
    "ExportSelection",
    "part_names",
    "summary_batches",
    "tile_batches",
]

SUMMARY_COLUMNS = (
    "number",
    "event",
    "occurrence",
    "sequence",
    "time_nanos",
    "wall_nanos",
    "gather_nanos",
    "held_nanos",
    "cause",
    "space",
    "stream",
    "part",
    "value",
    "covered",
)
"""`part` says which number of the summary it is: empty, `sum` and `total`, or a name of an enum."""

TILE_COLUMNS = (
    "number",
    "event",
    "occurrence",
    "time_nanos",
    "wall_nanos",
    "space",
    "stream",
    "tile",
    "address",
    "value",
    "name",
)
"""`address` and `value` are empty where a tile has none, or it is unknown; `name` is that of the value, where values have names."""

Progress = Callable[[int, int], None]

_ROWS = 10_000
_TILE_ROWS = 1 << 16
"""A row has ten Python objects: those of a million tiles at once would be half a gigabyte."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportSelection:
    """The selection for an export.

    Attributes:
        first: Number of the first event; None: of the recording.
        last: Number of the last event; None: of the recording.
        space: Name of the space; None: all.
        stream: Name of the stream; None: all.
        tiles: The value of each tile, instead of summaries.
    """

    first: int | None = None
    last: int | None = None
    space: str | None = None
    stream: str | None = None
    tiles: bool = False

    def range(self, recording: Recording) -> tuple[int, int]:
        """Numbers of the first and last event.

        Raises:
            RecordingError: The range is invalid, or there is no such space or stream.
        """
        if not len(recording):
            raise RecordingError("the recording has no events")
        return recording.range_of(self.first, self.last)

    def has(self, space: str, stream: str) -> bool:
        """Whether this stream is exported."""
        return self.space in (None, space) and self.stream in (None, stream)


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows.

    Attributes:
        columns: By name, all of one length; constants are repeated.
        unknown: Shape (rows,): rows whose `value` is not known; None when all are.
        addresses: Whether the column `address` has any.
    """

    columns: dict[str, Any]
    unknown: NDArray[np.bool_] | None = None
    addresses: bool = True

    def __len__(self) -> int:
        return len(self.columns["value"])


def part_names(stream: Stream) -> tuple[str, ...]:
    """Names of the numbers of a stream's summary."""
    if stream.presentation is Presentation.ENUM:
        return stream.enum_names
    return ("sum", "total") if stream.summary_length == 2 else ("",)


def summary_batches(
    recording: Recording, wanted: ExportSelection, progress: Progress | None = None
) -> Iterator[Batch]:
    """The summaries in a range, some thousand rows at a time."""
    first, last = wanted.range(recording)
    kinds = [kind.name for kind in recording.welcome.events]
    offset = recording.welcome.wall_offset_nanos
    rows: list[tuple[Any, ...]] = []
    for row in summaries(
        recording, wanted.space, wanted.stream, first=first, last=last, progress=progress
    ):
        if not row.summary.covered:
            continue
        event = row.event
        told = (
            row.number, kinds[event.event] if event.event < len(kinds) else str(event.event), event.occurrence,
            event.sequence, event.time_nanos, event.time_nanos + offset, event.gather_nanos, event.held_nanos,
            event.cause, row.space.name, row.stream.name,
        )  # fmt: skip
        for name, value in zip(part_names(row.stream), row.summary.values, strict=False):
            rows.append((*told, name, value, row.summary.covered))
        if len(rows) >= _ROWS:
            yield _batch(rows)
            rows = []
    if rows:
        yield _batch(rows)


def _batch(rows: list[tuple[Any, ...]]) -> Batch:
    return Batch(dict(zip(SUMMARY_COLUMNS, map(list, zip(*rows, strict=True)), strict=True)))


def tile_batches(
    recording: Recording, wanted: ExportSelection, progress: Progress | None = None
) -> Iterator[Batch]:
    """The tiles of each stream that an event gathered, some thousand rows at a time."""
    first, last = wanted.range(recording)
    for step, session in recording.steps(first, last):
        yield from _tiles(step, session, wanted, recording.welcome.wall_offset_nanos)
        if progress is not None:
            progress(step.number - first + 1, last - first + 1)


def _tiles(
    step: RecordedEvent, session: ClientInterpreter, wanted: ExportSelection, offset: int
) -> Iterator[Batch]:
    event = step.change.event
    for state in session.spaces.values():
        addresses = _addresses(state.names, state.count)
        for stream in state.streams.values():
            if not wanted.has(state.space.name, stream.schema.name) or not stream.is_fresh(event):
                continue
            told: dict[str, Any] = {
                "number": step.number,
                "event": session.event_name(event.event),
                "occurrence": event.occurrence,
                "time_nanos": event.time_nanos,
                "wall_nanos": event.time_nanos + offset,
                "space": state.space.name,
                "stream": stream.schema.name,
            }
            for start in range(0, len(stream.values), _TILE_ROWS):
                yield _some_tiles(told, stream, addresses, start)


def _some_tiles(
    told: dict[str, Any], stream: StreamState, addresses: NDArray[np.uint64] | None, start: int
) -> Batch:
    """The rows of some tiles: common values once, and copies of the values of each."""
    some = slice(start, start + _TILE_ROWS)
    values = stream.values[some].copy()
    count = len(values)
    arrays: dict[str, Any] = {name: [value] * count for name, value in told.items()}
    arrays["tile"] = np.arange(start, start + count)
    arrays["address"] = np.zeros(count, dtype=np.uint64) if addresses is None else addresses[some]
    arrays["value"] = values
    unknown = None if stream.known is None else ~stream.known[some]
    arrays["name"] = _names(stream.schema, values, unknown)
    return Batch(arrays, unknown, addresses is not None)


def _names(schema: Stream, values: NDArray[Any], unknown: NDArray[np.bool_] | None) -> list[str]:
    """Names of the values; empty if they have no names, or are unknown."""
    names = schema.enum_names
    if schema.presentation is not Presentation.ENUM:
        return [""] * len(values)
    found = [names[value] if 0 <= value < len(names) else "" for value in values.tolist()]
    for place in () if unknown is None else np.flatnonzero(unknown).tolist():
        found[place] = ""
    return found


def _addresses(names: TileNameTable, count: int) -> NDArray[np.uint64] | None:
    return names.keys() if count and names.extent(0) is not None else None
