"""The time shift: what it gives back is what was live, at every number, whatever came and however it was cut."""

from __future__ import annotations

import errno
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.errors import RecordingError
from gcspy_protocol.frames.frame import pack_frame
from gcspy_protocol.model import ControlState, Mode
from gcspy_replay.file import ChunkRule, FileSource, Recording, verify
from gcspy_replay.file.storage import shift as shift_module
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from gcspy_client.model.playback.time_shift import StorageState, TimeShift
from tests.client.shifting import Steady, Wire
from tests.examples import examples
from tests.protocol.session import Session, assert_equal
from tests.replay.recorded import RULES

_SOON = 30.0


@contextmanager
def shifting(**more: Any) -> Iterator[TimeShift]:
    made = TimeShift(**more)
    try:
        yield made
    finally:
        made.close()


def happen(wire: Wire, data: DataObject) -> None:
    """Let one thing happen in a session."""
    session, server = wire.session, wire.server
    pieces = data.draw(st.integers(1, 3))
    match data.draw(
        st.sampled_from(
            ("event", "event", "event", "add", "remove", "missed", "reconnect", "later")
        )
    ):
        case "event":
            wire.hear(session.event(), pieces=pieces)
        case "add":
            wire.say(*session.add_space())
        case "remove":
            wire.say(*session.remove_space())
        case "missed":
            for _ in range(count := data.draw(st.integers(1, 3))):
                session.event()
            total = wire.live.missed_total + count
            wire.hear(
                server.send(m.Missed(events=count, total=total)) + session.keyframe(), pieces=pieces
            )
        case "later":
            wire.hear(server.send(m.Ping(number=1)) + pack_frame(0x60, b"of a later version").data)
        case _:
            for _ in range(data.draw(st.integers(0, 2))):
                session.event()
            wire.connect()


def assert_kept(shift: TimeShift, wire: Wire, order: list[int]) -> None:
    assert shift.settle(_SOON)
    assert shift.status.reason == ""
    assert (shift.first, shift.last) == ((1, len(wire.events)) if wire.events else (0, 0))
    assert shift.timeline.numbers.tolist() == list(range(1, len(wire.events) + 1))
    for number in order:
        found = shift.at(number)
        assert_equal(found, wire.truths[number - 1])
        assert found.last_event is not None
        assert found.last_event.sequence == wire.events[number - 1].sequence


@given(st.data(), RULES, st.integers(1, 25))
@examples(0.6)
def test_the_shift_gives_back_what_was_live_at_every_number(
    data: DataObject, rule: ChunkRule, steps: int
) -> None:
    with shifting(rule=rule) as shift:
        wire = Wire(shift, Session(data.draw))
        wire.connect()
        wire.say(*wire.session.add_space())
        for _ in range(steps):
            happen(wire, data)
            if wire.events and data.draw(st.integers(0, 3)) == 0:  # scrub while it is live
                shift.settle(_SOON)
                number = data.draw(st.integers(1, len(wire.events)))
                assert_equal(shift.at(number), wire.truths[number - 1])
        numbers = list(range(1, len(wire.events) + 1))
        assert_kept(shift, wire, [*numbers, *reversed(numbers)])
        if numbers:
            events = shift.recording().events
            assert events["number"].tolist() == numbers
            for name in (
                "time_nanos",
                "occurrence",
                "gather_nanos",
                "held_nanos",
                "missed",
                "event",
            ):
                assert events[name].tolist() == shift.timeline.rows[name].tolist(), name


@given(st.data(), RULES, st.integers(1, 12), st.booleans())
@examples(0.4)
def test_what_is_saved_whole_or_in_part_is_intact_and_tells_the_same(
    data: DataObject, rule: ChunkRule, steps: int, whole: bool
) -> None:
    with shifting(rule=rule) as shift, tempfile.TemporaryDirectory() as folder:
        wire = Wire(shift, Session(data.draw))
        wire.connect()
        for _ in range(steps):
            happen(wire, data)
        if not wire.events:
            with pytest.raises(RecordingError, match="nothing is kept"):
                shift.save(Path(folder, "a.gcspy"))
            return
        path = Path(folder, "a.gcspy")
        first, last = 1, len(wire.events)
        if whole:
            written = shift.save(path)
        else:
            shift.settle(_SOON)
            first = data.draw(st.integers(1, last))
            last = data.draw(st.integers(first, last))
            written = shift.save(path, first, last)
        assert written == last - first + 1
        with FileSource(path) as source:
            assert verify(source).findings == []
        with Recording.open(path) as recording:
            assert recording.indexed
            assert (recording.first, recording.last) == (first, last)
            assert recording.facts.recording == shift.recording_id
            for number in range(first, last + 1):
                assert_equal(recording.seek(number), wire.truths[number - 1])
        assert [found.name for found in Path(folder).iterdir()] == ["a.gcspy"]


def steady(shift: TimeShift, events: int, **more: Any) -> Steady:
    """A session of which this many events arrived, and are kept."""
    made = Steady(shift, **more)
    made.connect()
    made.events(events)
    assert shift.settle(_SOON)
    return made


