"""A damaged recording gives an error of ours, or what is undamaged; `test_damage_everywhere` tries every byte."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache
from typing import Any

import numpy as np
import pytest
from gcspy_protocol.errors import CorruptChunk, GCspyError, NotARecording, RecordingError
from gcspy_protocol.frames.frame import HEADER, pack_frame
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.limits import CLIENT_LIMITS, Limits
from gcspy_replay.file import (
    FORMAT_VERSION,
    WIRE_VERSION,
    ChunkRule,
    MemorySource,
    MemoryStore,
    Recording,
    repair,
    verify,
)
from gcspy_replay.file.integrity import Loss
from gcspy_replay.file.layout import CHUNK_BYTES, CHUNK_MAGIC, pack_footer, pack_index, pack_seal
from gcspy_replay.file.parts.scan import _SEARCH_BYTES, PartScan
from gcspy_replay.file.parts.source import Window
from hypothesis import given
from hypothesis import strategies as st

from tests.matrix import matrix
from tests.protocol.strategies import damaged
from tests.replay.recorded import WELCOME, Small, small

EVENTS = 6
RULE = ChunkRule(weight=99, most_events=4)


@cache
def whole() -> bytes:
    return small(EVENTS, rule=RULE)


@cache
def killed() -> bytes:
    """Return the same file as a kill leaves it: in the middle of the last chunk."""
    store = MemoryStore()
    Small(store, rule=RULE).events(EVENTS)
    return bytes(store.data)


def told(session: ClientInterpreter) -> dict[str, Any]:
    """Return everything that a viewer knows, as plain values."""
    spaces = []
    for state in session.spaces.values():
        streams = [
            (
                s.values.tolist(),
                None if s.known is None else s.known.tolist(),
                s.sequence,
                s.occurrence,
                s.summary,
            )
            for s in (*state.streams.values(), state.control)
        ]
        names = [state.names.name(i) for i in range(state.count)]
        spaces.append((state.space, state.count, state.info, names, streams))
    return {
        "welcome": session.welcome,
        "event": session.last_event
        and {**asdict(session.last_event), "keyframe": None, "cached": None},
        "epoch": session.epoch,
        "counters": session.counters,
        "missed": session.missed_total,
        "state": session.state,
        "filters": session.filters,
        "spaces": spaces,
    }


@cache
def truth() -> dict[int, dict[str, Any]]:
    recording = Recording([MemorySource(whole())])
    found = {number: told(recording.seek(number)) for number in range(1, EVENTS + 1)}
    for number in found:
        assert found[number]["spaces"][0][4][0][0] == Small.values(number).tolist()
    return found


NAMES = ["number", "event", "occurrence", "sequence", "time_nanos", "gather_nanos", "held_nanos"]


@cache
def rows() -> dict[int, Any]:
    return {int(row["number"]): row[NAMES] for row in Recording([MemorySource(whole())]).events}


def readable(
    recording: Recording, rows: dict[int, Any], truth: dict[int, dict[str, Any]]
) -> set[int]:
    """Read all that can be read of a damaged recording, assert that it is true, and return which events that were.

    Args:
        recording: It.
        rows: Of the index, by the number of the event.
        truth: What each event shows: see `told`.
    """
    assert recording.welcome == WELCOME
    try:
        for row in recording.events:
            assert row[NAMES] == rows[int(row["number"])]
    except CorruptChunk:
        pass
    good = set()
    cursor = recording.cursor()
    for number in range(1, len(truth) + 2):
        try:
            session = cursor.seek(number)
        except RecordingError:
            continue
        assert told(session) == truth[number], f"event {number} is shown wrong"
        good.add(number)
    return good


def read(data: bytes) -> set[int]:
    """Return which events can be read, all of them truly.

    Raises:
        RecordingError: It cannot be opened at all.
    """
    return readable(Recording([MemorySource(data)]), rows(), truth())


def test_there_are_several_chunks() -> None:
    assert whole().count(CHUNK_MAGIC) == killed().count(CHUNK_MAGIC) == 2
    assert read(whole()) == read(killed()) == set(range(1, EVENTS + 1))


@given(st.data())
def test_garbage_is_refused_or_tells_the_truth(data: st.DataObject) -> None:
    changed = data.draw(damaged(data.draw(st.sampled_from((whole(), killed())))))
    try:
        read(changed)
        verify(MemorySource(changed))
    except RecordingError:
        pass


@given(st.binary(max_size=200), st.integers(0, 12))
def test_what_is_no_recording_is_refused(garbage: bytes, kept: int) -> None:
    data = whole()[:kept] + garbage
    if whole().startswith(data):
        return
    with pytest.raises(RecordingError):
        Recording([MemorySource(data)])
    with pytest.raises(RecordingError):
        repair(MemorySource(data), MemoryStore())


def test_a_later_format_is_named() -> None:
    data = bytearray(whole())
    data[8] = 9
    with pytest.raises(NotARecording, match=r"format version 9.*newer release"):
        Recording([MemorySource(data)])


def test_a_frame_that_claims_more_than_the_limit_is_not_read() -> None:
    small_limits = Limits(payload_bytes=200)
    with pytest.raises(RecordingError, match="over the limits"):
        Recording([MemorySource(whole())], limits=small_limits)


_BLOCK_ENDS = _SEARCH_BYTES - len(CHUNK_MAGIC)
SEARCHED = matrix(
    [1, 2, 1000, *range(_BLOCK_ENDS, _SEARCH_BYTES + 4)],
    usual=[1, 1000, _BLOCK_ENDS, _SEARCH_BYTES - 1, _SEARCH_BYTES, _SEARCH_BYTES + 1],
)


@pytest.mark.parametrize("count", SEARCHED)
def test_bytes_that_were_put_between_two_chunks_cost_no_event(count: int) -> None:
    """As few as one: the search for the next chunk begins right behind the byte at which none begins; nor is one missed where blocks meet."""
    chunks = Recording([MemorySource(whole())]).chunks
    at = chunks[1].place.offset
    recording = Recording([MemorySource(whole()[:at] + bytes(count) + whole()[at:])])
    assert [(damage.start, damage.end) for _, damage in recording.damages] == [(at, at + count)]
    assert len(recording.chunks) == len(chunks)
    assert len(recording) == EVENTS


def test_a_file_of_beginnings_of_chunks_does_not_hold_a_scan_up() -> None:
    """Each first entry ends with the one seal at the end of the file: without a bound each would be read to there."""
    start = Recording([MemorySource(whole())]).chunks[0].place.offset
    chunk = whole()[start : start + CHUNK_BYTES]
    count = 5_000
    body = bytearray()
    for i in range(count):
        rest = (count - 1 - i) * (CHUNK_BYTES + HEADER.size)
        body += chunk + HEADER.pack(rest, 0x7A, 0, 0, 0, 0, 0, 0)
    window = Window(MemorySource(bytes(body) + pack_seal(b"another's")))
    scan = PartScan(window, 0, CLIENT_LIMITS)
    scan.advance()
    assert scan.chunks == []
    assert [(damage.start, damage.end) for damage in scan.damages] == [(0, window.source.size())]
    assert window.handed_bytes < 10 * (window.source.size() + (1 << 20))


@pytest.mark.parametrize(("version", "kind"), [(WIRE_VERSION, 0x7A), (FORMAT_VERSION, 0x60)])
def test_a_frame_of_a_later_version_is_skipped(version: int, kind: int) -> None:
    """A type that this version does not know, sealed, between events and at the head of a chunk."""
    store = MemoryStore()
    session = Small(store, rule=RULE, version=version).events(2)
    session.writer.add_notices(pack_frame(kind, b"of a later version").data)
    session.events(EVENTS - 2)
    session.writer.close()
    assert read(bytes(store.data)) == set(range(1, EVENTS + 1))
    assert verify(MemorySource(store.data)).findings == []


def test_what_is_torn_anywhere_behind_the_header_is_intact_up_to_there() -> None:
    """Also in the head of a chunk, whose first frames may be on the disk without its keyframe: a kill loses nothing whole."""
    start = Recording([MemorySource(killed())]).chunks[0].place.offset
    for size in range(start, len(killed()), 7):
        data = killed()[:size]
        report = verify(MemorySource(data))
        assert report.intact, f"cut at {size}: {report.findings}"
        recording = Recording([MemorySource(data)])
        assert report.events == len(recording) == len(list(recording.steps()))
        assert recording.damages == []


# ------------------------------------------------------------------ repair


def test_a_repair_saves_the_picture_of_the_last_event_of_a_damaged_chunk() -> None:
    recording = Recording([MemorySource(whole())])
    place = recording.chunks[0].place
    data = bytearray(whole())
    data[int(recording.events["offset"][place.first - 1]) + 40] ^= 1
    store = MemoryStore()
    saved = repair(MemorySource(bytes(data)), store)
    last = place.first + place.events - 1
    assert saved.states == [last]
    assert saved.lost == [Loss(place.first, last - 1, (last - 1) * 100_000_000)], (
        "from the first event to the one saved"
    )
    session = Recording([MemorySource(store.data)]).seek(last)
    assert np.array_equal(session.spaces[1].streams[0].values, Small.values(last))


def test_a_repair_does_without_the_header() -> None:
    store = MemoryStore()
    start = Recording([MemorySource(whole())]).chunks[0].place.offset
    saved = repair(MemorySource(b"\0" * start + whole()[start:]), store)
    assert saved.events == EVENTS
    assert read(bytes(store.data)) == set(range(1, EVENTS + 1))


def test_errors_say_where() -> None:
    recording = Recording([MemorySource(whole())])
    row = recording.events[5]
    data = bytearray(whole())
    data[int(row["offset"]) + 45] ^= 1
    damaged_one = Recording([MemorySource(data)])
    with pytest.raises(CorruptChunk) as caught:
        damaged_one.seek(6)
    assert caught.value.offset == row["offset"]
    assert caught.value.chunk == row["chunk"]
    assert damaged_one.damaged(caught.value)[0] == 6
    assert isinstance(caught.value, GCspyError)


def test_an_index_that_leaves_a_chunk_out_is_not_believed() -> None:
    recording = Recording([MemorySource(whole())])
    places = [at.place for at in recording.chunks]
    body = whole()[: places[-1].offset + places[-1].size]
    for kept in (places[1:], places[:1], []):
        index = pack_index(kept)
        data = body + index + pack_footer(len(body), len(index))
        assert not Recording([MemorySource(data)]).indexed
        assert read(data) == set(range(1, EVENTS + 1))
