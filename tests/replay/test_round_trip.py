"""Reading gives what the live client saw: event for event, tile for tile, whatever the session and its chunks."""

from __future__ import annotations

import numpy as np
import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.codec import encode_event
from gcspy_protocol.connection import Connection
from gcspy_protocol.errors import LocalProtocolError, RecordingError
from gcspy_protocol.frames.frame import pack_frame
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.limits import CLIENT_LIMITS
from gcspy_protocol.messages import Event
from gcspy_protocol.model import Role
from gcspy_protocol.triggers import TriggerState, TriggerStatus
from gcspy_replay.file import (
    FORMAT_VERSION,
    WIRE_VERSION,
    ChunkRule,
    Cursor,
    MemorySource,
    MemoryStore,
    Recording,
    RecordingWriter,
    WireTap,
    cut,
    encode_keyframe,
    schema_messages,
    verify,
)
from gcspy_replay.file.layout import CHUNK_MAGIC, FileFrame
from gcspy_replay.file.parts.scan import PartScan
from gcspy_replay.file.parts.source import Window
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from tests.examples import examples
from tests.protocol.sameness import all_same
from tests.protocol.session import assert_equal
from tests.replay.recorded import RULES, WELCOME, Recorder, Seen, Small, small


def assert_same_event(found: Event, seen: Event, *, first: bool) -> None:
    """Assert that it is the event, which the first of a recording is as a keyframe."""
    for name in (
        "sequence",
        "time_nanos",
        "event",
        "occurrence",
        "gather_nanos",
        "held_nanos",
        "cached",
        "cause",
    ):
        assert getattr(found, name) == getattr(seen, name)
    assert found.program_clock == seen.program_clock
    assert found.keyframe == (seen.keyframe or first)


def assert_recorded(recording: Recording, seen: Seen) -> None:
    """Assert that the recording gives what the client saw, by stepping and by seeking."""
    assert len(recording) == len(seen.events) == len(recording.events)
    for i, (step, session) in enumerate(recording.steps()):
        assert step.number == i + 1
        assert_same_event(step.change.event, seen.events[i], first=i == 0)
        assert_equal(session, seen.truths[i])
        if i:
            assert all_same(list(step.notices), seen.notices[i])
    for i in reversed(range(len(seen.events))):
        assert_equal(recording.seek(i + 1), seen.truths[i])
    rows = recording.events
    assert rows["number"].tolist() == list(range(1, len(seen.events) + 1))
    for name in (
        "sequence",
        "time_nanos",
        "occurrence",
        "event",
        "gather_nanos",
        "held_nanos",
        "cached",
    ):
        assert rows[name].tolist() == [getattr(event, name) for event in seen.events]


@given(st.data(), RULES, st.integers(1, 25), st.booleans(), st.booleans())
def test_a_recording_tells_what_a_client_saw(
    data: DataObject, rule: ChunkRule, steps: int, late: bool, tapped: bool
) -> None:
    store = MemoryStore()
    seen = Recorder(data.draw, store, rule, tapped=tapped).run(steps, late=late)
    recording = Recording([MemorySource(store.data)])
    assert recording.indexed
    assert_recorded(recording, seen)
    assert verify(MemorySource(store.data)).findings == []


@given(st.data(), RULES, st.integers(1, 20))
@examples(0.5)
def test_a_recording_without_its_end_tells_the_same(
    data: DataObject, rule: ChunkRule, steps: int
) -> None:
    store = MemoryStore()
    seen = Recorder(data.draw, store, rule).run(steps)
    whole = Recording([MemorySource(store.data)])
    cuts = [at.place.offset + at.place.size for at in whole.chunks]
    recording = Recording([MemorySource(bytes(store.data[: cuts[-1]]))])
    assert not recording.indexed
    assert_recorded(recording, seen)
    assert np.array_equal(recording.events, whole.events)


