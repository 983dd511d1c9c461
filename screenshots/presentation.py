"""Takes pictures of a window that presents, as a projector and a large screen show it: ``python screenshots/presentation.py``."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from event_loop import let_live
from PySide6.QtCore import Qt

from gcspy.hosts.sidecar import start_sidecar
from gcspy.hosts.simulation_host import SimulatingOptions
from gcspy_client.app import take_screenshot
from gcspy_client.view.window import MainWindow

HERE = Path(__file__).parent
SIMULATION = {
    "collector": "generational",
    "program": "binarytrees",
    "heap_bytes": 512 << 10,
    "pace_millis": 100,
}
SETTLE_SECS = 2.5
PICTURES = (
    # size, theme
    ((1280, 720), "dark-contrast"),
    ((3840, 2160), "light-contrast"),
)


def present(window: MainWindow, size: tuple[int, int]) -> None:
    """Present, in a window of this size: the screen of the offscreen platform is a small one."""
    window.presentation.toggle()
    window.setWindowState(Qt.WindowState.WindowNoState)
    scale = window.devicePixelRatioF()
    window.resize(round(size[0] / scale), round(size[1] / scale))
    let_live(SETTLE_SECS)


def take(number: int) -> None:
    """Take one picture."""
    size, theme = PICTURES[number]
    with tempfile.TemporaryDirectory(prefix="gcspy-") as folder:
        options = SimulatingOptions(simulation=SIMULATION, listen=(f"unix:{folder}/session.sock",))
        with start_sidecar(options) as sidecar:
            take_screenshot(
                sidecar.addresses[0],
                HERE / f"presenting-{size[0]}x{size[1]}.png",
                size=size,
                theme=theme,
                settle_events=14,
                arrange=lambda window: present(window, size),
                control=True,
            )


def main(arguments: list[str]) -> int:
    """Take them, each in a process of its own: the scale of a screen is the process's."""
    if arguments:
        take(int(arguments[0]))
        return 0
    for number in range(len(PICTURES)):
        subprocess.run([sys.executable, __file__, str(number)], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
