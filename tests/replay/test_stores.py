"""Where recordings go: one file, split files, a ring, memory with a temporary file behind it."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from gcspy_protocol.errors import NotARecording, RecordingError
from gcspy_protocol.messages import State
from gcspy_protocol.model import ControlState
from gcspy_replay.file import (
    WIRE_VERSION,
    ChunkRule,
    FileSource,
    FileStore,
    MemorySource,
    MemoryStore,
    Recording,
    RingStore,
    ShiftStore,
    SplitStore,
    cut,
    verify,
)
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from tests.examples import examples
from tests.protocol.session import assert_equal
from tests.replay.recorded import RULES, Recorder, Small, small

RULE = ChunkRule(weight=99, most_events=5)


def assert_true(recording: Recording, first: int, last: int, tiles: int = 9) -> None:
    """Assert that these are its events, and each has the values it should: read in order, and sought.

    Of many events each thirteenth is sought: at all the places in a chunk of five.
    """
    assert (recording.first, recording.last) == (first, last)
    assert recording.events["number"].tolist() == list(range(first, last + 1))
    for step, session in recording.steps():
        assert np.array_equal(session.spaces[1].streams[0].values, Small.values(step.number, tiles))
    for number in range(first, last + 1, 1 if last - first < 200 else 13):
        values = recording.seek(number).spaces[1].streams[0].values
        assert np.array_equal(values, Small.values(number, tiles))


def test_a_file_holds_what_memory_would(tmp_path: Path) -> None:
    path = tmp_path / "a.gcspy"
    Small(FileStore(path), rule=RULE).events(12).writer.close()
    assert path.read_bytes() == small(12, rule=RULE)
    with Recording.open(path) as recording:
        assert_true(recording, 1, 12)


def test_a_file_is_not_replaced_unless_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.gcspy"
    path.write_bytes(b"precious")
    with pytest.raises(RecordingError, match="exists already"):
        FileStore(path)
    assert path.read_bytes() == b"precious"
    Small(FileStore(path, replace=True)).events(2).writer.close()
    with Recording.open(path) as recording:
        assert len(recording) == 2
    with pytest.raises(RecordingError, match="cannot write"):
        FileStore(tmp_path / "none" / "a.gcspy")


def test_an_event_is_in_the_file_when_it_was_added(tmp_path: Path) -> None:
    """Without any flush or close: that is what makes a kill harmless."""
    session = Small(FileStore(tmp_path / "a.gcspy"), rule=RULE)
    for number in range(1, 13):
        session.event()
        with Recording.open(tmp_path / "a.gcspy") as recording:
            assert_true(recording, 1, number)
            assert not recording.finished
    session.writer.close()


def test_a_reader_follows_a_recorder(tmp_path: Path) -> None:
    session = Small(FileStore(tmp_path / "a.gcspy"), rule=RULE).events(3)
    with (
        Recording.open(tmp_path / "a.gcspy") as recording,
        Recording.open(tmp_path / "a.gcspy") as other,
    ):
        cursor = recording.cursor()
        cursor.seek(3)
        assert not recording.refresh()
        for number in range(4, 20):
            assert cursor.step() is None
            session.event()
            assert recording.refresh()
            step = cursor.step()
            assert step is not None
            assert step.number == number
            assert np.array_equal(cursor.session.spaces[1].streams[0].values, Small.values(number))
        session.writer.close()
        assert recording.refresh()
        assert recording.finished
        assert cursor.step() is None
        assert other.refresh()
        assert_true(other, 1, 19)


def test_parts_are_recordings_by_themselves_and_together(tmp_path: Path) -> None:
    store = SplitStore(tmp_path / "a.gcspy", part_bytes=3000)
    Small(store, rule=RULE).events(40).writer.close()
    assert [path.name for path in store.paths[:2]] == ["a.gcspy", "a.0001.gcspy"]
    assert len(store.paths) > 3
    with Recording.open(*reversed(store.paths)) as recording:
        assert recording.indexed
        assert_true(recording, 1, 40)
    following = 1
    for path in store.paths:
        with Recording.open(path) as part:
            if not len(part):
                continue  # the last one may hold no more than the messages after the last event
            assert_true(part, following, part.last)
            following = part.last + 1
        with FileSource(path) as source:
            assert verify(source).findings == []
    assert following == 41


def test_parts_of_different_recordings_do_not_mix(tmp_path: Path) -> None:
    (tmp_path / "a.gcspy").write_bytes(small(3))
    other = bytearray(small(3).replace(bytes(range(16)).hex().encode(), bytes(16).hex().encode()))
    (tmp_path / "b.gcspy").write_bytes(other)
    with pytest.raises(RecordingError):
        Recording.open(tmp_path / "a.gcspy", tmp_path / "b.gcspy")


def test_a_ring_keeps_the_latest_bytes(tmp_path: Path) -> None:
    budget = 40_000
    session = Small(RingStore(tmp_path / "ring", keep_bytes=budget), rule=RULE)
    most = 0
    for _ in range(400):
        session.event()
        most = max(most, sum(path.stat().st_size for path in (tmp_path / "ring").iterdir()))
    session.writer.close()
    assert most <= budget
    with Recording.open(tmp_path / "ring") as recording:
        assert recording.first > 1
        assert_true(recording, recording.first, 400)
        assert recording.size_bytes > budget // 2


def test_a_ring_keeps_the_latest_seconds(tmp_path: Path) -> None:
    second = 1_000_000_000
    session = Small(
        RingStore(tmp_path / "ring", keep_nanos=8 * second), rule=RULE, nanos=second // 10
    )
    session.events(400).writer.close()
    with Recording.open(tmp_path / "ring") as recording:
        times = recording.events["time_nanos"]
        assert 8 * second <= int(times[-1] - times[0]) <= 10 * second
        assert_true(recording, recording.first, 400)


@pytest.mark.parametrize("interval", [0.1, 1, 2, 5])
def test_a_ring_keeps_an_eighth_and_an_event_too_much_at_most_however_slow_the_clock(
    tmp_path: Path, interval: float
) -> None:
    """With chunks of eight events, as elsewhere, it kept nearly twice the requested number."""
    second = 1_000_000_000
    session = Small(
        RingStore(tmp_path / "ring", keep_nanos=10 * second), nanos=int(interval * second)
    )
    kept = []
    for _ in range(100):
        session.event()
        with Recording.open(tmp_path / "ring") as recording:
            times = recording.events["time_nanos"]
        kept.append((int(times[-1]) - int(times[0])) / second)
    session.writer.close()
    assert max(kept) <= 10 * 9 / 8 + 2 * interval
    assert min(kept[int(10 / interval) + 1 :], default=10) >= 10
    with Recording.open(tmp_path / "ring") as recording:
        assert_true(recording, recording.first, 100)


def test_a_ring_of_seconds_is_bounded_where_the_clock_turns_back(tmp_path: Path) -> None:
    """As that of a playback does, which loops over less than the ring keeps, or plays backwards."""
    second = 1_000_000_000
    folder = tmp_path / "ring"
    there_and_back = [*range(5), *range(5, 0, -1)]
    ring, part, most = RingStore(folder, keep_nanos=40 * second), 0, 0
    ring.begin(part)
    for step in range(1000):
        ring.append(b"event", time_nanos=there_and_back[step % 10] * second)
        if ring.is_full(part_bytes=5):
            ring.end()
            part += 1
            ring.begin(part)
        most = max(most, sum(path.stat().st_size for path in folder.iterdir()))
    ring.close()
    assert part > 50
    assert 40 * len(b"event") <= most <= 60 * len(b"event")


def test_a_part_that_cannot_be_created_ends_a_recording_that_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.0001.gcspy").write_bytes(b"somebody's")
    session = Small(SplitStore(tmp_path / "a.gcspy", part_bytes=3000), rule=RULE)
    with pytest.raises(RecordingError, match=r"a\.0001\.gcspy exists already"):
        session.events(60)
    written = session.writer.number
    with pytest.raises(RecordingError, match=f"was closed after event {written}"):
        session.event()
    session.writer.flush()
    session.writer.close()
    assert (tmp_path / "a.0001.gcspy").read_bytes() == b"somebody's"
    with Recording.open(tmp_path / "a.gcspy") as recording:
        assert recording.indexed
        assert_true(recording, 1, written)


@pytest.mark.parametrize("events", range(1, 12))
def test_what_was_said_after_an_event_is_in_the_file_when_it_was_flushed(events: int) -> None:
    """At the end of a chunk too, where it begins the next one."""
    store = MemoryStore()
    session = Small(store, rule=RULE).events(events)
    session.say(State(state=ControlState.PAUSED, reason="by hand"))
    waited = session.writer.waiting
    session.writer.flush()
    assert (waited, session.writer.waiting) == (True, False)
    killed = bytes(store.data)
    session.events(9).writer.close()
    for data in (killed, bytes(store.data)):
        with Recording([MemorySource(data)]) as recording:
            cursor = recording.cursor()
            cursor.seek(events)
            step = cursor.step()
            assert (step is None) == (data is killed)
            assert (cursor.session.state, cursor.session.state_reason) == (
                ControlState.PAUSED,
                "by hand",
            )
            assert_true(recording, 1, recording.last)
        assert verify(MemorySource(data)).intact


def test_a_reader_follows_a_ring(tmp_path: Path) -> None:
    session = Small(RingStore(tmp_path / "ring", keep_bytes=30_000), rule=RULE).events(30)
    with Recording.open(tmp_path / "ring") as recording:
        for _ in range(20):
            session.events(11)
            assert recording.refresh()
            assert recording.last == session.number
            values = recording.seek(session.number).spaces[1].streams[0].values
            assert np.array_equal(values, Small.values(session.number))
        assert recording.first > 1
        assert_true(recording, recording.first, session.number)
    session.writer.close()


def test_a_ring_needs_a_folder_without_a_recording(tmp_path: Path) -> None:
    (tmp_path / "a.gcspy").write_bytes(small(3))
    with pytest.raises(RecordingError, match="already contains a recording"):
        RingStore(tmp_path, keep_bytes=1000)
    with pytest.raises(RecordingError, match="a positive number"):
        RingStore(tmp_path / "ring")
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotARecording, match="no recording in the folder"):
        Recording.open(tmp_path / "empty")


class FullDisk(MemoryStore):
    """A disk with room for this many bytes."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self._room = room

    def append(self, data: bytes, *, time_nanos: int) -> None:
        """Write what there is room for."""
        super().append(data[: max(0, self._room - len(self.data))], time_nanos=time_nanos)
        if len(self.data) >= self._room:
            raise RecordingError("no room")


