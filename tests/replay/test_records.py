"""Records: numbers come back, packed recordings are the recording, a damaged byte costs one block, bombs are refused."""

from __future__ import annotations

import random
import struct
import zlib

import numpy as np
import pytest
import zstandard
from gcspy_protocol.errors import CorruptChunk
from gcspy_protocol.frames.frame import HEADER
from gcspy_replay.file import (
    WIRE_VERSION,
    ChunkRule,
    MemorySource,
    MemoryStore,
    Recording,
    cut,
    repack,
    repair,
    verify,
)
from gcspy_replay.file.layout import FileFrame
from gcspy_replay.file.records.blocks import (
    ColumnUnpacker,
    RecordPacker,
    RecordUnpacker,
    most_unpacked,
)
from gcspy_replay.file.records.fields import FieldWriter
from gcspy_replay.file.records.numbers import narrow, pack_integers, unpack_integers, widen
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from tests.examples import examples
from tests.protocol.session import assert_equal
from tests.replay.recorded import RULES, Recorder, Small, small

NUMBERS = st.lists(st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-300, 300), max_size=40)

PACKED_RULE = ChunkRule(weight=99, most_events=8, key_events=3)


def packed(data: bytes | bytearray, rule: ChunkRule | None = None) -> bytearray:
    store = MemoryStore()
    cut(Recording([MemorySource(data)]), store, rule=rule, packed=9)
    return bytearray(store.data)


@given(NUMBERS)
def test_numbers_come_back(numbers: list[int]) -> None:
    codes, data = pack_integers(numbers)
    assert len(codes) == len(numbers)
    assert unpack_integers(memoryview(codes), memoryview(data)) == numbers
    array = np.array(numbers, dtype=np.int64)
    code, data = narrow(array)
    found, end = widen(code, memoryview(data), len(numbers), 0)
    assert found.tolist() == numbers
    assert end == len(data)


def test_a_number_takes_no_more_bytes_than_it_needs() -> None:
    numbers = [0, 127, -128, 128, -129, 1 << 15, -(1 << 31), 1 << 31]
    codes, data = pack_integers(numbers)
    assert list(codes) == [0, 1, 1, 2, 2, 3, 3, 4]
    assert len(data) == 2 + 4 + 8 + 8


@given(st.data(), RULES, st.integers(1, 20))
@examples(0.5)
def test_a_packed_recording_tells_what_a_client_saw(
    data: DataObject, rule: ChunkRule, steps: int
) -> None:
    store = MemoryStore()
    version = data.draw(st.sampled_from((1, 2)))
    seen = Recorder(data.draw, store, rule, version=version).run(steps)
    if not seen.events:
        return
    recording = Recording([MemorySource(packed(store.data, data.draw(RULES)))])
    assert recording.packed
    for i, (step, session) in enumerate(recording.steps()):
        assert step.number == i + 1
        assert_equal(session, seen.truths[i])
    for i in reversed(range(len(seen.events))):
        assert_equal(recording.seek(i + 1), seen.truths[i])
    again = MemoryStore()
    repack(recording, again, level=None)
    assert not Recording([MemorySource(again.data)]).packed
    assert_equal(Recording([MemorySource(again.data)]).seek(len(seen.events)), seen.truths[-1])


def test_a_recording_of_version_1_is_packed_smaller_than_one_of_version_2() -> None:
    old, new = small(60, tiles=300, version=WIRE_VERSION), small(60, tiles=300)
    assert 2 * len(packed(old)) < 2 * len(new) < len(old)


@pytest.mark.parametrize("columns", [False, True], ids=["recorded", "packed"])
def test_a_changed_byte_costs_at_most_its_block_and_is_told_with_its_place(columns: bool) -> None:
    rule = PACKED_RULE
    whole = packed(small(60), rule) if columns else bytearray(small(60, rule=rule))
    chunks = Recording([MemorySource(whole)]).chunks
    places = random.Random(5)
    for _ in range(12):
        at = places.randrange(chunks[0].place.offset, len(whole))
        data = bytearray(whole)
        data[at] ^= 1 << places.randrange(8)
        report = verify(MemorySource(data, name="a.gcspy"))
        lost = sum(loss.events for loss in report.lost)
        assert lost <= rule.most_events
        assert report.findings, at
        near = min(finding.start for finding in report.findings)
        ours = [one.place for one in chunks if one.place.offset <= at]
        assert near >= ours[-1].offset, (at, report.findings)
        assert all(finding.name == "a.gcspy" for finding in report.findings)
        store = MemoryStore()
        saved = repair(MemorySource(data), store)
        recording = Recording([MemorySource(store.data)])
        assert len(recording) == saved.events >= 60 - rule.most_events
        for step, session in recording.steps():
            assert np.array_equal(session.spaces[1].streams[0].values, Small.values(step.number))


