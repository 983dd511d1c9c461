"""A window of its own process, with the settings that `GCSPY_SETTINGS` names: prints its scale and its theme, and closes."""

from __future__ import annotations

import os
import sys

from PySide6.QtCore import QTimer

from gcspy_client.app import run_window
from gcspy_client.view.window import MainWindow


def ready(window: MainWindow) -> None:
    inherited = os.environ.get("QT_SCALE_FACTOR", "none")
    sys.stdout.write(
        f"{window.devicePixelRatioF()} {window.appearance.theme.value} {window.preferences.is_scaled_wholly} {inherited}\n"
    )
    QTimer.singleShot(0, window.close)


if __name__ == "__main__":
    sys.exit(run_window(None, on_ready=ready))
