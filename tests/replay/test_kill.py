"""SIGKILL of a recorder: every event it reported is in the file, and the file opens without repair."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from gcspy_replay.file import FileSource, Recording, verify

from tests.replay.recorded import Small

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import sys
from pathlib import Path
from gcspy_replay.file import ChunkRule, FileStore
from tests.replay.recorded import Small
session = Small(FileStore(Path(sys.argv[1])), rule=ChunkRule(weight=99, most_events=7), tiles=5000)
while True:
    session.event()
    print(session.number, flush=True)
"""


def record_and_kill(path: Path, events: int) -> int:
    """Kill a recorder as soon as it reported this many events; return the last one it reported."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) >= events:
                break
        process.kill()
        # Its reports before the kill came through, if the last line is whole.
        more = process.stdout.read().splitlines(keepends=True)
    return max([events, *(int(line) for line in more if line.endswith("\n"))])


def assert_survived(path: Path, told: int) -> None:
    """Assert that the recording has every event that the recorder reported, and perhaps one more."""
    with Recording.open(path) as recording:
        assert told <= recording.last <= told + 1
        assert len(recording.events) == recording.last
        for number in {1, recording.last, (1 + recording.last) // 2}:
            values = recording.seek(number).spaces[1].streams[0].values
            assert np.array_equal(values, Small.values(number, 5000))
    with FileSource(path) as source:
        report = verify(source)
    assert report.intact
    assert report.events == recording.last


@pytest.mark.parametrize("events", [1, 60])
def test_a_killed_recorder_loses_no_event_that_it_told_of(tmp_path: Path, events: int) -> None:
    path = tmp_path / "killed.gcspy"
    assert_survived(path, record_and_kill(path, events))


NURSERY = """
import os, random, signal, sys, time
from pathlib import Path
from gcspy_replay.file import ChunkRule, FileStore
from tests.replay.recorded import Small
moments = random.Random(int(sys.argv[2]))
for number in range(int(sys.argv[3])):
    reading, writing = os.pipe()
    recorder = os.fork()
    if not recorder:
        store = FileStore(Path(sys.argv[1]) / f"{number}.gcspy")
        session = Small(store, rule=ChunkRule(weight=99, most_events=7), tiles=5000)
        while True:
            session.event()
            os.write(writing, session.number.to_bytes(4, "little"))
    os.close(writing)
    told = os.read(reading, 4)
    time.sleep(moments.random() * 0.04)
    os.kill(recorder, signal.SIGKILL)
    os.waitpid(recorder, 0)
    while more := os.read(reading, 1 << 16):
        told = more[-4:]
    os.close(reading)
    print(number, int.from_bytes(told, "little"), flush=True)
"""


@pytest.mark.soak
def test_a_thousand_recorders_killed_at_any_moment_lose_no_event(
    tmp_path: Path, soak_seed: int
) -> None:
    """Recorders are forks of one process, which has loaded everything; each is killed within 40 ms of its first event."""
    kills = 0
    with subprocess.Popen(
        [sys.executable, "-c", NURSERY, str(tmp_path), str(soak_seed), "1000"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as nursery:
        assert nursery.stdout is not None
        for line in nursery.stdout:
            number, told = map(int, line.split())
            path = tmp_path / f"{number}.gcspy"
            assert_survived(path, told)
            path.unlink()
            kills += 1
    assert kills == 1000
