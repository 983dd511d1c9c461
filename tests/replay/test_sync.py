"""Written data is synced to the disk now and then, beside the writing; a failed sync is reported."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from gcspy_protocol.errors import RecordingError
from gcspy_replay.file import (
    ChunkRule,
    FileSource,
    FileStore,
    MemorySource,
    MemoryStore,
    Recording,
    RingStore,
    SplitStore,
    Store,
    verify,
)

from tests.replay.recorded import Small

RULE = ChunkRule(weight=99, most_events=5)
SOON = 0.001


class Disk:
    """Stands for `fdatasync`: remembers what it was called for, with how many bytes, and in which thread."""

    def __init__(self) -> None:
        self.brought: list[tuple[str, int]] = []
        self.threads: set[str] = set()
        self.error: OSError | None = None
        self._changed = threading.Condition()

    def fdatasync(self, number: int) -> None:
        with self._changed:
            name = Path(os.readlink(f"/proc/self/fd/{number}")).name
            self.brought.append((name, os.fstat(number).st_size))
            self.threads.add(threading.current_thread().name)
            self._changed.notify_all()
            if self.error is not None:
                raise self.error

    def wait_for(self, times: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.brought) >= times, 10), self.brought


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    found = Disk()
    monkeypatch.setattr(os, "fdatasync", found.fdatasync)
    return found


pytestmark = pytest.mark.skipif(
    not hasattr(os, "fdatasync"), reason="names of open files are read from /proc"
)

STORES: list[Callable[[Path, float], Store]] = [
    lambda folder, secs: FileStore(folder / "a.gcspy", sync_secs=secs),
    lambda folder, secs: SplitStore(folder / "a.gcspy", part_bytes=3000, sync_secs=secs),
    lambda folder, secs: RingStore(folder / "ring", keep_bytes=40_000, sync_secs=secs),
]
KINDS = pytest.mark.parametrize("make", STORES, ids=["file", "split", "ring"])


@KINDS
def test_all_files_are_whole_on_the_disk_when_the_recording_is_closed(
    make: Callable[[Path, float], Store], disk: Disk, tmp_path: Path
) -> None:
    Small(make(tmp_path, 3600), rule=RULE).events(60).writer.close()
    latest = dict(disk.brought)
    files = list(tmp_path.rglob("*.gcspy"))
    assert {path.name: path.stat().st_size for path in files}.items() <= latest.items()
    assert {path.parent.name for path in files} <= latest.keys(), "so that their names survive too"
    assert disk.threads == {"gcspy-sync"}, "whoever writes does not wait"


@KINDS
def test_without_it_nothing_is_brought_anywhere_and_there_is_no_thread(
    make: Callable[[Path, float], Store], disk: Disk, tmp_path: Path
) -> None:
    session = Small(make(tmp_path, 0), rule=RULE).events(60)
    assert not [thread for thread in threading.enumerate() if thread.name == "gcspy-sync"]
    session.writer.close()
    assert disk.brought == []


def test_what_was_written_is_brought_there_again_and_again_while_more_is_written(
    disk: Disk, tmp_path: Path
) -> None:
    session = Small(FileStore(tmp_path / "a.gcspy", sync_secs=SOON), rule=RULE)
    for _ in range(4):
        before = len(disk.brought)
        session.event()
        size = (tmp_path / "a.gcspy").stat().st_size
        while not any(
            name == "a.gcspy" and brought >= size for name, brought in disk.brought[before:]
        ):
            disk.wait_for(len(disk.brought) + 1)
    # Where nothing is written there is nothing to bring.
    quiet = len(disk.brought)
    threading.Event().wait(20 * SOON)
    assert len(disk.brought) == quiet
    session.writer.close()
    with FileSource(tmp_path / "a.gcspy") as source:
        assert verify(source).intact


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_a_disk_that_does_not_take_it_ends_the_recording_and_is_told_of(
    number: int, disk: Disk, tmp_path: Path
) -> None:
    session = Small(FileStore(tmp_path / "a.gcspy", sync_secs=SOON), rule=RULE)
    disk.error = OSError(number, os.strerror(number))
    with pytest.raises(
        RecordingError, match=rf"cannot flush .*a\.gcspy to the disk: {os.strerror(number)}"
    ):
        session.events(100_000)
    written = session.writer.number
    with Recording.open(tmp_path / "a.gcspy") as recording:
        assert recording.last in (written, written + 1), (
            "the event at which it was reported was written, too"
        )


def test_a_disk_that_fails_at_the_end_is_told_of(disk: Disk, tmp_path: Path) -> None:
    session = Small(FileStore(tmp_path / "a.gcspy", sync_secs=3600), rule=RULE).events(3)
    disk.error = OSError(errno.EIO, "the disk is gone")
    with pytest.raises(RecordingError, match="the disk is gone"):
        session.writer.close()


def test_what_was_created_for_nothing_goes_without_a_sync(disk: Disk, tmp_path: Path) -> None:
    FileStore(tmp_path / "a.gcspy", sync_secs=1).close()
    assert list(tmp_path.iterdir()) == []
    assert disk.brought == []


@pytest.mark.parametrize("block", [64, 512, 4096])
def test_what_a_machine_forgot_of_the_latest_seconds_costs_no_event_before_them(block: int) -> None:
    """Blocks of zeros where the kernel had not written yet; the file may end early or not."""
    store = MemoryStore()
    session = Small(store, rule=RULE).events(20)
    safe = len(store.data)
    session.events(20)
    whole = bytes(store.data)
    for start in range(safe, len(whole), max(block, (len(whole) - safe) // 20)):
        for data in (
            whole[:start] + bytes(min(block, len(whole) - start)) + whole[start + block :],
            whole[:start] + bytes(block),
        ):
            recording = Recording([MemorySource(bytearray(data))])
            numbers = recording.events["number"].tolist()
            assert numbers[:20] == list(range(1, 21))
            for step, state in recording.steps(1, 20):
                assert np.array_equal(state.spaces[1].streams[0].values, Small.values(step.number))
