"""Blocks of records in a chunk: one zstd stream flushed at each event, or columns (FORMAT.md section 11).

Nothing is unpacked beyond what a block says that it has, and no block may say more than the limits.

Knows blocks and the sizes of records; does not know what records mean.
"""

from __future__ import annotations

import io
import struct
import zlib
from typing import IO, cast

import zstandard
from gcspy_protocol.errors import CorruptChunk
from gcspy_protocol.frames.frame import HEADER

from gcspy_replay.file.layout import FileFrame
from gcspy_replay.file.records.fields import RECORD_HEAD_BYTES, SECTIONS, record_bytes

__all__ = [
    "FAST_LEVEL",
    "LEVEL",
    "ColumnPacker",
    "ColumnUnpacker",
    "RecordPacker",
    "RecordUnpacker",
    "pack_columns",
    "unpack_columns",
]

_BLOCK = struct.Struct("<II")
"""Payload of RECORDS and COLUMNS: u32 CRC of the frame without these four bytes, u32 bytes unpacked; zstd."""

BLOCK_BYTES = HEADER.size + _BLOCK.size
"""Least bytes of a block."""

_WINDOW_LOG = 22
_MOST_WINDOW = 1 << 23
_FREE_BYTES = 64 << 20
_MOST_RATIO = 256
"""The records of a chunk may have this many bytes for each byte of its blocks, besides 64 MiB."""

LEVEL = 3
"""Level of zstd while recording."""

FAST_LEVEL = -3
"""The same, of large heaps, whose values are nearly random: half of the time of level 1, and 1.4 times its bytes."""


def most_unpacked(packed: int) -> int:
    """Most bytes of records that so many bytes of blocks may stand for."""
    return _FREE_BYTES + _MOST_RATIO * packed


def _frame(kind: FileFrame, raw: int, packed: bytes) -> bytes:
    """The frame of a block."""
    head = HEADER.pack(_BLOCK.size + len(packed), kind, 0, 0, 0, 0, 0, 0)
    size = raw.to_bytes(4, "little")
    crc = zlib.crc32(packed, zlib.crc32(size, zlib.crc32(head)))
    return head + crc.to_bytes(4, "little") + size + packed


class RecordPacker:
    """Packs the records of a chunk, one zstd stream for all; what was packed can be read at once.

    Args:
        level: Level of zstd.
    """

    def __init__(self, level: int = LEVEL) -> None:
        parameters = zstandard.ZstdCompressionParameters.from_level(
            level, window_log=_WINDOW_LOG, write_content_size=False
        )
        self._stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()

    def block(self, records: bytes) -> bytes:
        """The RECORDS frame of some records."""
        packed = self._stream.compress(records)
        packed += self._stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        return _frame(FileFrame.RECORDS, len(records), packed)


class _Feed(io.RawIOBase):
    """The input of a zstd stream: the payloads that have been read so far."""

    def __init__(self) -> None:
        super().__init__()
        self._data = b""

    def put(self, data: bytes) -> None:
        """Add bytes."""
        self._data += data

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        found, self._data = (
            (self._data, b"") if size < 0 else (self._data[:size], self._data[size:])
        )
        return found


def _raw_bytes(payload: bytes, offset: int, most: int) -> int:
    if len(payload) < _BLOCK.size:
        raise CorruptChunk(
            f"damaged at byte {offset}: a block of {len(payload)} bytes", offset=offset
        )
    raw = int(_BLOCK.unpack_from(payload)[1])
    if not 0 < raw <= most:
        raise CorruptChunk(
            f"damaged at byte {offset}: a block that would unpack to {raw} bytes; from 1 to {most} are plausible",
            offset=offset,
        )
    return raw


class RecordUnpacker:
    """Unpacks RECORDS frames of one chunk, in order."""

    def __init__(self) -> None:
        self._feed = _Feed()
        self._reader = zstandard.ZstdDecompressor(max_window_size=_MOST_WINDOW).stream_reader(
            cast("IO[bytes]", self._feed), read_across_frames=False
        )

    def records(self, payload: bytes, offset: int, most: int) -> list[memoryview]:
        """The records of the next block.

        Args:
            payload: The frame's payload; its CRC was compared.
            offset: Offset of the frame, for the error.
            most: Most bytes that it may unpack to.

        Raises:
            CorruptChunk: It is not a block that follows the one before.
        """
        raw = _raw_bytes(payload, offset, most)
        self._feed.put(payload[_BLOCK.size :])
        return _split(memoryview(_unpacked(self._reader, raw, offset)), offset)


