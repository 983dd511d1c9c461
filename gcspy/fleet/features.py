"""`features_of`: one row of numbers about a recording, for tables of many recordings.

Only what is needed is decoded: the state at the last keyframe, and the summaries of the streams of memory
in at most `MOST_CHUNKS` chunks, evenly spaced. One file is open at a time, so that a thousand
recordings need one descriptor. A recording that cannot be read has a row with the error. Knows
recordings; does not know tables.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from gcspy_protocol.errors import GCspyError
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.text.visible import visible
from gcspy_replay.file import Recording
from gcspy_replay.file.series import summary_columns
from numpy.typing import NDArray

from gcspy.tree.growth_record import GrowthRecord, GrowthState
from gcspy_client.model.memory_history import MemoryRole, MemoryStreams, memory_source
from gcspy_client.model.panels.growth import bytes_measure, growing_space, measures_of, sample_of

__all__ = ["ANOMALIES", "MOST_CHUNKS", "Features", "features_of"]

MOST_CHUNKS = 24
"""Chunks of a recording whose summaries are read."""

_MOST_TYPES = 5
_FRAGMENTED = 0.5
_GC_SHARE = 0.1

ANOMALIES = ("damaged", "fragmented", "growing", "missed events", "much collecting")
"""What a recording may be conspicuous for."""


@dataclass(frozen=True, slots=True)
class Features:
    """One row; None: not known. Sizes are bytes; the columns of the table have these names.

    Attributes:
        file: The file as the user named it.
        error: Why it could not be read; None: it was.
        program: Name of the target.
        runtime: Its runtime.
        version: Of the runtime.
        started: Time of the first event, in nanoseconds since 1970.
        seconds: Time from the first to the last event.
        events: Number of events.
        missed: Events that the recorder missed.
        collections: Events of kinds other than the clock's; a start and an end count once each.
        resident_first: Resident set at the first event that has one.
        resident_last: At the last one.
        resident_most: The largest.
        growth_per_minute: Growth of the memory (resident set; without one, bytes in use) a minute.
        growth: ``growing``, ``steady``, ``shrinking`` or ``unknown``; see `GrowthRecord`.
        used_last: Bytes in use in the memory managers, at the last event that has them.
        committed_last: Bytes that they had taken from the system.
        fragmentation: 1 - used / committed.
        collecting_share: Share of the time spent in collections, as the runtime counts it.
        longest_hold_seconds: Longest time that the target was held between two events.
        type_names: The types with most bytes at the last keyframe, the largest first.
        type_bytes: Their bytes.
        anomalies: What is conspicuous, of `ANOMALIES`.
    """

    file: str
    error: str | None = None
    program: str | None = None
    runtime: str | None = None
    version: str | None = None
    started: int | None = None
    seconds: float | None = None
    events: int | None = None
    missed: int | None = None
    collections: int | None = None
    resident_first: int | None = None
    resident_last: int | None = None
    resident_most: int | None = None
    growth_per_minute: int | None = None
    growth: str = "unknown"
    used_last: int | None = None
    committed_last: int | None = None
    fragmentation: float | None = None
    collecting_share: float | None = None
    longest_hold_seconds: float | None = None
    type_names: tuple[str, ...] = ()
    type_bytes: tuple[int, ...] = ()
    anomalies: tuple[str, ...] = ()


def features_of(file: str) -> Features:
    """Return the row of a recording; an error of ours becomes a row."""
    try:
        with Recording.open(file) as recording:
            return _read(file, recording)
    except GCspyError as error:
        return Features(file, error=visible(str(error)))


def _read(file: str, recording: Recording) -> Features:
    events = recording.events
    if not len(events):
        return Features(file, error="it has no events")
    target = recording.welcome.target
    # A keyframe, which is decoded alone; events after it would have to be applied one by one.
    session = recording.seek(recording.chunks[-1].place.first)
    source = memory_source(session)
    numbers, columns = _columns(recording, source)
    by_number = events["time_nanos"][np.searchsorted(events["number"], numbers)]
    secs = (by_number - events["time_nanos"][0]).astype(np.float64) / 1e9
    sizes = {one.role: _sums(source, columns, one.role) for one in source.quantities}
    seconds = float(events["time_nanos"][-1] - events["time_nanos"][0]) / 1e9
    measured = sizes.get(MemoryRole.RESIDENT, sizes.get(MemoryRole.USED))
    record = GrowthRecord(0.0)
    for at, size in zip(secs, () if measured is None else measured, strict=False):
        if size >= 0:
            record.note(float(at), int(size))
    resident = _known(sizes.get(MemoryRole.RESIDENT))
    used, committed = (_last(sizes.get(role)) for role in (MemoryRole.USED, MemoryRole.COMMITTED))
    fragmentation = 1 - used / committed if used is not None and committed else None
    collecting = _collecting_share(source, columns, secs)
    missed = int(events["missed"].sum())
    names, sizes_of_types = _types(session)
    conspicuous = {
        "damaged": bool(recording.damages),
        "fragmented": fragmentation is not None and fragmentation > _FRAGMENTED,
        "growing": record.state is GrowthState.GROWING,
        "missed events": missed > 0,
        "much collecting": collecting is not None and collecting > _GC_SHARE,
    }
    return Features(
        file=file,
        program=visible(recording.welcome.server),
        runtime=visible(target.get("runtime", "")) or None,
        version=visible(target.get("version", "")) or None,
        started=int(events["time_nanos"][0]) + recording.welcome.wall_offset_nanos,
        seconds=seconds,
        events=len(recording),
        missed=missed,
        collections=int((events["event"] != 0).sum()),
        resident_first=int(resident[0]) if len(resident) else None,
        resident_last=int(resident[-1]) if len(resident) else None,
        resident_most=int(resident.max()) if len(resident) else None,
        growth_per_minute=record.bytes_per_minute,
        growth=record.state.name.lower(),
        used_last=used,
        committed_last=committed,
        fragmentation=fragmentation,
        collecting_share=collecting,
        longest_hold_seconds=float(events["held_nanos"].max()) / 1e9,
        type_names=names,
        type_bytes=sizes_of_types,
        anomalies=tuple(name for name in ANOMALIES if conspicuous[name]),
    )


def _columns(
    recording: Recording, source: MemoryStreams
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers of the events that were read, and their summaries, as `summary_columns`."""
    chunks = recording.chunks
    count = min(len(chunks), MOST_CHUNKS)
    places = np.unique(np.linspace(0, len(chunks) - 1, count).astype(np.int64))
    numbers, columns = [], []
    for place in places:
        at = chunks[int(place)]
        found = summary_columns(recording, at, source.wanted)
        numbers.append(at.place.first + np.arange(len(found)))
        columns.append(found)
    if not columns:
        return np.empty(0, np.int64), np.empty((0, len(source.wanted), 3), np.int64)
    return np.concatenate(numbers), np.concatenate(columns)


