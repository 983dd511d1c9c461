"""An unexpected error is said in the window, printed once, and ends nothing."""

from __future__ import annotations

import sys

import pytest
from PySide6.QtCore import QTimer
from pytestqt.qtbot import QtBot

from gcspy_client.app import run_window
from gcspy_client.error_report import errors_reported
from gcspy_client.view.window import MainWindow


def _raise(text: str) -> None:
    int(text)


def test_the_same_error_is_printed_once_and_another_one_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    printed: list[str] = []
    said: list[str] = []
    monkeypatch.setattr(sys, "excepthook", lambda _kind, error, _trace: printed.append(str(error)))
    hook = sys.excepthook
    with errors_reported(said.append):
        for text in ("x", "x", "y"):
            try:
                _raise(text)
            except ValueError as error:
                sys.excepthook(type(error), error, error.__traceback__)
        sys.excepthook(KeyError, KeyError("elsewhere"), None)
        sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert sys.excepthook is hook
    assert len(printed) == 3
    assert [text.split(":")[1].strip() for text in said] == ["ValueError", "KeyError"]


def test_a_window_says_that_it_made_an_error(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)  # not the tests' own
    said: list[str] = []

    def ready(window: MainWindow) -> None:
        def look() -> None:
            said.append(window.announcer.text)
            window.close()

        QTimer.singleShot(0, window, lambda: _raise("no number"))
        QTimer.singleShot(50, window, look)

    assert run_window(None, theme="dark", on_ready=ready) == 0
    assert said[0].startswith("An error in GCspy: ValueError: invalid literal")
    assert "no number" in capsys.readouterr().err
