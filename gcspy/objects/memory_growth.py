"""Computes why memory grew over a recording, for `gcspy why FILE`.

Knows recordings, the space "Memory over time", and the growth of types.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gcspy_protocol.errors import CommandError

from gcspy.objects import type_growth
from gcspy.objects.type_growth import Grown, TypeSamples
from gcspy.output.terminal import say, say_json
from gcspy.recorder.named_recordings import opened
from gcspy_client.model.growth_sentence import (
    GrownPart,
    Growth,
    growth_of_types,
    growth_sentence,
)
from gcspy_client.model.memory_history import MEMORY_HISTORY, resident_set
from gcspy_client.model.panels.growth import bytes_measure
from gcspy_client.model.text import duration, size_in_words

__all__ = ["GrownMemory", "grown_memory", "print_as_json", "print_as_text"]


@dataclass(frozen=True, slots=True)
class GrownMemory:
    """The result.

    Attributes:
        nanos: Time between the first and the last event with a resident set.
        before: Bytes of the resident set at the first.
        now: Bytes at the last.
        types: The types that grew; None: no event has types.
    """

    nanos: int
    before: int
    now: int
    types: Grown | None

    @property
    def sentence(self) -> str:
        """Why memory grew; empty: nothing did."""
        secs, grew = max(self.nanos / 1e9, 1e-9), self.now - self.before
        types = self.types
        # The growth of types that were gathered only once is not known.
        compared = types is not None and types.first != types.last
        at = bytes_measure(types.measures) if types is not None and compared else None
        if types is None or at is None:
            return growth_sentence(Growth(secs=secs, resident=self.now, grew=grew))
        return growth_sentence(
            growth_of_types(
                secs=secs,
                resident=self.now,
                grew=grew,
                types=[GrownPart(row.name, row.changes[at].grew or 0) for row in types.rows],
                total=types.total[at],
            )
        )


def grown_memory(paths: list[Path], top: int) -> GrownMemory:
    """Compute the growth of the resident set, and of types if they were recorded.

    Args:
        paths: Files of a recording.
        top: Rows of types.

    Raises:
        RecordingError: It cannot be read.
        CommandError: It has no resident set: it is not of a process, or of an earlier version.
    """
    ends: list[tuple[int, int]] = []
    samples = TypeSamples()
    with opened(paths) as recording:
        for step, session in recording.steps():
            samples.take(step.number, session)
            size, event = resident_set(session), session.last_event
            if size is not None and event is not None:
                ends = [ends[0] if ends else (event.time_nanos, size), (event.time_nanos, size)]
        if not ends:
            raise CommandError(
                f'this recording has no space "{MEMORY_HISTORY}": record a process with this version of gcspy'
            )
        types: Grown | None = None
        # Else it was recorded at a level without types.
        with suppress(CommandError):
            types = samples.compared(recording, recording.first, recording.last, top)
    (began, before), (ended, now) = ends
    return GrownMemory(ended - began, before, now, types)


def print_as_json(found: GrownMemory) -> None:
    """One JSON object."""
    say_json(
        {
            "seconds": found.nanos / 1e9,
            "resident": {"before": found.before, "now": found.now},
            "sentence": found.sentence,
            "types": None if found.types is None else type_growth.as_json(found.types),
        }
    )


def print_as_text(found: GrownMemory) -> None:
    """The sentence, and the types that grew."""
    change = found.now - found.before
    say(
        found.sentence
        or f"Memory did not grow: {size_in_words(change)} of {size_in_words(found.now)} in {duration(found.nanos)}."
    )
    say("")
    if found.types is None:
        say("Types were not recorded: `gcspy record PID -o FILE --level 3` records them.")
    elif found.types.first == found.types.last:
        say(f"Types were gathered at one event only, {found.types.first:,}: nothing to compare.")
    else:
        type_growth.print_as_text(found.types)
