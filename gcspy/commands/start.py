"""`gcspy start`: a window with the start page; also `gcspy` alone, if there is a display."""

from __future__ import annotations

import click

from gcspy.gui import load_window, require_window
from gcspy.options import theme_option
from gcspy_client.interruption import interruption_held_back

__all__ = ["command"]


@click.command()
@theme_option
def command(theme: str | None) -> int:
    """Open the start page.

    `gcspy` without a command does the same if there is a display.
    """
    require_window()
    from gcspy.hosts.launcher import front_door

    with interruption_held_back():
        load_window()
        from gcspy_client.app import run_window

    return run_window(None, theme=theme, front=front_door())
