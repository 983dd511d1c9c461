"""The recorder's messages for its user: a status line meanwhile, and a report at the end.

Knows progress and reports; does not know where either comes from.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from gcspy.recorder.lossless import Cost
from gcspy.recorder.recorder import Progress, RecordingReport

__all__ = ["report_facts", "report_line", "status_line"]

_REFRESH_SECS = 0.25
_RATE_OVER = 12
"""Rates are over this many refreshes, three seconds."""


def report_facts(report: RecordingReport, files: Mapping[str, int]) -> dict[str, Any]:
    """The report as plain JSON values; `files` are bytes by name."""
    cost = report.progress.cost
    return {
        "files": list(files),
        "bytes": sum(files.values()),
        "written_bytes": report.progress.written_bytes,
        "events": report.progress.events,
        "missed": report.progress.missed,
        "seconds": round(report.progress.secs, 3),
        "stopped": report.stopped.name.lower(),
        "reason": report.reason,
        "reconnected": report.progress.reconnected,
        "budget": None if report.progress.budget is None else report.progress.budget.as_dict(),
        "lossless": None if cost is None else _cost_facts(cost),
        "stopped_seconds": round(report.progress.stopped_nanos / 1e9, 6),
    }


def _cost_facts(cost: Cost) -> dict[str, Any]:
    return {
        "deadline_seconds": cost.deadline_secs,
        "held": cost.acts_on.value,
        "held_seconds": round(cost.held_nanos / 1e9, 6),
        "held_percent": round(cost.percent, 3),
        "ended": cost.ended,
    }


def report_line(report: RecordingReport, facts: dict[str, Any]) -> str:
    """The report as text."""
    files = facts["files"]
    where = files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
    why = report.reason if report.error is None and report.reason else report.stopped.value
    cost = "" if report.progress.cost is None else f", {report.progress.cost}"
    if report.progress.stopped_nanos:
        secs = report.progress.stopped_nanos / 1e9
        cost = f", the program was stopped for {secs:,.1f} s to be read{cost}"
    budget = report.progress.budget
    if budget is not None and any(budget.left_out):
        cost += f", budget: {', '.join(budget.parts)}"
    return (
        f"{where}: {facts['events']:,} events over {facts['seconds']:,.1f} s, {facts['bytes']:,} bytes, "
        f"{facts['missed']:,} missed{cost}; {why}"
    )


class _StatusLine:
    """Events, size, rates and missed events, on one line that is overwritten."""

    def __init__(self, output: Path, live: Live) -> None:
        self._output, self._live = output, live
        self._samples: deque[Progress] = deque(maxlen=_RATE_OVER)
        self._due = 0.0

    def show(self, progress: Progress) -> None:
        """Draw it again, if it is time."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + _REFRESH_SECS
        self._samples.append(progress)
        self._live.update(
            Text(self._text(progress), no_wrap=True, overflow="ellipsis"), refresh=True
        )

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
def status_line(output: Path) -> Iterator[Callable[[Progress], None] | None]:
    """A status line on standard error, if that is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield _StatusLine(output, live).show