@given(st.data(), RULES, st.integers(1, 20))
@examples(0.5)
def test_a_scan_finds_the_chunks_that_the_index_has(
    data: DataObject, rule: ChunkRule, steps: int
) -> None:
    store = MemoryStore()
    Recorder(data.draw, store, rule).run(steps)
    recording = Recording([MemorySource(store.data)])
    start = recording.chunks[0].place.offset
    for careful in (False, True):
        scan = PartScan(Window(MemorySource(store.data)), start, CLIENT_LIMITS, careful=careful)
        scan.advance()
        assert [found.place for found in scan.chunks] == [at.place for at in recording.chunks]
        assert scan.closed
        assert not scan.damages


@given(st.data(), RULES, st.integers(2, 20))
@examples(0.5)
def test_a_cut_tells_the_same_of_its_range(data: DataObject, rule: ChunkRule, steps: int) -> None:
    store, part = MemoryStore(), MemoryStore()
    seen = Recorder(data.draw, store, rule).run(steps)
    if not seen.events:
        return
    first = data.draw(st.integers(1, len(seen.events)))
    last = data.draw(st.integers(first, len(seen.events)))
    written = cut(Recording([MemorySource(store.data)]), part, first, last, rule=data.draw(RULES))
    recording = Recording([MemorySource(part.data)])
    assert (recording.first, recording.last, written) == (first, last, last - first + 1)
    for number in range(first, last + 1):
        assert_equal(recording.seek(number), seen.truths[number - 1])
    assert verify(MemorySource(part.data)).findings == []


@given(st.data(), RULES, st.integers(1, 20))
@examples(0.5)
def test_a_viewer_that_jumps_and_goes_on_sees_the_same(
    data: DataObject, rule: ChunkRule, steps: int
) -> None:
    """As a player serves it: schema and keyframe where it jumps to, then the recorded bytes."""
    store = MemoryStore()
    seen = Recorder(data.draw, store, rule).run(steps)
    if not seen.events:
        return
    cursor = Recording([MemorySource(store.data)]).cursor()
    number = data.draw(st.integers(1, len(seen.events)))
    session = cursor.seek(number)
    server, client, viewer = Connection(Role.SERVER), Connection(Role.CLIENT), ClientInterpreter()
    client.receive_data(server.preamble())
    for message in schema_messages(session):
        client.receive_data(server.send(message))
    client.receive_data(server.send_event(encode_keyframe(session, cached=True)))
    while True:
        for message in client.messages():
            viewer.apply(message)
        assert_equal(viewer, seen.truths[number - 1])
        step = cursor.step()
        if step is None:
            return
        number = step.number
        client.receive_data(step.notice_data + step.data)


def test_what_was_said_after_the_last_event_is_kept() -> None:
    cursor = Recording([MemorySource(small(5))]).cursor()
    assert cursor.seek(5).counters == (4, 1)
    assert cursor.step() is None
    assert cursor.session.counters == (5, 1)


def test_what_fired_is_kept_behind_its_event_and_how_often_in_each_chunk() -> None:
    store = MemoryStore()
    session = Small(store, rule=ChunkRule(most_events=2))
    trigger = m.Trigger(id=1, expression="max(Used) > 2")
    for number in range(1, 7):
        session.event()
        if number in (2, 5, 6):
            session.say(
                m.Fired(trigger=trigger, sequence=number, time_nanos=1, event=0, occurrence=number)
            )
            status = TriggerStatus(trigger=trigger, state=TriggerState.HOLDS, fired=number)
            session.say(m.Triggers(triggers=(status,), fired=number))
    session.writer.close()
    cursor = Recording([MemorySource(store.data)]).cursor()
    fired = {}
    while (step := cursor.step()) is not None:
        fired[step.number] = [one.sequence for one in step.notices if isinstance(one, m.Fired)]
    assert fired == {1: [], 2: [], 3: [2], 4: [], 5: [], 6: [5]}, "each with the next event"
    assert cursor.session.fired is not None
    assert cursor.session.fired.sequence == 6
    assert [cursor.seek(number).triggers.fired for number in (1, 3, 5, 6)] == [0, 2, 2, 5]