@pytest.mark.parametrize("room", range(1, 9000, 617))
def test_a_full_disk_ends_a_recording_that_can_be_read(room: int) -> None:
    store = FullDisk(room)
    session = Small(store, rule=RULE)
    with pytest.raises(RecordingError, match="no room"):
        session.events(60)
    session.writer.close()
    with pytest.raises(RecordingError, match=f"was closed after event {session.writer.number}"):
        session.event()
    assert len(store.data) == room
    if session.writer.number:
        assert_true(Recording([MemorySource(store.data)]), 1, session.writer.number)


def test_a_file_for_nothing_goes_and_a_file_to_be_replaced_stays(tmp_path: Path) -> None:
    FileStore(tmp_path / "a.gcspy").close()
    assert not (tmp_path / "a.gcspy").exists()
    (tmp_path / "b.gcspy").write_bytes(b"old")
    FileStore(tmp_path / "b.gcspy", replace=True).close()
    assert (tmp_path / "b.gcspy").read_bytes() == b"old"


# ------------------------------------------------------------------ time shift


def test_the_time_shift_stays_within_its_memory_and_loses_nothing() -> None:
    budget = 200_000
    store = ShiftStore(memory_bytes=budget, disk_bytes=1 << 30)
    session = Small(store, rule=RULE, tiles=3000)
    while session.writer.bytes_written < 10 * budget:
        session.event()
        assert store.memory_bytes <= budget
    recording = store.recording()
    assert store.peak_memory_bytes <= budget
    assert store.disk_bytes > 8 * budget
    assert_true(recording, 1, session.number, 3000)
    session.event()
    assert recording.refresh()
    assert recording.last == session.number
    recording.close()
    store.discard()


