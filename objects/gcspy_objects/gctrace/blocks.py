"""Blocks of an object trace: headers read and checked, payloads unpacked; and made.

Source: objects/FORMAT.md, sections 1 and 2. Each length is checked before memory is allocated. A block that the file ends
in is not there.

Knows bytes of blocks; does not know what is in them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

import zstandard
from gcspy_protocol.errors import TraceError

from gcspy_objects.archive import FileSpan
from gcspy_objects.gctrace.layout import (
    ANY_THREAD,
    BLOCK,
    BLOCK_MARKER,
    MAGIC,
    MAX_BLOCK_BYTES,
    MAX_EVENTS,
    MINOR_VERSION,
    PREFIX,
    VERSION,
    BlockKind,
    Codec,
)

__all__ = [
    "FASTEST_LEVEL",
    "NORMAL_LEVEL",
    "TraceBlock",
    "is_object_trace",
    "make_block",
    "make_prefix",
    "read_blocks",
    "read_payload",
    "read_prefix",
    "trace_damage",
]

NORMAL_LEVEL, FASTEST_LEVEL = 3, 1
"""Of zstd: the second is for who makes blocks beside a program that runs: they are 1 to 6 % larger, in a third to three quarters of the time."""
_CHECKED: Final = BLOCK.size - 4


class TraceBlock(NamedTuple):
    """Header of a block.

    Attributes:
        kind: `BlockKind`, or an unknown one.
        codec: `Codec`.
        stored: Bytes of its payload in the file.
        plain: Bytes of its payload.
        thread: Number of the thread of all events; `ANY_THREAD`.
        events: How many.
        first_stamp: Lower bound of their stamps.
        last_stamp: Upper bound.
        crc: Of the payload as stored.
        offset: Where the block begins in the file, bytes.
    """

    kind: int
    codec: int
    stored: int
    plain: int
    thread: int
    events: int
    first_stamp: int
    last_stamp: int
    crc: int
    offset: int

    @property
    def end(self) -> int:
        """Where the next block begins in the file."""
        return self.offset + BLOCK.size + self.stored


def trace_damage(span: FileSpan, offset: int, what: str) -> TraceError:
    """Return the error for a block that cannot be."""
    return TraceError(
        f"{span.name}: damaged at byte {offset:,}: {what}", file=span.name, offset=offset
    )


def is_object_trace(span: FileSpan) -> bool:
    """Whether a file begins as an object trace of ours does."""
    return span.read(0, len(MAGIC)) == MAGIC


def make_prefix() -> bytes:
    """Return the first bytes of a file."""
    return PREFIX.pack(MAGIC, VERSION, MINOR_VERSION, 0)


def read_prefix(span: FileSpan) -> int:
    """Check the first bytes of a file, and return where its first block begins.

    Raises:
        TraceError: It is no object trace, or of another version.
    """
    head = span.read(0, PREFIX.size)
    if len(head) < PREFIX.size or not head.startswith(MAGIC):
        raise TraceError(f"{span.name}: not an object trace of GCspy", file=span.name, offset=0)
    _, version, _, _ = PREFIX.unpack(head)
    if version != VERSION:
        raise TraceError(
            f"{span.name}: an object trace of version {version}; this gcspy reads version {VERSION}",
            file=span.name,
            offset=8,
        )
    return PREFIX.size


def make_block(
    kind: BlockKind,
    payload: bytes,
    *,
    thread: int = ANY_THREAD,
    events: int = 0,
    first_stamp: int = 0,
    last_stamp: int = 0,
    compress: bool = True,
    level: int = NORMAL_LEVEL,
) -> bytes:
    """Return a block; its payload is stored compressed where that makes it smaller."""
    stored, codec = payload, Codec.PLAIN
    if compress:
        packed = zstandard.ZstdCompressor(level=level).compress(payload)
        if len(packed) < len(payload):
            stored, codec = packed, Codec.ZSTD
    header = BLOCK.pack(
        BLOCK_MARKER, kind, codec, 0, len(stored), len(payload), thread, events, first_stamp, last_stamp, zlib.crc32(stored), 0
    )[:_CHECKED]  # fmt: skip
    return header + zlib.crc32(header).to_bytes(4, "little") + stored


def read_blocks(span: FileSpan, offset: int) -> Iterator[TraceBlock]:
    """Yield the blocks from an offset on that the file has whole. Payloads are not read.

    Raises:
        TraceError: A header that cannot be.
    """
    while (block := _read_header(span, offset)) is not None:
        yield block
        offset = block.end


def _read_header(span: FileSpan, offset: int) -> TraceBlock | None:
    header = span.read(offset, BLOCK.size)
    if len(header) < BLOCK.size:
        return None
    marker, kind, codec, _, stored, plain, thread, events, first, last, crc, own = BLOCK.unpack(
        header
    )
    if marker != BLOCK_MARKER:
        raise trace_damage(
            span, offset, f"expected a block, which begins with GCTB; found {marker!r}"
        )
    if zlib.crc32(header[:_CHECKED]) != own:
        raise trace_damage(span, offset, "the header's checksum does not fit")
    if stored > MAX_BLOCK_BYTES or plain > MAX_BLOCK_BYTES:
        raise trace_damage(
            span,
            offset,
            f"a payload of {max(stored, plain):,} bytes; expected at most {MAX_BLOCK_BYTES:,}",
        )
    if events > MAX_EVENTS:
        raise trace_damage(span, offset, f"{events:,} events; expected at most {MAX_EVENTS:,}")
    if codec not in (Codec.PLAIN, Codec.ZSTD) or (codec == Codec.PLAIN and stored != plain):
        raise trace_damage(
            span,
            offset,
            f"codec {codec}, {stored:,} bytes stored of {plain:,}; expected codec 0 with as many, or 1",
        )
    if offset + BLOCK.size + stored > span.size:
        return None
    return TraceBlock(kind, codec, stored, plain, thread, events, first, last, crc, offset)


def read_payload(span: FileSpan, block: TraceBlock) -> bytes:
    """Return the payload of a block, unpacked.

    Raises:
        TraceError: Its checksum does not fit, or it does not unpack to what its header says.
    """
    stored = span.read(block.offset + BLOCK.size, block.stored)
    if len(stored) < block.stored:
        raise trace_damage(span, block.offset, "the file became shorter while it was read")
    if zlib.crc32(stored) != block.crc:
        raise trace_damage(span, block.offset, "the payload's checksum does not fit")
    if block.codec == Codec.PLAIN:
        return stored
    try:
        said = zstandard.frame_content_size(stored)
        if said > block.plain:
            raise trace_damage(
                span, block.offset, f"unpacks to {said:,} bytes; expected {block.plain:,}"
            )
        if said == 0 == block.plain:
            return b""
        plain = zstandard.ZstdDecompressor().decompress(stored, max_output_size=max(block.plain, 1))
    except zstandard.ZstdError as error:
        raise trace_damage(span, block.offset, f"its payload does not unpack: {error}") from error
    if len(plain) != block.plain:
        raise trace_damage(
            span, block.offset, f"unpacks to {len(plain):,} bytes; expected {block.plain:,}"
        )
    return plain
