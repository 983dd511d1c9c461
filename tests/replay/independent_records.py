"""The records of an independent reader, written from FORMAT.md sections 10 and 11 alone.

It shares no line with the product either, and is as strict.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

ENUM, PERCENT = 5, (3, 4)
"""Presentations: SPEC.md 5.1."""


class Records:
    """The records of a chunk, for a reader that follows them."""

    def __init__(self, reader: Any) -> None:
        self.reader = reader
        self.stream = zstandard.ZstdDecompressor().decompressobj()
        self.begun = False
        self.last: dict[str, Any] = {}

    def events(self, payload: bytes, columns: bool) -> Iterator[dict[str, Any]]:
        """FORMAT.md 11: the events of a block, each when the reader knows the state right after it."""
        raw = self.stream.decompress(payload[4:])
        assert len(raw) == struct.unpack_from("<I", payload)[0]
        for record in _columns(raw) if columns else _records(raw):
            if record[0] == 2 and self.begun:
                continue
            self.begun = True
            event = self.record(record)
            if event is not None:
                yield event

    def record(self, record: tuple[int, list[bytes]]) -> dict[str, Any] | None:
        """FORMAT.md 10: follow a record, and return its event, or None."""
        kind, sections = record
        fields = Fields(sections)
        if kind in (1, 2):
            run, at = fields.data(), 0
            while at < len(run):
                what, *place, size = struct.unpack_from("<BHHQQI", run, at)
                at += 25 + size
                self.reader.notice(what, tuple(place), run[at - size : at])
            if kind == 1 or not fields.number():
                fields.end()
                return None
        event = self._record_event(fields)
        for number, space in self.reader.spaces.items():
            self._body(fields, number, space, event)
        fields.end()
        return event if kind == 3 else None

    def _record_event(self, fields: Fields) -> dict[str, Any]:
        flags, kind = fields.number(), fields.number()
        before = {} if flags & 8 else self.last
        counts = self.reader.said.get(0x30, [])
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

    def _body(self, fields: Fields, number: int, space: Any, event: dict[str, Any]) -> None:
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
            self.reader.resize(number, payload)
        if flags & 2:
            space.info = fields.data().decode()
        if flags & 4:
            tile = -1
            for _ in range(fields.number()):
                tile += 1 + fields.number()
                self.reader.names.setdefault(number, {})[tile] = fields.data().decode()
        if flags & 8:
            where = np.empty(0, np.int64)
            for stream in space.streams.values():
                where = _recorded_values(fields, stream, event, where)
        if flags & 16:
            for one, stream in space.streams.items():
                if one != 0xFFFF:
                    _recorded_summary(fields, stream, space, one)


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
    fields: Fields, stream: Any, event: dict[str, Any], before: NDArray[np.int64]
) -> NDArray[np.int64]:
    """FORMAT.md 10: a stream of a body; returns the tiles that the next may share."""
    flags = fields.number()
    if not flags & 3:
        return before
    if flags & 64:
        _as_it_came(fields, stream, event)
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


def _as_it_came(fields: Fields, stream: Any, event: dict[str, Any]) -> None:
    """FORMAT.md 10, SPEC.md 6: changes as their server compressed them."""
    size = fields.number()
    data, fields.rest[3] = fields.rest[3][:size], fields.rest[3][size:]
    payload = zstandard.ZstdDecompressor().decompress(data)
    _, _, flagged, count, occurrence, base, changed, gaps = struct.unpack_from("<HBBIQQII", payload)
    assert (count, base, occurrence) == (len(stream.values), stream.sequence, event["occurrence"])
    at, where, tile = 32 + 2 * gaps, [], -1
    for gap in struct.unpack_from(f"<{gaps}H", payload, 32):
        tile += gap if gap == 0xFFFF else gap + 1
        if gap != 0xFFFF:
            where.append(tile)
    known = np.ones(changed, np.bool_)
    if flagged:
        bits = np.frombuffer(payload, np.uint8, -(-changed // 8), at)
        known, at = (
            np.unpackbits(bits, bitorder="little")[:changed].astype(np.bool_),
            at + len(bits),
        )
    stream.values[where] = np.frombuffer(payload, stream.values.dtype, changed, at)
    stream.known[where] = known
    stream.sequence, stream.occurrence = event["sequence"], occurrence


def _recorded_summary(fields: Fields, stream: Any, space: Any, one: int) -> None:
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


def _numbers_of(space: Any, one: int) -> int:
    """SPEC.md 5.1: how many numbers a summary of a stream has."""
    (told,) = [stream for stream in space.told["streams"] if stream["id"] == one]
    if told["presentation"] == ENUM:
        return len(told["enum"])
    return 2 if told["presentation"] in PERCENT else 1
