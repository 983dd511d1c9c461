"""`gcspy objects find`: the objects of a trace of a type, a site, a size, or at an address, at a given time."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from gcspy.options import json_option
from gcspy.output.terminal import say, say_json

__all__ = ["command"]


@click.command()
@click.argument("trace", metavar="TRACE", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--type",
    "type_name",
    metavar="NAME",
    help="Find objects whose type contains NAME. =NAME: the whole name.",
)
@click.option(
    "--site",
    metavar="NAME",
    help="Find objects with a method on their allocation stack whose name contains NAME. =NAME: the whole name.",
)
@click.option(
    "--thread",
    metavar="NAME",
    help="Find objects allocated by a thread whose name contains NAME. =NAME: the whole name.",
)
@click.option(
    "--size",
    metavar="BYTES",
    help="Find objects of this size: 64, or a range such as 24..64, 1kB.. or ..100.",
)
@click.option(
    "--address",
    metavar="ADDRESS",
    help="Find the object that contains this byte, such as 0x7f00, or the objects in a range.",
)
@click.option(
    "--at",
    "at",
    default="end",
    show_default=True,
    metavar="WHEN",
    help="Time in the trace: end, gc:3 (its start), gc:3:end, or the number of an event.",
)
@click.option(
    "--top",
    type=click.IntRange(1, 1_000_000),
    default=20,
    show_default=True,
    metavar="N",
    help="Number of rows, largest objects first.",
)
@json_option
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
    """Find objects in the heap at any time of a trace.

    Objects must match all options. `gcspy objects life` shows the life of one object: give it the
    address and the same time.
    """
    from gcspy_drivers.traced.tables import object_table
    from gcspy_objects.object_search import rows_of, sought_of

    from gcspy.objects.trace_conversion import event_of, opened_heap
    from gcspy.output.detail_text import print_table, rows_as_json
    from gcspy.output.progress import progress_bar

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
        say_json({"event": event, "objects": found, **rows_as_json(table)})
        return
    say(
        f"{found:,} objects, before event {event:,} of the trace, after {now.collections:,} collections"
    )
    if found:
        print_table(table)
