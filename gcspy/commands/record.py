"""`gcspy record`: a session into a file."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from gcspy_replay.file import WireTap
from rich.console import Console
from rich.live import Live
from rich.text import Text

from gcspy.link import connect
from gcspy.lossless import Cost, LosslessMode
from gcspy.options import needs_token, read_token, sampling_options, token_option
from gcspy.quantities import Kept, deadline_of, kept_of, size_of
from gcspy.recording import Destination, Progress, Recorder, Report, stop_signals
from gcspy.session import joinable

__all__ = ["command"]

_REFRESH_SECS = 0.25
_RATE_OVER = 12
"""Rates are over so many refreshes, three seconds."""


@click.command()
@click.argument("source", metavar="ADDRESS|PID")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path),
    help="The recording; with --keep-last a folder.",
)
@click.option("--force", is_flag=True, help="Replace the recording that is there.")
@click.option("--events", type=click.IntRange(1), metavar="N", help="Stop after so many events.")
@click.option("--seconds", type=click.FloatRange(0.1), metavar="S", help="Stop after so long.")
@click.option(
    "--split-size",
    type=size_of,
    metavar="SIZE",
    help="Go on in another file, x.0001.gcspy and so on, when one has reached this size: 500kB, 200MB, 1GiB.",
)
@click.option(
    "--keep-last",
    type=kept_of,
    metavar="TIME|SIZE",
    help="Keep the latest 90s, 10min, 2h or 200MB only, for runs that never end.",
)
@click.option(
    "--lossless",
    type=deadline_of,
    is_flag=False,
    flag_value="2s",
    metavar="[DEADLINE]",
    help="Drop no event: hold what is watched while this does not keep up, at most so long at one event "
    "(2s if not given), and tell how long that was.",
)
@click.option("--json", "as_json", is_flag=True, help="Report as one JSON object at the end.")
@sampling_options
@token_option
def command(
    source: str,
    output: Path,
    force: bool,
    events: int | None,
    seconds: float | None,
    split_size: int | None,
    keep_last: Kept | None,
    lossless: float | None,
    as_json: bool,
    clock_hz: float,
    tiles: int,
    token_file: Path | None,
) -> None:
    """Record a session or a process to a file, until Ctrl-C, SIGTERM or the target's end.

    With a PID the process is watched for as long as this runs. Each event is safe in the file
    when it has arrived: whatever ends the recorder, `gcspy info`, `gcspy tail` and `gcspy verify` read it.
    """
    if split_size is not None and keep_last is not None:
        raise click.UsageError("--keep-last splits by itself: use it without --split-size")
    destination = Destination(path=output, split_bytes=split_size, keep=keep_last, replace=force)
    destination.check()
    token = read_token(token_file, ask=needs_token(source))
    tap = WireTap()
    with (
        joinable(source, clock_hz=clock_hz, tiles=tiles) as address,
        connect(
            address, token=token or "", client=f"gcspy record ({os.getpid()})", tap=tap.receive_data
        ) as link,
        stop_signals() as stop,
    ):
        with _status_line(output) as show:
            mode = None if lossless is None else LosslessMode(lossless)
            report = Recorder(link, tap, destination.open, lossless=mode).run(
                stop=stop, max_events=events, max_secs=seconds, on_progress=show
            )
        facts = _facts(report, destination.files())
        if as_json or facts["files"]:
            click.echo(json.dumps(facts) if as_json else _line(report, facts))
        if report.error is not None:
            raise report.error


def _facts(report: Report, files: list[Path]) -> dict[str, Any]:
    """What there is to say at the end, as plain JSON values."""
    cost = report.progress.cost
    return {
        "files": [str(path) for path in files],
        "bytes": sum(path.stat().st_size for path in files),
        "written_bytes": report.progress.written_bytes,
        "events": report.progress.events,
        "missed": report.progress.missed,
        "seconds": round(report.progress.secs, 3),
        "stopped": report.stopped.name.lower(),
        "reason": report.reason,
        "lossless": None if cost is None else _cost_facts(cost),
    }


def _cost_facts(cost: Cost) -> dict[str, Any]:
    return {
        "deadline_seconds": cost.deadline_secs,
        "held": cost.acts_on.value,
        "held_seconds": round(cost.held_nanos / 1e9, 6),
        "held_percent": round(cost.percent, 3),
        "ended": cost.ended,
    }


def _line(report: Report, facts: dict[str, Any]) -> str:
    files = facts["files"]
    where = files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
    why = report.reason if report.error is None and report.reason else report.stopped.value
    cost = "" if report.progress.cost is None else f", {report.progress.cost}"
    return (
        f"{where}: {facts['events']:,} events over {facts['seconds']:,.1f} s, {facts['bytes']:,} bytes, "
        f"{facts['missed']:,} missed{cost}; {why}"
    )


class _StatusLine:
    """Events, size, rates and what was missed, on one line that is drawn over."""

    def __init__(self, output: Path, live: Live) -> None:
        self._output, self._live = output, live
        self._samples: deque[Progress] = deque(maxlen=_RATE_OVER)
        self._due = 0.0

    def show(self, progress: Progress) -> None:
        """Draw it again, if it is time to."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + _REFRESH_SECS
        self._samples.append(progress)
        self._live.update(Text(self._text(progress), no_wrap=True, overflow="ellipsis"), refresh=True)

    def _text(self, progress: Progress) -> str:
        oldest = self._samples[0]
        secs = progress.secs - oldest.secs
        events = (progress.events - oldest.events) / secs if secs else 0.0
        speed = (progress.written_bytes - oldest.written_bytes) / secs if secs else 0.0
        cost = "" if progress.cost is None else f"  {progress.cost}"
        return (
            f"● {self._output}  {progress.events:,} events  {progress.written_bytes / 1e6:,.1f} MB  "
            f"{events:,.1f} events/s  {speed / 1e3:,.1f} kB/s  {progress.missed:,} missed{cost}  (Ctrl-C stops)"
        )


@contextmanager
def _status_line(output: Path) -> Iterator[Callable[[Progress], None] | None]:
    """A status line on standard error, where that is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield _StatusLine(output, live).show
