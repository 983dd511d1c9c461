"""Makes the pictures of the documents anew, from real sessions: `make screenshots`.

A picture that the documents show and this does not make is an old one.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
WORKLOAD = HERE.parent / "gcspy" / "demo" / "workload.py"

WATCH_SECS = 3.5
"""So long the window watches before the picture, for its small history graph."""

MANY_RECORDS = 60_000

PICTURES = (
    # file, size, theme
    ("cpython-live-dark.png", "1600x1000", "dark"),
    ("cpython-live-light.png", "1600x1000", "light"),
    ("cpython-live-1280x720.png", "1280x720", "dark"),
    ("cpython-live-3840x2160.png", "3840x2160", "dark"),
)


def wait_for_holes(workload: subprocess.Popen[str]) -> None:
    """Wait until a burst of records is nearly over: when they go, the arenas that they filled are full of holes."""
    assert workload.stdout is not None
    before = 0
    for line in workload.stdout:
        found = re.search(r"records=(\d+)", line)
        records = int(found[1]) if found else 0
        if records < before and before >= MANY_RECORDS:
            return
        before = records
    raise RuntimeError(f"the workload ended early, exit code {workload.wait()}")


def main() -> int:
    """Run the demonstration's workload and take its pictures."""
    arguments = [sys.executable, str(WORKLOAD), "--seed", "1"]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as workload:
        try:
            for name, size, theme in PICTURES:
                wait_for_holes(workload)
                picture = ["-o", str(HERE / name), "--size", size, "--theme", theme, "--after", str(WATCH_SECS)]
                subprocess.run([sys.executable, "-m", "gcspy", "screenshot", str(workload.pid), *picture], check=True)
        finally:
            workload.terminate()
            workload.communicate()
    return 0


if __name__ == "__main__":
    sys.exit(main())
