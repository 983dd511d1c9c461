"""Memory and collections of one session over its events: the data behind the areas of the timeline.

Knows summaries and rows of events; does not know where they come from, nor pixels.
"""

from __future__ import annotations

from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.messages import Event

from gcspy_client.model.memory_history import MemoryStreams, latest_summaries
from gcspy_client.model.playback.collection_costs import CollectionCosts
from gcspy_client.model.playback.memory_samples import MemorySamples, SampledValue, sample_of
from gcspy_client.model.playback.timeline import EventTimeline
from gcspy_client.model.text import UNKNOWN_TEXT, duration, size_in_words

__all__ = ["MemoryTrack"]


class MemoryTrack:
    """The memory of one session.

    Args:
        source: The streams that report it.
        gather_waits: Whether the target stands still while an event is gathered.

    Attributes:
        source: The streams that report it.
        samples: The values of each event; the last row has the time of all collections.
        costs: The collections.
        reading: How much of a recording was read, 0 to 1.
        note: Why nothing is known, if that is known.
    """

    def __init__(self, source: MemoryStreams | None = None, *, gather_waits: bool = True) -> None:
        self.source = MemoryStreams() if source is None else source
        self.samples = MemorySamples(len(self.source.quantities) + 1)
        self.costs = CollectionCosts(gather_waits=gather_waits)
        self.reading = 1.0
        self.note = ""
        self._learned = (0, 0)

    @property
    def state(self) -> tuple[object, ...]:
        """Differs when there is something else to draw."""
        return id(self), self.samples.version, self.costs.version, self.reading, self.note

    @property
    def has_memory(self) -> bool:
        """Whether the session says anything about memory."""
        return bool(self.source.quantities)

    def follow(self, timeline: EventTimeline, kinds: tuple[str, ...]) -> None:
        """Follow the table of events: its collections, and what is no longer kept."""
        self.costs.follow(timeline.numbers, timeline.rows, kinds)
        if timeline.first > 1:
            self.samples.forget_before(timeline.first)
        if self.source.collecting is not None:
            state = self.costs.version, self.samples.version
            if state != self._learned:
                self.costs.learn(*self.samples.row(len(self.source.quantities)))
                self._learned = self.costs.version, self.samples.version

    def take(self, session: ClientInterpreter, event: Event, timeline: EventTimeline) -> None:
        """Take what the latest event says of memory."""
        number = timeline.number_of(event)
        if number is not None and self.source.wanted:
            summaries = latest_summaries(session, self.source.wanted)
            self.samples.put(number, sample_of(self.source, summaries)[:, None])

    def at(self, number: int) -> list[SampledValue]:
        """The quantities at an event."""
        return [self.samples.at(i, number) for i in range(len(self.source.quantities))]

    def words_at(self, number: int) -> list[str]:
        """The quantities at an event, and the cost of its collection, as lines of text."""
        lines = []
        for quantity, value in zip(self.source.quantities, self.at(number), strict=True):
            words = UNKNOWN_TEXT if value.value is None else size_in_words(value.value)
            since = f", of event {value.number:,}" if 0 < value.number != number else ""
            lines.append(f"{quantity.name}: {words}{since}  ({quantity.about})")
        cost = self.costs.cost_of(number)
        if cost is not None:
            lines.append(f"collection took {duration(cost)}")
        elif self.costs.has(number):
            lines.append("collection of unknown cost")
        return lines
