"""The program's clock at the events of a recording, in every version and after packing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.messages import Message
from gcspy_replay.file import (
    FORMAT_VERSION,
    WIRE_VERSION,
    ChunkRule,
    MemorySource,
    MemoryStore,
    Recording,
    events_with_clock,
    repack,
)

from tests.replay.recorded import Small

EVENTS = 20
RULE = ChunkRule(events=4, most_events=4)


class Allocating(Small):
    """A session whose program has allocated 1,000 bytes more at each event, and does not say so at every fifth."""

    def say(self, message: Message) -> None:
        """Let the client hear and record it, with the clock."""
        if isinstance(message, m.Event) and message.sequence % 5:
            clock = ("allocated bytes", 1000 * message.sequence)
            message = replace(message, program_clock=clock)
        super().say(message)


def clocks(data: bytes) -> list[tuple[int, int]]:
    """Return sequence and clock of the events that have one."""
    with Recording([MemorySource(data)]) as recording:
        return [
            (event.sequence, event.program_clock[1])
            for event in events_with_clock(recording)
            if event.program_clock is not None
        ]


@pytest.mark.parametrize("version", [WIRE_VERSION, FORMAT_VERSION])
def test_the_clock_is_known_at_each_event_that_has_one(version: int) -> None:
    store = MemoryStore()
    Allocating(store, rule=RULE, version=version).events(EVENTS).writer.close()
    wanted = [(n, 1000 * n) for n in range(1, EVENTS + 1) if n % 5]
    assert clocks(bytes(store.data)) == wanted
    packed = MemoryStore()
    with Recording([MemorySource(bytes(store.data))]) as recording:
        assert len(recording.chunks) > 2
        repack(recording, packed, level=9)
    assert clocks(bytes(packed.data)) == wanted
