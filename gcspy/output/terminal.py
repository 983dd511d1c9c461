"""What is printed for people: lines in which no terminal finds anything to obey.

Names in a session, a trace or a command line are strangers': an escape sequence in one would be
obeyed by the terminal that it is printed on.
"""

from __future__ import annotations

import re

import click
from gcspy_protocol.text.visible import visible

__all__ = ["say", "say_aside"]

_KEPT = re.compile(r"[^\n\t]+")


def say(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text of lines; what is hidden in them becomes visible.

    Args:
        text: Lines, and columns between tabs.
        err: Print to standard error.
        nl: End with a new line.
    """
    click.echo(_KEPT.sub(lambda part: visible(part[0]), text), err=err, nl=nl)


def say_aside(text: str) -> None:
    """Say something that is no result, where it is in nobody's way."""
    say(f"gcspy: {text}", err=True)
