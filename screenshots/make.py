"""Makes the pictures of the documents anew, from real sessions: `make screenshots`.

A picture that the documents show and this does not make is an old one.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
WORKLOAD = HERE.parent / "gcspy" / "demo" / "workload.py"

BURST_SECS = 12
"""The workload has a burst of imports so often; after each, arenas are freed and holes remain."""

BEST_SECS = 3
"""So long after the beginning of a cycle the holes are seen best."""

WATCH_SECS = 6
START_SECS = 1.6
"""From starting the command to its first event."""

PICTURES = (
    # file, size, theme
    ("cpython-live-dark.png", "1600x1000", "dark"),
    ("cpython-live-light.png", "1600x1000", "light"),
    ("cpython-live-1280x720.png", "1280x720", "dark"),
    ("cpython-live-3840x2160.png", "3840x2160", "dark"),
)


def main() -> int:
    """Run the demonstration's workload and take its pictures."""
    with subprocess.Popen(
        [sys.executable, str(WORKLOAD), "--seed", "1"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as workload:
        try:
            began = time.monotonic()
            for name, size, theme in PICTURES:
                picture_at = time.monotonic() - began + START_SECS + WATCH_SECS
                time.sleep((BEST_SECS - picture_at) % BURST_SECS)
                arguments = ["screenshot", str(workload.pid), "-o", str(HERE / name), "--size", size, "--theme", theme]
                subprocess.run([sys.executable, "-m", "gcspy", *arguments, "--after", str(WATCH_SECS)], check=True)
        finally:
            workload.terminate()
    return 0


if __name__ == "__main__":
    sys.exit(main())
