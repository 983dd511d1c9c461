"""`gcspy objects check`: check a trace for consistency with itself, and with the VM's own log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
from gcspy_protocol.text.visible import Lines

from gcspy.commands.objects.options import trace_argument
from gcspy.exit_codes import ExitCode
from gcspy.options import json_option
from gcspy.output.terminal import say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gcspy_objects.consistency import ConsistencyReport

__all__ = ["command"]

_SHOWN = 10


@click.command()
@trace_argument
@click.option(
    "--log",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="GC log of the VM. Default: gc.log beside the trace, if it exists.",
)
@click.option("--no-log", is_flag=True, help="Do not compare with a log.")
@json_option
@click.pass_context
def command(
    context: click.Context, trace: Path, log: Path | None, no_log: bool, as_json: bool
) -> None:
    """Check that a trace is consistent.

    Rebuilds the heap. At the start and the end of each collection, the objects of each space must follow each other
    without a hole or an overlap, fill the buffers of their threads, and be known before they move.
    The tops of spaces and the class histograms must equal those of the VM's log; what cannot be
    compared is counted. The symbols file must not contradict itself. The first finding is
    explained: file, buffer, byte, event and what was expected. The exit code is 9 if there are
    findings.
    """
    from gcspy_objects.consistency import check
    from gcspy_objects.heap import RebuiltHeap
    from gcspy_objects.hotspot_log import find_log, read_log
    from gcspy_objects.trace import open_trace

    from gcspy.output.progress import progress_bar

    lines = (
        None
        if no_log
        else find_log(trace)
        if log is None
        else log.read_text("utf-8", "replace").splitlines()
    )
    with (
        open_trace(trace) as opened,
        RebuiltHeap(opened) as heap,
        progress_bar(f"checking {trace.name}") as progress,
    ):
        report = check(heap, read_log(lines) if lines is not None else None, progress)
    if as_json:
        say(json.dumps({"trace": str(trace)} | report.as_json()))
    else:
        say(Lines(*_told(trace.name, report)))
    context.exit(ExitCode.OK if report.consistent else ExitCode.RECORDING)


def _told(name: str, report: ConsistencyReport) -> Iterator[str]:
    """Print what was compared, and the findings."""
    word = "consistent" if report.consistent else "NOT CONSISTENT"
    yield f"{name}: {word}: {report.events:,} events, {report.objects:,} objects, {report.collections:,} collections"
    if report.ended is not None:
        yield f"  it was not read to the end: {report.ended}"
    if report.findings:
        counts = ", ".join(
            f"{count:,} {rule}" for rule, count in report.findings.counts.most_common()
        )
        yield f"  {len(report.findings):,} findings ({counts}); the first:"
        for one in report.findings.kept[:_SHOWN]:
            yield f"    {one}"
    else:
        yield f"  {report.spaces_tiled:,} times the objects of a space followed each other without a hole or an overlap, at the start or the end of a collection"
    if report.tops_compared or report.histograms_compared:
        yield f"  {report.tops_compared:,} tops of spaces and {report.histograms_compared:,} class histograms were compared with the VM's log"
    else:
        yield "  not compared with the VM's log: there is no log, or it has neither tops nor class histograms (-XX:+PrintHeapAtGC)"
    if report.tops_left or report.histograms_left:
        yield f"  {report.tops_left:,} tops of spaces and {report.histograms_left:,} class histograms could NOT be compared"
    if report.remarks:
        yield "  suspicious, but not an error:"
        for remark in report.remarks[:_SHOWN]:
            yield f"    {remark}"
        if len(report.remarks) > _SHOWN:
            yield f"    and {len(report.remarks) - _SHOWN:,} more: --json lists them"
