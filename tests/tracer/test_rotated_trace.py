"""Traces of which only the last part is kept."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from gcspy_objects.records import RecordKind

from gcspy.cli import main
from gcspy.tracer.traced_run import TracedRun, TraceSettings
from tests.tracer.written_trace import WrittenTrace


def live_at_end(trace: WrittenTrace) -> dict[int, int]:
    """Return the sizes of what lives at the end, by address."""
    live: dict[int, int] = {}
    for row in np.flatnonzero(np.isin(trace.kind, [RecordKind.ALLOCATE, RecordKind.FREE])).tolist():
        if trace.kind[row] == RecordKind.ALLOCATE:
            live[int(trace.address[row])] = int(trace.size[row])
        else:
            del live[int(trace.address[row])]
    return live


def test_the_last_part_begins_with_what_lived(programs: Path, tmp_path: Path) -> None:
    command = [str(programs / "own_log"), str(tmp_path / "log"), "slow"]
    settings = TraceSettings(output=tmp_path / "trace", keep_nanos=1_500_000_000)
    with TracedRun(command, settings) as run:
        assert run.follow(lambda _definitions: b"") == 0
    summary = run.summaries[0]
    trace = WrittenTrace.read(tmp_path / "trace")
    assert list(tmp_path.glob(".trace*")) == []
    assert trace.header["began"] == "live"
    lived = (trace.kind == RecordKind.ALLOCATE) & (trace.detail == 1)
    assert 0 < np.count_nonzero(lived) < len(trace.kind) < summary.counts.events
    live = live_at_end(trace)
    assert len(live) == summary.counts.live_blocks
    assert sum(live.values()) == summary.counts.live_bytes
    assert trace.sites_of("/own_log")


def test_attaching_is_refused_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "--attach", "1"]) == 5
    assert "cannot be traced from now on" in capsys.readouterr().err
    assert main(["trace", "--keep-last", "20MB", sys.executable]) == 2
    assert "needs a time" in capsys.readouterr().err
