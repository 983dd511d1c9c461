"""`gcspy objects life`: one object of a trace from its birth through its moves to its death."""

from __future__ import annotations

from pathlib import Path

import click
from gcspy_protocol.errors import CommandError

from gcspy.commands.objects.options import at_option
from gcspy.options import json_option
from gcspy.output.terminal import say, say_json

__all__ = ["command"]


@click.command()
@click.argument("trace", metavar="TRACE", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--address",
    required=True,
    metavar="ADDRESS",
    help="Address of any byte of the object, such as 0x7f00.",
)
@at_option()
@click.option(
    "--neighbours",
    type=click.IntRange(0, 1000),
    default=10,
    show_default=True,
    metavar="N",
    help="Number of neighbours from the same allocation site, nearest first.",
)
@json_option
def command(trace: Path, address: str, at: str, neighbours: int, as_json: bool) -> None:
    """Follow one object from birth to death.

    Also shows what became of its neighbours from the same site. Events are given by their number
    in the trace, as for --at.
    """
    from gcspy_drivers.traced.lives import life_table, neighbour_table
    from gcspy_drivers.traced.tables import place_of
    from gcspy_objects.object_search import sought_of

    from gcspy.objects.trace_conversion import opened_heap
    from gcspy.objects.trace_moment import event_of
    from gcspy.output.detail_text import print_table, rows_as_json
    from gcspy.output.progress import progress_bar

    place = sought_of(f"address:{address}").address
    assert place is not None
    with (
        progress_bar(f"reading {trace.name}") as bar,
        opened_heap(trace, lambda _what, done, total: bar(done, total)) as heap,
    ):
        now = heap.at(event_of(heap, at))
        row = now.row_at(place[0])
        if row is None or now.filler[row]:
            what = "no object" if row is None else "a filler, not an object of the program,"
            raise CommandError(
                f"{what} has the address {place[0]:#x} then ({place_of(now, place[0])}); gcspy objects find lists the objects"
            )
        life = life_table(
            heap,
            heap.follow(int(now.birth[row])),
            int(now.birth_bytes[row]),
            lambda event: event + 1,
        )
        near = neighbour_table(heap, now, row, neighbours) if neighbours else None
    if as_json:
        data = {"life": rows_as_json(life)} | (
            {} if near is None else {"neighbours": rows_as_json(near)}
        )
        say_json(data)
        return
    print_table(life)
    if near is not None:
        say()
        print_table(near)
