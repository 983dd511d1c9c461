"""Options that several commands share, so that they have the same text and meaning everywhere."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from gcspy_protocol.address import TcpAddress, parse_address
from gcspy_protocol.errors import CommandError, ExpressionError

from gcspy.connection.original_server import names_original_server
from gcspy.output.quantities import amount_of, budget_of, patience_of

__all__ = [
    "CONDITION",
    "DriverCommand",
    "RecordingPath",
    "allocation_samples_option",
    "class_options",
    "driver_option",
    "driver_options",
    "count_option",
    "driver_values_of",
    "engine_option",
    "file_argument",
    "files_argument",
    "heap_source_argument",
    "hold_option",
    "inject_option",
    "is_address",
    "jobs_option",
    "json_option",
    "language_option",
    "listen_option",
    "loads_stub",
    "mode_option",
    "moment_option",
    "needs_token",
    "new_file_option",
    "no_window_option",
    "range_options",
    "read_token",
    "reconnect_option",
    "sampling_options",
    "stored_files_argument",
    "theme_option",
    "token_option",
    "top_option",
    "trace_options",
    "tree_option",
    "tree_refusal",
    "until_option",
    "web_option",
]

F = TypeVar("F", bound=Callable[..., Any])


class _Condition(click.ParamType[str]):
    """A condition over streams; an error in it is shown with a mark under it."""

    name = "condition"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from gcspy_protocol.expression import parse_condition  # it imports numpy

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
    help="Stop after the first event at which this condition holds: 'sum(\"pymalloc arenas\".Used) > 64MiB'.",
)

jobs_option = click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    metavar="N",
    help="Number of processes. The result is the same for any number.",
)

engine_option = click.option(
    "--engine",
    default="local",
    show_default=True,
    metavar="local|dask://HOST:PORT",
    help="Where the work is done: in processes of this machine, or by the workers of a Dask scheduler, which need gcspy and the same files. The result is the same.",
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")

hold_option = click.option(
    "--hold", is_flag=True, help="Stop the process while its memory is copied."
)

allocation_samples_option = click.option(
    "--allocation-samples",
    "sample_bytes",
    type=click.IntRange(1024, 1 << 30),
    is_flag=False,
    flag_value=1 << 19,
    default=None,
    metavar="[BYTES]",
    help="JVMs, JDK 11 or later: name the source lines that allocated objects. Between two samples of memory, each thread's allocations are sampled, one per BYTES. Without a value: 524288.",
)


def is_address(text: str) -> bool:
    """Return whether a text has the form of a session's address, such as ``HOST:PORT``; a path alone has not."""
    from gcspy_protocol.address import parse_address
    from gcspy_protocol.errors import CommandError

    try:
        parse_address(text)
    except CommandError:
        return False
    return not text.startswith("/")


def _source(_context: click.Context, _argument: click.Parameter, text: str) -> int | Path | str:
    if text.isdecimal() and int(text):
        return int(text)
    path = Path(text)
    if path.exists():
        return path
    if not is_address(text):
        raise click.BadParameter(f"{text} is neither a PID, a file nor the address of a session")
    return text


heap_source_argument = click.argument("target", metavar="PID|FILE|ADDRESS", callback=_source)
"""A process, a heap dump of a JVM, an object trace, or the address of a session, as a text."""

moment_option = click.option(
    "--at",
    default=None,
    metavar="MOMENT",
    help="Of an object trace: end, gc:3 (start of the third collection), gc:3:end, or an event's number. Default: end.",
)


def top_option(most: int) -> Callable[[F], F]:
    """`--top`: number of rows, `most` at most."""
    return click.option(
        "--top",
        type=click.IntRange(1, most),
        default=20,
        show_default=True,
        metavar="N",
        help="Number of rows.",
    )


def heap_question_options(function: F) -> F:
    """Whom to ask about objects and the references between them, and how: the argument, and `--top` to `--json`."""
    for option in (
        json_option,
        token_option,
        moment_option,
        driver_option,
        hold_option,
        top_option(1000),
        heap_source_argument,
    ):
        function = option(function)
    return function


def sampling_options(function: F) -> F:
    """`--clock`, `--tiles`, `--level` and `--budget`: how often, how finely and how deeply a process is sampled, and at what cost."""
    clock = click.option(
        "--clock",
        "clock_hz",
        type=click.FloatRange(0.01, 1000),
        default=10.0,
        show_default=True,
        metavar="HZ",
        help="Samples per second.",
    )
    tiles = click.option(
        "--tiles",
        type=click.IntRange(16, 1 << 24),
        default=65536,
        show_default=True,
        metavar="N",
        help="Approximate maximum number of tiles per space. Larger heaps get larger tiles.",
    )
    level = click.option(
        "--level",
        type=click.IntRange(1, 4),
        default=2,
        show_default=True,
        metavar="N",
        help="Amount of data read at each event. 1: only what takes constant time; 2: small structures; 3: objects; 4: references. A driver without this level uses the nearest one.",
    )
    budget = click.option(
        "--budget",
        type=budget_of,
        default="5%",
        show_default=True,
        metavar="SHARE",
        help="Maximum share of the program's time spent on monitoring. Above it, events are counted but not sampled. off: no limit.",
    )
    return clock(tiles(level(budget(function))))


