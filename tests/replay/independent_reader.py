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
from typing import Any

import msgpack
import numpy as np
from numpy.typing import NDArray

from tests.replay.independent_frames import (
    CHUNK,
    CHUNK_END,
    COLUMNS,
    EVENT,
    RECORDING,
    RECORDS,
    TABLE,
    Frame,
    entry_at,
    places,
)
from tests.replay.independent_records import Records

KINDS = {1: "<i1", 2: "<u1", 3: "<i2", 4: "<u2", 5: "<i4", 6: "<u4", 7: "<i8", 8: "<u8"}


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

    def default(self, stream: int) -> int:
        """What tiles of a stream have at first."""
        found = {one["id"]: one.get("default", 0) for one in self.told["streams"]}
        return int(found.get(stream, 1))

    def resize(self, payload: bytes, *, defaults: bool = False) -> None:
        """SPEC.md 5.2; `defaults`: also the values that nobody knows count."""
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
        for number, stream in self.streams.items():
            values, known = np.zeros(count, stream.values.dtype), np.zeros(count, np.bool_)
            if defaults:
                values[:] = self.default(number)
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
        assert (magic, protocol) == (b"GCrec\r\n\x1a", 1)
        assert version in (1, 2)
        header = entry_at(data, 12, covered_from=0)
        assert header is not None
        assert [frame.type for frame in header[0]][:2] == [RECORDING, 0x02]
        at = header[1]
        chunks = list(places(data, at))
        for begin, end in chunks:
            assert begin == at
            yield from self._chunk(data, begin, end)
            at = end

    def notice(self, kind: int, place: tuple[int, int, int, int], payload: bytes) -> None:
        """Follow a notice of a record."""
        head = struct.pack("<IBBHHHQQ", len(payload), kind, 0, *place[:2], 0, *place[2:])
        self.take(Frame(kind, 0, *place, head + payload))

    def resize(self, number: int, payload: bytes) -> None:
        """Follow the tiles of a record."""
        self.spaces[number].resize(payload, defaults=True)
        self.names[number] = _stayed(self.names.get(number, {}), payload)

    def _chunk(self, data: bytes, begin: int, end: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """FORMAT.md 4."""
        self.begin()
        at, number, head, crcs = begin, 0, 0, b""
        records = Records(self)
        while at < end and (entry := entry_at(data, at)) is not None:
            frames, after = entry
            if frames[0].type == CHUNK:
                magic, _, _, number, head, _, _ = struct.unpack_from(
                    "<16s16sQQQII", frames[0].payload
                )
                assert magic == bytes.fromhex("89474373 70794368 756E6B0D 0A1A9D5C")
            if frames[0].type in (CHUNK_END, TABLE):
                size, crc, _ = struct.unpack_from("<QII", frames[0].payload)
                assert (size, crc) == (at - begin, zlib.crc32(crcs))
                return
            if frames[0].type in (RECORDS, COLUMNS):
                crcs += frames[0].raw[28:32]
                for event in records.events(frames[0].raw[32:], frames[0].type == COLUMNS):
                    yield number, event
                    number += 1
                at = after
                continue
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
