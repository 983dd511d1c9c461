"""Options that several commands about objects share."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from gcspy.options import json_option

__all__ = [
    "at_option",
    "bytes_option",
    "clock_option",
    "only_options",
    "output_options",
    "search_options",
    "search_text",
    "table_options",
    "top_option",
    "trace_argument",
]

F = TypeVar("F", bound=Callable[..., Any])

trace_argument = click.argument(
    "trace", metavar="TRACE", type=click.Path(exists=True, path_type=Path)
)

bytes_option = click.option(
    "--bytes",
    "in_bytes",
    is_flag=True,
    help="Show, plot and sort by bytes instead of objects.",
)

clock_option = click.option(
    "--in",
    "clock",
    type=click.Choice(["bytes", "gcs"]),
    default="bytes",
    show_default=True,
    help="Measure age in bytes allocated by the program, or in collections.",
)


def top_option(rows: int) -> Callable[[F], F]:
    """`--top N`: the number of rows."""
    return click.option(
        "--top",
        type=click.IntRange(0),
        default=rows,
        show_default=True,
        metavar="N",
        help="Number of rows; the others are summed up in one. 0: all rows.",
    )


def only_options(function: F) -> F:
    """`--type` and `--site`: which objects are selected."""
    for name, what in (("--site", "allocation site"), ("--type", "type")):
        function = click.option(
            name,
            default="",
            metavar="NAME",
            help=f"Count only this {what}: its name, a part of it, or a pattern with *.",
        )(function)
    return function


def at_option(default: str = "end") -> Callable[[F], F]:
    """`--at WHEN`: the moment."""
    return click.option(
        "--at",
        "at",
        default=default,
        show_default=True,
        metavar="WHEN",
        help="Time in the trace: start, end, peak (most bytes live), gc:3 (its start), gc:3:end, 12.5s, or the number of an event.",
    )


_SEARCHES = {
    "type": ("NAME", "Only objects whose type contains NAME. =NAME: the whole name."),
    "site": (
        "NAME",
        "Only objects with a method on their allocation stack whose name contains NAME. =NAME: the whole name.",
    ),
    "thread": (
        "NAME",
        "Only objects allocated by a thread whose name contains NAME. =NAME: the whole name.",
    ),
    "size": ("BYTES", "Only objects of this size: 64, or a range such as 24..64, 1kB.. or ..100."),
    "address": (
        "ADDRESS",
        "Only the object that contains this byte, such as 0x7f00, or the objects in a range, such as those of a tile.",
    ),
}


def search_options(function: F) -> F:
    """`--type`, `--site`, `--thread`, `--size` and `--address`: which objects of a moment."""
    for name, (metavar, text) in reversed(_SEARCHES.items()):
        function = click.option(f"--{name}", name, metavar=metavar, help=text)(function)
    return function


def search_text(options: Mapping[str, str | None]) -> str:
    """Return the search that those options mean, as `gcspy_objects.object_search` reads it."""
    return " ".join(
        shlex.quote(f"{key}{'' if value.startswith('=') else ':'}{value}")
        for key, value in options.items()
        if value and key in _SEARCHES
    )


def output_options(function: F) -> F:
    """`--json`, `--parquet`, `--plot` and `--force`: the form of the answer."""
    options = (
        json_option,
        click.option(
            "--parquet",
            metavar="FILE",
            type=click.Path(dir_okay=False, path_type=Path),
            help="Also write all rows to FILE as Parquet.",
        ),
        click.option(
            "--plot",
            metavar="FILE.png",
            type=click.Path(dir_okay=False, path_type=Path),
            help='Also write a plot. Needs the extra "gui".',
        ),
        click.option(
            "--theme",
            type=click.Choice(["dark", "light"]),
            help="Colour theme of the plot. Default: light.",
        ),
        click.option("--force", is_flag=True, help="Overwrite existing files."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def table_options(kinds: str) -> Callable[[F], F]:
    """The options of a table of kinds of objects: which collections, in which unit, how many rows, and the form of the answer.

    Args:
        kinds: What a row stands for, in the plural.
    """
    options = (
        click.option(
            "--gc",
            "number",
            type=click.IntRange(1),
            metavar="N",
            help="Count only collection N and the allocations since the collection before it.",
        ),
        click.option(
            "--each-gc",
            is_flag=True,
            help=f"Show one row per collection for each of the --top {kinds}.",
        ),
        bytes_option,
        top_option(20),
        output_options,
    )

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate
