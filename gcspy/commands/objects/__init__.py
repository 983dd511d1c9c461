"""`gcspy objects`: what a trace of every allocation and every move tells of a program's objects.

A new subcommand is a module here with a `command`, and its name in `_SUBCOMMANDS`.
"""

from __future__ import annotations

import click

from gcspy.lazy import LazyGroup

__all__ = ["command"]

_SUBCOMMANDS = (
    "types",
    "sites",
    "collections",
    "lifetimes",
    "survival",
    "find",
    "life",
    "check",
)


@click.group(cls=LazyGroup, package=__name__, modules=_SUBCOMMANDS)
def command() -> None:
    """Ask an object trace about its objects.

    TRACE is a folder with the files of an AntTracks trace, its trace file, or a .tar.xz of them.

    \b
    gcspy objects types TRACE         of which types most objects are, and what became of them
    gcspy objects sites TRACE         where in the program they were allocated
    gcspy objects collections TRACE   what each collection let live, promoted and found dead
    gcspy objects lifetimes TRACE     at which age objects die
    gcspy objects survival TRACE      which share is still there at which age
    gcspy objects find TRACE          single objects, by type, site, size or address, at any time
    gcspy objects life TRACE          one object through its moves to its death
    """
