"""Ctrl-C and SIGTERM stop what serves, whatever they interrupt."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import gcspy_client.app
from gcspy.cli import main
from gcspy.commands import run
from gcspy.hosts.stop_signals import stop_at_signals

NUMBERS = [signal.SIGINT, signal.SIGTERM]


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in NUMBERS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_that_comes_while_the_events_lock_is_held_sets_it(number: signal.Signals) -> None:
    stop = stop_at_signals()
    with getattr(stop, "_cond"):  # noqa: B009  # the lock of `Event`, which its type does not name
        signal.raise_signal(number)
        signal.raise_signal(number)
    assert stop.wait(60)


class FakeSidecar:
    """A sidecar that is ready just after SIGTERM has come."""

    @property
    def addresses(self) -> tuple[str, ...]:
        signal.raise_signal(signal.SIGTERM)
        return ("unix:/nowhere",)


def test_sigterm_before_the_window_ends_the_program_and_opens_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    windows: list[object] = []

    @contextmanager
    def start_sidecar(*_: object, **__: object) -> Iterator[FakeSidecar]:
        yield FakeSidecar()

    monkeypatch.setattr(run, "start_sidecar", start_sidecar)
    monkeypatch.setattr(run, "require_window", lambda: None)
    monkeypatch.setattr(gcspy_client.app, "run_window", lambda *_, **__: windows.append(1))
    assert main(["run", "-c", "import time; time.sleep(600)"]) == 128 + signal.SIGTERM
    assert not windows
