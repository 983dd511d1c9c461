"""Objects of a JVM: their births and deaths are those that the program counts, under each collector; and moves can be followed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from gcspy_objects.heap import RebuiltHeap
from gcspy_objects.trace import open_trace

from gcspy.cli import main

PROGRAM = Path(__file__).parent / "programs/Trees.java"
COLLECTORS = ("Serial", "Parallel", "G1")


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("javac")
    if compiler is None:
        pytest.skip("there is no javac")
    folder = tmp_path_factory.mktemp("classes")
    subprocess.run([compiler, "-d", str(folder), str(PROGRAM)], check=True, timeout=120)
    return folder


def trace_of(classes: Path, path: Path, collector: str, rounds: int, depth: int) -> int:
    """Trace each object of the program; return the exit code."""
    java = str(shutil.which("java"))
    options = [f"-XX:+Use{collector}GC", "-Xmx32m", "-cp", str(classes)]
    return main(
        ["trace", "-o", str(path), "--sample", "0", "--", java, *options, "Trees", str(rounds), str(depth)]
    )  # fmt: skip


@pytest.mark.parametrize("collector", ["G1"])
def test_births_and_deaths_are_those_that_the_program_counts(
    classes: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], collector: str
) -> None:
    path = tmp_path / "trees.gctrace"
    assert trace_of(classes, path, collector, 100, 7) == 0
    out, err = capfd.readouterr()
    made, kept = map(int, out.split())
    assert "those that its compiler never allocates" in err
    with open_trace(path) as trace, RebuiltHeap(trace) as heap:
        assert not heap.findings
        assert len(heap.collections) >= 1
        (node,) = trace.types.rows_named("Trees$Node")
        lives = list(heap.lives())
        born = sum(int((one.type == node).sum()) for one in lives)
        left = sum(int(((one.type == node) & (one.freed_event < 0)).sum()) for one in lives)
        assert (born, left) == (made, kept)
        sites = {
            trace.sites.name(int(row))
            for one in lives
            for row in one.site[one.type == node].tolist()
        }
        assert sites == {"Trees.make (Trees.java) @ 21"}


LARGE = [pytest.param(one, 300, 11, marks=pytest.mark.soak) for one in COLLECTORS]


@pytest.mark.parametrize(("collector", "rounds", "depth"), [("Serial", 400, 7), *LARGE])
def test_every_move_is_in_the_trace_and_no_two_objects_lie_in_one_place(
    classes: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    collector: str,
    rounds: int,
    depth: int,
) -> None:
    monkeypatch.setenv("GCSPY_RUNTIME_CHECK", "Trees$Node")
    path = tmp_path / "trees.gctrace"
    assert trace_of(classes, path, collector, rounds, depth) == 0
    found = re.search(r"([0-9]+) moves, ([0-9]+) wrong", capfd.readouterr().err)
    assert found is not None
    assert (int(found[1]) > 100, int(found[2])) == (True, 0)
    with open_trace(path) as trace, RebuiltHeap(trace) as heap:
        assert heap.findings.first is None
        assert sum(one.objects_moved for one in heap.collections) == int(found[1])
        for one in [*heap.collections][:: max(len(heap.collections) // 10, 1)]:
            now = heap.at(one.end_event + 1)
            assert (now.address[1:] >= now.address[:-1] + now.size[:-1]).all()
        last = heap.at(heap.events)
        row = int(last.moves.argmax())
        life = heap.follow(int(last.birth[row]))
        assert life.stays[-1].address == int(last.address[row])
        assert len(life.stays) == int(last.moves[row]) + 1


def test_a_concurrent_collector_is_refused_in_words(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "-o", "/dev/null", "--force", "--", "java", "-XX:+UseZGC", "Main"]) != 0
    assert "Serial, Parallel and G1" in capfd.readouterr().err