def class_options(function: F) -> F:
    """`--name` and `--successor`: the user's name, and who gets control when the connection is lost."""
    name = click.option(
        "--name",
        "person",
        default="",
        metavar="NAME",
        help="Your name in this session. Default: your login name.",
    )
    successor = click.option(
        "--successor",
        default="",
        metavar="NAME",
        help="Participant who receives control if this connection is lost.",
    )
    return name(successor(function))


def trace_options(function: F) -> F:
    """`--tile-size` and `--every`: how finely, and how often, the heap of an object trace is shown."""
    tile = click.option(
        "--tile-size",
        "tile_bytes",
        type=amount_of,
        metavar="SIZE",
        help="Object traces: bytes per tile, such as 512 or 64kB. Default: a size that gives about 4,096 tiles.",
    )
    every = click.option(
        "--every",
        "clock_bytes",
        type=amount_of,
        metavar="SIZE",
        help="Object traces: bytes allocated between two events. Default: a value that gives about 256 events.",
    )
    return tile(every(function))


class _RenamedOption(click.Option):
    """An option whose last name is a former one: accepted, but not shown."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        names, self.opts = self.opts, self.opts[:-1]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = names


mode_option = click.option(
    "--mode",
    "--rung",
    "mode",
    cls=_RenamedOption,
    metavar="MODE",
    help="Same as --option mode=MODE. passive: read memory while the program runs, and show values that change during the read as unknown. stopped: stop all threads while memory is copied. [default: passive]",
)


def driver_option(function: F) -> F:
    """`--driver`: the drivers that read the process, side by side."""
    return click.option(
        "--driver",
        "drivers",
        multiple=True,
        metavar="NAME",
        help="Use this driver. Repeatable: several drivers share one session, and the first sets its clock. Default: the most specific driver. `gcspy ps` lists the drivers of each process.",
    )(function)


def driver_options(function: F) -> F:
    """`--driver`, `--option` and `--share-events`."""
    values = click.option(
        "--option",
        "driver_values",
        multiple=True,
        metavar="[DRIVER.]NAME=VALUE",
        help="Set a driver option. Repeatable. The driver options are listed below, and by `gcspy drivers NAME`.",
    )
    share = click.option(
        "--share-events",
        is_flag=True,
        help="With several drivers: all drivers read at every exact event. Default: only the driver that reports an exact event reads at it.",
    )
    return driver_option(values(share(function)))


inject_option = click.option(
    "--inject",
    metavar="WAY",
    help="Load a stub into the process, for exact events. Same as --option inject=WAY. agent: load a small library into a JVM; remote-exec: run a file in Python 3.14 or later; gdb: stop Python briefly with a debugger and run the file; library: have a waiting thread of Python load a small library that runs the file; auto: agent or remote-exec if possible, otherwise no stub; allocator, with --driver published: load a library that shows jemalloc, mimalloc or tcmalloc.",
)


count_option = click.option(
    "--count",
    is_flag=True,
    help="Count how often each allocation site of a Python program (3.11 to 3.14) runs, by counters in its code. Same as --option count=wide.",
)


def driver_values_of(
    given: tuple[str, ...],
    *,
    inject: str | None = None,
    mode: str | None = None,
    count: bool = False,
) -> tuple[str, ...]:
    """Return the values of drivers' options, including those for which a command has a short form.

    Raises:
        click.UsageError: `--inject` and `--mode stopped` together: with a stub the program waits by itself.
    """
    if inject and mode == "stopped":
        raise click.UsageError("--mode stopped is for programs without a stub: omit --inject")
    short = (("inject", inject), ("mode", mode), ("count", "wide" if count else None))
    return (*given, *(f"{name}={value}" for name, value in short if value))


def loads_stub(values: tuple[str, ...]) -> bool:
    """Return whether values of drivers' options ask for a stub to be loaded into the process."""
    return any(
        name.rpartition(".")[2] == "inject" and bool(value)
        for name, _, value in (one.partition("=") for one in values)
    )


class DriverCommand(click.Command):
    """A command that takes `--option`: its help lists the options that installed drivers announce."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options, and then those of drivers."""
        super().format_options(ctx, formatter)
        from gcspy_server.driver_options import announced_options  # it reads the installed packages

        rows: list[tuple[str, str]] = []
        for driver, options in announced_options().items():
            if isinstance(options, str):
                rows.append((driver, options))
                continue
            rows += [
                (f"{driver}.{one.name}={one.default}", f"{one.about} {one.bounds_text}")
                for one in options
            ]
        if rows:
            with formatter.section("Driver options, set with --option"):
                formatter.write_dl(rows)


tree_option = click.option(
    "--tree",
    is_flag=True,
    help="Show the process and all its descendants as one session, for example a server and its workers. They may come and go; each is read passively by the driver of its runtime.",
)


