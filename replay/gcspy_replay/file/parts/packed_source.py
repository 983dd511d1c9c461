"""A packed part: the bytes of a recording in the seekable form of zstd (FORMAT.md section 9).

Small heaps compress well across events, and an event is one write while it is recorded. So packing
comes afterwards, to keep or to send. Any zstd unpacks the file; this module reads it directly, a
block at a time.

Knows zstd frames and the table behind them; does not know the meaning of the bytes.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import zstandard
from gcspy_protocol.errors import NotARecording, RecordingError

from gcspy_replay.file.parts.source import ByteSource, FileSource, Window

__all__ = ["PACKED_SUFFIX", "PackedSource", "is_packed", "open_source", "pack", "unpack"]

PACKED_SUFFIX = ".zst"
"""Behind the whole name of the recording."""

BLOCK_BYTES = 1 << 20
"""Bytes of the recording in one zstd frame: unpacked in about a millisecond; larger ones make no smaller file."""

_MOST_BLOCK_BYTES = 8 << 20
"""Maximum of one zstd frame of a file that another program packed."""

_MOST_RATIO = 128
_FREE_BYTES = 1 << 20
"""A packed file may unpack to this many bytes for each of its own, plus this many. Each frame of a
recording has times and sequences, each event a CRC: recordings become 4 to 13 times smaller,
constructed ones 30 times."""

_KEPT_BLOCKS = 8

_MAGIC = bytes.fromhex("28b52ffd")
_SKIPPABLE = struct.Struct("<II")
_SKIPPABLE_MAGIC = 0x184D2A5E
_ROW = struct.Struct("<II")
"""A row of the table: bytes packed, bytes unpacked."""
_FOOTER = struct.Struct("<IBI")
"""Behind the rows: their number, flags (0x80: a row has a checksum of four more bytes), magic."""
_FOOTER_MAGIC = 0x8F92EAB1
_HAS_CHECKSUMS = 0x80

_MOST_HEADER_BYTES = 18
"""Magic of a zstd frame."""

_REPEATED_BYTE, _RESERVED_KIND = 1, 3
"""Kinds of block in a zstd frame: one byte that stands for many; one that does not exist."""

Progress = Callable[[int, int], None]
"""Called with the number of bytes done, and the total."""


def pack(
    source: ByteSource, out: BinaryIO, *, level: int = 9, progress: Progress | None = None
) -> int:
    """Write the content of a source in the seekable form of zstd.

    Args:
        source: The recording's bytes.
        out: The destination.
        level: Level of zstd, 1 to 19.
        progress: Called with the progress.

    Returns:
        Bytes written.

    Raises:
        RecordingError: The source cannot be read.
    """
    rows: list[tuple[int, int]] = []
    written = 0
    for data in _blocks_of(source, progress):
        packed = zstandard.ZstdCompressor(level=level, write_checksum=True).compress(data)
        out.write(packed)
        rows.append((len(packed), len(data)))
        written += len(packed)
    table = b"".join(_ROW.pack(*row) for row in rows) + _FOOTER.pack(len(rows), 0, _FOOTER_MAGIC)
    out.write(_SKIPPABLE.pack(_SKIPPABLE_MAGIC, len(table)) + table)
    return written + _SKIPPABLE.size + len(table)


def unpack(source: ByteSource, out: BinaryIO, *, progress: Progress | None = None) -> int:
    """Write the unpacked content of a source; returns the bytes written.

    Raises:
        RecordingError: The source cannot be read.
    """
    written = 0
    for data in _blocks_of(source, progress):
        out.write(data)
        written += len(data)
    return written


def _blocks_of(source: ByteSource, progress: Progress | None) -> Iterator[bytes]:
    at, size = 0, source.size()
    while at < size:
        data = source.read_at(at, min(BLOCK_BYTES, size - at))
        if not data:
            raise RecordingError(f"{source.name} became shorter while it was read, at byte {at}")
        yield data
        at += len(data)
        if progress is not None:
            progress(at, size)


def is_packed(path: Path) -> bool:
    """Whether a file begins as zstd does; False where it cannot be read."""
    try:
        with FileSource(path) as file:
            return file.read_at(0, len(_MAGIC)) == _MAGIC
    except RecordingError:
        return False


def open_source(path: Path) -> ByteSource:
    """A file directly, or its unpacked content.

    Raises:
        RecordingError: It cannot be read, or is packed and none of it can be unpacked.
    """
    return unpacked_source(FileSource(path))


def unpacked_source(file: ByteSource) -> ByteSource:
    """Bytes as they are, or their unpacked content.

    Args:
        file: The bytes; closed with the result, or now if there is an error.

    Raises:
        RecordingError: They cannot be read, or are packed and none of it can be unpacked.
    """
    try:
        if file.read_at(0, len(_MAGIC)) != _MAGIC:
            return file
        return PackedSource(file)
    except RecordingError:
        file.close()
        raise


class PackedSource(ByteSource):
    """The unpacked content of a file.

    A damaged block is read as zeros, so that the CRCs of the recording determine which events are
    lost, and only those are. The blocks of a file without its table are found by the lengths in
    zstd's own headers, and nothing is unpacked before it is read.

    Args:
        file: The file; this source closes it.

    Raises:
        NotARecording: There is no block in it, or it would unpack to more than a recording of that size can.
        RecordingError: It cannot be read.
    """

    def __init__(self, file: ByteSource) -> None:
        self._file = file
        rows = _read_table(file)
        if rows is None:
            rows = _find_blocks(file)
        if not rows:
            raise NotARecording(
                f"{file.name} is packed with zstd, but cannot be unpacked: get another copy of it"
            )
        self._places: list[tuple[int, int]] = []
        self._starts: list[int] = []
        at = self._size = 0
        for packed, raw in rows:
            self._places.append((at, packed))
            self._starts.append(self._size)
            at += packed
            self._size += raw
        if self._size > _MOST_RATIO * file.size() + _FREE_BYTES:
            raise NotARecording(
                f"{file.name}: its {file.size()} bytes would unpack to {self._size}, over {_MOST_RATIO} times as many, which is not plausible for a recording; if you trust it, unpack it with zstd -d"
            )
        self._kept: OrderedDict[int, bytes] = OrderedDict()
        self._unpacked_bytes = 0

    @property
    def name(self) -> str:
        """The path."""
        return self._file.name

    def size(self) -> int:
        """Bytes of the recording."""
        return self._size

    def sent_bytes(self) -> int:
        """Bytes of the packed file."""
        return self._file.size()

    @property
    def unpacked_bytes(self) -> int:
        """Bytes that were unpacked so far."""
        return self._unpacked_bytes

    def read_at(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes of the recording; fewer where it ends.

        Raises:
            RecordingError: The file cannot be read.
        """
        end = min(offset + size, self._size)
        pieces = []
        while offset < end:
            number = bisect_right(self._starts, offset) - 1
            start = self._starts[number]
            piece = self._block(number)[offset - start : end - start]
            pieces.append(piece)
            offset += len(piece)
        return b"".join(pieces)

    def prefetch(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Prepare for reading ranges of the recording: the blocks that have them."""
        blocks: list[int] = []
        for start, end in ranges:
            first = bisect_right(self._starts, start) - 1
            last = bisect_right(self._starts, end - 1) - 1
            blocks += range(max(first, blocks[-1] + 1) if blocks else first, last + 1)
        self._file.prefetch([(self._places[one][0], sum(self._places[one])) for one in blocks])

    def again(self) -> PackedSource:
        """Another source of the same bytes; the table is not read again."""
        twin = object.__new__(PackedSource)
        twin._file = self._file.again()
        twin._places, twin._starts, twin._size = self._places, self._starts, self._size
        twin._kept, twin._unpacked_bytes = OrderedDict(), 0
        return twin

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self._kept.clear()

    def _block(self, number: int) -> bytes:
        found = self._kept.get(number)
        if found is None:
            at, packed = self._places[number]
            last = self._starts[number + 1] if number + 1 < len(self._starts) else self._size
            raw = last - self._starts[number]
            self._unpacked_bytes += raw
            data = _unpacked(self._file.read_at(at, packed), raw)
            found = bytes(raw) if data is None else data
            self._kept[number] = found
            if len(self._kept) > _KEPT_BLOCKS:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(number)
        return found


def _unpacked(packed: bytes, raw: int) -> bytes | None:
    """The bytes of one zstd frame, whose checksum zstd compares; None if it is not one of this size."""
    try:
        if zstandard.frame_content_size(packed) not in (-1, raw):
            return None
        data = zstandard.ZstdDecompressor(max_window_size=_MOST_BLOCK_BYTES).decompress(
            packed, max_output_size=raw
        )
    except zstandard.ZstdError:
        return None
    return data if len(data) == raw else None


def _read_table(file: ByteSource) -> list[tuple[int, int]] | None:
    """The table at the end of the file, or None if there is none that fits the file."""
    whole = file.size()
    if whole < _SKIPPABLE.size + _FOOTER.size:
        return None
    count, flags, magic = _FOOTER.unpack(file.read_at(whole - _FOOTER.size, _FOOTER.size))
    row_bytes = _ROW.size + (4 if flags & _HAS_CHECKSUMS else 0)
    table_bytes = count * row_bytes + _FOOTER.size
    start = whole - table_bytes - _SKIPPABLE.size
    if magic != _FOOTER_MAGIC or start < 0:
        return None
    if _SKIPPABLE.unpack(file.read_at(start, _SKIPPABLE.size)) != (_SKIPPABLE_MAGIC, table_bytes):
        return None
    data = file.read_at(start + _SKIPPABLE.size, count * row_bytes)
    if len(data) < count * row_bytes:
        return None
    rows = [_ROW.unpack_from(data, i * row_bytes) for i in range(count)]
    if sum(packed for packed, _ in rows) != start:
        return None
    return (
        rows
        if all(
            0 < raw <= _MOST_BLOCK_BYTES and 0 < packed <= _most_packed(raw) for packed, raw in rows
        )
        else None
    )


def _most_packed(raw: int) -> int:
    """An upper bound of zstd's output for this many bytes."""
    return raw + raw // 128 + 1024


def _find_blocks(file: ByteSource) -> list[tuple[int, int]]:
    """The blocks of a file without a table, from the first to the last that is whole; nothing is unpacked."""
    rows: list[tuple[int, int]] = []
    window, whole, at = Window(file), file.size(), 0
    while at < whole:
        row = _measure_frame(window, at, whole)
        if row is None:
            break
        rows.append(row)
        at += row[0]
    return rows


def _measure_frame(window: Window, at: int, end: int) -> tuple[int, int] | None:
    """Bytes of the zstd frame at `at`, packed and unpacked, by its headers; None where it is not whole.

    Source: RFC 8878, sections 3.1.1.1 (frame header) and 3.1.1.2 (blocks: a header of three bytes each).
    """
    head = window.get(at, _MOST_HEADER_BYTES)
    try:
        facts = zstandard.get_frame_parameters(head)
        following = at + zstandard.frame_header_size(head)
    except zstandard.ZstdError:
        return None
    if not 0 < facts.content_size <= _MOST_BLOCK_BYTES:
        return None
    last = False
    while not last:
        header = int.from_bytes(window.get(following, 3), "little")
        kind, size = header >> 1 & 3, header >> 3
        last = bool(header & 1)
        following += 3 + (1 if kind == _REPEATED_BYTE else size)
        if following > end or kind == _RESERVED_KIND:
            return None
    following += 4 if facts.has_checksum else 0
    return (following - at, facts.content_size) if following <= end else None
