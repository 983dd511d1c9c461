"""A thread for one job at a time: the latest request of a kind wins, and a stop ends it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from gcspy_client.model.latest_worker import LatestWorker

_PATIENCE_SECS = 60.0


class Held:
    """A worker whose first job runs until the test releases it."""

    def __init__(self) -> None:
        self.done: list[object] = []
        self.told = threading.Event()
        self.ended = threading.Event()
        self._may_end = threading.Event()
        begun = threading.Event()
        self.worker: LatestWorker[object] = LatestWorker(
            "gcspy test worker", self.told.set, at_end=self.ended.set
        )

        def first() -> object:
            begun.set()
            assert self._may_end.wait(_PATIENCE_SECS)
            self.done.append("first")
            return "first"

        self.worker.submit(first, kind="held")
        assert begun.wait(_PATIENCE_SECS)

    def job(self, name: object) -> Callable[[], object]:
        def run() -> object:
            self.done.append(name)
            return name

        return run

    def let_go(self) -> None:
        self._may_end.set()


@pytest.fixture
def held() -> Iterator[Held]:
    made = Held()
    yield made
    made.let_go()
    made.worker.stop()
    made.worker.join(_PATIENCE_SECS)
    assert "gcspy test worker" not in [thread.name for thread in threading.enumerate()]


def test_of_the_jobs_that_wait_only_the_latest_of_each_kind_is_run(held: Held) -> None:
    for number in range(5):
        held.worker.submit(held.job(number))
        held.worker.submit(held.job(f"other {number}"), kind="other")
    assert not held.worker.idle
    held.let_go()
    assert held.worker.settle(_PATIENCE_SECS)
    assert held.done == ["first", 4, "other 4"]
    outcome = held.worker.take()
    assert outcome is not None
    assert outcome.result() == 4
    assert held.worker.take() is None, "it was taken"
    assert sorted(str(one.result()) for one in held.worker.take_all()) == ["first", "other 4"]


def test_ordered_jobs_are_all_run_and_before_the_others(held: Held) -> None:
    held.worker.submit(held.job("latest"))
    for number in range(3):
        held.worker.submit_ordered(held.job(number))
    held.let_go()
    assert held.worker.settle(_PATIENCE_SECS)
    assert held.done == ["first", 0, 1, 2, "latest"]


def test_a_forgotten_job_is_not_run_and_leaves_no_outcome(held: Held) -> None:
    held.worker.submit(held.job("forgotten"))
    held.worker.forget()
    held.let_go()
    assert held.worker.settle(_PATIENCE_SECS)
    held.worker.forget("held")
    assert held.done == ["first"]
    assert held.worker.take_all() == []


def test_the_outcome_of_a_failed_job_raises_and_the_next_job_is_run() -> None:
    told = threading.Event()
    worker: LatestWorker[int] = LatestWorker("gcspy test worker", told.set)

    def fail() -> int:
        raise ZeroDivisionError("on purpose")

    worker.submit(fail)
    assert worker.settle(_PATIENCE_SECS)
    assert told.wait(_PATIENCE_SECS)
    failed = worker.take()
    assert failed is not None
    with pytest.raises(ZeroDivisionError, match="on purpose"):
        failed.result()
    worker.submit(partial(int, 7))
    assert worker.settle(_PATIENCE_SECS)
    outcome = worker.take()
    assert outcome is not None
    assert outcome.result() == 7
    worker.stop()
    worker.join()


def test_a_stop_drops_what_waits_and_notifies_of_nothing_that_ends_after_it(held: Held) -> None:
    held.worker.submit(held.job("waiting"))
    held.worker.submit_ordered(held.job("ordered"))
    held.worker.stop()
    assert not held.ended.is_set(), "the first job may still use what is closed at the end"
    held.worker.submit(held.job("late"))
    held.worker.submit_ordered(held.job("late"))
    held.let_go()
    held.worker.join(_PATIENCE_SECS)
    assert held.ended.is_set()
    assert held.done == ["first"]
    assert not held.told.is_set()
    assert held.worker.idle
    assert held.worker.take_all() == []


def test_a_stop_wakes_a_thread_that_waits_or_rests() -> None:
    told = threading.Event()
    worker: LatestWorker[bool] = LatestWorker(
        "gcspy test worker", told.set, rest_share=1e9, most_rest_secs=1e6
    )
    worker.submit(lambda: threading.Event().wait(0.001))
    assert told.wait(_PATIENCE_SECS)
    assert worker.settle(_PATIENCE_SECS), "a rest is no work"
    worker.stop()
    worker.join(_PATIENCE_SECS)
    assert "gcspy test worker" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.parametrize("stops", [1, 2])
def test_a_worker_without_a_job_has_no_thread_and_ends_once(stops: int) -> None:
    ends: list[int] = []
    worker: LatestWorker[int] = LatestWorker(
        "gcspy test worker", lambda: None, at_end=lambda: ends.append(threading.get_ident())
    )
    for _ in range(stops):
        worker.stop()
    worker.join()
    assert ends == [threading.get_ident()]