def keeping(shift: TimeShift) -> StorageState:
    return shift.status.keeping


def changed_at(shift: TimeShift, number: int) -> list[int] | None:
    """Which tiles the step to an event changed; None where anything may differ."""
    shift.at(number)
    changed = None if shift.changes is None else shift.changes.changed[1, 2]
    return None if changed is None else changed.tolist()


def values_at(shift: TimeShift, number: int) -> list[int]:
    found: list[int] = shift.at(number).spaces[1].streams[2].values.tolist()
    return found


def test_nothing_is_kept_of_a_playback() -> None:
    with shifting() as shift:
        assert keeping(shift) is StorageState.WAITING
        session = steady(shift, 3)
        assert keeping(shift) is StorageState.ON
        session.connect(mode=Mode.PLAYBACK)
        session.events(3)
        assert shift.settle(_SOON)
        assert keeping(shift) is StorageState.OFF
        assert (shift.first, shift.last, len(shift.timeline), shift.status.memory_bytes) == (
            0,
            0,
            0,
            0,
        )
        with pytest.raises(RecordingError, match="this session is not stored"):
            shift.at(1)


def test_another_session_begins_another_shift() -> None:
    with shifting() as shift:
        steady(shift, 3)
        before = shift.recording_id
        other = steady(shift, 2, session="another", tiles=7)
        assert (shift.first, shift.last, shift.timeline.last) == (1, 2, 2)
        assert shift.recording_id != before
        assert values_at(shift, 2) == other.values(2).tolist()


def test_a_reconnect_goes_on_with_a_gap_that_is_counted() -> None:
    with shifting() as shift:
        session = steady(shift, 5)
        before = shift.recording_id
        session.encode(events=4)  # no client receives them
        session.connect()
        session.events(2)
        assert shift.settle(_SOON)
        assert shift.recording_id == before
        assert (shift.first, shift.last) == (1, 8)
        assert shift.timeline.rows["missed"].tolist() == [0, 0, 0, 0, 0, 3, 0, 0]
        assert [values_at(shift, n) for n in (5, 6, 8)] == [
            session.values(n).tolist() for n in (5, 9, 11)
        ]
        gaps, missed = shift.timeline.missed()
        assert (gaps.tolist(), missed.tolist()) == ([6], [3])


def test_a_neighbour_tells_what_it_changed() -> None:
    with shifting() as shift:
        session = steady(shift, 9, few=True)
        assert changed_at(shift, 4) is None
        before = shift.at(4)
        different = np.flatnonzero(session.values(4) != session.values(5)).tolist()
        assert changed_at(shift, 5) == different
        assert shift.at(5) is before
        assert changed_at(shift, 4) is None


@pytest.mark.parametrize("disk_bytes", [0, 1 << 20])
def test_of_a_session_beyond_the_budgets_the_latest_is_kept(disk_bytes: int) -> None:
    memory_bytes = 1 << 19
    with shifting(
        memory_bytes=memory_bytes, disk_bytes=disk_bytes, rule=ChunkRule(most_events=4)
    ) as shift:
        session = steady(shift, 1500, tiles=2000)
        status = shift.status
        assert session.sent_bytes > 10 * memory_bytes
        assert status.most_memory_bytes <= memory_bytes
        assert status.disk_bytes <= disk_bytes
        assert 1 < status.first < status.last == 1500
        assert shift.timeline.first == status.first
        with pytest.raises(RecordingError, match="is not stored: stored are events"):
            shift.at(status.first - 1)
        for number in (
            status.first,
            status.first + 1,
            (status.first + status.last) // 2,
            status.last,
        ):
            assert values_at(shift, number) == session.values(number).tolist()


def test_of_many_small_events_only_so_many_are_kept() -> None:
    with shifting(
        memory_bytes=1 << 22, disk_bytes=1 << 22, most_events=500, rule=ChunkRule(most_events=20)
    ) as shift:
        session = steady(shift, 4000, tiles=100)
        assert shift.status.last == 4000  # a reader of the state finds the timeline trimmed
        assert 500 <= shift.last - shift.first + 1 == len(shift.timeline) < 1500
        assert shift.status.memory_bytes < session.sent_bytes < 1 << 22
        assert values_at(shift, shift.first) == session.values(shift.first).tolist()
        assert values_at(shift, 4000) == session.values(4000).tolist()


def test_who_looks_at_what_is_given_up_is_told_and_the_rest_is_still_there() -> None:
    with shifting(memory_bytes=1 << 19, disk_bytes=0, rule=ChunkRule(most_events=4)) as shift:
        session = steady(shift, 100, tiles=2000)
        shift.at(shift.first)
        session.events(600)
        assert shift.settle(_SOON)
        with pytest.raises(RecordingError, match="is not stored"):
            shift.at(2)
        assert values_at(shift, 699) == session.values(699).tolist()