def test_the_time_shift_gives_up_the_oldest_beyond_its_disk() -> None:
    store = ShiftStore(memory_bytes=200_000, disk_bytes=300_000)
    session = Small(store, rule=RULE, tiles=3000, version=WIRE_VERSION).events(90)
    recording = store.recording()
    cursor = recording.cursor()
    cursor.seek(2)
    while session.writer.bytes_written < 2_000_000:
        session.event()
    assert store.disk_bytes <= 300_000
    with pytest.raises(RecordingError, match="no longer stored"):
        cursor.seek(60)
    assert recording.refresh()
    assert recording.first > 90
    assert_true(recording, recording.first, session.number, 3000)
    store.discard()


def test_a_time_shift_of_gigabytes_has_few_files_open() -> None:
    store = ShiftStore(memory_bytes=256 << 20, disk_bytes=4 << 30)
    parts = 1
    while not store.is_full(part_bytes=parts << 20):
        parts += 1
    assert parts == 32  # megabytes: 128 files at most, and an eighth of the memory
    small_disk = ShiftStore(memory_bytes=256 << 20, disk_bytes=0)
    assert small_disk.is_full(part_bytes=8 << 20)


def test_without_a_disk_the_time_shift_is_a_ring_in_memory() -> None:
    store = ShiftStore(memory_bytes=300_000, disk_bytes=0)
    session = Small(store, rule=RULE, tiles=3000)
    while session.writer.bytes_written < 2_000_000:
        session.event()
    assert store.peak_memory_bytes <= 300_000
    assert store.disk_bytes == 0
    recording = store.recording()
    assert_true(recording, recording.first, session.number, 3000)
    store.discard()


