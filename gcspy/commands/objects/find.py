"""`gcspy objects find`: the objects of a trace that are of a type, a site, a size, or at an address, at a time."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import click

__all__ = ["command"]


@click.command()
@click.argument("trace", metavar="TRACE", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--type", "type_name", metavar="NAME", help="A part of the type's name; =NAME: the whole name."
)
@click.option(
    "--site",
    metavar="NAME",
    help="A part of a method's name on the stack of the allocation; =NAME: the whole name.",
)
@click.option(
    "--thread",
    metavar="NAME",
    help="A part of the name of the thread that allocated it; =NAME: the whole name.",
)
@click.option("--size", metavar="BYTES", help="64, or a range: 24..64, 1kB.. and ..100.")
@click.option(
    "--address", metavar="ADDRESS", help="0x…: the object that has this byte; or a range."
)
@click.option(
    "--at",
    "at",
    default="end",
    show_default=True,
    metavar="WHEN",
    help="end, gc:3 (its start), gc:3:end, or the number of an event.",
)
@click.option(
    "--top",
    type=click.IntRange(1, 1_000_000),
    default=20,
    show_default=True,
    metavar="N",
    help="Rows, the largest objects first.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def command(
    trace: Path,
    type_name: str | None,
    site: str | None,
    thread: str | None,
    size: str | None,
    address: str | None,
    at: str,
    top: int,
    as_json: bool,
) -> None:
    """Find objects in the heap that a trace tells of, at any time.

    All that is named must hold. What an object's life was, tells gcspy objects life with its address and the same time.
    """
    from gcspy_drivers.traced.tables import object_table
    from gcspy_objects.finding import rows_of, sought_of

    from gcspy.detail_text import print_table, rows_as_json
    from gcspy.progress import progress_bar
    from gcspy.tracing import event_of, opened_heap

    named = {"type": type_name, "site": site, "thread": thread, "size": size, "address": address}
    text = " ".join(
        shlex.quote(f"{key}{'' if value.startswith('=') else ':'}{value}")
        for key, value in named.items()
        if value
    )
    sought = sought_of(text)
    with (
        progress_bar(f"reading {trace.name}") as bar,
        opened_heap(trace, lambda _what, done, total: bar(done, total)) as heap,
    ):
        event = event_of(heap, at)
        now = heap.at(event)
        rows = rows_of(now, heap.trace, sought)
        table = object_table(now, heap.trace, rows, top)
        found = len(rows)
    if as_json:
        click.echo(json.dumps({"event": event, "objects": found, **rows_as_json(table)}, indent=2))
        return
    click.echo(
        f"{found:,} objects, before event {event:,} of the trace, after {now.collections:,} collections"
    )
    if found:
        print_table(table)
