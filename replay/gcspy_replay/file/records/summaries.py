"""Summaries from records, without reading any value (FORMAT.md section 10).

What says how much follows lies apart from the values, so that those can be left where they are.

Knows records; does not know files.
"""

from __future__ import annotations

from gcspy_protocol import messages as m
from gcspy_protocol.limits import Limits
from gcspy_protocol.messages import Event
from gcspy_protocol.model import Space, Stream

from gcspy_replay.file.records import body
from gcspy_replay.file.records.fields import FieldReader
from gcspy_replay.file.records.record import NoticeReader, RecordKind, event_of

__all__ = ["SummaryTrail"]

Told = dict[int, tuple[tuple[int, ...], int]]
"""Of each stream that has one, the numbers of its latest summary and the tiles covered."""


class SummaryTrail:
    """Follows the records of a chunk, and hands out the summaries of its events.

    Args:
        notices: Reads the notices in its records.
        limits: Limits on their content.
    """

    def __init__(self, notices: NoticeReader, limits: Limits) -> None:
        self._notices, self._limits = notices, limits
        self._spaces: dict[int, tuple[Space, Told]] = {}
        self._counters: tuple[int, ...] = ()
        self._last: Event | None = None
        self._begun = False

    def take(
        self, record: memoryview
    ) -> tuple[Event, list[tuple[Space, Stream, m.Summary]]] | None:
        """The event of a record, with the summaries that it brought; None if it is no event.

        Raises:
            ValueError: It is not a record.
            RemoteProtocolError: A notice is not what its type promises.
        """
        given = FieldReader(record)
        if given.kind == RecordKind.EVENT:
            self._last = event_of(given, self._last, self._counters)
            return self._last, self._body(given, self._last)
        if given.kind == RecordKind.KEY and self._begun:
            return None  # repeats what is known
        self._begun = True
        for message in self._notices.read(given)[0]:
            if isinstance(message, m.Counters):
                self._counters = message.counts
            elif isinstance(message, m.SpaceDefined):
                self._spaces[message.space.id] = (message.space, {})
            elif isinstance(message, m.SpaceRemoved):
                self._spaces.pop(message.space, None)
        if given.kind == RecordKind.KEY and given.integer(0, 1):
            self._last = event_of(given, None, self._counters)
            self._body(given, self._last)
        return None

    def _body(self, given: FieldReader, event: Event) -> list[tuple[Space, Stream, m.Summary]]:
        found = []
        for space, told in self._spaces.values():
            flags = given.integer(0, 31)
            body.pass_tiles_and_texts(given, flags, self._limits)
            body.pass_streams(given, flags, len(space.streams) + 1)
            if flags & body.SUMMARIES:
                for stream in space.streams:
                    how = given.integer(0, 7)
                    if how & body.HOW == body.ABSENT:
                        continue
                    summary = self._summary(given, how, (space.id, stream), told, event)
                    told[stream.id] = (summary.values, summary.covered)
                    if summary.sequence == event.sequence:
                        found.append((space, stream, summary))
        given.end_of_numbers()
        return found

    def _summary(
        self,
        given: FieldReader,
        how: int,
        where: tuple[int, Stream],
        told: Told,
        event: Event,
    ) -> m.Summary:
        space, stream = where
        length = stream.summary_length
        values, covered = told.get(stream.id, ((0,) * length, 0))
        return body.summary_of(given, how, (space, stream.id), (values, covered), event)
