"""Elapsed, compensation, difference: the same as the recording's own compensated time."""

from __future__ import annotations

import numpy as np
from gcspy_protocol.playback import TIMELINE
from gcspy_replay.file import compensated_nanos
from hypothesis import given
from hypothesis import strategies as st

from gcspy_client.model.playback.timeline import EventTimeline
from gcspy_client.model.playback.timers import timers_of

EVENT = st.tuples(st.integers(0, 1000), st.integers(0, 300), st.integers(0, 300))


@given(st.lists(EVENT, min_size=1, max_size=30), st.data())
def test_the_difference_is_the_programs_own_time(
    events: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    rows = np.zeros(len(events), dtype=TIMELINE)
    gaps, gathered, held = (
        np.array(column, dtype=np.uint64) for column in zip(*events, strict=True)
    )
    rows["time_nanos"], rows["gather_nanos"], rows["held_nanos"] = (
        np.cumsum(gaps) + 1,
        gathered,
        held,
    )
    timeline = EventTimeline()
    timeline.extend(np.arange(1, len(rows) + 1, dtype=np.uint64), rows)
    number = data.draw(st.integers(1, len(events)))
    timers = timers_of(timeline, number)
    assert timers is not None
    assert timers.difference_nanos == int(compensated_nanos(rows)[number - 1])
    assert timers.elapsed_nanos == int(rows["time_nanos"][number - 1]) - int(rows["time_nanos"][0])
    assert timers_of(timeline, len(events) + 1) is None


def test_what_was_missed_is_told() -> None:
    rows = np.zeros(3, dtype=TIMELINE)
    rows["time_nanos"], rows["missed"] = (1, 2, 3), (9, 0, 4)
    timeline = EventTimeline()
    timeline.extend(np.arange(5, 8, dtype=np.uint64), rows)
    timers = timers_of(timeline, 7)
    assert timers is not None
    assert (timers.first, timers.missed) == (5, 4)
