"""`gcspy types`: the types of a process's objects, once, as a table."""

from __future__ import annotations

import sys

import click

from gcspy.options import (
    allocation_samples_option,
    driver_option,
    hold_option,
    json_option,
    top_option,
)

__all__ = ["command"]


@click.command()
@click.argument("pid", type=click.IntRange(1), metavar="PID")
@top_option(1024)
@click.option(
    "--sites",
    is_flag=True,
    help="Also show the lines that allocated the objects. Of Python programs that run with tracemalloc, from a copy of all memory; of JVMs with --hold and --allocation-samples.",
)
@allocation_samples_option
@click.option(
    "--over",
    "over_secs",
    type=click.FloatRange(0.1, 86_400),
    default=15.0,
    show_default=True,
    metavar="SECONDS",
    help="How long allocations are sampled.",
)
@hold_option
@driver_option
@json_option
def command(
    pid: int,
    top: int,
    sites: bool,
    sample_bytes: int | None,
    over_secs: float,
    hold: bool,
    drivers: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show object counts and bytes by type, from one sample.

    The process is not stopped and nothing is left in it. Objects that changed during the sample are
    counted as unknown. Bytes are those of the objects themselves: in Python, list items and dict
    tables are in "(items and tables of containers)". For a JVM, unreachable objects are counted,
    too.

    Counting a large Python heap takes seconds. In a terminal, estimates from a sample of it are
    shown after one.
    """
    from gcspy.connection.one_shot import look_once, print_as_json, print_as_text, print_early

    # Estimates are for a person who waits: beside the result, and only in a terminal.
    early = print_early if sys.stderr.isatty() and not as_json else None
    found = look_once(pid, "types", most=top, drivers=drivers, early=early)
    if not sites and not sample_bytes:
        (print_as_json if as_json else print_as_text)(found)
        return
    from gcspy.connection.memory_question import sites_of_process
    from gcspy.output.detail_text import rows_as_json
    from gcspy.output.memory_text import print_sites
    from gcspy_server.api import MemoryQuestion

    question = MemoryQuestion(
        over_secs=over_secs if sample_bytes else 0,
        most=top,
        held=hold,
        sample_bytes=sample_bytes or 0,
    )
    table = sites_of_process(pid, question, drivers)
    if as_json:
        print_as_json(found, {"allocated": rows_as_json(table)})
        return
    print_as_text(found)
    print_sites(table)
