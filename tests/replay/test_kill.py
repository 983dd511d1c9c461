"""SIGKILL of a recorder: every event it reported is in the file, and the file opens without repair."""

from __future__ import annotations

import random
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


@pytest.mark.soak
def test_fifty_killed_recorders_lose_no_event(tmp_path: Path, soak_seed: int) -> None:
    moments = random.Random(soak_seed)
    for i in range(50):
        path = tmp_path / f"{i}.gcspy"
        assert_survived(path, record_and_kill(path, moments.randint(1, 400)))
