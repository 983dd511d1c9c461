"""A range of events as a recording of its own: `gcspy cut`, and saving a session after the fact.

Knows a recording and a writer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gcspy_protocol.errors import RecordingError

from gcspy_replay.file.layout import PartFacts
from gcspy_replay.file.reader import Recording
from gcspy_replay.file.storage.store import Store
from gcspy_replay.file.storage.writer import ChunkRule, RecordingWriter

__all__ = ["cut", "repack"]


def cut(
    recording: Recording,
    store: Store,
    first: int | None = None,
    last: int | None = None,
    *,
    rule: ChunkRule | None = None,
    facts: PartFacts | None = None,
    progress: Callable[[int, int], None] | None = None,
    packed: int | None = None,
) -> int:
    """Write a range of events; they keep their numbers, so that bookmarks stay true.

    Notices after the last event are kept if it is the last of the recording.

    Args:
        recording: The source.
        store: The destination; it is closed at the end.
        first: Number of the first event; by default of the recording.
        last: Number of the last event; by default of the recording.
        rule: When chunks end.
        facts: Facts in the file; by default that it was cut. Its id is always that of the
            recording.
        progress: Called with the number of events done, and the total.
        packed: Level of zstd at which records are packed by column; None: each is a block of its own.

    Returns:
        How many events were written.

    Raises:
        RecordingError: The range is invalid.
        CorruptChunk: The recording is damaged in it: repair it first.
    """
    try:
        first, last = recording.range_of(first, last)
        cursor = recording.cursor()
        session = cursor.before(first)
    except RecordingError:
        store.close()
        raise
    note = f"events {first} to {last} of a recording"
    if facts is None:
        facts = PartFacts(recording=recording.facts.recording, software="gcspy cut", note=note)
    facts = replace(facts, recording=recording.facts.recording)
    writer = RecordingWriter(store, session, rule=rule, facts=facts, first=first, packed=packed)
    try:
        while cursor.number < last and (step := cursor.step()) is not None:
            # The cursor starts again where events are missing; nothing there depends on earlier
            # data.
            if not writer.started or cursor.session is not session:
                session = cursor.session
                writer.follow(session)
                writer.start(step.number)
            else:
                writer.add_step(step)
            if progress is not None:
                progress(step.number - first + 1, last - first + 1)
        if last == recording.last:
            writer.add_notices(cursor.rest())
    finally:
        writer.close()
    return writer.events


def repack(
    recording: Recording,
    store: Store,
    *,
    level: int | None,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Write a recording again, with its facts: packed by column, or as it is while recording.

    Args:
        recording: The source, of any version.
        store: The destination; it is closed at the end.
        level: Level of zstd at which it is packed; None: each event is a block of its own.
        progress: Called with the number of events done, and the total.

    Returns:
        How many events were written.

    Raises:
        CorruptChunk: The recording is damaged: repair it first.
    """
    return cut(recording, store, facts=recording.facts, progress=progress, packed=level)
