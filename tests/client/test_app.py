"""The window as a program: pictures of it, and every way of ending it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from gcspy_protocol.errors import CommandError, LinkError
from PySide6.QtGui import QImage
from pytestqt.qtbot import QtBot

from gcspy_client.app import run_window, take_screenshot
from gcspy_client.view.window import MainWindow
from tests.client.program import Program
from tests.waiting import PATIENCE_SECS

ROOT = Path(__file__).parents[2]


@pytest.fixture
def address(program: Program, socket_directory: Path) -> str:
    return program.server.serve(f"unix:{socket_directory}/a.sock").addresses[0]


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_a_screenshot_has_the_size_and_shows_the_tiles(
    program: Program, address: str, tmp_path: Path, theme: str, qtbot: QtBot
) -> None:
    program.let_happen_when_watched(2)
    take_screenshot(address, tmp_path / "a.png", size=(1280, 720), theme=theme, settle_events=1)
    image = QImage(str(tmp_path / "a.png"))
    assert (image.width(), image.height()) == (1280, 720)
    colours = {image.pixel(x, y) for x in range(0, 1280, 5) for y in range(0, 720, 5)}
    assert len(colours) > 50  # a palette of values, not an empty page


def test_a_screenshot_of_nothing_says_so(
    socket_directory: Path, tmp_path: Path, qtbot: QtBot
) -> None:
    with pytest.raises(LinkError, match="no socket at this path"):
        take_screenshot(f"unix:{socket_directory}/none.sock", tmp_path / "a.png")
    assert not (tmp_path / "a.png").exists()


def test_a_screenshot_of_a_silent_session_says_how_many_events_came(
    program: Program, address: str, tmp_path: Path, qtbot: QtBot
) -> None:
    with pytest.raises(LinkError, match="0 of 1 events"):
        take_screenshot(address, tmp_path / "a.png", timeout_secs=0.2)


def test_a_picture_that_cannot_be_written_is_a_clear_error(
    program: Program, address: str, tmp_path: Path, qtbot: QtBot
) -> None:
    program.let_happen_when_watched(2)
    with pytest.raises(CommandError, match="check that the folder exists"):
        take_screenshot(address, tmp_path / "none" / "a.png")


def test_there_is_no_third_theme(qtbot: QtBot) -> None:
    with pytest.raises(CommandError, match="no theme 'blue'"):
        run_window(None, theme="blue")


def test_closing_the_window_ends_the_program_with_zero(address: str, qtbot: QtBot) -> None:
    windows: list[MainWindow] = []

    def ready(window: MainWindow) -> None:
        windows.append(window)
        window.link.status_changed.connect(lambda _status: window.close())

    assert run_window(address, on_ready=ready) == 0
    assert windows


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_the_window_and_leaves_the_program_running(
    program: Program, address: str, number: signal.Signals
) -> None:
    code = (
        "import sys\n"
        "from gcspy_client.app import run_window\n"
        "def ready(window):\n"
        "    window.event_shown.connect(lambda event: print('shown', flush=True))\n"
        f"sys.exit(run_window({address!r}, on_ready=ready))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        assert program.server.wait_for_client(PATIENCE_SECS)
        program.let_happen()
        assert process.stdout.readline() == "shown\n"
        process.send_signal(number)
        assert process.wait(PATIENCE_SECS) == 0
    program.let_happen(2)
