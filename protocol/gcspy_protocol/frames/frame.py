"""Frames: the fixed header, compression and checksums (SPEC.md section 3).

Knows bytes; does not know the meaning of a payload, nor the order of frames.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

import zstandard

from gcspy_protocol.errors import LocalProtocolError, RemoteProtocolError
from gcspy_protocol.limits import Limits

__all__ = [
    "COMPRESS_FROM_BYTES",
    "FLAG_ZSTD",
    "HEADER",
    "Frame",
    "Header",
    "check_raw_size",
    "inflate",
    "inflate_head",
    "pack_frame",
    "raw_size",
]

HEADER = struct.Struct("<IBBHHHQQ")
"""Frame header, 28 bytes, little-endian.

    offset size  field
    0      4     payload length in bytes, header not counted
    4      1     frame type
    5      1     flags: 1 the payload is a zstd frame
    6      2     space id, or 0
    8      2     stream id, or 0; 0xFFFF is the control stream
    10     2     reserved: 0, not looked at
    12     8     sequence: number of the snapshot, or 0
    20     8     time: nanoseconds, monotonic clock of the target's host, or 0
"""

FLAG_ZSTD = 1

COMPRESS_FROM_BYTES = 512
"""Below this zstd saves less than its own 13 bytes and the call costs more than it saves."""

_PROBE_BYTES = 64 << 10
"""A large payload is compressed only if its first 64 KiB shrink: random data would cost 12 ms per 4
MB and gain nothing (research/ui-formats, encoding table)."""

_compressors: list[zstandard.ZstdCompressor] = []
_decompressors: list[zstandard.ZstdDecompressor] = []
"""Those that nobody uses now: to make one takes 20 microseconds, to use it for a small payload one or two. One that has raised is not
kept, nor one that has grown for a large payload."""

_KEPT_BYTES = 256 << 10
"""A compressor is kept after payloads of at most so many bytes."""

_HEAD_BYTES = 4 << 10
"""Bytes of a compressed payload read at a time if only its beginning is needed."""


class Header(NamedTuple):
    """A frame's header, unpacked."""

    length: int
    type: int
    flags: int
    space: int
    stream: int
    reserved: int
    sequence: int
    time_nanos: int


class Frame(NamedTuple):
    """One encoded frame, shared by every client that gets it.

    Attributes:
        data: Header and payload.
        crc: CRC-32 of `data`.
        space: Space id in the header.
        stream: Stream id in the header.
    """

    data: bytes
    crc: int
    space: int = 0
    stream: int = 0


def pack_frame(
    frame_type: int,
    payload: bytes,
    *,
    space: int = 0,
    stream: int = 0,
    sequence: int = 0,
    time_nanos: int = 0,
    compress: bool = True,
) -> Frame:
    """Put a payload into a frame, compressed if that saves bytes.

    Args:
        compress: Whether zstd may be tried; otherwise the payload is only copied.

    Raises:
        LocalProtocolError: A number does not fit the header.
    """
    flags = 0
    if compress and len(payload) >= COMPRESS_FROM_BYTES:
        smaller = _deflate(payload)
        if smaller is not None:
            payload, flags = smaller, FLAG_ZSTD
    if len(payload) > 0xFFFFFFFF:
        raise LocalProtocolError(
            f"a payload of {len(payload)} bytes does not fit a frame: use fewer tiles"
        )
    try:
        header = HEADER.pack(
            len(payload), frame_type, flags, space, stream, 0, sequence, time_nanos
        )
    except struct.error as error:
        raise LocalProtocolError(
            f"space {space}, stream {stream}, sequence {sequence} or time {time_nanos} does not fit: {error}"
        ) from error
    data = header + payload
    return Frame(data, zlib.crc32(data), space, stream)


def _deflate(payload: bytes) -> bytes | None:
    """The payload as one zstd frame, or None if that would not be smaller."""
    try:
        compressor = _compressors.pop()
    except IndexError:  # others may use it at the same time
        compressor = zstandard.ZstdCompressor(level=1)
    if len(payload) > 4 * _PROBE_BYTES:
        probe = compressor.compress(memoryview(payload)[:_PROBE_BYTES])
        if len(probe) > _PROBE_BYTES * 0.9:
            return None
    smaller = compressor.compress(payload)
    if len(payload) <= _KEPT_BYTES:
        _compressors.append(compressor)
    return smaller if len(smaller) < len(payload) else None


def raw_size(header: Header, payload: bytes, limits: Limits, offset: int) -> int:
    """Bytes of a payload after decompression, as declared by its sender; nothing is decompressed.

    Args:
        header: The frame's header.
        payload: The payload as received.
        limits: Limits on what the peer may send.
        offset: Position of the frame, for the error.

    Raises:
        RemoteProtocolError: It is not zstd, declares no size, or a size over the limit.
    """
    if not header.flags & FLAG_ZSTD:
        return len(payload)
    try:
        raw_bytes = zstandard.frame_content_size(payload)
    except zstandard.ZstdError as error:
        raise RemoteProtocolError(
            f"frame type {header.type:#04x}: not a zstd payload ({error})", offset=offset
        ) from error
    if raw_bytes < 0:
        raise RemoteProtocolError(
            f"frame type {header.type:#04x}: compressed without a size", offset=offset
        )
    check_raw_size(header, raw_bytes, limits.raw_bytes, offset)
    return raw_bytes


def check_raw_size(header: Header, raw_bytes: int, most: int, offset: int) -> None:
    """Refuse a payload that would unpack to more than it may.

    Raises:
        RemoteProtocolError: It would.
    """
    if raw_bytes > most:
        raise RemoteProtocolError(
            f"frame type {header.type:#04x} would unpack to {raw_bytes} bytes, over the limit of {most}",
            offset=offset,
        )


def inflate_head(header: Header, payload: bytes, size: int, offset: int) -> bytes:
    """The first bytes of the original payload; zstd decompresses one block of it, 128 KiB at most.

    Raises:
        RemoteProtocolError: Not zstd, or damaged.
    """
    if not header.flags & FLAG_ZSTD:
        return payload[:size]
    try:
        with zstandard.ZstdDecompressor().stream_reader(payload, read_size=_HEAD_BYTES) as reader:
            return reader.read(size)
    except zstandard.ZstdError as error:
        raise RemoteProtocolError(
            f"frame type {header.type:#04x}: damaged zstd payload ({error})", offset=offset
        ) from error


def _spare_decompressor() -> zstandard.ZstdDecompressor:
    """A decompressor that nobody uses."""
    try:
        return _decompressors.pop()
    except IndexError:
        return zstandard.ZstdDecompressor()


def inflate(header: Header, payload: bytes, limits: Limits, offset: int) -> bytes:
    """The original payload.

    Args:
        header: The frame's header.
        payload: The payload as received.
        limits: Limits on what the peer may send.
        offset: Position of the frame, for the error.

    Raises:
        RemoteProtocolError: It is not zstd, declares no size, or a size over the limit.
    """
    if not header.flags & FLAG_ZSTD:
        return payload
    raw_bytes = raw_size(header, payload, limits, offset)
    try:
        decompressor = _spare_decompressor()
        raw = decompressor.decompress(payload, max_output_size=raw_bytes)
        _decompressors.append(decompressor)
    except zstandard.ZstdError as error:
        raise RemoteProtocolError(
            f"frame type {header.type:#04x}: damaged zstd payload ({error})", offset=offset
        ) from error
    if len(raw) != raw_bytes:
        raise RemoteProtocolError(
            f"frame type {header.type:#04x} unpacked to {len(raw)} bytes instead of {raw_bytes}",
            offset=offset,
        )
    return raw
