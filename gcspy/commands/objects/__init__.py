"""`gcspy objects`: analyses of a trace of every allocation and every move.

A new subcommand is a module here with a `command`, and its name in `_SUBCOMMANDS`.
"""

from __future__ import annotations

import click

from gcspy.lazy import LazyGroup

__all__ = ["command"]

_SUBCOMMANDS = (
    "gather",
    "types",
    "sites",
    "live",
    "churn",
    "flame",
    "collections",
    "lifetimes",
    "survival",
    "accessed",
    "idle",
    "find",
    "life",
    "check",
)


@click.group(cls=LazyGroup, package=__name__, modules=_SUBCOMMANDS)
def command() -> None:
    """Query the objects of an object trace.

    TRACE is a .gctrace file of `gcspy trace`, or an AntTracks trace: its folder, its trace file, or a
    .tar.xz of them.
    """
