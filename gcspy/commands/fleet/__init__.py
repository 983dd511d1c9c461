"""`gcspy fleet`: answers from a table of features of many recordings.

A new subcommand is a module here with a `command`, and its name in `_SUBCOMMANDS`.
"""

from __future__ import annotations

import click

from gcspy.lazy import LazyGroup

__all__ = ["command"]

_SUBCOMMANDS = ("report",)


@click.group(cls=LazyGroup, package=__name__, modules=_SUBCOMMANDS)
def command() -> None:
    """Query a table of features of many recordings.

    `gcspy features` writes such a table.
    """
