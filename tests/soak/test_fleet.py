"""A night's recordings, and a long trace, by processes and by Dask with a worker killed: the same bytes, in bounded memory, with few descriptors."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from gcspy_objects.analysis.store import LifeStore
from gcspy_replay.file import FileStore, Recording, cut

from benchmarks.targets.anttracks_synthetic import Synthetic
from gcspy.cli import main
from gcspy.fleet.engine import LocalEngine, engine_of
from gcspy.fleet.feature_table import features_of_files, gathered, write_parquet
from gcspy.objects import kept_heap
from tests.fleet.dask_cluster import Cluster, dask_cluster

pytestmark = pytest.mark.soak

ROOT = Path(__file__).parents[2]
SEED = int(os.environ.get("GCSPY_SOAK_SEED", "1"))
RECORDINGS = int(os.environ.get("GCSPY_SOAK_RECORDINGS", "1000"))
EVENTS = int(os.environ.get("GCSPY_SOAK_EVENTS", "10000000"))
SAMPLES = (
    ROOT / "replay/samples/demo-cpython-3.11.gcspy",
    ROOT / "docs/investigations/graph.gcspy.zst",
    ROOT / "docs/investigations/linter.gcspy.zst",
    ROOT / "docs/investigations/workbook.gcspy.zst",
    ROOT / "docs/jvm-investigations/accounts.gcspy.zst",
    ROOT / "docs/jvm-investigations/sessions.gcspy.zst",
)
EVENTS_EACH = 50


def different_recordings(folder: Path, count: int) -> list[str]:
    """Write different recordings: ranges of about fifty events of the samples, chosen by the seed."""
    dice = random.Random(SEED)
    files = []
    opened = [Recording.open(one) for one in SAMPLES]
    try:
        for number in range(count):
            (source,) = dice.choices(opened, [len(one) for one in opened])
            events = min(EVENTS_EACH + dice.randrange(-25, 26), len(source))
            first = dice.randint(source.first, source.last - events + 1)
            path = folder / f"{number:05d}.gcspy"
            cut(source, FileStore(path), first, first + events - 1)
            files.append(str(path))
    finally:
        for one in opened:
            one.close()
    return files


def reported(capfd: pytest.CaptureFixture[str], what: str, function: Callable[[], object]) -> None:
    """Print the time and the memory of a step."""
    clock, spent = time.monotonic(), time.process_time()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    function()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - children.ru_utime - children.ru_stime
    with capfd.disabled():
        print(
            f"{what}: {time.monotonic() - clock:.1f} s by the clock, {time.process_time() - spent + used:.1f} s of processor,"
            f" children at most {after.ru_maxrss >> 10} MiB, load {os.getloadavg()[0]:.1f}"
        )


def test_features_of_a_thousand_different_recordings_by_processes_and_by_dask(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    files: list[str] = []
    night = tmp_path / "night"
    night.mkdir()
    reported(capfd, "written", lambda: files.extend(different_recordings(night, RECORDINGS)))
    assert len({Path(one).read_bytes() for one in files}) > RECORDINGS * 9 // 10

    def local(jobs: int) -> Path:
        out = tmp_path / f"local-{jobs}.parquet"
        subprocess.run(
            [
                sys.executable,
                "-m",
                "gcspy",
                "features",
                *files,
                "-o",
                str(out),
                "--jobs",
                str(jobs),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)),
        )
        return out

    reported(capfd, "features, one process, 256 descriptors", lambda: local(1))
    reported(capfd, "features, two processes", lambda: local(2))
    expected = (tmp_path / "local-1.parquet").read_bytes()
    assert (tmp_path / "local-2.parquet").read_bytes() == expected

    def by_dask(cluster: Cluster) -> None:
        with engine_of(cluster.address, 1) as engine:
            rows = []
            for row in gathered(files, engine):
                rows.append(row)
                if len(rows) == RECORDINGS // 4:
                    cluster.workers[0].kill()
            write_parquet(rows, tmp_path / "dask.parquet")

    with dask_cluster(tmp_path, 2) as cluster:
        reported(capfd, "features, Dask, one of two workers killed", lambda: by_dask(cluster))
        assert cluster.workers[0].wait() != 0
        assert cluster.workers[1].poll() is None
    assert (tmp_path / "dask.parquet").read_bytes() == expected

    capfd.readouterr()
    table = str(tmp_path / "local-1.parquet")
    page = tmp_path / "report.html"
    assert main(["fleet", "report", table, "--json", "-o", str(page)]) == 0
    report = json.loads(capfd.readouterr().out)
    with capfd.disabled():
        print("fleet report:", {key: len(value) if isinstance(value, list) else value for key, value in report.items()}, f"page of {page.stat().st_size:,} bytes")  # fmt: skip
    assert report


def test_lives_of_a_trace_by_ranges_on_dask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GCSPY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(kept_heap, "WORTH_KEEPING", 0)
    trace = tmp_path / "trace"
    Synthetic().write(trace, EVENTS)
    for one in trace.iterdir():
        os.utime(one, (time.time() - 100,) * 2)

    def answers(*words: str) -> list[object]:
        assert main(["objects", "gather", str(trace), "--json", *words]) == 0
        folder = Path(json.loads(capfd.readouterr().out)["folder"])
        with LifeStore.opened(folder) as store:
            sums = ", ".join(
                f"sum(hash({name}))"
                for name in ("birth_bytes", "died_in", "promoted_in", "site", "moves")
            )
            found = [store.lives, store.ask(f"SELECT {sums} FROM life")]
        assert main(["objects", "gather", str(trace), "--forget"]) == 0
        capfd.readouterr()
        return found

    expected = answers()
    assert answers("--jobs", "2") == expected
    with dask_cluster(tmp_path, 2) as cluster:
        assert answers("--engine", cluster.address, "--ranges", "8") == expected
    (again := tmp_path / "again").mkdir()
    with dask_cluster(again, 2) as cluster, disturbed(cluster):
        assert answers("--engine", cluster.address, "--ranges", "8") == expected
        assert cluster.workers[0].wait() != 0


@contextmanager
def disturbed(cluster: Cluster) -> Iterator[None]:
    """Disturb a cluster: soon one worker is killed, and the other one makes everybody wait for some seconds."""

    def disturb() -> None:
        cluster.workers[0].kill()
        cluster.workers[1].send_signal(signal.SIGSTOP)
        time.sleep(3)
        cluster.workers[1].send_signal(signal.SIGCONT)

    timer = threading.Timer(4, disturb)
    timer.start()
    try:
        yield
    finally:
        timer.join()


def test_a_scheduler_that_does_not_answer_is_an_error(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"dask://127.0.0.1:{free.getsockname()[1]}"
        command = [
            "features",
            str(SAMPLES[0]),
            "-o",
            str(tmp_path / "x.parquet"),
            "--engine",
            address,
        ]
        done = subprocess.run([sys.executable, "-m", "gcspy", *command], capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 1
    assert f"no Dask scheduler answers at tcp://{address.removeprefix('dask://')}" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_task_whose_dask_worker_is_killed_is_done_by_the_other(tmp_path: Path) -> None:
    tasks = [([str(SAMPLES[number % len(SAMPLES)])],) for number in range(40)]
    expected = list(LocalEngine(1).call(features_of_files, tasks))
    with dask_cluster(tmp_path, 2) as cluster, engine_of(cluster.address, 1) as engine:
        found = []
        for each in engine.call(features_of_files, tasks):
            found.append(each)
            if len(found) == 10:
                cluster.workers[1].kill()
    assert sorted(found, key=lambda one: one[0]) == expected
