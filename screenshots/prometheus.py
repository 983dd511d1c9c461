"""Takes a picture of a real Prometheus that scrapes `gcspy export-metrics`: ``python screenshots/prometheus.py``.

Fifteen programs, three of which keep what they make. Needs the programs prometheus and chromium.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
from contextlib import ExitStack
from pathlib import Path

HERE = Path(__file__).parent
PROGRAMS, GROWING = 15, 3
WATCHED_SECS = 75.0
PAINT_MILLIS = 8000
QUERIES = ("process_memory_usage_bytes / 2^20", "gcspy_memory_growing == 1")
GRAPH, CONSOLE = "0", "1"
PROGRAM = """
import sys, time
grows = sys.argv[1] == "gcspy-grows"
kept = [[n] for n in range(20_000)]
while True:
    made = [[n] for n in range(4_000)]
    if grows:
        kept.append(made)
    time.sleep(0.1)
"""


def free_port() -> int:
    """Return a port of this machine that nobody has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def main() -> int:
    """Start everything, wait, and take the picture."""
    browser = shutil.which("chromium")
    if shutil.which("prometheus") is None or browser is None:
        print("no picture of Prometheus: apt-get install prometheus chromium", file=sys.stderr)
        return 0
    exporter, port = free_port(), free_port()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gcspy-")))

        def start(*command: str) -> None:
            process = stack.enter_context(
                subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)

        for number in range(PROGRAMS):
            kind = "gcspy-grows" if number < GROWING else "gcspy-rests"
            start(sys.executable, "-c", PROGRAM, kind)
        (folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 2s}\n"
            f"scrape_configs: [{{job_name: gcspy, static_configs: [{{targets: ['127.0.0.1:{exporter}']}}]}}]\n"
        )
        start(
            sys.executable, "-m", "gcspy", "export-metrics", "--match", "gcspy-(grows|rests)",
            "--listen", f"127.0.0.1:{exporter}", "--every", "2",
        )  # fmt: skip
        start(
            "prometheus",
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        )
        time.sleep(WATCHED_SECS)
        panels = {}
        for number, (query, tab) in enumerate(zip(QUERIES, (GRAPH, CONSOLE), strict=True)):
            panels |= {
                f"g{number}.expr": query,
                f"g{number}.tab": tab,
                f"g{number}.range_input": "1m",
            }
        page = f"http://127.0.0.1:{port}/graph?{urllib.parse.urlencode(panels)}"
        subprocess.run(
            [
                browser, "--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=1280,1440",
                f"--user-data-dir={folder / 'browser'}", f"--virtual-time-budget={PAINT_MILLIS}",
                f"--screenshot={HERE / 'prometheus.png'}", page,
            ],
            check=True, capture_output=True, timeout=120,
        )  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
