"""How much a client may ask for: the arithmetic, with times that are given."""

from __future__ import annotations

from dataclasses import replace

import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.messages import Message
from hypothesis import given
from hypothesis import strategies as st

from gcspy_session.allowance import Allowance, Bucket, shared_bucket
from gcspy_session.options import RequestLimits

LIMITS = RequestLimits()

MUCH = m.Ping(number=1)


def allowance(limits: RequestLimits = LIMITS) -> Allowance:
    return Allowance(limits, shared_bucket(limits))


@given(gaps=st.lists(st.floats(0, 2), min_size=1, max_size=50), tokens=st.floats(0.5, 5, width=16))
def test_who_waits_as_told_never_gets_more_than_burst_and_rate(
    gaps: list[float], tokens: float
) -> None:
    bucket, now, taken = Bucket(per_sec=10, burst=20), 100.0, 0.0
    for gap in gaps:
        now += gap
        now += bucket.take(tokens, now)
        taken += tokens
        assert taken <= 20 + 10 * (now - 100) + 1e-6


def test_what_was_saved_is_no_more_than_the_burst() -> None:
    bucket = Bucket(per_sec=10, burst=20)
    assert bucket.take(20, 1000.0) == 0
    assert bucket.take(20, 2000.0) == 0
    assert bucket.take(1, 2000.0) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("message", "size", "at_once", "wait", "words"),
    [
        (m.Ping(number=1), 40, 1000, 1 / 500, "500 requests"),
        (m.Subscribe(), 28, 100, 1 / 10, "10 requests like Subscribe"),
        (m.TakeControl(), 28, 100, 1 / 10, "10 requests like TakeControl"),
        (m.Attend(person="x"), 40, 100, 1 / 10, "10 requests like Attend"),
        (m.Trigger(id=1), 40, 100, 1 / 10, "10 requests like Trigger"),
        (m.TileNamesRequest(space=1, first=0, count=9), 40, 500, 1 / 50, "50 pages of names"),
        (m.Ping(number=1), 1 << 16, 16, 1 / 4, "262,144 bytes of requests"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, m.Ping | m.Subscribe) else "",
)
def test_each_kind_of_request_has_a_limit_of_its_own(
    message: Message, size: int, at_once: int, wait: float, words: str
) -> None:
    roomy = replace(LIMITS, all_per_sec=1e9, burst_all=1e9)
    tried = allowance(roomy)
    for _ in range(at_once):
        assert tried.charge(message, 1, size, 50.0) <= 0
        assert tried.exceeded == ""
    assert tried.charge(message, 1, size, 50.0) == pytest.approx(wait)
    assert tried.exceeded == words


def test_frames_that_nobody_knows_count_as_requests() -> None:
    tried = allowance()
    assert tried.charge(None, 1000, 0, 1.0) == 0
    assert tried.charge(None, 1, 0, 1.0) == pytest.approx(1 / 500)


def test_after_some_requests_others_get_a_turn_and_costly_ones_give_it_sooner() -> None:
    cheap, pages = allowance(), allowance()
    assert [cheap.charge(MUCH, 1, 40, 1.0) for _ in range(LIMITS.turn)] == [-1.0] * (
        LIMITS.turn - 1
    ) + [0.0]
    assert pages.charge(m.TileNamesRequest(space=1, first=0, count=1), 1, 40, 1.0) == 0


def test_who_floods_makes_another_wait_for_one_request_only() -> None:
    shared = shared_bucket(LIMITS)
    flooders, polite = [Allowance(LIMITS, shared) for _ in range(40)], Allowance(LIMITS, shared)
    now = 1.0
    waits = dict.fromkeys(flooders, 0.0)
    while max(waits.values()) == 0:
        for flooder in flooders:
            waits[flooder] = max(0.0, flooder.charge(MUCH, 1, 40, now))
    # Each of the others is owed for no more than it was served since nothing is left.
    assert max(0.0, polite.charge(MUCH, 1, 40, now)) <= (len(flooders) + 1) / LIMITS.all_per_sec


def test_who_waits_for_answers_is_in_no_excess_however_fast_it_is() -> None:
    tried, now = allowance(), 1.0
    for _ in range(10_000):
        now += max(0.0, tried.charge(MUCH, 1, 40, now))
        assert tried.excess_secs(0, now) is None
        tried.received(40)


def test_who_does_not_wait_is_in_excess_until_little_is_left() -> None:
    tried, now = allowance(), 1.0
    for _ in range(4000):
        now += max(0.0, tried.charge(MUCH, 1, 40, now))
        found = tried.excess_secs(60_000, now)
        tried.received(60_000)
    assert found == pytest.approx(now - 1.0 - 1 / 500, abs=0.01)
    assert found is not None
    assert found > 5
    tried.received(LIMITS.backlog_bytes)
    assert tried.excess_secs(60_000, now) is None


def test_it_is_told_once_in_a_while() -> None:
    tried = allowance()
    assert [tried.may_tell(now) for now in (1.0, 1.5, 5.9, 6.0, 7.0)] == [
        True,
        False,
        False,
        True,
        False,
    ]
