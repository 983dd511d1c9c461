"""Output for people, without control sequences for a terminal.

Names in a session, a trace or a command line come from strangers: a terminal would obey an escape
sequence in one.
"""

from __future__ import annotations

import json
import re

import click
from gcspy_protocol.text.visible import Lines, visible

__all__ = ["say", "say_aside", "say_json"]

_KEPT = re.compile(r"[^\t]+")


def say(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a line, or several that are given as `Lines`; hidden characters become visible.

    A line break in a name cannot forge a line: in a text that is not `Lines` it is shown as an
    escape.

    Args:
        text: A line of columns between tabs, or `Lines`.
        err: Print to standard error.
        nl: End with a new line.
    """
    if not isinstance(text, Lines):
        text = _KEPT.sub(lambda part: visible(part[0]), text)
    click.echo(text, err=err, nl=nl)


def say_json(data: object) -> None:
    """Print JSON for people to read, too: of several lines."""
    say(Lines.of(json.dumps(data, indent=2)))


def say_aside(text: str) -> None:
    """Print a message that is not part of the result: one line, whatever names are in it."""
    say(f"gcspy: {text}", err=True)
