"""A thread for one thing at a time: the latest wish wins, and a stop ends it."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from gcspy_client.model.errand import LatestErrand


def test_of_what_is_asked_meanwhile_only_the_latest_is_done() -> None:
    begun, may_end = threading.Event(), threading.Event()
    done: list[int] = []
    errand: LatestErrand[int] = LatestErrand("test", lambda: None)

    def first() -> int:
        begun.set()
        assert may_end.wait(60)
        done.append(0)
        return 0

    def later(number: int) -> int:
        done.append(number)
        return number

    errand.ask(first)
    assert begun.wait(60)
    for number in range(1, 6):
        errand.ask(partial(later, number))
    assert not errand.idle
    may_end.set()
    assert errand.settle(60)
    assert (done, errand.result) == ([0, 5], 5)
    errand.stop()


def test_what_fails_is_told_and_the_next_is_done() -> None:
    told = threading.Event()
    errand: LatestErrand[int] = LatestErrand("test", told.set)

    def fail() -> int:
        raise ZeroDivisionError("on purpose")

    errand.ask(fail)
    assert errand.settle(60)
    assert told.wait(60)
    assert isinstance(errand.failure, ZeroDivisionError)
    errand.ask(lambda: 7)
    assert errand.settle(60)
    assert errand.result == 7
    told_of: Exception | None = errand.failure
    assert told_of is None
    errand.stop()


@pytest.mark.parametrize("asked", [False, True])
def test_a_stop_waits_for_what_is_under_way_and_nothing_is_told_after_it(asked: bool) -> None:
    begun, told = threading.Event(), threading.Event()
    errand: LatestErrand[int] = LatestErrand("test", told.set)

    def begin() -> int:
        begun.set()
        return 1

    if asked:
        errand.ask(begin)
        assert begun.wait(60)
        errand.settle(60)
        told.clear()
    errand.stop()
    errand.ask(begin)
    assert not told.is_set()
    assert "test" not in [thread.name for thread in threading.enumerate()]
