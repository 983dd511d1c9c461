"""Every file opens in every command, without repair; and what is no recording is refused by each, in one line."""

from __future__ import annotations

import os
import socket
import sys
from functools import cache
from pathlib import Path

import pytest
from gcspy_protocol.errors import RecordingError
from gcspy_replay.file import (
    ChunkRule,
    FileStore,
    MemorySource,
    MemoryStore,
    Recording,
    RingStore,
    SplitStore,
)

from tests.cli.every_command import COMMANDS, SLOW, assert_every_command_reads, run
from tests.matrix import matrix
from tests.replay.recorded import Small, small
from tests.replay.test_kill import record_and_kill

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="the deadline is an alarm, and some files are devices"
)

RULE = ChunkRule(weight=99, most_events=4)


@pytest.mark.parametrize("events", matrix([8, 30], usual=[8]))
def test_a_file_whose_recorder_was_killed(events: int, tmp_path: Path) -> None:
    path = tmp_path / "killed.gcspy"
    record_and_kill(path, events)
    with Recording.open(path) as recording:
        found = recording.last
    assert found >= events
    assert_every_command_reads([path], found, tmp_path / "out", slow=events == 8)


@cache
def killed() -> bytes:
    """Return what a kill leaves: six events, two of them in a chunk without an end."""
    store = MemoryStore()
    Small(store, rule=RULE).events(6)
    return bytes(store.data)


def torn_lengths() -> range:
    """Return how many bytes of the last event may be left, all of them but none and all."""
    last = Recording([MemorySource(killed())]).events[-1]
    assert int(last["offset"] + last["bytes"]) <= len(killed())
    return range(1, int(last["bytes"]))


def assert_torn(left: int, folder: Path) -> None:
    last = Recording([MemorySource(killed())]).events[-1]
    path = folder / "torn.gcspy"
    path.write_bytes(killed()[: int(last["offset"]) + left])
    assert_every_command_reads([path], 5, folder / "out")


@pytest.mark.parametrize("left", matrix([28, -1], usual=[-1]))
def test_a_torn_last_event(left: int, tmp_path: Path) -> None:
    assert_torn(left if left > 0 else torn_lengths()[-1], tmp_path)


@pytest.mark.soak
def test_every_length_of_a_torn_last_event(tmp_path: Path) -> None:
    for left in torn_lengths():
        assert_torn(left, tmp_path)


def test_a_single_event(tmp_path: Path) -> None:
    path = tmp_path / "one.gcspy"
    path.write_bytes(small(1))
    assert_every_command_reads([path], 1, tmp_path / "out", slow=True)


@pytest.mark.parametrize("closed", [True, False])
def test_a_ring(closed: bool, tmp_path: Path) -> None:
    folder = tmp_path / "ring"
    store = RingStore(folder, keep_nanos=1_500_000_000)
    session = Small(store, rule=RULE).events(40)
    if closed:
        session.writer.close()
    store.close()  # as the end of the process would
    with Recording.open(folder) as recording:
        assert recording.first > 1
        events = len(recording)
        assert len(recording.parts) > 1
    assert_every_command_reads([folder], events, tmp_path / "out")
    (folder / "000000.gcspy").symlink_to(
        tmp_path / "dropped"
    )  # a part that a recorder drops at this moment
    assert run("info", [folder], tmp_path).code == 0


@pytest.mark.parametrize("killed", [False, True])
def test_a_split_recording(killed: bool, tmp_path: Path) -> None:
    store = SplitStore(tmp_path / "split.gcspy", part_bytes=1)
    session = Small(store, rule=RULE).events(10)
    if not killed:
        session.writer.close()
    store.close()  # as the end of the process would
    if killed:
        with store.paths[-1].open("r+b") as file:
            file.truncate(store.paths[-1].stat().st_size - 3)
    assert len(store.paths) == 3
    assert_every_command_reads(store.paths, 9 if killed else 10, tmp_path / "out")


def test_a_session_without_events(tmp_path: Path) -> None:
    """There is nothing to draw or to tabulate; what can be said without events is said, and a cut has none either."""
    path = tmp_path / "empty.gcspy"
    Small(FileStore(path)).writer.close()
    for name in COMMANDS:
        done = run(name, [path], tmp_path)
        if name.startswith("export") or name == "screenshot":
            assert done.code == 9, f"{name}: {done}"
            assert done.err.count("\n") == 1
            assert not done.output.exists(), name
        else:
            assert done.code == 0, f"{name}: {done.err}"


# ------------------------------------------------------------------ what is none


def strange(kind: str, folder: Path) -> Path:
    """Make something that is no recording."""
    path = folder / "strange.gcspy"
    match kind:
        case "foreign":
            path.write_bytes(b"PK\x03\x04" + bytes(range(256)) * 40)
        case "empty":
            path.touch()
        case "beginning":
            path.write_bytes(small(2)[:100])
        case "directory":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(str(path))
        case "device":
            path.symlink_to("/dev/zero")
        case "unreadable":
            path.symlink_to(
                "/proc/self/mem"
            )  # a file like any, that opens, and whose first byte cannot be read
        case "forbidden":
            path.write_bytes(small(2))
            path.chmod(0)
        case "dangling":
            path.symlink_to(folder / "nothing")
        case _:
            pass  # gone
    return path


KINDS = [
    "foreign",
    "empty",
    "beginning",
    "directory",
    "fifo",
    "socket",
    "device",
    "unreadable",
    "forbidden",
    "dangling",
    "gone",
]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_recording_is_refused_by_every_command(kind: str, tmp_path: Path) -> None:
    if kind == "forbidden" and os.geteuid() == 0:
        pytest.skip("nothing is forbidden to root")
    if kind == "unreadable" and sys.platform != "linux":
        pytest.skip("needs /proc")
    path = strange(kind, tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    for name in COMMANDS:
        if name in SLOW and kind not in ("foreign", "fifo", "gone"):
            continue
        done = run(name, [path], out)
        what = f"{name} on a {kind}: {done}"
        assert done.code in (2, 9), what
        told = done.err or done.out  # verify says of a beginning what it finds
        assert "strange.gcspy" in told, what
        assert "Traceback" not in told, what
        assert done.code == 2 or told.count("\n") == 1, what
        assert list(out.iterdir()) == [], what


def test_a_file_that_goes_while_it_is_read_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a.gcspy"
    path.write_bytes(small(6, rule=RULE))
    with Recording.open(path) as recording:
        path.unlink()
        assert len(list(recording.steps())) == 6


def test_a_file_that_is_cut_while_it_is_read_ends_in_an_error_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "a.gcspy"
    path.write_bytes(small(900))
    with Recording.open(path) as recording:
        recording.seek(1)
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size // 2)
        with pytest.raises(RecordingError, match=r"damaged|ends|should be at"):
            recording.seek(900)
