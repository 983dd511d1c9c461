"""`gcspy demo`: a real program that ships with GCspy, watched in a window, or in a picture where there is no display."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from gcspy.demo.running import running_workload
from gcspy.gui import has_display, require_gui
from gcspy.serving import ServingOptions
from gcspy.sidecar import start_sidecar
from gcspy.starting import front_door

__all__ = ["command"]

@click.command()
@click.option(
    "--python",
    default=sys.executable,
    show_default=False,
    help="Interpreter for the program that is watched (default: this one).",
)
@click.option(
    "--seconds",
    default=8.0,
    show_default=True,
    help="Without a display: how long to watch before the picture is taken.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("gcspy-demo.png"),
    show_default=True,
    help="Without a display: where the picture goes.",
)
@click.option("--seed", default=1, show_default=True, help="Seed of the program's work.")
@click.option(
    "--theme",
    type=click.Choice(["dark", "light"]),
    default=None,
    help="Colours of the window; by default the system's.",
)
@click.option("--clock", "clock_hz", default=10.0, show_default=True, help="Events of the clock a second.")
def command(python: str, seconds: float, output: Path, seed: int, theme: str | None, clock_hz: float) -> None:
    """Watch a small web service whose cache leaks a little.

    Starts the service, attaches to it from outside, and opens the window. Without a display
    it does the same off screen and writes a picture.
    """
    require_gui()
    with running_workload(python, seed=seed) as pid:
        click.echo(f"gcspy: the service runs as process {pid}")
        with start_sidecar(ServingOptions(pid=pid, clock_hz=clock_hz, linger=True)) as sidecar:
            from gcspy_client.app import run_window, take_screenshot  # while the sidecar starts

            address = sidecar.addresses[0]
            click.echo(f"gcspy: attached, passively; serving {address}")
            if has_display():
                run_window(address, theme=theme, front=front_door())
                return
            os.environ["QT_QPA_PLATFORM"] = "offscreen"
            click.echo(f"gcspy: no display here, so a picture will be taken after {seconds:g} s")
            take_screenshot(address, output, theme=theme or "dark", settle_secs=seconds)
            click.echo(f"gcspy: wrote {output.resolve()}")
