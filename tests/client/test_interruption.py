"""Ctrl-C and SIGTERM are noted while Qt works, and followed where that is safe."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QTimer
from pytestqt.qtbot import QtBot

from gcspy_client.app import run_window, take_screenshot
from gcspy_client.interruption import interruption_held_back
from gcspy_client.view.window import MainWindow
from tests.client.program import Program

NUMBERS = [signal.SIGINT, signal.SIGTERM]


@pytest.fixture(autouse=True)
def _as_in_a_command() -> Iterator[None]:
    """SIGTERM raises as Ctrl-C does: see `gcspy.cli.main`."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in NUMBERS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def address(program: Program, socket_directory: Path) -> str:
    return program.server.serve(f"unix:{socket_directory}/a.sock").addresses[0]


@pytest.mark.parametrize("number", NUMBERS)
def test_what_was_noted_comes_again_at_the_end(number: signal.Signals) -> None:
    seen: list[int] = []

    def work() -> None:
        with interruption_held_back() as interruption:
            signal.raise_signal(number)
            seen.append(interruption.number)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert seen == [number]
    assert signal.getsignal(number) is signal.default_int_handler


def test_what_was_followed_does_not_come_again() -> None:
    with interruption_held_back() as interruption:
        interruption.follow()
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            interruption.follow()
        interruption.follow()


def test_what_is_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interruption_held_back() as interruption:
        signal.raise_signal(signal.SIGINT)
        assert not interruption.number
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_what_the_system_follows_is_noted_only_where_it_is_requested() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with interruption_held_back():
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    with interruption_held_back(default_too=True) as interruption:
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            interruption.follow()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_before_the_loop_begins_is_not_lost(number: signal.Signals, qtbot: QtBot) -> None:
    assert run_window(None, on_ready=lambda _window: signal.raise_signal(number)) == 0


def test_a_window_is_not_closed_under_the_hands_of_who_shows_an_event(
    program: Program, address: str, qtbot: QtBot
) -> None:
    there: list[bool] = []

    def ready(window: MainWindow) -> None:
        def shown(_event: object) -> None:
            if not there:
                signal.raise_signal(signal.SIGTERM)
                there.append(window.isVisible())

        window.event_shown.connect(shown)

    program.let_happen_when_watched(2)
    assert run_window(address, on_ready=ready) == 0
    assert there == [True]


def test_a_picture_that_is_waited_for_is_given_up(
    program: Program, address: str, tmp_path: Path, qtbot: QtBot
) -> None:
    QTimer.singleShot(0, lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        take_screenshot(address, tmp_path / "a.png", timeout_secs=60)
    assert not (tmp_path / "a.png").exists()
