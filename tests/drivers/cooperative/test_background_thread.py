"""The thread that gives way: one call at a time, whose result or error its caller gets."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import pytest
from gcspy_drivers.cooperative.background_thread import BackgroundThread


def niceness(_ends: Callable[[], bool]) -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def test_its_priority_is_lower_and_that_of_its_caller_stays() -> None:
    before = os.getpriority(os.PRIO_PROCESS, 0)
    thread = BackgroundThread()
    try:
        assert thread.run(niceness) == max(5, before)
        assert thread.run(niceness) == max(5, before)
        assert os.getpriority(os.PRIO_PROCESS, 0) == before
    finally:
        thread.close()
        thread.close()


def test_an_error_is_the_callers() -> None:
    thread = BackgroundThread()

    def fails(_ends: Callable[[], bool]) -> None:
        raise ValueError("of the call")

    try:
        with pytest.raises(ValueError, match="of the call"):
            thread.run(fails)
        assert thread.run(lambda ends: ends()) is False
    finally:
        thread.close()


def test_a_caller_that_is_interrupted_goes_on_only_after_the_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    thread = BackgroundThread()
    ended: list[bool] = []
    real = threading.Event.wait
    waits: list[object] = []

    def interrupted(event: threading.Event, timeout: float | None = None) -> bool:
        waits.append(event)
        if len(waits) == 1:
            raise KeyboardInterrupt
        return real(event, timeout)

    def until_told(ends: Callable[[], bool]) -> None:
        while not ends():
            pass
        ended.append(True)

    thread.run(lambda _ends: None)
    monkeypatch.setattr(threading.Event, "wait", interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            thread.run(until_told)
        assert ended == [True]
    finally:
        monkeypatch.undo()
        thread.close()