def _unpacked(reader: zstandard.ZstdDecompressionReader, raw: int, offset: int) -> bytes:
    """The next bytes of a zstd stream.

    Args:
        reader: The stream.
        raw: Their number.
        offset: Offset of their frame, for the error.

    Raises:
        CorruptChunk: It is not zstd, or has not so many.
    """
    try:
        data: bytes = reader.read(raw)
    except zstandard.ZstdError as error:
        raise CorruptChunk(f"damaged at byte {offset}: {error}", offset=offset) from error
    if len(data) != raw:
        raise CorruptChunk(
            f"damaged at byte {offset}: a block of {len(data)} bytes instead of {raw}",
            offset=offset,
        )
    return data


def _split(data: memoryview, offset: int) -> list[memoryview]:
    """The records that lie one behind the other."""
    found = []
    at = 0
    while at < len(data):
        if at + RECORD_HEAD_BYTES > len(data):
            raise CorruptChunk(
                f"damaged at byte {offset}: a record that is not whole", offset=offset
            )
        _, sizes = record_bytes(data[at : at + RECORD_HEAD_BYTES])
        after = at + RECORD_HEAD_BYTES + sum(sizes)
        if after > len(data):
            raise CorruptChunk(
                f"damaged at byte {offset}: a record of {after - at} bytes that are not there",
                offset=offset,
            )
        found.append(data[at:after])
        at = after
    return found


# ------------------------------------------------------------------ columns


def pack_columns(records: list[bytes], level: int) -> bytes:
    """The COLUMNS frame of all records of a chunk.

    Heads come first; then the first section of each record, kind by kind, then the second, and so on.

    Args:
        records: The records, in order.
        level: Level of zstd.
    """
    heads = [record_bytes(record[:RECORD_HEAD_BYTES]) for record in records]
    order = sorted(range(len(records)), key=lambda i: heads[i][0])
    count = len(records).to_bytes(4, "little")
    parts = [count, b"".join(record[:RECORD_HEAD_BYTES] for record in records)]
    starts = [RECORD_HEAD_BYTES] * len(records)
    for section in range(SECTIONS):
        for i in order:
            after = starts[i] + heads[i][1][section]
            parts.append(records[i][starts[i] : after])
            starts[i] = after
    data = b"".join(parts)
    parameters = zstandard.ZstdCompressionParameters.from_level(
        level, source_size=len(data), window_log=_WINDOW_LOG
    )
    packed = zstandard.ZstdCompressor(compression_params=parameters).compress(data)
    return _frame(FileFrame.COLUMNS, len(data), packed)


class ColumnPacker:
    """Collects the records of a chunk, and packs them by column when it ends.

    Args:
        level: Level of zstd.
    """

    def __init__(self, level: int) -> None:
        self._level = level
        self._records: list[bytes] = []

    @property
    def count(self) -> int:
        """Number of records."""
        return len(self._records)

    def block(self, records: bytes) -> bytes:
        """Keep some records; nothing is written yet."""
        self._records += [bytes(record) for record in _split(memoryview(records), 0)]
        return b""

    def end(self) -> bytes:
        """The COLUMNS frame of all of them."""
        return pack_columns(self._records, self._level)


class ColumnUnpacker:
    """Unpacks the COLUMNS frame of a chunk."""

    def records(self, payload: bytes, offset: int, most: int) -> list[memoryview]:
        """The records of the block.

        Raises:
            CorruptChunk: It is not a block of columns.
        """
        raw = _raw_bytes(payload, offset, most)
        decompressor = zstandard.ZstdDecompressor(max_window_size=_MOST_WINDOW)
        with decompressor.stream_reader(payload[_BLOCK.size :]) as reader:
            data = _unpacked(reader, raw, offset)
        try:
            return unpack_columns(memoryview(data))
        except ValueError as error:
            raise CorruptChunk(f"damaged at byte {offset}: {error}", offset=offset) from error


def unpack_columns(data: memoryview) -> list[memoryview]:
    """The records of columns.

    Raises:
        ValueError: They are not.
    """
    count = int.from_bytes(data[:4], "little")
    at = 4 + count * RECORD_HEAD_BYTES
    if len(data) < 4 or at > len(data):
        raise ValueError(f"{count} records do not fit {len(data)} bytes")
    heads = []
    raw_heads = []
    for i in range(count):
        raw = data[4 + i * RECORD_HEAD_BYTES : 4 + (i + 1) * RECORD_HEAD_BYTES]
        raw_heads.append(raw)
        heads.append(record_bytes(raw))
    order = sorted(range(count), key=lambda i: heads[i][0])
    pieces: list[list[memoryview]] = [[raw] for raw in raw_heads]
    for section in range(SECTIONS):
        for i in order:
            after = at + heads[i][1][section]
            if after > len(data):
                raise ValueError("columns that end too early")
            pieces[i].append(data[at:after])
            at = after
    if at != len(data):
        raise ValueError(f"{len(data) - at} bytes behind the columns")
    return [memoryview(b"".join(one)) for one in pieces]
