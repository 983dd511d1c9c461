"""The program's own clock at each event of a recording, such as allocated bytes, without decoding any tile.

Knows chunks, their EVENT frames and records; does not know the use of the clock.
"""

from __future__ import annotations

from collections.abc import Iterator

from gcspy_protocol.codec import decode
from gcspy_protocol.errors import RemoteProtocolError
from gcspy_protocol.limits import Limits
from gcspy_protocol.messages import Event

from gcspy_replay.file.cursor import ChunkAt
from gcspy_replay.file.layout import blamed
from gcspy_replay.file.parts.chunk_records import RowReader
from gcspy_replay.file.parts.walk import read_entries
from gcspy_replay.file.reader import Recording

__all__ = ["events_with_clock"]


def events_with_clock(recording: Recording) -> Iterator[Event]:
    """The events with a program clock, in order.

    Raises:
        CorruptChunk: The recording is damaged.
    """
    for at in recording.chunks:
        head = at.part.head(at.place)
        events = _recorded if head.has_records else _framed
        for event in events(at, recording.limits):
            if event.program_clock is not None:
                yield event


def _recorded(at: ChunkAt, limits: Limits) -> Iterator[Event]:
    """The events of a chunk of records."""
    records, rows = at.part.records(at.place), RowReader(limits)
    place = 0
    while (record := records.record(place)) is not None:
        found = rows.take(record)
        if found is not None:
            yield found[0]
        place += 1


def _framed(at: ChunkAt, limits: Limits) -> Iterator[Event]:
    """The events of a chunk of frames."""
    part, place = at.part, at.place
    # The keyframe in the head of a chunk repeats the last event of the chunk before.
    offset, end = place.offset, place.offset + (place.end_at or place.size)
    begin = offset + part.head(place).head_bytes
    for entry in read_entries(part.window, offset, end, limits, place.number):
        if not entry.is_event or entry.offset < begin:
            continue
        last = entry.frames[-1]
        try:
            event = decode(last.header, entry.payload(last), limits)
        except RemoteProtocolError as error:
            raise blamed(error, entry.offset + last.start, place.number) from error
        if isinstance(event, Event):
            yield event