def _sums(
    source: MemoryStreams, columns: NDArray[np.int64], role: MemoryRole
) -> NDArray[np.int64] | None:
    """Sums of a quantity at each event, -1 where a part is not known or does not cover all."""
    quantity = next((one for one in source.quantities if one.role is role), None)
    if quantity is None:
        return None
    at = [source.wanted.index(part) for part in quantity.parts]
    values = columns[:, at, 2 if quantity.share else 1]
    known = (columns[:, at, 0] > 0).all(axis=1) & (values >= 0).all(axis=1)
    result: NDArray[np.int64] = np.where(known, values.sum(axis=1), -1)
    return result


def _known(sizes: NDArray[np.int64] | None) -> NDArray[np.int64]:
    return np.empty(0, np.int64) if sizes is None else sizes[sizes >= 0]


def _last(sizes: NDArray[np.int64] | None) -> int | None:
    known = _known(sizes)
    return int(known[-1]) if len(known) else None


def _collecting_share(
    source: MemoryStreams, columns: NDArray[np.int64], secs: NDArray[np.float64]
) -> float | None:
    if source.collecting is None:
        return None
    at = source.wanted.index(source.collecting)
    known = np.flatnonzero((columns[:, at, 0] > 0) & (columns[:, at, 1] >= 0))
    if len(known) < 2 or secs[known[-1]] <= secs[known[0]]:
        return None
    micros = columns[known[-1], at, 1] - columns[known[0], at, 1]
    return float(micros / 1e6 / (secs[known[-1]] - secs[known[0]]))


def _types(session: ClientInterpreter) -> tuple[tuple[str, ...], tuple[int, ...]]:
    space = growing_space(session)
    sample = None if space is None else sample_of(session, space)
    if space is None or sample is None:
        return (), ()
    place = bytes_measure(one.name for one in measures_of(space))
    if place is None:
        return (), ()
    sizes = np.where(sample.known[place], sample.values[place], -1)
    largest = np.argsort(-sizes, kind="stable")[:_MOST_TYPES]
    chosen = [int(tile) for tile in largest if sizes[tile] > 0]
    names = tuple(visible(space.names.name(tile)) for tile in chosen)
    return names, tuple(int(sizes[tile]) for tile in chosen)
