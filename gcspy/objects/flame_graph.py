"""`gcspy objects flame`: the flame graph of a moment, of a difference, or of a whole trace, as a file.

Knows heaps, trees and files; does not know the command line.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gcspy_protocol.errors import CommandError

from gcspy.objects.live_objects import heap_in_view, searched_sums
from gcspy.objects.trace_moment import event_of
from gcspy.output.terminal import say_aside
from gcspy.recorder.new_file import need_place, new_file

if TYPE_CHECKING:
    from gcspy_objects.heap import RebuiltHeap
    from gcspy_objects.stacks.site_sums import SiteSums

    from gcspy_client.model.panels.flame_graph import FlameGraph

__all__ = ["FlameOptions", "write_flame_graph"]

_FOLDED = (".folded", ".txt")


@dataclass(frozen=True, kw_only=True, slots=True)
class FlameOptions:
    """The choice of a flame graph.

    Attributes:
        of: ``live``, ``allocated`` or ``temporary``.
        at: Moment, of live objects.
        since: Only those that were allocated after this moment; None: all.
        compare: Earlier moment, for colours; None: none.
        in_bytes: Widths are bytes; otherwise objects.
        inverted: Functions that allocate are on top.
        lines: Two places in a function are two boxes.
        dark: The theme.
        search: Which live objects, as `gcspy_objects.object_search` reads it.
    """

    of: str = "live"
    at: str = "end"
    since: str | None = None
    compare: str | None = None
    in_bytes: bool = True
    inverted: bool = False
    lines: bool = False
    dark: bool = False
    search: str = ""


def write_flame_graph(
    path: Path, output: Path | None, options: FlameOptions, *, force: bool
) -> None:
    """Write a flame graph, and say on standard error what is in it.

    Raises:
        CommandError: The file exists, or options contradict each other.
        TraceError: There is no trace.
    """
    from gcspy.output.flame_graph_file import flame_svg, folded_stacks

    target = output or Path(f"{path.name.split('.')[0]}.svg")
    if target.suffix not in (".svg", *_FOLDED):
        raise CommandError(f"{target}: the name of a flame graph ends in .svg, or in .folded")
    if options.of != "live" and (
        options.since or options.compare or options.search or options.at != "end"
    ):
        raise CommandError(
            f"--of {options.of} is about the whole trace: leave out --at, --since, --compare and searches"
        )
    need_place(target, replace=force)
    with heap_in_view(path) as heap:
        graph, title, note = _graph_of(heap, options)
        name = str(heap.trace.header.get("name", "")) if hasattr(heap.trace, "header") else ""
    title = f"{name or path.name}: {title}"
    parts = (
        folded_stacks(graph, in_bytes=options.in_bytes)
        if target.suffix in _FOLDED
        else flame_svg(graph, title, in_bytes=options.in_bytes, dark=options.dark, note=note)
    )
    with new_file(target, replace=force) as part, part.open("w", encoding="utf-8") as file:
        file.writelines(parts)
    say_aside(
        f"{target}: {int(graph.bytes[0]):,} bytes in {int(graph.objects[0]):,} objects, {len(graph):,} boxes"
        + (f"; {note}" if note else "")
    )


def _graph_of(heap: RebuiltHeap, options: FlameOptions) -> tuple[FlameGraph, str, str]:
    """Return the graph, its title and a note."""
    from gcspy_objects.stacks.call_tree import call_tree

    from gcspy_client.model.panels.flame_graph import FlameGraph

    sums, before, title = _sums_of(heap, options)
    tree = call_tree(
        heap.trace.sites,
        heap.trace.types,
        sums,
        before=before,
        lines=options.lines,
        inverted=options.inverted,
    )
    notes = []
    sites = heap.trace.sites
    frames = sites.first_frame[sums.site + 1] - sites.first_frame[sums.site]
    if len(frames) and int(frames.max()) <= 1:
        notes.append("This trace has no stacks: gcspy trace --stacks full writes them.")
    graph = FlameGraph(tree.parent, tree.depth, tree.name, tree.objects, tree.bytes, tree.before)
    return graph, title, " ".join(notes)


def _sums_of(heap: RebuiltHeap, options: FlameOptions) -> tuple[SiteSums, SiteSums | None, str]:
    from gcspy_objects.object_search import sought_of
    from gcspy_objects.stacks.site_sums import allocated_sums

    if options.of == "allocated":
        return allocated_sums(heap), None, "all that was allocated"
    if options.of == "temporary":
        return (
            allocated_sums(heap, within_bytes=0),
            None,
            "what was freed before the next allocation",
        )
    sought = sought_of(options.search)
    event = event_of(heap, options.at)
    start = 0 if options.since is None else event_of(heap, options.since)
    earlier = None if options.compare is None else event_of(heap, options.compare)
    for name, one in (("--since", start), ("--compare", earlier or 0)):
        if one > event:
            raise CommandError(f"{name} is behind --at {options.at}: name an earlier time")
    # The walk through a trace goes forwards.
    before = None if earlier is None else searched_sums(heap, heap.at(earlier), sought)
    sums = searched_sums(heap, heap.at(event), sought, born_since=start)
    title = f"live at {options.at} (event {event:,})"
    if options.since is not None:
        title += f", allocated since {options.since}"
    if options.compare is not None:
        title += f", compared with {options.compare}"
    return sums, before, title
