"""Takes the picture of twelve workers of which three leak, and asks why: ``python screenshots/tree.py [FOLDER]``.

The picture is `tree.png` in the folder, by default beside this file. Then `gcspy why PID --tree` says which workers grow and
what keeps their memory; it is an error if these are others than the three that leak.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
WORKERS, LEAKING, ROUND_BYTES = 12, 3, 65_536
WATCHED_SECS, ASKED_SECS = 20.0, 15
SIZE = (1600, 1000)


def show(pid: int, picture: Path) -> None:
    """Watch the tree for a while, and take the picture."""
    from gcspy.hosts.process_host import ServingOptions
    from gcspy.hosts.sidecar import start_sidecar
    from gcspy_client.app import take_screenshot

    with tempfile.TemporaryDirectory(prefix="gcspy-") as folder:
        options = ServingOptions(
            pid=pid, tree=True, listen=(f"unix:{folder}/session.sock",), clock_hz=2.0
        )
        with start_sidecar(options) as sidecar:
            take_screenshot(
                sidecar.addresses[0],
                picture,
                size=SIZE,
                timeout_secs=120.0,
                settle_secs=WATCHED_SECS,
            )


def main() -> int:
    """Start the workers, take the picture, ask."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    picture = Path(sys.argv[1] if len(sys.argv) > 1 else HERE) / "tree.png"
    program = [str(ROOT / "tests/prefork.py"), str(WORKERS), str(LEAKING), str(ROUND_BYTES)]
    with subprocess.Popen(
        [sys.executable, *program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            leaking = set(json.loads(process.stdout.readline())["leaking"])
            show(process.pid, picture)
            asked = [sys.executable, "-m", "gcspy", "why", str(process.pid), "--tree"]
            asked += ["--over", str(ASKED_SECS)]
            answer = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
        finally:
            process.stdin.close()
    print(answer)
    named = {pid for pid in leaking if str(pid) in answer.partition("\n\n")[2]}
    print(f"{picture}; of {LEAKING} workers that leak the answer names {len(named)}")
    return 0 if named == leaking else 1


if __name__ == "__main__":
    sys.exit(main())
