"""A reader of recordings written from FORMAT.md and SPEC.md alone, as an outsider would write it.

It shares no line with the product, and knows nothing of it: struct, zlib, zstandard, msgpack and numpy. It is
strict: where a page says what must be, anything else is an AssertionError. It reads forwards, chunk by chunk, from
each chunk's own head.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgpack
import numpy as np
import zstandard
from numpy.typing import NDArray

KINDS = {1: "<i1", 2: "<u1", 3: "<i2", 4: "<u2", 5: "<i4", 6: "<u4", 7: "<i8", 8: "<u8"}
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


@dataclass
class Stream:
    """Values of a stream; `sequence` 0: none came yet."""

    kind: str
    values: NDArray[Any]
    known: NDArray[np.bool_]
    sequence: int = 0
    occurrence: int = 0
    summary: tuple[int, ...] | None = None
    covered: int = 0


@dataclass
class Space:
    """A space: its description, its tiles and streams."""

    told: dict[str, Any]
    streams: dict[int, Stream]
    count: int = 0
    info: str = ""
    base: int = 0
    tile_bytes: int = 0
    bases: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    sizes: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))

    def resize(self, payload: bytes) -> None:
        """SPEC.md 5.2."""
        count, runs, named, naming = struct.unpack_from("<IIIB", payload)
        self.base, self.tile_bytes = struct.unpack_from("<QQ", payload, 16)
        at, columns = 32, []
        for kind, size in (
            ("<u4", runs),
            ("<u4", runs),
            ("<u4", runs),
            ("<u8", named),
            ("<u8", named),
        ):
            columns.append(np.frombuffer(payload, kind, size, at))
            at += size * np.dtype(kind).itemsize
        before = np.full(count, -1, dtype=np.int64)  # of each tile its old number
        for old, new, length in zip(*(column.tolist() for column in columns[:3]), strict=True):
            before[new : new + length] = np.arange(old, old + length)
        kept = before >= 0
        for stream in self.streams.values():
            values, known = np.zeros(count, stream.values.dtype), np.zeros(count, np.bool_)
            values[kept], known[kept] = stream.values[before[kept]], stream.known[before[kept]]
            stream.values, stream.known = values, known
        if naming == 1:
            gaps, sizes = columns[3], columns[4]
            assert named == count - kept.sum()
            starts = np.cumsum(gaps, dtype=np.uint64) + np.cumsum(sizes, dtype=np.uint64) - sizes
            bases, all_sizes = np.empty(count, np.uint64), np.empty(count, np.uint64)
            bases[kept], all_sizes[kept] = self.bases[before[kept]], self.sizes[before[kept]]
            bases[~kept], all_sizes[~kept] = starts, sizes
            self.bases, self.sizes = bases, all_sizes
        self.count = count


class Reader:
    """A session as described by the frames of a recording.

    Attributes:
        welcome: Whom was recorded.
        spaces: By id.
        said: The latest map or numbers of each notice: EPOCH_END, COUNTERS, STATE, FILTERS, MISSED.
        names: Texts of tiles, by space.
    """

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Know nothing: a chunk begins."""
        self.welcome: dict[str, Any] = {}
        self.spaces: dict[int, Space] = {}
        self.said: dict[int, Any] = {}
        self.names: dict[int, dict[int, str]] = {}

    def take(self, frame: Frame) -> None:
        """Follow a frame."""
        match frame.type:
            case 0x02:
                self.welcome = frame.map
            case 0x10:
                told = frame.map
                streams = {
                    one["id"]: Stream(one["type"], *_nothing("<" + one["type"]))
                    for one in told["streams"]
                }
                self.spaces[frame.space] = Space(
                    told, streams | {0xFFFF: Stream("u1", *_nothing("<u1"))}
                )
            case 0x11:
                del self.spaces[frame.space]
            case 0x13 | 0x25:
                texts = dict(enumerate(frame.map["names"], frame.map["first"]))
                self.names.setdefault(frame.space, {}).update(texts)
            case 0x12 | 0x31 | 0x32 | 0x34:
                self.said[frame.type] = frame.map
            case 0x30:
                (count,) = struct.unpack_from("<I", frame.payload)
                self.said[0x30] = list(struct.unpack_from(f"<{count}Q", frame.payload, 4))
            case 0x20:
                self.spaces[frame.space].resize(frame.payload)
                self.names[frame.space] = _stayed(self.names.get(frame.space, {}), frame.payload)
            case 0x21 | 0x22:
                _values(self.spaces[frame.space].streams[frame.stream], frame)
            case 0x23:
                stream = self.spaces[frame.space].streams[frame.stream]
                covered, n = struct.unpack_from("<II", frame.payload)
                stream.covered, stream.summary = (
                    covered,
                    struct.unpack_from(f"<{n}q", frame.payload, 8),
                )
            case 0x24:
                self.spaces[frame.space].info = frame.map["text"]

    def events(self, data: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
        """The new events of a part, each with its number; the reader then knows the state right after it."""
        magic, version, protocol = struct.unpack_from("<8sHH", data)
        assert (magic, version, protocol) == (b"GCrec\r\n\x1a", 1, 1)
        header = entry_at(data, 12, covered_from=0)
        assert header is not None
        assert [frame.type for frame in header[0]][:2] == [RECORDING, 0x02]
        at = header[1]
        chunks = list(_places(data, at))
        for begin, end in chunks:
            assert begin == at
            yield from self._chunk(data, begin, end)
            at = end

    def _chunk(self, data: bytes, begin: int, end: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """FORMAT.md 4."""
        self.begin()
        at, number, head, crcs = begin, 0, 0, b""
        while at < end and (entry := entry_at(data, at)) is not None:
            frames, after = entry
            if frames[0].type == CHUNK:
                magic, _, _, number, head, _, _ = struct.unpack_from(
                    "<16s16sQQQII", frames[0].payload
                )
                assert magic == bytes.fromhex("89474373 70794368 756E6B0D 0A1A9D5C")
            if frames[0].type == CHUNK_END:
                size, crc, _ = struct.unpack_from("<QII", frames[0].payload)
                assert (size, crc) == (at - begin, zlib.crc32(crcs))
                return
            last = frames[-1].raw
            crcs += last[28:32] if frames[-1].type == EVENT else last[-4:]
            for frame in frames[:-1]:
                self.take(frame)
            if frames[-1].type == EVENT and at - begin >= head:
                yield number, _event(frames[-1])
                number += 1
            at = after


def _nothing(kind: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    return np.empty(0, kind), np.empty(0, np.bool_)


def _values(stream: Stream, frame: Frame) -> None:
    """SPEC.md 6.1 and 6.2."""
    payload = frame.payload
    _, kind, flags, count, occurrence = struct.unpack_from("<HBBIQ", payload)
    if frame.type == 0x21:
        at, where = 16, np.arange(count)
    else:
        base, changed, gaps = struct.unpack_from("<QII", payload, 16)
        assert base == stream.sequence
        steps = np.frombuffer(payload, "<u2", gaps, 32).astype(np.int64)
        skips = steps == 0xFFFF
        where = (np.cumsum(np.where(skips, 0xFFFF, steps + 1)) - 1)[~skips]
        assert len(where) == changed
        at = 32 + 2 * gaps
    known = np.ones(len(where), np.bool_)
    if flags & 1:
        bits = np.frombuffer(payload, np.uint8, -(-len(where) // 8), at)
        known = np.unpackbits(bits, bitorder="little")[: len(where)].astype(np.bool_)
        at += len(bits)
    values = np.frombuffer(payload, KINDS[kind], len(where), at)
    if frame.type == 0x21:
        stream.values, stream.known = values.copy(), known
    else:
        assert count == len(stream.values)
        stream.values[where], stream.known[where] = values, known
    stream.sequence, stream.occurrence = frame.sequence, occurrence


def _stayed(names: dict[int, str], tiles: bytes) -> dict[int, str]:
    """SPEC.md 5.2: the texts of the tiles that stay."""
    (r,) = struct.unpack_from("<I", tiles, 4)
    runs = list(
        zip(*(struct.unpack_from(f"<{r}I", tiles, 32 + 4 * r * k) for k in range(3)), strict=True)
    )
    return {
        new + i - old: text
        for i, text in names.items()
        for old, new, n in runs
        if old <= i < old + n
    }


def _event(frame: Frame) -> dict[str, Any]:
    """SPEC.md 7.1."""
    _, kind, flags, epoch, _, occurrence, gather, held = struct.unpack_from(
        "<IHHIIQQQ", frame.raw, 28
    )
    more = msgpack.unpackb(frame.raw[68:]) if len(frame.raw) > 68 else {}
    names = ("event", "flags", "epoch", "occurrence", "gather", "held", "sequence", "time")
    return (
        dict(
            zip(
                names,
                (kind, flags, epoch, occurrence, gather, held, frame.sequence, frame.time),
                strict=True,
            )
        )
        | more
    )


def _places(data: bytes, at: int) -> Iterator[tuple[int, int]]:
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
