"""What is kept about traces: asked a second time a trace is not read again; changed, it is; killed workers change nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from gcspy_objects.anttracks.reader import AntTracksTrace

from benchmarks.targets.anttracks_synthetic import SMALL, Synthetic
from gcspy.cli import main
from gcspy.fleet.engine import LocalEngine
from gcspy.objects import kept_heap
from gcspy.objects.trace_cache import TraceCache, trace_identity


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small trace that is worth keeping, last changed some time ago."""
    monkeypatch.setenv("GCSPY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(kept_heap, "WORTH_KEEPING", 0)
    Synthetic(sizes=SMALL).write(tmp_path / "trace", 12_000)
    age(tmp_path / "trace")
    return tmp_path / "trace"


def age(folder: Path) -> None:
    for one in folder.iterdir():
        os.utime(one, (time.time() - 100,) * 2)


def asked(capfd: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["objects", *words]) == 0
    return capfd.readouterr().out


def test_a_second_question_reads_no_event(
    trace: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = asked(capfd, "types", str(trace), "--json")
    heaps = asked(capfd, "find", str(trace), "--json")
    monkeypatch.setattr(AntTracksTrace, "batches", None)
    assert asked(capfd, "types", str(trace), "--json") == first
    assert json.loads(asked(capfd, "survival", str(trace), "--json"))["rows"]
    monkeypatch.undo()
    assert heaps.count("address")


def test_a_changed_trace_is_read_again(trace: Path, capfd: pytest.CaptureFixture[str]) -> None:
    first = asked(capfd, "types", str(trace), "--json")
    Synthetic(sizes=SMALL).write(trace, 24_000)
    age(trace)
    assert asked(capfd, "types", str(trace), "--json") != first


def test_a_trace_that_changed_just_now_is_not_kept(trace: Path) -> None:
    assert trace_identity(trace) is not None
    (trace / "symbols").touch()
    assert trace_identity(trace) is None


def test_damaged_lives_are_gathered_again(
    trace: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    first = asked(capfd, "types", str(trace), "--json")
    for damaged in ("lives/*.parquet", "collections.parquet", "index"):
        (file,) = (tmp_path / "cache").glob(f"*/{damaged}")
        file.write_bytes(file.read_bytes()[:20])
        assert asked(capfd, "types", str(trace), "--json") == first


def test_lives_gathered_by_processes_one_of_which_is_killed_are_those_of_one(
    trace: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    alone = asked(capfd, "sites", str(trace), "--json")
    assert json.loads(asked(capfd, "gather", str(trace), "--forget", "--json"))["removed"]
    report = json.loads(asked(capfd, "gather", str(trace), "--jobs", "2", "--json"))
    assert report["gathered"]
    assert asked(capfd, "sites", str(trace), "--json") == alone
    assert not json.loads(asked(capfd, "gather", str(trace), "--json"))["gathered"]


def fatal_once(mark: str, number: int) -> int:
    """Kill this process at the first call with number 2, and square the number."""
    if number == 2:
        try:
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            pass
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def test_what_a_killed_process_had_is_done_again(tmp_path: Path) -> None:
    tasks = [(str(tmp_path / "mark"), number) for number in range(6)]
    found = list(LocalEngine(2).call(fatal_once, tasks))
    assert sorted(found) == [(number, number * number) for number in range(6)]
    assert (tmp_path / "mark").exists()


def test_the_oldest_folders_go_first_and_used_ones_stay(tmp_path: Path) -> None:
    cache = TraceCache(tmp_path / "cache", most_bytes=200_000)
    for number, name in enumerate("abc"):
        with cache.entry(name) as entry:
            assert entry is not None
            (entry.folder / "checkpoints").write_bytes(bytes(90_000))
        os.utime(tmp_path / "cache" / name / "lock", (number, number))
    with cache.entry("a"):
        cache.make_room()
        assert sorted(one.name for one in cache.folder.iterdir()) == ["a", "c"]
        assert not cache.forget("a")
    assert cache.forget("a")


def test_without_a_limit_the_cache_takes_a_tenth_of_the_disk_and_10_gib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = [0]
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free[0]))
    cache = TraceCache(tmp_path / "cache")
    with cache.entry("a") as entry:
        assert entry is not None
        (entry.folder / "checkpoints").write_bytes(bytes(90_000))
    free[0] = 9 * 200_000
    cache.make_room()
    assert [one.name for one in cache.folder.iterdir()] == ["a"]
    free[0] = 9 * 80_000
    cache.make_room()
    assert list(cache.folder.iterdir()) == []
    assert TraceCache(tmp_path)._most(1 << 50) == 10 << 30
