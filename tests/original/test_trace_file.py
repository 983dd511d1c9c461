"""Stored traces: gzip or plain, of several parts, cut and damaged."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from gcspy_original.wire.trace_file import StoredTrace, is_stored_trace
from gcspy_protocol.errors import NotARecording, RecordingError

from tests.original.captures import of_client, of_server


@pytest.mark.parametrize("parts", [0, 1, 3])
def test_all_bytes_come_piece_by_piece(parts: int, tmp_path: Path) -> None:
    data = of_server("store") * 4  # more than a piece
    path = tmp_path / "a"
    step = -(-len(data) // max(1, parts))
    pieces = [data[start : start + step] for start in range(0, len(data), step)]
    path.write_bytes(b"".join(map(gzip.compress, pieces)) if parts else data)
    assert is_stored_trace(path)
    found = list(StoredTrace(path).chunks())
    assert b"".join(one for one, _ in found) == data
    assert max(len(one) for one, _ in found) <= 1 << 20
    assert [place for _, place in found] == sorted(place for _, place in found)
    assert found[-1][1] == path.stat().st_size


def test_what_comes_before_a_cut_or_damage_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    packed = gzip.compress(of_server("gui"))
    flipped = bytearray(packed)
    flipped[-6] ^= 1  # in its checksum
    for data in (packed[:9000], packed[:-3], bytes(flipped)):
        path.write_bytes(data)
        pieces: list[tuple[bytes, int]] = []
        with pytest.raises(RecordingError, match="cut short or damaged"):
            pieces.extend(StoredTrace(path).chunks())
        read = b"".join(piece for piece, _ in pieces)
        assert len(read) > 50_000
        assert of_server("gui").startswith(read)


def test_other_files_are_not_taken_for_one(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for data in (b"", b"GCspy666", of_client("gui")[:8], gzip.compress(b"x" * 99), b"\x1f\x8bno"):
        path.write_bytes(data)
        assert not is_stored_trace(path)
        with pytest.raises(NotARecording):
            StoredTrace(path)
    assert not is_stored_trace(tmp_path)
    assert not is_stored_trace(tmp_path / "none")
    with pytest.raises(RecordingError):
        StoredTrace(tmp_path / "none")


def test_serialised_objects_of_the_original_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"\xac\xed\x00\x05w")
    assert is_stored_trace(path)
    with pytest.raises(NotARecording, match="serialised objects of Java"):
        StoredTrace(path)