def test_every_event_that_was_flushed_is_read_wherever_the_recorder_was_killed() -> None:
    store = MemoryStore()
    Small(store, rule=ChunkRule(weight=99, most_events=20), tiles=200).events(100)
    whole = bytes(store.data)
    recording = Recording([MemorySource(whole)])
    ends = (recording.events["offset"] + recording.events["bytes"]).astype(np.int64)
    places = random.Random(11)
    for _ in range(1000):
        at = places.randrange(int(ends[0]), len(whole))
        killed = Recording([MemorySource(whole[:at])])
        there = int((ends <= at).sum())
        assert len(killed) == there, at
        values = killed.seek(there).spaces[1].streams[0].values
        assert np.array_equal(values, Small.values(there, 200))
        assert killed.damages == []


# ------------------------------------------------------------------ hostile blocks


def payload_of(frame: bytes) -> bytes:
    return frame[HEADER.size :]


def test_a_block_that_would_unpack_to_too_much_is_refused_unread() -> None:
    bomb = zstandard.ZstdCompressor().compress(bytes(300 << 20))
    claimed = struct.pack("<II", 0, 300 << 20) + bomb
    for unpacker in (RecordUnpacker(), ColumnUnpacker()):
        with pytest.raises(CorruptChunk, match="plausible"):
            unpacker.records(claimed, 7, most_unpacked(len(claimed)))


def test_a_block_unpacks_to_no_more_than_it_says() -> None:
    bomb = zstandard.ZstdCompressor().compress(bytes(300 << 20))
    for unpacker in (RecordUnpacker(), ColumnUnpacker()):
        with pytest.raises(CorruptChunk):
            unpacker.records(struct.pack("<II", 0, 1000) + bomb, 7, 1 << 20)


def test_a_window_that_is_too_large_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=27, write_content_size=False)
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    data = stream.compress(bytes(100)) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    with pytest.raises(CorruptChunk, match="damaged at byte 7"):
        RecordUnpacker().records(struct.pack("<II", 0, 100) + data, 7, 1 << 20)


def test_blocks_in_another_order_are_damage() -> None:
    packer = RecordPacker()
    out = FieldWriter()
    out.text("some text that comes again and again")
    frames = [packer.block(out.record(1)) for _ in range(3)]
    reader = RecordUnpacker()
    reader.records(payload_of(frames[0]), 0, 1 << 20)
    with pytest.raises(CorruptChunk):
        RecordUnpacker().records(payload_of(frames[1]), 0, 1 << 20)


def sealed(data: bytes, at: int, change: bytes) -> bytes:
    """Change bytes of the block whose frame begins at `at`, and give it the right CRC."""
    length, kind = struct.unpack_from("<IB", data, at)
    assert kind in (FileFrame.RECORDS, FileFrame.COLUMNS)
    end = at + HEADER.size + length
    body = bytearray(data[at + HEADER.size + 4 : end])
    body[: len(change)] = change
    crc = zlib.crc32(body, zlib.crc32(data[at : at + HEADER.size]))
    return data[: at + HEADER.size] + crc.to_bytes(4, "little") + bytes(body) + data[end:]


@pytest.mark.parametrize("claimed", [0, 1, 1 << 20, 0xFFFFFFFF])
def test_a_false_size_in_a_file_is_told_with_its_offset(claimed: int) -> None:
    data = small(10)
    at = int(Recording([MemorySource(data)]).events["offset"][4])
    report = verify(MemorySource(sealed(data, at, claimed.to_bytes(4, "little"))))
    assert report.events == 4
    assert any(f"byte {at}" in finding.what for finding in report.findings), report.findings
