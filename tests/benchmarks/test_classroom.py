"""A class of a hundred, for a short time: what the benchmark measures for minutes."""

from __future__ import annotations

import pytest

from benchmarks.server.classroom import measure


@pytest.mark.soak
def test_a_hundred_follow_one_teacher_five_stall_and_the_successor_inherits() -> None:
    result = measure(viewers=100, stalled=5, tiles=4096, hz=10, seconds=10)
    assert result.whole
    assert result.missed == 0
    assert result.places >= result.looks // 2  # the latest wins, where the machine is busy
    assert result.latencies.min() >= 0
    assert result.stalled_known == 5
    assert result.takeover_secs is not None


def test_a_small_class_is_measured_too() -> None:
    result = measure(viewers=4, stalled=1, tiles=256, hz=5, seconds=1)
    assert result.whole
    assert result.places >= 1
    assert result.takeover_secs is not None
