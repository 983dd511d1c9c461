"""`gcspy`, whose tiles take ten minutes to draw in one step of Qt: `python -m tests.cli.drawing_program ARGUMENT …`.

Says "drawing" on standard output when it does.
"""

from __future__ import annotations

import sys
from unittest.mock import patch

from PySide6.QtCore import QThread
from PySide6.QtGui import QPaintEvent

from gcspy.cli import main
from gcspy_client.view.spaces.canvas import TileCanvas


def paint(_self: TileCanvas, _event: QPaintEvent) -> None:
    """Say so, and come back after ten minutes."""
    print("drawing", flush=True)
    QThread.sleep(600)


if __name__ == "__main__":
    with patch.object(TileCanvas, "paintEvent", paint):
        sys.exit(main())
