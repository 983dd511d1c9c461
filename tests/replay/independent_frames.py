"""The frames, entries and chunks of an independent reader, written from FORMAT.md sections 1 to 6 alone.

It shares no line with the product either, and is as strict.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgpack
import numpy as np
import zstandard

RECORDS, COLUMNS, TABLE = 0x76, 0x77, 0x78
SEAL, CHUNK, CHUNK_END, INDEX, FOOTER, RECORDING, EVENT = 0x72, 0x71, 0x73, 0x74, 0x75, 0x70, 0x2F


class Frame(NamedTuple):
    """A frame: SPEC.md 3.1."""

    type: int
    flags: int
    space: int
    stream: int
    sequence: int
    time: int
    raw: bytes  # header and payload, as they lie in the file

    @property
    def payload(self) -> bytes:
        if not self.flags & 1:
            return self.raw[28:]
        return zstandard.ZstdDecompressor().decompress(self.raw[28:])

    @property
    def map(self) -> dict[str, Any]:
        found: dict[str, Any] = msgpack.unpackb(self.payload) if self.payload else {}
        return found


def frame_at(data: bytes, at: int) -> Frame | None:
    """The frame that begins there; None where it does not end."""
    if at + 28 > len(data):
        return None
    length, kind, flags, space, stream, _, sequence, time = struct.unpack_from(
        "<IBBHHHQQ", data, at
    )
    end = at + 28 + length
    return (
        Frame(kind, flags, space, stream, sequence, time, data[at:end])
        if end <= len(data)
        else None
    )


def entry_at(
    data: bytes, at: int, covered_from: int | None = None
) -> tuple[list[Frame], int] | None:
    """FORMAT.md 3: the frames of an entry, its CRC compared, and where it ends; None where it does not end."""
    frames: list[Frame] = []
    start = at if covered_from is None else covered_from
    while (found := frame_at(data, at)) is not None:
        frames.append(found)
        at += len(found.raw)
        if found.type in (RECORDS, COLUMNS):
            assert len(frames) == 1
            crc = zlib.crc32(found.raw[32:], zlib.crc32(found.raw[:28]))
            assert crc == struct.unpack("<I", found.raw[28:32])[0]
            return frames, at
        if found.type == EVENT:
            crcs = b"".join(struct.pack("<I", zlib.crc32(frame.raw)) for frame in frames[:-1])
            told, rest = found.raw[28:32], found.raw[:28] + found.raw[32:]
            assert zlib.crc32(rest, zlib.crc32(crcs)) == struct.unpack("<I", told)[0]
            assert all(0x20 <= frame.type <= 0x2E for frame in frames[:-1])
            return frames, at
        if found.type == SEAL:
            assert zlib.crc32(data[start : at - 4]) == struct.unpack("<I", found.raw[28:])[0]
            return frames, at
    return None


def places(data: bytes, at: int) -> Iterator[tuple[int, int]]:
    """FORMAT.md 5 and 6: where the chunks are, by the index, or hopping from frame to frame."""
    footer = frame_at(data, len(data) - 56)
    if footer is not None and footer.type == FOOTER:
        assert zlib.crc32(footer.raw[:-4]) == struct.unpack("<I", footer.raw[-4:])[0]
        index_at, _, magic = struct.unpack_from("<QQ8s", footer.raw, 28)
        assert magic == b"GCend\r\n\x1a"
        index = entry_at(data, index_at)
        assert index is not None
        (count,) = struct.unpack_from("<I", index[0][0].payload)
        begins, sizes = (
            np.frombuffer(index[0][0].payload, "<u8", 2 * count, 8).reshape(2, count).tolist()
        )
        yield from ((begin, begin + size) for begin, size in zip(begins, sizes, strict=True))
        return
    begin = at
    while (frame := frame_at(data, at)) is not None:
        if (frame.type == CHUNK and at > begin) or frame.type == INDEX:
            yield begin, at
            begin = at
        if frame.type == INDEX:
            return
        at += len(frame.raw)
    if begin < at:
        yield begin, at
