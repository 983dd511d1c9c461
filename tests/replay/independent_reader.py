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

ENUM, PERCENT = 5, (3, 4)
"""Presentations: SPEC.md 5.1."""
KINDS = {1: "<i1", 2: "<u1", 3: "<i2", 4: "<u2", 5: "<i4", 6: "<u4", 7: "<i8", 8: "<u8"}
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
        self.last: dict[str, Any] = {}

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
        chunks = list(_places(data, at))
        for begin, end in chunks:
            assert begin == at
            yield from self._chunk(data, begin, end)
            at = end

    def record(self, record: tuple[int, list[bytes]]) -> dict[str, Any] | None:
        """FORMAT.md 10: follow a record, and return its event, or None."""
        kind, sections = record
        fields = Fields(sections)
        if kind in (1, 2):
            run, at = fields.data(), 0
            while at < len(run):
                what, space, stream, sequence, time, size = struct.unpack_from("<BHHQQI", run, at)
                payload = run[at + 25 : at + 25 + size]
                raw = struct.pack("<IBBHHHQQ", size, what, 0, space, stream, 0, sequence, time)
                self.take(Frame(what, 0, space, stream, sequence, time, raw + payload))
                at += 25 + size
            if kind == 1 or not fields.number():
                fields.end()
                return None
        event = self._record_event(fields)
        for number, space in self.spaces.items():
            self._body(fields, number, space, event)
        fields.end()
        return event if kind == 3 else None

    def _record_event(self, fields: Fields) -> dict[str, Any]:
        flags, kind = fields.number(), fields.number()
        before = {} if flags & 8 else self.last
        counts = self.said.get(0x30, [])
        event: dict[str, Any] = {"flags": flags & 3, "event": kind}
        event["sequence"] = fields.unsigned(before.get("sequence", 0))
        event["time"] = fields.unsigned(before.get("time", 0))
        event["occurrence"] = fields.unsigned(counts[kind] if kind < len(counts) else 0)
        for name in ("gather", "held", "waited", "stopped"):
            event[name] = fields.unsigned(before.get(name, 0))
        event["epoch"] = fields.number()
        event["cause"] = fields.data().decode()
        if flags & 4:
            event["clock"] = fields.data().decode()
            event["clock_value"] = fields.unsigned(before.get("clock_value", 0))
        self.last = event
        return event

    def _body(self, fields: Fields, number: int, space: Space, event: dict[str, Any]) -> None:
        flags = fields.number()
        if flags & 1:
            count, runs = fields.number(), fields.number()
            base, tile_bytes, named = fields.unsigned(0), fields.unsigned(0), fields.number()
            columns = (
                [np.cumsum(fields.array(2, runs)) for _ in range(3)]
                if runs
                else [np.empty(0, np.int64)] * 3
            )
            steps = fields.array(2, named - 1) if named else np.empty(0, np.int64)
            sizes = np.cumsum(fields.array(2, named - 1) if named else np.empty(0, np.int64))
            payload = struct.pack(
                "<IIIBxxxQQ", count, runs, max(0, named - 1), 1 if named else 0, base, tile_bytes
            )
            payload += b"".join(np.array(column).astype("<u4").tobytes() for column in columns)
            payload += steps.astype("<u8").tobytes() + sizes.astype("<u8").tobytes()
            space.resize(payload, defaults=True)
            self.names[number] = _stayed(self.names.get(number, {}), payload)
        if flags & 2:
            space.info = fields.data().decode()
        if flags & 4:
            tile = -1
            for _ in range(fields.number()):
                tile += 1 + fields.number()
                self.names.setdefault(number, {})[tile] = fields.data().decode()
        if flags & 8:
            where = np.empty(0, np.int64)
            for stream in space.streams.values():
                where = _recorded_values(fields, stream, event, where)
        if flags & 16:
            for one, stream in space.streams.items():
                if one != 0xFFFF:
                    _recorded_summary(fields, stream, space, one)

    def _chunk(self, data: bytes, begin: int, end: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """FORMAT.md 4."""
        self.begin()
        at, number, head, crcs = begin, 0, 0, b""
        stream = zstandard.ZstdDecompressor().decompressobj()
        first_key = True
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
                raw = stream.decompress(frames[0].raw[36:])
                assert len(raw) == struct.unpack_from("<I", frames[0].raw, 32)[0]
                for record in _records(raw) if frames[0].type == RECORDS else _columns(raw):
                    if record[0] == 2 and not first_key:
                        continue
                    first_key = False
                    event = self.record(record)
                    if event is not None:
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


class Fields:
    """FORMAT.md 10: the sections of a record, read in order."""

    def __init__(self, sections: list[bytes]) -> None:
        self.numbers = self._integers(sections[0], sections[1])
        self.sums = self._integers(sections[4], sections[5])
        self.rest = {2: sections[2], 3: sections[3], 6: sections[6]}

    @staticmethod
    def _integers(codes: bytes, data: bytes) -> list[int]:
        found, at = [0] * len(codes), 0
        for code, size in enumerate((1, 2, 4, 8), 1):
            for place, one in enumerate(codes):
                if one == code:
                    found[place] = int.from_bytes(data[at : at + size], "little", signed=True)
                    at += size
        assert at == len(data)
        return found[::-1]

    def number(self) -> int:
        return self.numbers.pop()

    def unsigned(self, before: int) -> int:
        return (before + self.number()) % (1 << 64)

    def array(self, section: int, count: int) -> NDArray[np.int64]:
        code = self.number()
        size = (0, 1, 2, 4, 8)[code] * count
        data, self.rest[section] = self.rest[section][:size], self.rest[section][size:]
        if not code:
            return np.zeros(count, np.int64)
        return (
            np.frombuffer(data, f"<i{size // count}").astype(np.int64)
            if count
            else np.empty(0, np.int64)
        )

    def bits(self, count: int) -> NDArray[np.bool_]:
        size = -(-count // 8)
        data, self.rest[3] = self.rest[3][:size], self.rest[3][size:]
        return np.unpackbits(np.frombuffer(data, np.uint8))[:count].astype(np.bool_)

    def data(self) -> bytes:
        size = self.number()
        data, self.rest[6] = self.rest[6][:size], self.rest[6][size:]
        return data

    def end(self) -> None:
        assert not self.numbers
        assert not self.sums
        assert not any(self.rest.values())


def _records(raw: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """FORMAT.md 10: records one behind the other."""
    at = 0
    while at < len(raw):
        kind, *sizes = struct.unpack_from("<B7I", raw, at)
        at += 29
        sections = []
        for size in sizes:
            sections.append(raw[at : at + size])
            at += size
        yield kind, sections
    assert at == len(raw)


def _columns(raw: bytes) -> list[tuple[int, list[bytes]]]:
    """FORMAT.md 11: the records of a packed chunk."""
    (count,) = struct.unpack_from("<I", raw)
    heads = [struct.unpack_from("<B7I", raw, 4 + 29 * i) for i in range(count)]
    found: list[tuple[int, list[bytes]]] = [(head[0], []) for head in heads]
    at = 4 + 29 * count
    for section in range(1, 8):
        for kind in (1, 2, 3):
            for head, record in zip(heads, found, strict=True):
                if head[0] == kind:
                    record[1].append(raw[at : at + head[section]])
                    at += head[section]
    assert at == len(raw)
    return found


def _recorded_values(
    fields: Fields, stream: Stream, event: dict[str, Any], before: NDArray[np.int64]
) -> NDArray[np.int64]:
    """FORMAT.md 10: a stream of a body; returns the tiles that the next may share."""
    flags = fields.number()
    if not flags & 3:
        return before
    stream.sequence, stream.occurrence = event["sequence"], event["occurrence"]
    if flags & 4:
        stream.sequence = fields.unsigned(stream.sequence)
        fields.number()
        fields.number()
        stream.occurrence = fields.unsigned(0)
    where, told = np.empty(0, np.int64), np.empty(0, np.int64)
    if flags & 3 == 2:
        count = fields.number()
        if not flags & 16:
            before = np.cumsum(fields.array(2, count) + 1) - 1
        where, told = before, fields.array(3, count)
    elif flags & 3 == 3:
        where, told = np.arange(len(stream.values)), fields.array(3, len(stream.values))
        told = np.cumsum(told) if flags & 32 else told
    known = fields.bits(len(where)) if flags & 8 else np.ones(len(where), np.bool_)
    now = stream.values[where].astype(np.int64) + told
    stream.values[where], stream.known[where] = now.astype(stream.values.dtype), known
    return before


def _recorded_summary(fields: Fields, stream: Stream, space: Space, one: int) -> None:
    """FORMAT.md 10: the summary of a stream of a body."""
    flags = fields.number()
    if not flags & 3:
        return
    if flags & 4:
        fields.number()
        fields.number()
    if stream.summary is None:
        stream.summary = (0,) * _numbers_of(space, one)
    if flags & 3 == 2:
        stream.covered += fields.sums.pop()
        moved = [value + fields.sums.pop() for value in stream.summary]
        stream.summary = tuple((value + (1 << 63)) % (1 << 64) - (1 << 63) for value in moved)


def _numbers_of(space: Space, one: int) -> int:
    """SPEC.md 5.1: how many numbers a summary of a stream has."""
    (told,) = [stream for stream in space.told["streams"] if stream["id"] == one]
    if told["presentation"] == ENUM:
        return len(told["enum"])
    return 2 if told["presentation"] in PERCENT else 1


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
