"""Programs that write down all that they allocate, compared with their traces: no event is missing, and none is invented."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from gcspy_objects.gctrace.reader import GCspyTrace
from gcspy_objects.heap import ObjectFlag, RebuiltHeap

from gcspy.tracer.drain import ForkedBlocks, SegmentDrain
from gcspy.tracer.ended_forks import EndedForks
from gcspy.tracer.process_trace import TraceSummary
from gcspy.tracer.traced_run import TracedRun, TraceSettings
from tests.tracer.written_trace import OwnLog, WrittenTrace, lives_by_address

EXITS = {"exits": 7, "killed": 128 + 9}


def traced(
    programs: Path, folder: Path, name: str, stacks: str = "caller", *, children: bool = False
) -> tuple[int, list[TraceSummary]]:
    """Trace a program; return its exit code and its traces."""
    command = [str(programs / "own_log"), str(folder / "log"), name, str(programs / "plugin.so")]
    settings = TraceSettings(output=folder / "trace", stacks=stacks, children=children)
    with TracedRun(command, settings) as run:
        code = run.follow(lambda _definitions: b"")
    return code, run.summaries


def check(log_path: Path, trace_path: Path) -> WrittenTrace:
    """Compare a log with a trace."""
    log, trace = OwnLog.read(log_path), WrittenTrace.read(trace_path)
    sites = trace.sites_of("/own_log") | trace.sites_of("/plugin.so")
    assert len(log) > 20
    assert trace.lives(sites) == lives_by_address(log)
    assert trace.end["lost"] == "0"
    assert trace.end["unknown_frees"] == "0"
    assert trace.end["inferred_frees"] == "0"
    assert trace.end["events"] == str(len(trace.kind))
    return trace


@pytest.mark.parametrize(
    "name",
    [
        "single", "resizes", "aligned", "operators", "passing", "storm", "signals", "ends", "plugins", "exits", "killed"
    ],
)  # fmt: skip
def test_a_trace_has_what_the_program_itself_wrote_down(
    programs: Path, tmp_path: Path, name: str
) -> None:
    code, summaries = traced(programs, tmp_path, name)
    assert code == EXITS.get(name, 0)
    assert [one.error for one in summaries] == [None]
    check(tmp_path / "log", tmp_path / "trace")


@pytest.mark.parametrize("name", ["operators", "passing", "plugins"])
def test_full_stacks_lose_no_event(programs: Path, tmp_path: Path, name: str) -> None:
    traced(programs, tmp_path, name, "full")
    trace = check(tmp_path / "log", tmp_path / "trace")
    assert max(len(one.frames) for one in trace.definitions.sites.values()) > 3


def test_children_have_their_own_traces(programs: Path, tmp_path: Path) -> None:
    _, summaries = traced(programs, tmp_path, "forks", children=True)
    assert len(summaries) == 4
    check(tmp_path / "log", tmp_path / "trace")
    for child in summaries:
        if child.path != tmp_path / "trace":
            check(tmp_path / f"log.{child.pid}", child.path)


def test_a_forked_child_has_the_blocks_of_its_parent(programs: Path, tmp_path: Path) -> None:
    _, summaries = traced(programs, tmp_path, "forks", children=True)
    children = [one for one in summaries if one.path != tmp_path / "trace"]
    with GCspyTrace(tmp_path / "trace") as above, RebuiltHeap(above) as parent:
        for child in children:
            with GCspyTrace(child.path) as trace, RebuiltHeap(trace) as heap:
                said = trace.header["inherits"]
                found = re.fullmatch(
                    rf"fork [1-3] of process {trace.header['parent']}: ([0-9]+) blocks, which lived before event ([0-9]+) of its trace",
                    said,
                )
                assert found is not None, said
                before, there = parent.at(int(found[2])), heap.at(int(found[1]))
                assert len(before) == len(there) == int(found[1]) > 10
                assert (before.address == there.address).all()
                assert (before.size == there.size).all()
                assert ((there.flags & ObjectFlag.SNAPSHOT) != 0).all()
                assert heap.findings.first is None
                assert child.counts.unknown_frees == 0


def test_a_child_that_is_found_after_its_parent_has_ended_inherits(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_ready = SegmentDrain.is_ready
    command = [str(programs / "own_log"), str(tmp_path / "log"), "forks", "-"]
    settings = TraceSettings(output=tmp_path / "trace", children=True)
    with TracedRun(command, settings) as run:

        def is_found(segment: Path) -> bool:
            """Find the program at once, its children when its trace is closed."""
            is_program = segment.name.startswith(f"{run.pid}-")
            return (is_program or len(run.summaries) > 0) and is_ready(segment)

        monkeypatch.setattr(SegmentDrain, "is_ready", is_found)
        run.follow(lambda _definitions: b"")
    assert len(run.summaries) == 4
    for child in run.summaries[1:]:
        with GCspyTrace(child.path) as trace:
            assert "not known" not in trace.header["inherits"]
            assert child.counts.unknown_frees == 0


def test_forks_of_ended_processes_are_kept_within_limits() -> None:
    forks = EndedForks()
    for number in range(1, 1000):
        forks.keep(
            7, number, 100, ForkedBlocks(np.zeros(9, np.int64), np.zeros(9, np.int64), number)
        )
    assert forks.take(7, 1, 200) is None
    assert forks.take(7, 999, 99) is None
    found = forks.take(7, 999, 200)
    assert found is not None
    assert found.event == 999
    assert forks.take(7, 999, 200) is None
    many = np.zeros(3 << 20, np.int64)
    forks.keep(8, 1, 100, ForkedBlocks(many, many, 1))
    forks.keep(8, 2, 100, ForkedBlocks(many, many, 2))
    assert forks.take(8, 1, 200) is None
    assert forks.take(8, 2, 200) is not None


def test_without_children_a_fork_leaves_the_trace_whole(programs: Path, tmp_path: Path) -> None:
    _, summaries = traced(programs, tmp_path, "forks")
    assert len(summaries) == 1
    check(tmp_path / "log", tmp_path / "trace")