def test_a_session_is_saved_after_the_fact(tmp_path: Path) -> None:
    store = ShiftStore(memory_bytes=100_000, disk_bytes=1 << 20)
    session = Small(store, rule=RULE, tiles=3000).events(40)
    session.writer.flush()
    cut(store.recording(), FileStore(tmp_path / "all.gcspy"))
    cut(store.recording(), FileStore(tmp_path / "some.gcspy"), 13, 31)
    session.event()
    store.discard()
    with Recording.open(tmp_path / "all.gcspy") as recording:
        assert_true(recording, 1, 40, 3000)
        cursor = recording.cursor()
        cursor.seek(40)
        assert cursor.step() is None
        assert cursor.session.counters == (40, 13)
    with Recording.open(tmp_path / "some.gcspy") as recording:
        assert_true(recording, 13, 31, 3000)


def test_the_time_shift_is_read_in_one_thread_while_it_is_written_in_another() -> None:
    store = ShiftStore(memory_bytes=150_000, disk_bytes=1 << 30)
    session = Small(store, rule=RULE, tiles=3000).events(5)
    writing = threading.Thread(target=session.events, args=(300,))
    recording = store.recording()
    writing.start()
    numbers = np.random.default_rng(3)
    while writing.is_alive():
        recording.refresh()
        number = int(numbers.integers(1, recording.last + 1))
        values = recording.seek(number).spaces[1].streams[0].values
        assert np.array_equal(values, Small.values(number, 3000))
    writing.join()
    recording.refresh()
    assert recording.last == 305
    store.discard()


@given(st.data(), RULES, st.integers(1, 20))
@examples(0.5)
def test_any_session_is_kept_by_a_time_shift_of_tiny_parts(
    data: DataObject, rule: ChunkRule, steps: int
) -> None:
    store = ShiftStore(memory_bytes=data.draw(st.sampled_from((0, 3000))), disk_bytes=1 << 30)
    try:
        seen = Recorder(data.draw, store, rule).run(steps)
        if seen.events:
            for i, (_, session) in enumerate(store.recording().steps()):
                assert_equal(session, seen.truths[i])
    finally:
        store.discard()


def test_a_part_of_a_ring_is_full_at_an_eighth_of_what_is_kept(tmp_path: Path) -> None:
    with closing(RingStore(tmp_path / "ring.gcspy", keep_bytes=8_000)) as store:
        assert not store.is_full(part_bytes=999)
        assert store.is_full(part_bytes=1_000)
