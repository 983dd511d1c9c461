"""`gcspy ps`: the processes that can be monitored, and why others cannot."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict

import click
from gcspy_protocol.text.visible import visible

from gcspy.connection.process_list import ListedProcess, ProcessWatch, list_processes
from gcspy.output.terminal import say, say_json

__all__ = ["command"]

_WATCH_SECS = 2.0
"""Between two looks of `--watch`."""

_PROGRESS_SECS = 0.1

_LEAST_COMMAND = 20
"""Characters of the command line that a narrow terminal shows at least."""

_HEADER = ("PID", "PARENT", "USER", "RUNTIME", "VERSION", "RSS", "AGE", "DRIVERS", "MODES")
_LEFT_OUT = (_HEADER.index("MODES"), _HEADER.index("DRIVERS"))
"""Columns that a narrow terminal does without, in this order; `--json` has them."""
_RIGHT = frozenset({"PID", "PARENT", "RSS", "AGE"})
_LAST = "COMMAND OR REASON"
_AGES = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


@click.command()
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Also list processes that no driver recognises, and those of gcspy itself.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
@click.option(
    "--watch",
    is_flag=True,
    help="Print JSON lines until standard input ends: one for each process that appears, changes or ends.",
)
@click.option(
    "--below",
    type=click.IntRange(min=1),
    metavar="PID",
    help="Only the processes below this one: its children, their children, and so on.",
)
@click.option(
    "--start-option",
    "stub_of",
    metavar="DRIVER",
    help="Print only the command-line argument that loads this driver's stub when a program starts. For programs that refuse a stub later.",
)
@click.option("--java-option", "stub_of", flag_value="hotspot", hidden=True)
@click.argument("pattern", required=False, default="")
def command(
    everything: bool,
    as_json: bool,
    watch: bool,
    below: int | None,
    stub_of: str | None,
    pattern: str,
) -> None:
    """List the processes that can be monitored.

    Shows parent, runtime, version, resident set, age, the drivers that can read the process (the best first), and attach modes. A driver may describe a program instead of its command line: a JVM by main class, collector and heap. PATTERN
    keeps the processes whose command line contains it. Processes that cannot be monitored are
    listed last, with the reason.
    """
    if stub_of:
        from gcspy.connection.target import start_option_of

        say(start_option_of(stub_of))
        return
    if watch:
        _watch(everything, below, pattern.lower())
        return
    rows = list_processes(everything, below)
    found = [row for row in rows if pattern.lower() in row.command.lower()]
    if as_json:
        say_json([asdict(row) for row in found])
        return
    if not found:
        say("no process can be monitored: start a Python or Java program, or try `gcspy demo`")
        return
    _print_table(found)


def _watch(everything: bool, below: int | None, pattern: str) -> None:
    """Print what changes, from round to round, until standard input ends."""
    ended = threading.Event()
    threading.Thread(target=_read_to_end, args=(ended,), name="gcspy stdin", daemon=True).start()
    last_told = 0.0

    def emit(row: ListedProcess) -> None:
        if pattern in row.command.lower():
            say(json.dumps(asdict(row)))

    def tell(done: int, total: int) -> None:
        nonlocal last_told
        now = time.monotonic()
        if now - last_told >= _PROGRESS_SECS:
            last_told = now
            say(json.dumps({"looking": [done, total]}))

    processes = ProcessWatch(
        everything=everything,
        below=below,
        emit=emit,
        gone=lambda pid: say(json.dumps({"gone": pid})),
    )
    rounds = 0
    while not ended.is_set():
        processes.look(tell if not rounds else _quiet, ended.is_set)
        rounds += 1
        say(json.dumps({"round": rounds}))
        ended.wait(_WATCH_SECS)


def _quiet(_done: int, _total: int) -> None:
    """Report nothing: the list is known."""


def _read_to_end(ended: threading.Event) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    ended.set()


def _print_table(found: Sequence[ListedProcess]) -> None:
    now = time.time()
    lines = [_cells(row, now) for row in found]
    widths = [
        max(len(name), *(len(line[column]) for line in lines))
        for column, name in enumerate(_HEADER)
    ]
    shown, most = list(range(len(_HEADER))), None
    if sys.stdout.isatty():  # a pipe has no width to fit: what is cut off could not be searched for
        room = shutil.get_terminal_size().columns
        for column in _LEFT_OUT:
            if room < sum(widths[one] + 2 for one in shown) + _LEAST_COMMAND:
                shown.remove(column)
        most = max(_LEAST_COMMAND, room - sum(widths[one] + 2 for one in shown))
    for line in [(*_HEADER, _LAST), *lines]:
        padded = [
            line[one].rjust(widths[one]) if _HEADER[one] in _RIGHT else line[one].ljust(widths[one])
            for one in shown
        ]
        say("  ".join((*padded, _cut(line[-1], most))))


def _cells(row: ListedProcess, now: float) -> tuple[str, ...]:
    program = f"{row.program} ({row.detail})" if row.program else row.command
    return (
        str(row.pid),
        str(row.parent),
        visible(row.user),
        visible(row.runtime),
        visible(row.version),
        f"{row.rss_bytes / 1e6:,.0f} MB",
        _age(now - row.started) if row.started else "-",
        ", ".join(row.drivers) if row.watchable else "-",
        ", ".join(row.modes) if row.watchable else "-",
        visible(program if row.watchable else f"{row.why_not}: {row.command}"),
    )


def _age(secs: float) -> str:
    for unit, letter in _AGES:
        if secs >= unit:
            return f"{int(secs / unit)}{letter}"
    return "0s"


def _cut(text: str, most: int | None) -> str:
    return text if most is None or len(text) <= most else f"{text[: most - 1]}…"
