"""A packed recording is the recording: read the same at any place, distinguished from damage, and never trusted."""

from __future__ import annotations

import io
import random
import struct
from pathlib import Path

import pytest
import zstandard
from gcspy_protocol.errors import NotARecording
from gcspy_replay.file import (
    ChunkRule,
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
from gcspy_replay.file.layout import CHUNK_BYTES, CHUNK_MAGIC, SEAL_BYTES, WIRE_VERSION
from gcspy_replay.file.parts.packed_source import BLOCK_BYTES, PackedSource
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.cli.every_command import assert_every_command_reads
from tests.examples import examples
from tests.matrix import matrix
from tests.replay.recorded import Small, small


def packed(data: bytes, level: int = 3) -> bytes:
    out = io.BytesIO()
    assert pack(MemorySource(data), out, level=level) == len(out.getvalue())
    return out.getvalue()


EVENTS = 5000
RULE = ChunkRule(weight=0.6, most_events=256)
LARGE = small(EVENTS, rule=RULE, version=WIRE_VERSION)
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
    Small(store, version=WIRE_VERSION).events(30).writer.close()
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
    data = small(20, version=WIRE_VERSION)
    path.write_bytes(zstandard.ZstdCompressor().compress(data))
    with Recording.open(path) as recording:
        assert len(recording) == 20


SHORT = packed(small(12, version=WIRE_VERSION))


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
        with pytest.raises(NotARecording, match="cannot be unpacked"):
            open_source(path)


# ---------------------------------------------------------------- work is bounded by what was sent


class CountingRecording:
    """Opens packed bytes, and counts the work of it."""

    def __init__(self, data: bytes) -> None:
        self.source = PackedSource(MemorySource(data))
        self.recording = Recording([self.source])
        self.sent_bytes = len(data)

    @property
    def work_bytes(self) -> int:
        return self.recording.parts[0].window.work_bytes


def frames_of(pieces: list[bytes], *, table: bool) -> bytes:
    """Pieces packed by another program, which describes them truly."""
    packer = zstandard.ZstdCompressor(level=19, write_checksum=True)
    memo: dict[bytes, bytes] = {}
    frames = [memo.setdefault(piece, packer.compress(piece)) for piece in pieces]
    rows = b"".join(
        struct.pack("<II", len(frame), len(piece))
        for frame, piece in zip(frames, pieces, strict=True)
    )
    rows += struct.pack("<IBI", len(frames), 0, 0x8F92EAB1)
    end = struct.pack("<II", 0x184D2A5E, len(rows)) + rows if table else b""
    return b"".join(frames) + end


def header_bytes() -> bytes:
    """Return the bytes of a recording before its first chunk."""
    data = small(2, version=WIRE_VERSION)
    return data[: Recording([MemorySource(data)]).chunks[0].place.offset]


FIRST_CHUNK = small(2, version=WIRE_VERSION)[len(header_bytes()) :][: CHUNK_BYTES + SEAL_BYTES]

FILLINGS = {
    "zeros": bytes(64),
    "empty frames": struct.pack("<IBBHHHQQ", 0, 0x7F, 0, 0, 0, 0, 0, 0),
    "magics": bytes(28) + CHUNK_MAGIC + bytes(20),
    "beginnings of chunks": FIRST_CHUNK,
    "long frames": struct.pack("<IBBHHHQQ", 900_000, 0x7F, 0, 0, 0, 0, 0, 0),
}


@pytest.mark.parametrize("table", [True, False], ids=["table", "no table"])
@pytest.mark.parametrize("blocks", matrix([12, 150], usual=[12]))
def test_a_file_that_would_unpack_to_more_than_a_recording_can_is_refused_unread(
    blocks: int, *, table: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = bytes(8 << 20)
    data = frames_of([(header_bytes() + block)[: len(block)]] + [block] * (blocks - 1), table=table)
    calls = []
    monkeypatch.setattr(
        "gcspy_replay.file.parts.packed_source._unpacked", lambda *args: calls.append(args)
    )
    with pytest.raises(
        NotARecording, match=rf"would unpack to {blocks * len(block)}, over 128 times"
    ):
        PackedSource(MemorySource(data))
    assert calls == []


@pytest.mark.parametrize("filling", FILLINGS)
@pytest.mark.parametrize("table", [True, False], ids=["table", "no table"])
def test_the_work_of_opening_is_bounded_by_the_bytes_that_were_sent(
    filling: str, *, table: bool
) -> None:
    """As much as is not refused, in blocks of 1 MiB, behind a true header and without an index."""
    block = (FILLINGS[filling] * (1 << 20))[: 1 << 20]
    noise = random.Random(1).randbytes(16 << 10)  # so that more may be unpacked
    first = (header_bytes() + block)[: 1 << 20]
    data = frames_of([first, *[block] * 2, noise], table=table)
    opened = CountingRecording(data)
    assert opened.source.size() > 100 * len(data), "a bomb"
    assert len(opened.recording) == 0
    assert opened.work_bytes < 8 * (32 * len(data) + (1 << 20)) + (3 << 20)
    assert opened.recording.damages, "it is told"
    assert opened.recording.refresh() is False
    verified = verify(PackedSource(MemorySource(data)))
    assert not verified.intact


def test_a_closed_recording_is_opened_by_its_index_without_unpacking_the_rest() -> None:
    opened = CountingRecording(PACKED)
    blocks = -(-len(LARGE) // BLOCK_BYTES)
    assert blocks > 2
    assert len(opened.recording) == EVENTS
    ends = {0, blocks - 1}
    assert opened.source.unpacked_bytes == sum(
        len(LARGE[i * BLOCK_BYTES : (i + 1) * BLOCK_BYTES]) for i in ends
    )


@pytest.mark.parametrize("tiles", [9, 400])
def test_a_killed_recording_that_was_packed_is_scanned_whole(tiles: int) -> None:
    """The most regular one: nothing changes."""
    store = MemoryStore()
    Small(store, tiles=tiles, version=WIRE_VERSION).events(3000)  # not closed
    opened = CountingRecording(packed(bytes(store.data), level=19))
    assert len(opened.recording) == 3000
    assert opened.recording.damages == []


def test_a_file_without_a_table_is_measured_without_unpacking(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (rows,) = struct.unpack_from("<I", PACKED, len(PACKED) - 9)
    bare = PACKED[: len(PACKED) - 9 - 8 * rows - 8]
    calls = []
    monkeypatch.setattr(
        "gcspy_replay.file.parts.packed_source._unpacked", lambda *args: calls.append(args)
    )
    source = PackedSource(MemorySource(bare))
    assert source.size() == len(LARGE)
    assert calls == []


@given(
    st.binary(min_size=1, max_size=3000).map(lambda data: data * 7),
    st.integers(-5, 19),
    st.booleans(),
)
@examples(1)
def test_a_frame_is_measured_as_zstd_does(data: bytes, level: int, checksum: bool) -> None:
    frame = zstandard.ZstdCompressor(level=level, write_checksum=checksum).compress(data)
    for behind in (b"", b"\x28\xb5", frame):
        source = PackedSource(MemorySource(frame + behind))
        assert source.size() == len(data) * (2 if behind == frame else 1)
        assert source.read_at(0, len(data)) == data
        source.close()
    if len(frame) > 1:
        with pytest.raises(NotARecording):
            PackedSource(MemorySource(frame[:-1]))


def test_reading_a_file_of_many_small_frames_costs_what_it_has() -> None:
    class Counted(MemorySource):
        read_bytes = 0

        def read_at(self, offset: int, size: int) -> bytes:
            found = super().read_at(offset, size)
            self.read_bytes += len(found)
            return found

    data = zstandard.ZstdCompressor().compress(b"x") * 50_000
    file = Counted(data)
    PackedSource(file)
    assert file.read_bytes < 3 * len(data) + (1 << 20)
