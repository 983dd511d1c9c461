"""Options that several questions about objects have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

__all__ = [
    "bytes_option",
    "clock_option",
    "only_options",
    "output_options",
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
    help="Count bytes, not objects: what is shown and drawn, and by what it is ordered.",
)

clock_option = click.option(
    "--in",
    "clock",
    type=click.Choice(["bytes", "gcs"]),
    default="bytes",
    show_default=True,
    help="Count age in bytes that the program allocated meanwhile, or in collections that took place.",
)


def top_option(rows: int) -> Callable[[F], F]:
    """`--top N`: how many rows are shown."""
    return click.option(
        "--top",
        type=click.IntRange(0),
        default=rows,
        show_default=True,
        metavar="N",
        help="Rows to show, the others together; 0: all.",
    )


def only_options(function: F) -> F:
    """`--type` and `--site`: which objects are looked at."""
    for name, what in (("--site", "Allocated at this site"), ("--type", "Of this type")):
        function = click.option(
            name,
            default="",
            metavar="NAME",
            help=f"{what} only: its name, a part of it, or a pattern with *.",
        )(function)
    return function


def output_options(function: F) -> F:
    """`--json`, `--parquet`, `--plot` and `--force`: in which form the answer comes."""
    options = (
        click.option("--json", "as_json", is_flag=True, help="One JSON object."),
        click.option(
            "--parquet",
            metavar="FILE",
            type=click.Path(dir_okay=False, path_type=Path),
            help="Write all rows to FILE as Parquet too.",
        ),
        click.option(
            "--plot",
            metavar="FILE.png",
            type=click.Path(dir_okay=False, path_type=Path),
            help="Draw a picture of it too; needs the extra gui.",
        ),
        click.option(
            "--theme",
            type=click.Choice(["dark", "light"]),
            help="Colours of the picture; default: light.",
        ),
        click.option("--force", is_flag=True, help="Replace files that are there."),
    )
    for option in reversed(options):
        function = option(function)
    return function
