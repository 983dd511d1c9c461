"""A trace of 10^9 events (4 GB of disk): its index is bounded, no seek reads more than the rule allows, and three questions read it once."""

from __future__ import annotations

import json
import os
import resource
import time
from itertools import pairwise
from pathlib import Path

import pytest
from gcspy_objects.anttracks.reader import AntTracksTrace
from gcspy_objects.heap import Keep, RebuiltHeap
from gcspy_objects.trace import open_trace

from benchmarks.objects.long_traces import in_a_process
from benchmarks.targets.anttracks_synthetic import Synthetic
from gcspy.cli import main

pytestmark = pytest.mark.soak

EVENTS = int(os.environ.get("GCSPY_SOAK_LONG_EVENTS", str(10**9)))
GATHERED = int(os.environ.get("GCSPY_SOAK_EVENTS", "10000000"))


def test_a_seek_in_a_long_trace_is_bounded(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "trace"
    written = Synthetic().write(trace, EVENTS)
    found = in_a_process("index", trace, tmp_path, 1)
    with capfd.disabled():
        print({key: value for key, value in found.items() if key != "answer"})
    assert found["events"] == written.events
    assert found["findings"] == 0
    from gcspy_objects.heap.index.index_file import read_index

    index = read_index(tmp_path)
    assert index is not None
    with open_trace(trace) as opened, RebuiltHeap(opened, index=index) as heap:
        places = [0, *(one.event for one in heap.checkpoints.rows()), heap.events]
        assert max(after - before for before, after in pairwise(places)) <= 2 * Keep().near
        assert heap.checkpoints.nbytes <= Keep().bytes


def disk_bytes(folder: Path) -> int:
    """Bytes of all files in a folder."""
    return sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())


def test_three_questions_read_a_trace_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GCSPY_CACHE", str(tmp_path / "cache"))
    trace = tmp_path / "trace"
    clock = time.monotonic()
    Synthetic().write(trace, GATHERED)
    with capfd.disabled():
        print(f"\n{GATHERED:,} events written in {time.monotonic() - clock:.1f} s by the clock")
    for one in trace.iterdir():
        os.utime(one, (time.time() - 100,) * 2)
    for number, question in enumerate(("types", "survival", "collections")):
        if number:
            monkeypatch.setattr(AntTracksTrace, "batches", None)
        clock, spent = time.monotonic(), time.process_time()
        assert main(["objects", question, str(trace), "--json"]) == 0
        rows = json.loads(capfd.readouterr().out)["rows"]
        with capfd.disabled():
            print(
                f"{question}: {time.process_time() - spent:.1f} s of processor, {time.monotonic() - clock:.1f} s by the clock, load {os.getloadavg()[0]:.1f};"
                f" at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB resident so far, {disk_bytes(tmp_path) / 1e9:.2f} GB of disk"
            )
        assert rows
