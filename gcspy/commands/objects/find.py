"""`gcspy objects find`: the objects of a trace of a type, a site, a size, or at an address, at a given time."""

from __future__ import annotations

from pathlib import Path

import click

from gcspy.commands.objects.options import at_option, search_options, search_text
from gcspy.options import json_option
from gcspy.output.terminal import say, say_json

__all__ = ["command"]


@click.command()
@click.argument("trace", metavar="TRACE", type=click.Path(exists=True, path_type=Path))
@search_options
@at_option()
@click.option(
    "--top",
    type=click.IntRange(1, 1_000_000),
    default=20,
    show_default=True,
    metavar="N",
    help="Number of rows, largest objects first.",
)
@json_option
def command(trace: Path, at: str, top: int, as_json: bool, **search: str | None) -> None:
    """Find objects in the heap at any time of a trace.

    Objects must match all options. `gcspy objects life` shows the life of one object: give it the
    address and the same time.
    """
    from gcspy_drivers.traced.tables import object_table
    from gcspy_objects.object_search import rows_of, sought_of

    from gcspy.objects.trace_conversion import opened_heap
    from gcspy.objects.trace_moment import event_of
    from gcspy.output.detail_text import print_table, rows_as_json
    from gcspy.output.progress import progress_bar

    sought = sought_of(search_text(search))
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
