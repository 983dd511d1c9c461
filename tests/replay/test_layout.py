"""The file's own frames: golden bytes both ways, and what each reader of them refuses."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from gcspy_protocol.errors import CorruptChunk, NotARecording, RecordingError, TruncatedRecording
from gcspy_protocol.frames.frame import HEADER, Header, pack_frame
from gcspy_protocol.limits import CLIENT_LIMITS
from gcspy_replay.file import ChunkRule, MemorySource, PartFacts, Recording, verify
from gcspy_replay.file.layout import (
    CHUNK_MAGIC,
    COLUMNS,
    FOOTER_BYTES,
    FORMAT_VERSION,
    MOST_EVENTS,
    SEAL_BYTES,
    WIRE_VERSION,
    ChunkFlag,
    ChunkHead,
    ChunkPlace,
    FileFrame,
    empty_rows,
    pack_chunk,
    pack_chunk_end,
    pack_facts,
    pack_footer,
    pack_index,
    pack_preamble,
    pack_seal,
    pack_table,
    read_chunk,
    read_chunk_end,
    read_copied_end,
    read_facts,
    read_footer,
    read_index,
    read_preamble,
)
from hypothesis import given
from hypothesis import strategies as st

from tests.replay.recorded import FACTS, Small, small

GOLDEN = Path(__file__).parent / "golden/small-1.gcspy"
"""Written by format version 1 as first released; never written again."""

GOLDEN_RECORDS = Path(__file__).parent / "golden/small-2.gcspy"
"""Written by format version 2 as first released; never written again."""

HEAD = ChunkHead(bytes(range(16)), 3, 20, 500, ChunkFlag.CONTINUES)
PLACES = [ChunkPlace(300, 200, 150, 0, 1, 7, 9, 3), ChunkPlace(500, 100, 80, 2, 4, 10, 10, 1)]


def split(frame: bytes) -> tuple[Header, bytes]:
    return Header._make(HEADER.unpack_from(frame)), frame[HEADER.size :]


@pytest.mark.parametrize("golden", [GOLDEN, GOLDEN_RECORDS], ids=["frames", "records"])
def test_a_recording_of_each_version_as_first_released_is_read(golden: Path) -> None:
    recording = Recording([MemorySource(golden.read_bytes())])
    assert recording.facts == FACTS
    assert recording.events["number"].tolist() == [1, 2, 3, 4, 5, 6]
    assert recording.events["event"].tolist() == [0, 0, 1, 0, 0, 1]
    for step, session in recording.steps():
        assert np.array_equal(session.spaces[1].streams[0].values, Small.values(step.number))
        assert step.change.event.cause == f"cause {step.number}"
    assert verify(MemorySource(golden.read_bytes())).findings == []


def test_the_same_session_is_written_the_same_way() -> None:
    """Frame by frame: what zstd makes of a payload may differ between its versions."""
    for version, golden in ((WIRE_VERSION, GOLDEN), (FORMAT_VERSION, GOLDEN_RECORDS)):
        new = small(6, rule=ChunkRule(weight=99, most_events=4), version=version)
        old = golden.read_bytes()
        for a, b in zip(kinds(old), kinds(new), strict=True):
            assert a == b


def kinds(data: bytes) -> list[tuple[int, int, int]]:
    """Return type, space and stream of each frame of a part."""
    at, found = 12, []
    while at < len(data):
        header = Header._make(HEADER.unpack_from(data, at))
        found.append((header.type, header.space, header.stream))
        at += HEADER.size + header.length
    return found


def test_golden_frames() -> None:
    assert pack_preamble(WIRE_VERSION) == bytes.fromhex("4743726563 0d0a1a 0100 0100")
    assert pack_preamble() == bytes.fromhex("4743726563 0d0a1a 0200 0100")
    assert pack_seal(b"abc") == (
        struct.pack("<IBBHHHQQ", 4, 0x72, 0, 0, 0, 0, 0, 0)
        + zlib.crc32(b"abc" + struct.pack("<IBBHHHQQ", 4, 0x72, 0, 0, 0, 0, 0, 0)).to_bytes(
            4, "little"
        )
    )
    assert pack_chunk(HEAD) == (
        struct.pack("<IBBHHHQQ", 64, 0x71, 0, 0, 0, 0, 0, 0)
        + bytes.fromhex("89 47437370794368756e6b 0d0a1a 9d5c")
        + bytes(range(16))
        + struct.pack("<QQQII", 3, 20, 500, 1, 0)
    )
    footer = struct.pack("<IBBHHHQQQQ", 28, 0x75, 0, 0, 0, 0, 0, 0, 600, 90) + bytes.fromhex(
        "4743656e64 0d0a1a"
    )
    assert pack_footer(600, 90) == footer + zlib.crc32(footer).to_bytes(4, "little")
    index = struct.pack(
        "<II QQ QQ QQ QQ QQ QQ QQ II II",
        *(2, 0, 300, 500, 200, 100, 150, 80, 0, 2, 1, 4, 7, 10, 9, 10, 3, 1, 0, 0),
    )
    head = struct.pack("<IBBHHHQQ", len(index), 0x74, 0, 0, 0, 0, 0, 0)
    assert pack_index(PLACES) == head + index + pack_seal(head + index)


def test_a_chunk_end_has_its_columns_in_order() -> None:
    rows = empty_rows(2)
    for i, (name, _) in enumerate(COLUMNS):
        rows[name] = [10 * i + 1, 10 * i + 2]
    rows["start"], rows["end"] = [1, 70], [69, 138]
    data = pack_chunk_end(500, b"\1\2\3\4", rows)
    payload = struct.pack("<QII", 500, zlib.crc32(b"\1\2\3\4"), 2)
    payload += struct.pack("<16Q", 1, 70, 69, 138, 21, 22, 31, 32, 41, 42, 51, 52, 61, 62, 71, 72)
    payload += struct.pack("<4H", 81, 82, 91, 92)
    frame = struct.pack("<IBBHHHQQ", len(payload), 0x73, 0, 0, 0, 0, 0, 0) + payload
    assert data == frame + pack_seal(frame)
    found = read_chunk_end(*split(frame), CLIENT_LIMITS, 0, size=500)
    assert np.array_equal(found.rows, rows)


def test_everything_is_read_as_it_was_written() -> None:
    assert read_chunk(split(pack_chunk(HEAD))[1], 0) == HEAD
    assert read_footer(pack_footer(600, 90)) == (600, 90)
    facts = PartFacts(recording=bytes(16), part=3, software="x", created=5, note="é")
    assert read_facts(*split(pack_facts(facts)), CLIENT_LIMITS, 0) == facts
    index = pack_index(PLACES)
    header, payload = split(index)
    assert read_index(header, payload[: header.length], CLIENT_LIMITS, 700) == (PLACES, {})
    read_preamble(pack_preamble())


def test_an_index_has_the_ends_of_chunks_or_none_of_them() -> None:
    ends = [
        pack_table(place.end_at, b"", empty_rows(place.events))[:-SEAL_BYTES] for place in PLACES
    ]

    def read(ends: list[bytes]) -> dict[int, bytes]:
        header, payload = split(pack_index(PLACES, ends))
        places, found = read_index(header, payload[: header.length], CLIENT_LIMITS, 1 << 20)
        assert places == PLACES
        return found

    assert read(ends) == {place.number: end for place, end in zip(PLACES, ends, strict=True)}
    for wrong in (ends[:-1], [*ends, ends[0]], [ends[0][:-1], *ends[1:]], [b"\xff" * 40] * 2):
        assert read(wrong) == {}
    with pytest.raises(CorruptChunk, match="type 0x72"):
        read_copied_end(pack_seal(b""), CLIENT_LIMITS, 0, size=500)


def test_a_chunk_s_own_table_is_read_where_the_copy_in_the_index_is_invalid() -> None:
    data = small(40, rule=ChunkRule(weight=99, most_events=8))
    with Recording([MemorySource(data)]) as recording:
        events = recording.events
        places = list(recording._parts[0].places)
        ends = [recording._parts[0]._ends[place.number] for place in places]
    assert len(places) == 5
    index_at = sum(places[-1][:2])
    for wrong in ([ends[1], *ends[1:]], [pack_seal(b""), *ends[1:]], []):
        index = pack_index(places, wrong)
        changed = data[:index_at] + index + pack_footer(index_at, len(index))
        with Recording([MemorySource(changed)]) as recording:
            assert recording._parts[0].indexed
            assert np.array_equal(recording.events, events)
        assert verify(MemorySource(changed)).findings == []


def test_a_chunk_that_claims_an_impossible_number_is_none() -> None:
    most = (1 << 62) - 1
    for possible in (HEAD._replace(number=most), HEAD._replace(first=most)):
        assert read_chunk(split(pack_chunk(possible))[1], 0) == possible
    for impossible in (HEAD._replace(number=most + 1), HEAD._replace(first=most + 1)):
        with pytest.raises(CorruptChunk, match="no chunk begins here"):
            read_chunk(split(pack_chunk(impossible))[1], 0)


@given(st.data())
def test_bytes_behind_the_known_end_are_skipped(data: st.DataObject) -> None:
    more = data.draw(st.binary(max_size=30))
    assert read_chunk(split(pack_chunk(HEAD))[1] + more, 0) == HEAD
    frame = pack_chunk_end(500, b"", empty_rows(0))
    header, payload = split(frame)
    assert (
        len(
            read_chunk_end(header, payload[: header.length] + more, CLIENT_LIMITS, 0, size=500).rows
        )
        == 0
    )


@given(st.binary(max_size=120), st.integers(0, 1000))
def test_garbage_is_refused_as_damage(garbage: bytes, offset: int) -> None:
    header = Header(len(garbage), FileFrame.INDEX, 0, 0, 0, 0, 0, 0)
    if garbage[:8] not in (b"", b"\0" * 8) and len(garbage) >= 8 and garbage[:4] != bytes(4):
        with pytest.raises(CorruptChunk):
            read_index(header, garbage, CLIENT_LIMITS, offset)
    with pytest.raises(CorruptChunk):
        read_chunk(garbage, offset)
    with pytest.raises(CorruptChunk):
        read_chunk_end(header, garbage, CLIENT_LIMITS, offset, size=1 << 62)
    assert read_footer(garbage) is None
    with pytest.raises((NotARecording, TruncatedRecording)):
        read_preamble(garbage)


@pytest.mark.parametrize("cut", range(12))
def test_a_preamble_that_was_cut_is_told_from_another_file(cut: int) -> None:
    with pytest.raises(TruncatedRecording if cut else NotARecording):
        read_preamble(pack_preamble()[:cut])


@pytest.mark.parametrize(
    ("count", "size"), [(MOST_EVENTS + 1, 1 << 40), (10, 500), (1 << 31, 1 << 62)]
)
def test_a_table_that_claims_too_much_is_refused_before_memory_is_taken(
    count: int, size: int
) -> None:
    payload = struct.pack("<QII", size, 0, count)
    with pytest.raises(CorruptChunk, match="do not fit"):
        read_chunk_end(
            Header(16, FileFrame.CHUNK_END, 0, 0, 0, 0, 0, 0), payload, CLIENT_LIMITS, 0, size=size
        )


def test_a_table_that_leaves_its_chunk_is_refused() -> None:
    for start, end in ((0, 501), (90, 90), (90, 80), (0, 1 << 63)):
        rows = empty_rows(1)
        rows["start"], rows["end"] = start, end
        header, payload = split(pack_chunk_end(500, b"", rows))
        with pytest.raises(CorruptChunk, match="leaves its chunk"):
            read_chunk_end(header, payload[: header.length], CLIENT_LIMITS, 0, size=500)


@pytest.mark.parametrize(
    "places",
    [
        [PLACES[1], PLACES[0]],
        [PLACES[0], PLACES[0]],
        [PLACES[0]._replace(size=100_000)],
        [PLACES[0]._replace(end_at=200)],
        [PLACES[0]._replace(first=0)],
        [PLACES[0]._replace(events=MOST_EVENTS + 1)],
        [PLACES[0], PLACES[1]._replace(first=3)],
    ],
)
def test_an_index_that_contradicts_itself_is_refused(places: list[ChunkPlace]) -> None:
    header, payload = split(pack_index(places))
    with pytest.raises(CorruptChunk, match="overlap or lie outside"):
        read_index(header, payload[: header.length], CLIENT_LIMITS, 700)


def test_a_bomb_is_refused_unread() -> None:
    """Zstd that would unpack to more than the limit, in each frame of the file that may be compressed."""
    bomb = pack_frame(FileFrame.INDEX, bytes(1 << 20)).data
    header, payload = split(bomb)
    assert header.flags == 1
    limits = replace(CLIENT_LIMITS, raw_bytes=1000)
    for read in (
        lambda: read_index(header, payload, limits, 5000),
        lambda: read_chunk_end(header, payload, limits, 0, size=9),
        lambda: read_facts(header, payload, limits, 0),
    ):
        with pytest.raises(CorruptChunk, match="over the limit"):
            read()


@given(st.data())
def test_a_file_that_grows_in_any_pieces_tells_the_same(data: st.DataObject) -> None:
    whole = GOLDEN.read_bytes()
    grown = bytearray()
    recording: Recording | None = None
    seen = 0
    places = sorted({*data.draw(st.lists(st.integers(0, len(whole)), max_size=12)), len(whole)})
    for place in places:
        grown += whole[len(grown) : place]
        try:
            if recording is None:
                recording = Recording([MemorySource(grown)])
            else:
                recording.refresh()
        except RecordingError:
            assert place < whole.index(CHUNK_MAGIC)
            continue
        assert recording.last >= seen
        seen = recording.last
        if seen:
            assert np.array_equal(
                recording.seek(seen).spaces[1].streams[0].values, Small.values(seen)
            )
    assert recording is not None
    assert seen == 6
    assert recording.finished
    assert np.array_equal(recording.events, Recording([MemorySource(whole)]).events)
    assert len(whole) > FOOTER_BYTES
