"""Takes the pictures of a leaking program, in the window and in a terminal: ``python screenshots/leak.py``."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from event_loop import let_live, wait_until
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor, QFontDatabase, QFontMetricsF, QImage, QPainter
from PySide6.QtTest import QTest

from benchmarks.leaks.leak_programs import programs, running
from gcspy.hosts.process_host import ServingOptions
from gcspy.hosts.sidecar import start_sidecar
from gcspy_client.app import application, take_screenshot
from gcspy_client.view.window import MainWindow

HERE = Path(__file__).parent
PROGRAM = "listener"
GROWTH_SECS, MOST_SECS = 25.0, 120.0
COLUMNS = 108
SITES_SECS = 60.0
TERMINAL = "why-terminal.png"
GROUND, TEXT, PROMPT, MARGIN = "#16181d", "#d8dce4", "#8fbcbb", 18


def see_leak(window: MainWindow) -> None:
    """The layout for leaks, once the growth line has a sentence, with the holders of what grew most."""
    QTest.keyClick(window, Qt.Key.Key_F3)
    wait_until(lambda: bool(window.growth_line.label.text()), "the sentence", secs=MOST_SECS)
    let_live(GROWTH_SECS)
    window.holders.ask_type("Session")
    wait_until(lambda: not window.holders.asking.waits, "the holders", secs=MOST_SECS)
    tree = window.holders.panel.tree
    node = tree.first_row(lambda one: one.address is not None)
    if node is not None:
        tree.choose(node)


def see_sites(window: MainWindow) -> None:
    """The lines that allocate what grows, from two samples."""
    QTest.keyClick(window, Qt.Key.Key_F3)
    let_live(5.0)
    window.growth_sites.show_sites()
    left = SITES_SECS
    while window.growth_sites.asking.waits and left > 0:
        let_live(0.5)
        left -= 0.5
    let_live(1.0)


PICTURES = (
    ("leak-dark.png", "dark", see_leak),
    ("leak-light.png", "light", see_leak),
    ("sites-dark.png", "dark", see_sites),
)


def take_window(pid: int, name: str, theme: str, arrange: Callable[[MainWindow], None]) -> None:
    """Monitor the process with its types and take a picture of the window."""
    with tempfile.TemporaryDirectory(prefix="gcspy-") as folder:
        options = ServingOptions(pid=pid, listen=(f"unix:{folder}/session.sock",), level=3)
        with start_sidecar(options) as sidecar:
            take_screenshot(
                sidecar.addresses[0],
                HERE / name,
                theme=theme,
                timeout_secs=MOST_SECS,
                settle_events=3,
                arrange=arrange,
                control=True,
            )


def take_terminal(pid: int) -> None:
    """Draw the output of `gcspy why`, as a terminal shows it."""
    done = subprocess.run(
        [sys.executable, "-m", "gcspy", "why", str(pid)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": str(COLUMNS)},
    )
    lines = [f"$ gcspy why {pid}", *done.stdout.rstrip().splitlines()]
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    font.setPixelSize(15)
    metrics = QFontMetricsF(font)
    wide = max(metrics.horizontalAdvance(line) for line in lines)
    image = QImage(
        round(wide) + 2 * MARGIN,
        round(len(lines) * metrics.lineSpacing()) + 2 * MARGIN,
        QImage.Format.Format_RGB32,
    )
    image.fill(QColor(GROUND))
    painter = QPainter(image)
    painter.setFont(font)
    for number, line in enumerate(lines):
        painter.setPen(QColor(TEXT if number else PROMPT))
        top = MARGIN + number * metrics.lineSpacing()
        painter.drawText(QPointF(MARGIN, top + metrics.ascent()), line)
    painter.end()
    if not image.save(str(HERE / TERMINAL)):
        raise OSError(f"{TERMINAL} cannot be written")


def main(arguments: list[str]) -> int:
    """Take them, each of a fresh program and in a process of its own."""
    if not arguments:
        for number in range(len(PICTURES) + 1):
            subprocess.run([sys.executable, __file__, str(number)], check=True)
        return 0
    (program,) = [one for one in programs() if one.name == PROGRAM]
    number = int(arguments[0])
    if number < len(PICTURES) and PICTURES[number][2] is see_sites:
        os.environ["PYTHONTRACEMALLOC"] = "10"
    with running(program, sys.executable) as process:
        os.environ.pop("PYTHONTRACEMALLOC", None)  # it is meant for the program alone
        if number < len(PICTURES):
            take_window(process.pid, *PICTURES[number])
        else:
            application()
            take_terminal(process.pid)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