def tree_refusal(drivers: tuple[str, ...], *, share_events: bool, inject: bool) -> None:
    """Refuse options that a tree of processes cannot have.

    Raises:
        UsageError: There is one.
    """
    if len(drivers) > 1 or share_events:
        raise click.UsageError(
            "--tree uses one driver for each process: name at most one, without --share-events"
        )
    if inject:
        raise click.UsageError("--tree reads processes passively: omit --inject")


original_port_option = click.option(
    "--listen-gcspy666",
    "original_port",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    help="Also serve a visualiser of GCspy 1.0 (2002), on this TCP port of this machine.",
)

listen_option = click.option(
    "--listen",
    multiple=True,
    metavar="ADDRESS",
    help="Address to serve: HOST:PORT (port 0: any free port), tls:HOST:PORT or unix:/PATH. Repeatable.",
)


def no_window_option(what: str) -> Callable[[F], F]:
    """`--no-window`: serve `what` and open no window."""
    return click.option(
        "--no-window",
        is_flag=True,
        help=f"Serve {what} without opening a window. Clients connect with `gcspy view` or `gcspy tail`.",
    )


def range_options(function: F) -> F:
    """`--first` and `--last`: the events of a recording that are meant."""
    for name, what in (("--last", "last"), ("--first", "first")):
        function = click.option(
            name,
            type=click.IntRange(1),
            metavar="N",
            help=f"{what.capitalize()} event. Default: the {what} of the recording.",
        )(function)
    return function


web_option = click.option(
    "--web",
    multiple=True,
    metavar="ADDRESS",
    help="Also serve the session as a page to web browsers: HOST:PORT on this machine (port 0: any free port), or tls:HOST:PORT. Repeatable.",
)


def _choose_language(context: click.Context, _option: click.Parameter, text: str | None) -> None:
    """Set the language of this command and of the processes that it starts."""
    if text is None or context.resilient_parsing:
        return
    from gcspy_client.translation import LANGUAGE_VARIABLE, chosen_language

    language = chosen_language(text)
    if not language:
        raise click.BadParameter(f"{text} is not a language: write it as de or pt_BR")
    before = os.environ.get(LANGUAGE_VARIABLE)
    os.environ[LANGUAGE_VARIABLE] = language

    def restore() -> None:
        if before is None:
            os.environ.pop(LANGUAGE_VARIABLE, None)
        else:
            os.environ[LANGUAGE_VARIABLE] = before

    context.call_on_close(restore)


language_option = click.option(
    "--lang",
    metavar="LANGUAGE",
    expose_value=False,
    callback=_choose_language,
    help="Language of lessons, of their panel and of pages for browsers, such as de. Default: that of the environment; English where a text is not translated.",
)

theme_option = click.option(
    "--theme",
    type=click.Choice(["dark", "light", "dark-contrast", "light-contrast"]),
    default=None,
    help="Colour theme. Default: the system's.",
)

reconnect_option = click.option(
    "--reconnect",
    type=patience_of,
    is_flag=False,
    flag_value="30s",
    metavar="[SECONDS]",
    help="Try to reconnect for this long after the connection is lost. Without a value: 30 s.",
)

token_option = click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File that contains the access token for TCP. Default: the variable GCSPY_TOKEN, then a prompt.",
)
"""The token itself is never an option: command lines are seen by every user of a machine."""


def needs_token(source: str) -> bool:
    """Whether the user's argument, an address or a PID, is joined over TCP, which needs a token."""
    if source.isdecimal() or names_original_server(source):
        return False
    return isinstance(parse_address(source), TcpAddress)


def read_token(token_file: Path | None, *, ask: bool) -> str | None:
    """The token from the file, else from GCSPY_TOKEN, else from a prompt.

    Args:
        token_file: The user's argument.
        ask: Whether to prompt, if this is a terminal.

    Raises:
        CommandError: The file is empty, or others can read it.
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


class RecordingPath(click.Path):
    """A path that exists, or an address of a storage, which stays a text."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Take an address as it is."""
        if isinstance(value, str) and _STORED.match(value):
            return value
        return super().convert(value, param, ctx)


_STORED = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")

files_argument = click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, path_type=Path),
)
"""A recording: a file, the files of a split one, or the folder of a ring."""

stored_files_argument = click.argument(
    "files",
    metavar="FILE|ADDRESS...",
    nargs=-1,
    required=True,
    type=RecordingPath(exists=True, path_type=Path),
)
"""The same, or the addresses of such files in a storage."""


def new_file_option(what: str) -> Callable[[F], F]:
    """`-o FILE` and `--force`: the name of a new file, and whether it may replace an existing one."""

    def both(function: F) -> F:
        output = click.option(
            "-o",
            "--output",
            metavar="FILE",
            required=True,
            type=click.Path(dir_okay=False, path_type=Path),
            help=what,
        )
        force = click.option("--force", is_flag=True, help="Overwrite an existing file.")
        return output(force(function))

    return both
