"""`gcspy ps`: the processes that can be monitored, and why others cannot."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import click
from gcspy_protocol.text.visible import visible

from gcspy.output.terminal import say, say_json

__all__ = ["Row", "command", "rows"]


_OTHER_COLUMNS = 300
"""Width of the columns with short texts, when command lines are written in full."""


@dataclass(frozen=True, slots=True)
class Row:
    """One process in the table."""

    pid: int
    user: str
    runtime: str
    version: str
    driver: str
    watchable: bool
    why_not: str
    rss_bytes: int
    command: str
    program: str = ""
    detail: str = ""
    modes: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()
    options: tuple[dict[str, object], ...] = ()


def rows(everything: bool = False) -> list[Row]:
    """The processes that a driver recognises.

    Args:
        everything: Also those that no driver recognises.
    """
    import psutil  # imported only to list processes, not for help

    from gcspy.connection.target import options_of, recognise

    found = []
    own = psutil.Process().pid
    for process in psutil.process_iter(["pid", "username", "memory_info", "cmdline", "name"]):
        if process.pid == own:
            continue
        info = process.info
        recognised = recognise(process.pid)
        if not recognised and not everything:
            continue
        best = next(
            ((n, r) for n, r in recognised if r.supported), recognised[0] if recognised else None
        )
        found.append(
            Row(
                pid=process.pid,
                user=info["username"] or "?",
                runtime=best[1].runtime if best else "",
                version=best[1].version if best else "",
                driver=best[0] if best else "",
                watchable=bool(best and best[1].supported),
                why_not=best[1].why_not if best else "not recognised by any driver",
                rss_bytes=info["memory_info"].rss if info["memory_info"] else 0,
                command=" ".join(info["cmdline"] or [info["name"] or "?"]),
                program=best[1].program if best else "",
                detail=best[1].detail if best else "",
                modes=best[1].modes if best else (),
                drivers=tuple(name for name, one in recognised if one.supported),
                options=options_of(best[0]) if best and best[1].supported else (),
            )
        )
    return sorted(found, key=lambda row: (not row.watchable, row.pid))


@click.command()
@click.option(
    "--all", "everything", is_flag=True, help="Also list processes that no driver recognises."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
@click.option(
    "--start-option",
    "stub_of",
    metavar="DRIVER",
    help="Print only the command-line argument that loads this driver's stub when a program starts. For programs that refuse a stub later.",
)
@click.option("--java-option", "stub_of", flag_value="hotspot", hidden=True)
@click.argument("pattern", required=False, default="")
def command(everything: bool, as_json: bool, stub_of: str | None, pattern: str) -> None:
    """List the processes that can be monitored.

    Shows runtime, version, the drivers that can read the process (the best first), and attach modes. A driver may describe a program instead of its command line: a JVM by main class, collector and heap. PATTERN
    keeps the processes whose command line contains it. Processes that cannot be monitored are
    listed last, with the reason.
    """
    if stub_of:
        from gcspy.connection.target import start_option_of

        say(start_option_of(stub_of))
        return
    found = [row for row in rows(everything) if pattern.lower() in row.command.lower()]
    if as_json:
        say_json([asdict(row) for row in found])
        return
    if not found:
        say("no process can be monitored: start a Python or Java program, or try `gcspy demo`")
        return
    _print_table(found)


def _print_table(found: list[Row]) -> None:
    # rich takes 60 ms to import; only a human waits for a table.
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("PID", "USER", "RUNTIME", "VERSION"):
        table.add_column(name, no_wrap=True, justify="right" if name == "PID" else "left")
    table.add_column("RSS", justify="right", no_wrap=True)
    table.add_column("DRIVERS", no_wrap=True)
    table.add_column("MODES", no_wrap=True)
    table.add_column("COMMAND OR REASON", overflow="ellipsis", no_wrap=True, ratio=1)
    longest = 0
    for row in found:
        command = f"{row.program} ({row.detail})" if row.program else row.command
        what = visible(command if row.watchable else f"{row.why_not}: {row.command}")
        longest = max(longest, len(what))
        table.add_row(
            str(row.pid),
            escape(row.user),
            escape(row.runtime),
            escape(row.version),
            f"{row.rss_bytes / 1e6:,.0f} MB",
            ", ".join(row.drivers) if row.watchable else "-",
            ", ".join(row.modes) if row.watchable else "-",
            escape(what),
            style=None if row.watchable else "dim",
        )
    # A pipe has no width to fit: a text that is cut off could not be searched for.
    console = Console(highlight=False)
    whole = Console(highlight=False, width=longest + _OTHER_COLUMNS)
    (console if console.is_terminal else whole).print(table)
