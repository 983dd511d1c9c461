"""Takes pictures of allocation sites with counts, of a program that runs already: ``python screenshots/counted_sites.py``."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from event_loop import let_live

from gcspy.hosts.process_host import ServingOptions
from gcspy.hosts.sidecar import start_sidecar
from gcspy_client.app import take_screenshot
from gcspy_client.view.window import MainWindow

HERE = Path(__file__).parent
MOST_SECS, COUNTED_SECS = 60.0, 6.0
BY_COUNT = 2
PROGRAM = """
import time

class Order:
    def __init__(self, number, lines):
        self.number = number
        self.lines = [(number, line) for line in range(lines)]
        self.notes = {}

def total(order):
    return sum(line for _, line in order.lines)

def report(orders):
    rows = []
    for order in orders:
        if order.number % 5 == 0:
            rows.append({"order": order.number, "total": total(order)})
        else:
            rows.append([order.number, total(order)])
    return rows

def main():
    while True:
        orders = [Order(number, number % 7) for number in range(200)]
        report(orders)
        time.sleep(0.02)

main()
"""


def see_sites(window: MainWindow) -> None:
    """The space with the busiest site selected, its source, and what grew."""
    session = window.desk.session
    let_live(COUNTED_SECS)
    space = next(
        one for one in session.interpreter.spaces.values() if one.space.name == "Allocation sites"
    )
    counts = next(iter(space.streams.values())).values
    session.activate(space.space.id)
    session.select(space.space.id, int(counts.argmax()))
    window.desk.docks.show("growth")
    window.types.growth.view.setCurrentIndex(BY_COUNT)
    let_live(2.0)
    window.desk.docks.show("contents")
    let_live(2.0)


def see_growth(window: MainWindow) -> None:
    """The sites that grew, by count."""
    see_sites(window)
    window.desk.docks.show("growth")
    let_live(2.0)


def main() -> int:
    """Start the program, give it counters, and take the pictures."""
    with tempfile.TemporaryDirectory(prefix="gcspy-") as folder:
        script = Path(folder) / "orders.py"
        script.write_text(PROGRAM)
        with subprocess.Popen([sys.executable, str(script)]) as process:
            try:
                options = ServingOptions(
                    pid=process.pid,
                    listen=(f"unix:{folder}/session.sock",),
                    values=("inject=library", "count=wide"),
                )
                for name, theme, arrange in (
                    ("counted-sites-light.png", "light", see_sites),
                    ("counted-growth-dark.png", "dark", see_growth),
                ):
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
            finally:
                process.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
