"""`gcspy attach PID` as a process that prints the time at which its first tiles were painted.

Run as ``python -m benchmarks.window.first_picture PID``: prints the CLOCK_MONOTONIC nanoseconds and closes.
"""

from __future__ import annotations

import sys

from gcspy.gui import load_window
from gcspy.hosts.process_host import ServingOptions
from gcspy.hosts.sidecar import start_sidecar

__all__ = ["main"]


def main() -> None:
    """Attach, and close the window after the first paint of tiles."""
    with start_sidecar(ServingOptions(pid=int(sys.argv[1]))) as sidecar:
        # As in the command itself: Qt is loaded while the sidecar starts.
        load_window()
        from gcspy_client.app import run_window
        from gcspy_client.view.window import MainWindow

        def ready(window: MainWindow) -> None:
            def painted(_space: int, _sequence: int, nanos: int) -> None:
                print(nanos, flush=True)
                window.set_probe(None)
                window.close()

            window.set_probe(painted)

        run_window(sidecar.addresses[0], on_ready=ready)


if __name__ == "__main__":
    main()