def test_events_are_found_by_time_and_by_name() -> None:
    recording = Recording([MemorySource(small(100))])
    nanos = 100_000_000
    assert recording.nearest(0) == 1
    assert recording.nearest(41 * nanos + 1) == 41
    assert recording.nearest(41 * nanos + nanos // 2 + 1) == 42
    assert recording.nearest(1 << 62) == 100
    assert recording.find("collection") == 3
    assert recording.find("collection", after=3) == 6
    assert recording.find("collection", after=99) is None
    assert recording.find("collection", after=99, backwards=True) == 96
    assert recording.find("clock", backwards=True) == 100
    assert recording.find("collection", after=3, backwards=True) is None


def test_missed_events_stand_in_the_table() -> None:
    rows = Recording([MemorySource(small(25))]).events
    assert {int(row["number"]): int(row["missed"]) for row in rows if row["missed"]} == {
        10: 1,
        20: 1,
    }


def test_several_cursors_do_not_disturb_each_other() -> None:
    recording = Recording([MemorySource(small(60))])
    cursors = [recording.cursor() for _ in range(3)]
    for cursor, number in zip(cursors, (50, 3, 20), strict=True):
        cursor.seek(number)
    for _ in range(10):
        for cursor in cursors:
            step = cursor.step()
            assert step is not None
            values = cursor.session.spaces[1].streams[0].values
            assert np.array_equal(values, Small.values(step.number))


@pytest.mark.parametrize("version", [WIRE_VERSION, FORMAT_VERSION])
def test_a_recording_is_opened_again_without_being_scanned_again_and_both_grow(
    version: int,
) -> None:
    class Counted(MemorySource):
        """Bytes that count how many of them are read."""

        read_bytes = 0

        def read_at(self, offset: int, size: int) -> bytes:
            Counted.read_bytes += min(size, max(0, self.size() - offset))
            return super().read_at(offset, size)

        def again(self) -> Counted:
            return Counted(self._data)

    store = MemoryStore()
    rule = ChunkRule(events=20, weight=0)
    session = Small(store, rule=rule, tiles=8000, version=version).events(200)
    one = Recording([Counted(store.data)])
    scanned, Counted.read_bytes = Counted.read_bytes, 0
    other = one.again()
    assert Counted.read_bytes <= 64 << 10, "the header alone, with what is read ahead of it"
    assert version != WIRE_VERSION or Counted.read_bytes < scanned / 2
    assert np.array_equal(one.events, other.events)
    session.events(37)
    assert other.refresh()
    assert (one.last, other.last) == (200, 237)
    assert one.refresh()
    session.writer.close()
    for recording in (one, other, one.again().again()):
        recording.refresh()
        assert recording.finished
        assert len(recording.events) == 237
        for number in (1, 199, 201, 237):
            assert np.array_equal(
                recording.seek(number).spaces[1].streams[0].values, Small.values(number, 8000)
            )


def cut_of(data: bytearray) -> bytes:
    """Return a recording of another id."""
    store = MemoryStore()
    cut(Recording([MemorySource(data)]), store, 1, 3)
    return bytes(store.data)


def test_a_file_that_became_another_is_not_opened_again() -> None:
    data = bytearray(small(5))
    recording = Recording([MemorySource(data)])
    data[:] = cut_of(data)
    with pytest.raises(RecordingError):
        recording.again()


def test_a_recording_of_nothing_is_one_of_no_events() -> None:
    store = MemoryStore()
    session = Small(store)
    session.writer.close()
    recording = Recording([MemorySource(store.data)])
    assert (len(recording), recording.first, recording.last) == (0, 0, 0)
    assert list(recording.steps()) == []
    assert len(recording.events) == 0
    assert recording.welcome.server == "small"
    (chunk,) = recording.chunks
    scan = PartScan(Window(MemorySource(store.data)), chunk.place.offset, CLIENT_LIMITS)
    scan.advance()
    assert [found.place for found in scan.chunks] == [chunk.place], "of no time either"
    with pytest.raises(RecordingError, match="has no events"):
        recording.seek(1)
    with pytest.raises(RecordingError, match="has no events"):
        recording.nearest(5)


def test_with_a_tap_an_event_is_kept_byte_for_byte() -> None:
    """Frames of a later version too, inside an event and between events; but no frames that are the file's own."""
    session, tap, store = ClientInterpreter(), WireTap(), MemoryStore()
    server, client = Connection(Role.SERVER), Connection(Role.CLIENT)
    writer = RecordingWriter(store, session, tap=tap, version=WIRE_VERSION)
    later = pack_frame(0x2A, b"inside an event")
    between = pack_frame(0x60, b"between events").data
    events = [
        encode_event(m.Event(sequence=n, time_nanos=n, event=0, occurrence=n, epoch=1), [later])
        for n in (1, 2, 3)
    ]
    data = server.preamble() + server.send(WELCOME) + server.send(m.EpochEnd(epoch=1)) + events[0]
    data += between + pack_frame(FileFrame.CHUNK, bytes(64)).data + server.send(m.Ping(number=3))
    data += (
        server.send(m.Counters(counts=(7,)))
        + events[1]
        + events[2]
        + server.send(m.Counters(counts=(8,)))
    )
    for start in range(0, len(data), 50):
        client.receive_data(data[start : start + 50])
        tap.receive_data(data[start : start + 50])
        for message in client.messages():
            session.apply(message)
            writer.add(message)
    writer.close()
    assert [step.data for step, _ in Recording([MemorySource(store.data)]).steps()][1:] == events[
        1:
    ]
    assert store.data.count(between) == 1
    assert store.data.count(CHUNK_MAGIC) == 1
    assert verify(MemorySource(store.data)).findings == []


def test_a_tap_that_did_not_get_everything_says_so() -> None:
    with pytest.raises(LocalProtocolError, match="give it all that the connection gets"):
        WireTap().take(m.Ping(number=1))


def test_a_chunk_that_is_not_there_leaves_a_gap_and_nothing_wrong() -> None:
    data = small(30, rule=ChunkRule(weight=99, most_events=5))
    chunks = [at.place for at in Recording([MemorySource(data)]).chunks]
    gone = chunks[2]
    left = data[: gone.offset] + data[gone.offset + gone.size : chunks[4].offset + chunks[4].size]
    recording = Recording([MemorySource(left)])
    numbers = []
    for step, session in recording.steps():
        assert np.array_equal(session.spaces[1].streams[0].values, Small.values(step.number))
        numbers.append(step.number)
    assert numbers == [*range(1, 11), *range(16, 26)] == recording.events["number"].tolist()
    with pytest.raises(RecordingError, match=r"no event 12 \(lost"):
        recording.seek(12)
    part = MemoryStore()
    assert cut(recording, part, 3, 20) == 13
    assert Recording([MemorySource(part.data)]).events["number"].tolist() == [
        *range(3, 11),
        *range(16, 21),
    ]
    for step, session in Recording([MemorySource(part.data)]).steps():
        assert np.array_equal(session.spaces[1].streams[0].values, Small.values(step.number))


@pytest.mark.parametrize("version", [WIRE_VERSION, FORMAT_VERSION])
def test_an_event_before_the_first_is_refused(version: int) -> None:
    store = MemoryStore()
    Small(store, version=version).events(5).writer.close()
    with Recording([MemorySource(bytes(store.data))]) as recording:
        for number in (0, -1):
            with pytest.raises(RecordingError, match=f"event {number}\\b"):
                Cursor(recording).seek(number)
        assert Cursor(recording).before(1).last_event is None
