"""A packed recording is the recording: read the same at any place, told from damage, and never trusted."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import pytest
import zstandard
from gcspy_protocol.errors import NotARecording
from gcspy_replay.file import (
    FileSource,
    FileStore,
    MemorySource,
    MemoryStore,
    Recording,
    open_source,
    pack,
    repair,
    unpack,
    verify,
)
from gcspy_replay.file.packed import BLOCK_BYTES, PackedSource
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.cli.every_command import assert_every_command_reads
from tests.examples import examples
from tests.replay.recorded import Small, small


def packed(data: bytes, level: int = 3) -> bytes:
    out = io.BytesIO()
    assert pack(MemorySource(data), out, level=level) == len(out.getvalue())
    return out.getvalue()


EVENTS = 5000
LARGE = small(EVENTS)
PACKED = packed(LARGE)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.gcspy.zst"
    path.write_bytes(PACKED)
    return path


def test_any_zstd_unpacks_it() -> None:
    assert len(LARGE) > 2 * BLOCK_BYTES, "several blocks"
    reader = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(PACKED), read_across_frames=True)
    assert reader.read() == LARGE


def test_ours_unpacks_it(file: Path) -> None:
    out = io.BytesIO()
    source = open_source(file)
    assert unpack(source, out) == len(LARGE)
    source.close()
    assert out.getvalue() == LARGE


@given(
    st.lists(st.tuples(st.integers(0, len(LARGE) + 9), st.integers(0, 3 * BLOCK_BYTES)), max_size=8)
)
@examples(0.6, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_piece_is_that_of_the_recording(file: Path, pieces: list[tuple[int, int]]) -> None:
    source = open_source(file)
    other = source.again()
    assert source.size() == len(LARGE)
    for offset, size in pieces:
        assert source.read_at(offset, size) == LARGE[offset : offset + size]
        assert other.read_at(offset, size) == LARGE[offset : offset + size]
    source.close()
    other.close()


def test_a_plain_file_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.gcspy"
    path.write_bytes(LARGE)
    source = open_source(path)
    assert isinstance(source, FileSource)
    source.close()


def test_every_command_reads_it(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "plain.gcspy")
    Small(store).events(30).writer.close()
    path = tmp_path / "a.gcspy.zst"
    path.write_bytes(packed((tmp_path / "plain.gcspy").read_bytes()))
    assert_every_command_reads([path], 30, tmp_path / "out", slow=True)


def test_damage_costs_the_events_of_its_block_only(file: Path) -> None:
    (rows,) = struct.unpack_from("<I", PACKED, len(PACKED) - 9)
    sizes = [
        struct.unpack_from("<I", PACKED, len(PACKED) - 9 - 8 * (rows - i))[0] for i in range(rows)
    ]
    assert rows > 2, "there is a block behind it"
    data = bytearray(PACKED)
    data[sizes[0] + sizes[1] // 2] ^= 1
    file.write_bytes(data)
    source = open_source(file)
    report = verify(source)
    source.close()
    assert not report.intact
    assert 0 < report.events < EVENTS
    store = MemoryStore()
    source = open_source(file)
    saved = repair(source, store)
    source.close()
    lost = sum(one.events for one in saved.lost)
    assert saved.events == EVENTS - lost == report.events + len(saved.states)
    recording = Recording([MemorySource(store.data)])
    for number in (1, EVENTS):
        state = recording.seek(number).spaces[1].streams[0]
        assert state.values.tolist() == Small.values(number).tolist()


def test_a_file_that_was_cut_short_is_read_as_far_as_it_goes(file: Path) -> None:
    file.write_bytes(PACKED[: len(PACKED) * 2 // 3])
    with Recording.open(file) as recording:
        last = recording.last
        assert 1000 < last < EVENTS
        state = recording.seek(last).spaces[1].streams[0]
        assert state.values.tolist() == Small.values(last).tolist()


def test_a_single_frame_of_another_program_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.gcspy.zst"
    data = small(20)
    path.write_bytes(zstandard.ZstdCompressor().compress(data))
    with Recording.open(path) as recording:
        assert len(recording) == 20


SHORT = packed(small(12))


@given(st.integers(0, len(SHORT) - 1), st.integers(1, 255))
@examples(3, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_byte_changed_anywhere_shows_nothing_wrong(tmp_path: Path, at: int, pattern: int) -> None:
    data = bytearray(SHORT)
    data[at] ^= pattern
    path = tmp_path / "a.gcspy.zst"
    path.write_bytes(data)
    try:
        with Recording.open(path) as recording:
            for step, state in recording.steps():
                number = int(step.change.event.sequence)
                assert state.spaces[1].streams[0].values.tolist() == Small.values(number).tolist()
    except NotARecording:
        pass


def test_a_table_that_lies_is_not_believed(tmp_path: Path) -> None:
    frame = zstandard.ZstdCompressor(write_checksum=True).compress(bytes(100))
    for raw in (0, 99, 101, 9 << 20, 0xFFFFFFFF):
        rows = struct.pack("<II", len(frame), raw)
        table = rows + struct.pack("<IBI", 1, 0, 0x8F92EAB1)
        path = tmp_path / "a"
        path.write_bytes(frame + struct.pack("<II", 0x184D2A5E, len(table)) + table)
        source = PackedSource(FileSource(path))
        assert source.size() in (100, raw)
        assert source.size() <= 1000
        assert not any(source.read_at(0, 1000)), "what does not unpack to what was said is nothing"
        source.close()


def test_a_file_that_only_begins_like_one_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a.gcspy.zst"
    for data in (b"\x28\xb5\x2f\xfd", PACKED[:100], b"\x28\xb5\x2f\xfd" + bytes(1000)):
        path.write_bytes(data)
        with pytest.raises(NotARecording, match="nothing of it can be unpacked"):
            open_source(path)
