"""`gcspy screenshot`: the window as a picture, without a display."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import click
from gcspy_protocol.errors import CommandError

from gcspy.connection.session import joinable
from gcspy.gui import has_display, load_window, require_gui
from gcspy.options import (
    DriverCommand,
    driver_options,
    needs_token,
    read_token,
    sampling_options,
    theme_option,
    token_option,
)
from gcspy.output.terminal import say
from gcspy.recorder.named_recordings import names_recording
from gcspy_client.interruption import interruption_held_back

__all__ = ["command", "parse_size"]

_MOST_PIXELS = 16384


def parse_size(text: str) -> tuple[int, int]:
    """``1280x720`` as width and height in pixels.

    Raises:
        CommandError: It is not a size, or too small or large for a window.
    """
    match = re.fullmatch(r"(\d{2,5})[xX×](\d{2,5})", text)
    size = (int(match[1]), int(match[2])) if match else (0, 0)
    if not all(64 <= side <= _MOST_PIXELS for side in size):
        raise CommandError(
            f"a size is WIDTHxHEIGHT from 64 to {_MOST_PIXELS}, such as 1280x720; got {text!r}"
        )
    return size


@click.command(cls=DriverCommand)
@click.argument("source", metavar="ADDRESS|PID|FILE")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="PNG file to write.",
)
@click.option(
    "--size",
    default="1600x1000",
    show_default=True,
    metavar="WxH",
    help="Window size in pixels.",
)
@click.option(
    "--after",
    "settle_secs",
    type=click.FloatRange(0),
    default=None,
    metavar="SECONDS",
    help="Seconds to wait before the picture is taken. Default: 2; 0 for an event of a recording.",
)
@click.option(
    "--event",
    type=click.IntRange(1),
    default=None,
    metavar="N",
    help="Recordings: event to show. Default: the last.",
)
@click.option(
    "--view",
    default=None,
    metavar="NAME",
    help="View of the active space: tiles, rows, hilbert, histogram, distribution, bivariate, multiples, table, or the name of an installed renderer.",
)
@theme_option
@driver_options
@sampling_options
@token_option
def command(
    source: str,
    output: Path,
    size: str,
    settle_secs: float | None,
    event: int | None,
    view: str | None,
    theme: str | None,
    drivers: tuple[str, ...],
    share_events: bool,
    driver_values: tuple[str, ...],
    clock_hz: float,
    tiles: int,
    level: int,
    budget: int,
    token_file: Path | None,
) -> None:
    """Write a picture of the window to a PNG file."""
    width_height = parse_size(size)
    require_gui()
    if not has_display():
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
    recorded = names_recording(source)
    token = None if recorded else read_token(token_file, ask=needs_token(source))
    if settle_secs is None:
        settle_secs = 0.0 if recorded or event is not None else 2.0
    with joinable(
        source,
        clock_hz=clock_hz,
        tiles=tiles,
        level=level,
        budget=budget,
        drivers=drivers,
        share_events=share_events,
        values=driver_values,
    ) as place:
        with interruption_held_back():
            # While the sidecar starts: both take about half a second.
            load_window()
            from gcspy_client.app import take_screenshot

        # Python handles a signal between two of its own steps, and Qt may draw for long in one: the
        # system ends us at once. The sidecar notices the end of its standard input, and ends.
        for number in (signal.SIGTERM, signal.SIGINT):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        take_screenshot(
            place.address,
            output,
            size=width_height,
            theme=theme or "dark",
            token=token,
            settle_secs=settle_secs,
            event=event,
            view=view,
        )
    say(f"gcspy: wrote {output}")
