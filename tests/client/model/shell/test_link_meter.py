"""The traffic of a connection, counted from messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gcspy_protocol.messages import Event, Missed, StreamDelta, StreamKey

from gcspy_client.model.shell.link_meter import LinkMeter


def event(
    sequence: int,
    *,
    kind: int = 0,
    gather_nanos: int = 0,
    cached: bool = False,
    waited_nanos: int = 0,
) -> Event:
    return Event(
        sequence=sequence,
        time_nanos=sequence,
        event=kind,
        occurrence=sequence,
        epoch=1,
        gather_nanos=gather_nanos,
        cached=cached,
        waited_nanos=waited_nanos,
    )


def test_a_difference_counts_as_the_whole_stream_it_stands_for() -> None:
    meter = LinkMeter()
    stamp: dict[str, Any] = {"space": 1, "stream": 1, "time_nanos": 1, "event": 0, "occurrence": 1}
    key = StreamKey(sequence=1, values=np.zeros(1000, "<i4"), **stamp)
    some = np.zeros(3, "<i4")
    delta = StreamDelta(
        sequence=2, base_sequence=1, count=1000, indices=np.arange(3), values=some, **stamp
    )
    meter.take(500, [key, event(1), delta, event(2)])
    assert meter.plain_bytes == 8000
    assert meter.ratio == 16
    assert meter.events == 2


def test_gathering_is_told_by_kind_and_what_is_repeated_was_not_gathered_again() -> None:
    meter = LinkMeter()
    meter.take(
        1, [event(1, gather_nanos=10), event(2, kind=1, gather_nanos=7), event(3, gather_nanos=30)]
    )
    meter.take(1, [event(3, gather_nanos=30, cached=True), Missed(events=2, total=5)])
    assert (meter.gathered[0].events, meter.gathered[0].nanos, meter.gathered[0].most_nanos) == (
        2,
        40,
        30,
    )
    assert meter.gathered[1].last_nanos == 7
    assert meter.missed == 5


def test_rates_are_of_the_last_seconds_and_unknown_after_a_while_without_looking() -> None:
    meter = LinkMeter()
    assert meter.rates(100.0).events is None
    for second in range(1, 11):
        meter.take(1000, [event(second)] * 5)
        rates = meter.rates(100.0 + second)
        assert rates.events == pytest.approx(5)
        assert rates.wire_bytes == pytest.approx(1000)
    meter.take(0, [])
    for second in range(11, 20):
        rates = meter.rates(100.0 + second)
    assert rates.events == 0
    assert meter.rates(500.0).events is None


def test_only_the_latest_ping_is_waited_for() -> None:
    meter = LinkMeter()
    meter.pinged(1, 1000)
    meter.pinged(2, 5000)
    meter.ponged(1, 6000)
    assert meter.round_trip_nanos is None
    meter.ponged(2, 5700)
    assert meter.round_trip_nanos == 700


def test_rates_are_of_the_latest_seconds_and_none_of_a_time_when_nobody_looked() -> None:
    meter = LinkMeter()
    assert meter.rates(100.0).events is None, "nothing to compare with"
    meter.take(1200, [event(1), event(2), event(3)])
    rates = meter.rates(112.0)
    assert (rates.events, rates.wire_bytes) == (0.25, 100.0), "twelve seconds are not too long"
    meter.take(1200, [event(4)])
    rates = meter.rates(112.0 + 12.1)
    assert (rates.events, rates.wire_bytes) == (None, None)
