"""Export as MCAP, which robotics' viewers and plotters read: JSON messages, a topic a stream. Needs mcap.

/events                    every event: name, occurrence, times, cause
/SPACE/STREAM/summary      the summary that an event brought: value, or a number a name
/SPACE/STREAM/tiles        with tiles: the value of each tile, null where it is unknown
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gcspy_protocol.errors import RecordingError
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.messages import Event, Summary
from gcspy_protocol.streams.named_stream import NamedStream
from mcap.writer import CompressionType, Writer

from gcspy_replay.file.cursor import RecordedEvent
from gcspy_replay.file.export.tables import ExportSelection, Progress, part_names
from gcspy_replay.file.reader import Recording

__all__ = ["write"]

_EVENT = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "number": {"type": "integer"},
        "occurrence": {"type": "integer"},
        "sequence": {"type": "integer"},
        "gather_nanos": {"type": "integer"},
        "held_nanos": {"type": "integer"},
        "cause": {"type": "string"},
    },
}
_TILES = {
    "type": "object",
    "properties": {"values": {"type": "array", "items": {"type": ["integer", "null"]}}},
}

_BY_NAME = {
    "type": "object",
    "properties": {
        "tiles": {"type": "object", "additionalProperties": {"type": "integer"}},
        "covered": {"type": "integer"},
    },
}


class _Topics:
    """Registers topics as they come up."""

    def __init__(self, writer: Writer, offset: int) -> None:
        self._writer, self._offset = writer, offset
        self._channels: dict[str, int] = {}
        self.messages = 0

    def say(
        self, topic: str, schema: dict[str, Any], event: Event, message: dict[str, Any]
    ) -> None:
        channel = self._channels.get(topic)
        if channel is None:
            kind = topic.rpartition("/")[2]
            data = json.dumps(schema).encode()
            schema_id = self._writer.register_schema(f"gcspy.{kind}", "jsonschema", data)
            channel = self._channels[topic] = self._writer.register_channel(
                topic, "json", schema_id
            )
        time = event.time_nanos + self._offset
        if not 0 <= time < 1 << 64:
            raise RecordingError(
                f"event {event.sequence} has a time that MCAP cannot hold: {time} ns since 1970"
            )
        self._writer.add_message(
            channel, time, json.dumps(message).encode(), time, event.sequence & 0xFFFFFFFF
        )
        self.messages += 1


def write(
    recording: Recording, path: Path, wanted: ExportSelection, progress: Progress | None = None
) -> int:
    """Write messages in the order of events; log times are nanoseconds since 1970.

    Returns:
        How many messages were written.

    Raises:
        RecordingError: The range is invalid, or the recording is damaged.
        OSError: The file cannot be written.
    """
    first, last = wanted.range(recording)
    with path.open("wb") as file:
        writer = Writer(file, compression=CompressionType.ZSTD)
        writer.start(profile="", library="gcspy")
        topics = _Topics(writer, recording.welcome.wall_offset_nanos)
        for step, session in recording.steps(first, last):
            _say_event(topics, step, session)
            _say_streams(topics, step, session, wanted)
            if progress is not None:
                progress(step.number - first + 1, last - first + 1)
        writer.finish()
    return topics.messages


def _say_event(topics: _Topics, step: RecordedEvent, session: ClientInterpreter) -> None:
    event = step.change.event
    message = {
        "name": session.event_name(event.event),
        "number": step.number,
        "occurrence": event.occurrence,
        "sequence": event.sequence,
        "gather_nanos": event.gather_nanos,
        "held_nanos": event.held_nanos,
        "cause": event.cause,
    }
    topics.say("/events", _EVENT, event, message)


def _say_streams(
    topics: _Topics, step: RecordedEvent, session: ClientInterpreter, wanted: ExportSelection
) -> None:
    event = step.change.event
    for state in session.spaces.values():
        for stream in state.streams.values():
            schema, summary = stream.schema, stream.summary
            if not wanted.has(state.space.name, schema.name):
                continue
            topic = f"/{state.space.name}/{schema.name}"
            if summary is not None and summary.covered and summary.sequence == event.sequence:
                if isinstance(schema, NamedStream):
                    topics.say(f"{topic}/summary", _BY_NAME, event, _by_name(schema, summary))
                else:
                    names = [name or "value" for name in part_names(schema)]
                    properties = {name: {"type": "integer"} for name in [*names, "covered"]}
                    message = {
                        **dict(zip(names, summary.values, strict=False)),
                        "covered": summary.covered,
                    }
                    topics.say(
                        f"{topic}/summary",
                        {"type": "object", "properties": properties},
                        event,
                        message,
                    )
            if wanted.tiles and stream.is_fresh(event):
                values: list[int | None] = stream.values.tolist()
                if stream.known is not None:
                    values = [
                        v if known else None
                        for v, known in zip(values, stream.known.tolist(), strict=True)
                    ]
                topics.say(f"{topic}/tiles", _TILES, event, {"values": values})


def _by_name(schema: NamedStream, summary: Summary) -> dict[str, Any]:
    """The tiles of each name that there is; names grow, so they are no properties of a schema."""
    tiles: dict[str, int] = {}
    for name, count in zip(schema.enum_names, summary.values, strict=True):
        if count:
            tiles[name] = tiles.get(name, 0) + count
    return {"tiles": tiles, "covered": summary.covered}
