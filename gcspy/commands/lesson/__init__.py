"""`gcspy lesson`: for authors of lessons and for teachers.

A new subcommand is a module here with a `command`, and its name in `_SUBCOMMANDS`.
"""

from __future__ import annotations

import click

from gcspy.lazy import LazyGroup

__all__ = ["command"]

_SUBCOMMANDS = ("template", "verify", "check", "mark")


@click.group(cls=LazyGroup, package=__name__, modules=_SUBCOMMANDS)
def command() -> None:
    """Write, verify and mark code of students, and check lessons.

    LESSON is a name from `gcspy demo --list`, or a file of your own. `gcspy demo LESSON` shows one.
    """