def test_a_disk_that_is_full_ends_the_keeping_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(_file: object, _data: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with shifting(memory_bytes=1 << 18, disk_bytes=1 << 30, rule=ChunkRule(most_events=4)) as shift:
        session = steady(shift, 30, tiles=2000)
        monkeypatch.setattr(shift_module, "_write", full)
        session.events(300)
        assert shift.settle(_SOON)
        status = shift.status
        assert status.keeping is StorageState.ENDED
        assert status.reason == "the time shift cannot be stored: No space left on device"
        assert 30 <= status.last < 330
        assert shift.timeline.last == status.last
        assert session.live.last_event is not None
        assert session.live.last_event.sequence == 330
        assert session.room
        assert values_at(shift, status.last) == session.values(status.last).tolist()
        assert status.waiting_bytes == 0


def test_a_worker_that_falls_behind_holds_the_reading_until_there_is_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow, room = threading.Event(), threading.Event()
    append = shift_module.ShiftStore.append

    def slowly(store: shift_module.ShiftStore, data: bytes, *, time_nanos: int) -> None:
        assert slow.wait(_SOON)
        append(store, data, time_nanos=time_nanos)

    monkeypatch.setattr(shift_module.ShiftStore, "append", slowly)
    with shifting(queue_bytes=1 << 16, on_room=room.set) as shift:
        session = Steady(shift, tiles=2000)
        session.connect()
        while session.room:
            session.events(1)
        waiting = shift.status.waiting_bytes
        assert 1 << 16 <= waiting < 1 << 17
        assert not room.is_set()
        slow.set()
        assert room.wait(_SOON)
        assert shift.settle(_SOON)
        assert shift.last == session.number
        assert values_at(shift, session.number) == session.values(session.number).tolist()


def test_what_makes_no_sense_ends_the_keeping() -> None:
    with shifting() as shift:
        session = steady(shift, 3)
        shift.received(b"", [m.SpaceRemoved(space=77)])
        assert shift.settle(_SOON)
        assert shift.status.keeping is StorageState.ENDED
        assert "there is no space 77" in shift.status.reason
        assert values_at(shift, 3) == session.values(3).tolist()


def test_a_file_that_is_there_is_replaced_only_when_told(tmp_path: Path) -> None:
    with shifting() as shift:
        steady(shift, 20)
        path = tmp_path / "a.gcspy"
        path.write_bytes(b"precious")
        with pytest.raises(RecordingError, match="exists already"):
            shift.save(path)
        assert path.read_bytes() == b"precious"
        assert shift.save(path, 3, 9, replace=True) == 7
        with Recording.open(path) as recording:
            assert (recording.first, recording.last) == (3, 9)
            assert recording.facts.note == "a session saved while it was monitored"
        with pytest.raises(RecordingError, match="no events 3 to 99"):
            shift.save(tmp_path / "b.gcspy", 3, 99)
        with pytest.raises(RecordingError, match="there is no folder"):
            shift.save(tmp_path / "none" / "b.gcspy")
        assert [found.name for found in tmp_path.iterdir()] == ["a.gcspy"]


def test_a_session_that_is_saved_while_it_is_paused_says_so(tmp_path: Path) -> None:
    with shifting() as shift:
        session = steady(shift, 20)
        session.say(m.State(state=ControlState.PAUSED, reason="by hand"))
        assert shift.save(tmp_path / "a.gcspy") == 20
    with Recording.open(tmp_path / "a.gcspy") as recording:
        cursor = recording.cursor()
        cursor.seek(20)
        assert cursor.step() is None
        assert (cursor.session.state, cursor.session.state_reason) == (
            ControlState.PAUSED,
            "by hand",
        )


def test_a_saving_that_is_broken_off_leaves_no_file(tmp_path: Path) -> None:
    class BreakOff(Exception):
        pass

    def progress(done: int, _of: int) -> None:
        if done == 5:
            raise BreakOff

    with shifting() as shift:
        steady(shift, 20)
        with pytest.raises(BreakOff):
            shift.save(tmp_path / "a.gcspy", progress=progress)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("first", [None, 1])
def test_what_is_given_up_while_it_is_saved_is_left_out_or_told(
    tmp_path: Path, first: int | None
) -> None:
    path = tmp_path / "a.gcspy"
    with shifting(memory_bytes=1 << 19, disk_bytes=0, rule=ChunkRule(most_events=4)) as shift:
        session = steady(shift, 60, tiles=2000)
        assert shift.first == 1
        came: list[int] = []

        def progress(done: int, _of: int) -> None:
            if not came:
                came.append(done)
                session.events(300)
                assert shift.settle(_SOON)

        if first is None:
            written = shift.save(path, progress=progress)
            with Recording.open(path) as recording:
                assert (recording.first, recording.last) == (shift.first, 360)
                assert written == len(recording)
                for step, found in recording.steps():
                    assert (
                        found.spaces[1].streams[2].values.tolist()
                        == session.values(step.number).tolist()
                    )
        else:
            with pytest.raises(RecordingError):
                shift.save(path, first, progress=progress)
            assert list(tmp_path.iterdir()) == []
