"""Options that several commands share, so that they read and mean the same everywhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from gcspy_protocol.address import TcpAddress, parse_address
from gcspy_protocol.errors import CommandError, ExpressionError

from gcspy.quantities import amount_of, budget_of, patience_of

__all__ = [
    "CONDITION",
    "class_options",
    "file_argument",
    "files_argument",
    "inject_option",
    "needs_token",
    "new_file_option",
    "read_token",
    "reconnect_option",
    "refuse_both",
    "rung_option",
    "sampling_options",
    "theme_option",
    "token_option",
    "trace_options",
    "until_option",
]

F = TypeVar("F", bound=Callable[..., Any])


class _Condition(click.ParamType[str]):
    """A condition over streams; what is wrong with it is shown with a mark under it."""

    name = "condition"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from gcspy_protocol.expression import parse_condition  # numpy comes with it

        try:
            return parse_condition(str(value)).text
        except ExpressionError as error:
            self.fail(f"{error}\n{error.pointed()}", param, ctx)


CONDITION = _Condition()
"""The type of an option that is a condition (`protocol/SPEC.md` 8.7)."""

until_option = click.option(
    "--until",
    type=CONDITION,
    metavar="CONDITION",
    help="Stop after the first event at which it holds: 'sum(\"pymalloc arenas\".Used) > 1GiB'.",
)


def sampling_options(function: F) -> F:
    """`--clock`, `--tiles`, `--level` and `--budget`: how often, how finely and how deeply a process is sampled, and at what cost."""
    clock = click.option(
        "--clock",
        "clock_hz",
        type=click.FloatRange(0.01, 1000),
        default=10.0,
        show_default=True,
        metavar="HZ",
        help="Events of the clock a second.",
    )
    tiles = click.option(
        "--tiles",
        type=click.IntRange(16, 1 << 24),
        default=65536,
        show_default=True,
        metavar="N",
        help="At most about so many tiles a space; a larger heap has larger tiles.",
    )
    level = click.option(
        "--level",
        type=click.IntRange(1, 4),
        default=2,
        show_default=True,
        metavar="N",
        help="How much is read at each event: 1 what takes constant time, 2 small structures, 3 objects, 4 references; the nearest that the driver has.",
    )
    budget = click.option(
        "--budget",
        type=budget_of,
        default="5%",
        show_default=True,
        metavar="SHARE",
        help="What watching may take of the program's time; beyond it, events are only counted, and large readings come more rarely. off: no limit.",
    )
    return clock(tiles(level(budget(function))))


def class_options(function: F) -> F:
    """`--name` and `--successor`: who sits there, and who has control when that one's connection is lost."""
    name = click.option(
        "--name",
        "person",
        default="",
        metavar="NAME",
        help="What others in this session call you; by default your login's name.",
    )
    successor = click.option(
        "--successor",
        default="",
        metavar="NAME",
        help="Who has control when this connection is lost, as soon as one of that name has joined.",
    )
    return name(successor(function))


def trace_options(function: F) -> F:
    """`--tile-size` and `--every`: how finely, and how often, the heap of an object trace is shown."""
    tile = click.option(
        "--tile-size",
        "tile_bytes",
        type=amount_of,
        metavar="SIZE",
        help="Of an object trace: bytes of a tile, 512 or 64kB; by default the heap has about 4,096 tiles.",
    )
    every = click.option(
        "--every",
        "clock_bytes",
        type=amount_of,
        metavar="SIZE",
        help="Of an object trace: an event each time the program has allocated so much; by default about 256 of them.",
    )
    return tile(every(function))


rung_option = click.option(
    "--rung",
    type=click.Choice(["passive", "stopped"]),
    default="passive",
    show_default=True,
    help="passive: read the program while it runs, and show what changed meanwhile as unknown; stopped: hold all of its threads while pools are copied.",
)

inject_option = click.option(
    "--inject",
    type=click.Choice(["auto", "agent", "remote-exec", "gdb"]),
    help="Bring a stub into it, for exact events. agent: a JVM loads a small library of ours; remote-exec: a Python 3.14 or later is asked to run "
    "a file of ours; auto: one of these, or nothing where it cannot be; gdb: stops a Python for a moment and has it run the file.",
)


def refuse_both(inject: str | None, rung: str) -> None:
    """Refuse `--inject` and `--rung stopped` together: with a stub the program stands still by itself.

    Raises:
        click.UsageError: Both were given.
    """
    if inject and rung != "passive":
        raise click.UsageError("--rung stopped is for a program without a stub: leave out --inject")


theme_option = click.option(
    "--theme",
    type=click.Choice(["dark", "light", "dark-contrast", "light-contrast"]),
    default=None,
    help="Colours; by default the system's.",
)

reconnect_option = click.option(
    "--reconnect",
    type=patience_of,
    is_flag=False,
    flag_value="30s",
    metavar="[SECONDS]",
    help="When the connection is lost, try for so long to make it again (30 s if not given).",
)

token_option = click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the token that TCP needs; else GCSPY_TOKEN, else you are asked.",
)
"""The token itself is never an option: command lines are seen by every user of a machine."""


def needs_token(source: str) -> bool:
    """Whether what the user named, an address or a PID, is joined over TCP, where a token is asked for."""
    return not source.isdecimal() and isinstance(parse_address(source), TcpAddress)


def read_token(token_file: Path | None, *, ask: bool) -> str | None:
    """The token from the file, else from GCSPY_TOKEN, else from a prompt.

    Args:
        token_file: What the user named.
        ask: Whether somebody may be asked, if this is a terminal.

    Raises:
        CommandError: The file is empty, or it can be read by others.
    """
    if token_file is not None:
        if os.name == "posix" and token_file.stat().st_mode & 0o077:
            raise CommandError(
                f"other users can read the token in {token_file}: chmod 600 {token_file}"
            )
        token = token_file.read_text(encoding="utf-8").strip()
        if not token:
            raise CommandError(f"there is no token in {token_file}")
        return token
    token = os.environ.get("GCSPY_TOKEN", "")
    if token:
        return token
    if ask and sys.stdin.isatty():
        answer: str = click.prompt("Token", hide_input=True, err=True)
        return answer
    return None


file_argument = click.argument(
    "file", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
"""One file of a recording."""

files_argument = click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, path_type=Path),
)
"""A recording: a file, the files of a split one, or the folder of a ring."""


def new_file_option(what: str) -> Callable[[F], F]:
    """`-o FILE` and `--force`: where a new file goes, and whether it may replace one."""

    def both(function: F) -> F:
        output = click.option(
            "-o",
            "--output",
            metavar="FILE",
            required=True,
            type=click.Path(dir_okay=False, path_type=Path),
            help=what,
        )
        force = click.option("--force", is_flag=True, help="Replace FILE if it is there.")
        return output(force(function))

    return both
