"""Takes the pictures in which somebody looks back: in a live session, and in a recording of one.

A process of its own for each picture, as Qt reads the scale of the screen once; called by `make.py`.

    looking_back.py history PID PICTURE SIZE THEME   a live session, with its history graph
    looking_back.py past PID PICTURE SIZE THEME      a live session, looked back in
    looking_back.py save PID FILE                    save a session from the window that watches it
    looking_back.py replay FILE PICTURE SIZE THEME   that file, played
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from gcspy_protocol.model import EventFilter
from gcspy_replay.file import Recording
from gcspy_replay.player import Beginning, serve_recording
from PySide6.QtCore import QEventLoop, Qt, QTimer
from PySide6.QtTest import QTest

from gcspy.serving import ServingOptions
from gcspy.sidecar import start_sidecar
from gcspy_client.app import take_screenshot
from gcspy_client.view.window import MainWindow

EVENTS = 150
CLOCK_HZ = 20.0
HISTORY_HEIGHT = 400

_Arrange = Callable[[MainWindow], None]


def wait_until(condition: Callable[[], bool]) -> None:
    """Let the window live until something is so."""
    loop, look, patience = QEventLoop(), QTimer(), QTimer()
    look.timeout.connect(lambda: loop.quit() if condition() else None)
    look.start(20)
    patience.setSingleShot(True)
    patience.timeout.connect(loop.quit)
    patience.start(20_000)
    loop.exec()
    look.stop()
    patience.stop()
    if not condition():
        raise RuntimeError("what the picture is to show did not come about")


def look_back(window: MainWindow, number: int) -> None:
    """Bookmark two moments, choose a range and go to an event."""
    first = window.session.timeline.first
    window.bookmarking.marks.add(first + EVENTS // 4, "before the burst")
    window.bookmarking.marks.add(first + EVENTS * 3 // 5, "the arenas have holes")
    window.timing.choose_range(first + EVENTS // 5, first + EVENTS * 7 // 10)
    window.timing.go_to(first + number)
    wait_until(lambda: window.session.number == first + number)


def look_back_and_loop(window: MainWindow, file: Path, number: int) -> None:
    """The same in a recording, whose range is played over and over, with a filter of the window's own."""
    window.use_recording(file)
    look_back(window, number)
    window.timing.toggle_loop()
    window.set_filters((EventFilter(event=0, delay_millis=40),))
    wait_until(lambda: window.session.live.filters[0].delay_millis == 40)


def show_history(window: MainWindow) -> None:
    """Open the history graph, draw over some tiles, and go to an event."""
    panel, canvas = window.history, window.history.canvas
    window.docks.show("history")
    window.docks.give_height("history", HISTORY_HEIGHT)
    wait_until(lambda: panel.graph is not None and len(panel.graph.events) >= EVENTS and canvas.drawn is not None)
    graph = panel.graph
    assert graph is not None
    places = np.array([len(graph.keys) // 3, len(graph.keys) // 2])
    ends = [canvas.position_of(int(graph.events.sequences[EVENTS // 3]), key) for key in graph.keys.at(places).tolist()]
    first, last = (end.toPoint() for end in ends if end is not None)
    QTest.mousePress(canvas, Qt.MouseButton.LeftButton, pos=first)
    QTest.mouseMove(canvas, last)
    QTest.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=last)
    wait_until(lambda: bool(panel.series.plotted) and len(panel.series.plotted[0].series) >= EVENTS)
    number = window.session.timeline.first + EVENTS * 3 // 5
    window.timing.go_to(number)
    wait_until(lambda: window.session.number == number)


def save(window: MainWindow, path: Path) -> None:
    """Save what was kept."""
    window.shift.save(path, replace=True)


def watch(pid: int, picture: Path, size: tuple[int, int], theme: str, arrange: _Arrange) -> None:
    """Watch a process for a while, arrange the window, take the picture."""
    with tempfile.TemporaryDirectory(prefix="gcspy-") as folder:
        options = ServingOptions(pid=pid, listen=(f"unix:{folder}/session.sock",), clock_hz=CLOCK_HZ)
        with start_sidecar(options) as sidecar:
            take_screenshot(
                sidecar.addresses[0],
                picture,
                size=size,
                theme=theme,
                settle_events=EVENTS,
                settle_secs=1.0,
                arrange=arrange,
            )


def replay(file: Path, picture: Path, size: tuple[int, int], theme: str) -> None:
    """Play a file, arrange the window, take the picture."""
    with tempfile.TemporaryDirectory(prefix="gcspy-") as folder:
        address = f"unix:{folder}/player.sock"
        with serve_recording(Recording.open(file), address, beginning=Beginning(running=False)):
            arrange = partial(look_back_and_loop, file=file, number=EVENTS // 2)
            take_screenshot(address, picture, size=size, theme=theme, settle_secs=0.5, arrange=arrange)


def main(arguments: list[str]) -> int:
    """Do one of the four."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    what, source, file, *look = arguments
    size = (1600, 1000)
    if look:
        width, _, height = look[0].partition("x")
        size = int(width), int(height)
    match what:
        case "past":
            watch(int(source), Path(file), size, look[1], partial(look_back, number=EVENTS // 2))
        case "history":
            watch(int(source), Path(file), size, look[1], show_history)
        case "save":
            with tempfile.TemporaryDirectory(prefix="gcspy-") as folder:
                watch(int(source), Path(folder) / "unused.png", size, "dark", partial(save, path=Path(file)))
        case _:
            replay(Path(source), Path(file), size, look[1])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
