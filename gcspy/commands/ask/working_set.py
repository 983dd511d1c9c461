"""`gcspy working-set`: how much of a process's memory is used within some seconds."""

from __future__ import annotations

import click

from gcspy.options import json_option

__all__ = ["command"]


@click.command()
@click.argument("pid", type=click.IntRange(1), metavar="PID")
@click.option(
    "--for",
    "secs",
    type=click.FloatRange(0.1, 3600),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait between clearing the kernel's marks and reading them.",
)
@click.option(
    "--top",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    metavar="N",
    help="Number of rows.",
)
@click.option(
    "--watch",
    is_flag=True,
    help="Measure again and again until Ctrl-C or the end of the process: a line, or with --json an object in a line, each time.",
)
@json_option
def command(pid: int, secs: float, top: int, watch: bool, as_json: bool) -> None:
    """Show how much of a process's memory is used within some seconds.

    For any process, by mapping: the kernel notes reads and writes. The process keeps running, but
    afterwards its first use of each page takes some microseconds longer, once, with --watch once
    each time. A program that uses a gigabyte loses about half a second.
    """
    import json
    import time

    from gcspy_drivers.remote.pages.referenced_memory import clear_referenced, read_referenced
    from gcspy_drivers.remote.process import Process
    from gcspy_protocol.errors import TargetGone
    from gcspy_protocol.text.visible import visible

    from gcspy.output.terminal import say, say_aside, say_json

    def measure(process: Process) -> dict[str, tuple[int, int]]:
        clear_referenced(process)
        time.sleep(secs)
        found = read_referenced(process)
        process.check()
        return found.by_name()

    def sums(rows: dict[str, tuple[int, int]]) -> tuple[int, int]:
        resident, used = (sum(one[place] for one in rows.values()) for place in (0, 1))
        return resident, used

    def record(rows: dict[str, tuple[int, int]]) -> dict[str, object]:
        resident, used = sums(rows)
        return {
            "seconds": secs,
            "resident_bytes": resident,
            "used_bytes": used,
            "mappings": [
                {"mapping": name, "resident_bytes": whole, "used_bytes": part}
                for name, (whole, part) in rows.items()
            ],
        }

    def line(rows: dict[str, tuple[int, int]]) -> str:
        resident, used = sums(rows)
        return f"{used:,} of {resident:,} resident bytes were used within {secs:g} s, {resident - used:,} were not"

    with Process(pid) as process:
        rows = measure(process)
        if watch:
            try:
                while True:
                    say(
                        json.dumps(record(rows))
                        if as_json
                        else f"{time.strftime('%H:%M:%S')}  {line(rows)}"
                    )
                    rows = measure(process)
            except KeyboardInterrupt:
                return
            except TargetGone:
                say_aside(f"process {pid} has ended")
                return
    if as_json:
        say_json(record(rows))
        return
    say(f"process {pid}: {line(rows)}")
    say(f"{'not used':>16} {'resident':>16}  mapping")
    for name, (whole, part) in list(rows.items())[:top]:
        say(f"{whole - part:>16,} {whole:>16,}  {visible(name)}")
