"""Entries: the pieces of a recording that one CRC covers (FORMAT.md section 3).

An entry ends with an EVENT, whose CRC is the wire's, or with a SEAL, or is a block of records. Nothing
of an entry is used before that CRC was compared.

Knows frames and their order in a file; does not know what their payloads mean.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from gcspy_protocol.codec import crc_of_crcs
from gcspy_protocol.connection import is_event_frame
from gcspy_protocol.errors import CorruptChunk
from gcspy_protocol.frames.frame import FLAG_ZSTD, HEADER, Header
from gcspy_protocol.limits import Limits
from gcspy_protocol.messages import FrameType

from gcspy_replay.file.layout import BLOCKS, CHUNK_ENDS, FileFrame
from gcspy_replay.file.parts.source import Window

__all__ = ["FileEntry", "FramePlace", "check_entry", "read_entries", "read_entry", "read_header"]

_MOST_FRAMES = 1 << 20
"""Most frames of an entry: 1,024 spaces of 512 streams, each with values and a summary."""


_ALONE = (FileFrame.CHUNK, FileFrame.INDEX, FileFrame.FOOTER, *CHUNK_ENDS, *BLOCKS)
"""Frames that begin an entry."""


class FramePlace(NamedTuple):
    """Place of one frame of an entry, counted from the start of the entry."""

    header: Header
    start: int
    end: int

    @property
    def payload(self) -> slice:
        """Its payload."""
        return slice(self.start + HEADER.size, self.end)


class FileEntry(NamedTuple):
    """Frames up to the EVENT or SEAL that ends them.

    Attributes:
        offset: Offset of its first byte in the part.
        data: All its bytes.
        frames: Place of each frame in `data`.
    """

    offset: int
    data: bytes
    frames: list[FramePlace]

    @property
    def end(self) -> int:
        """Offset of the first byte after it."""
        return self.offset + len(self.data)

    @property
    def is_event(self) -> bool:
        """Whether it is an event of frames; otherwise it is sealed, or a block of records."""
        return self.frames[-1].header.type == FrameType.EVENT

    @property
    def is_block(self) -> bool:
        """Whether it is a block of records."""
        return self.frames[0].header.type in BLOCKS

    def payload(self, place: FramePlace) -> bytes:
        """The payload of one of its frames, as it lies in the file."""
        return self.data[place.payload]


def read_header(window: Window, offset: int, end: int) -> Header | None:
    """The header of the frame at `offset`; None where the frame does not end before `end`."""
    if offset + HEADER.size > end:
        return None
    raw = window.get(offset, HEADER.size)
    if len(raw) < HEADER.size:
        return None
    header = Header._make(HEADER.unpack(raw))
    return header if offset + HEADER.size + header.length <= end else None


def read_entry(window: Window, offset: int, end: int, limits: Limits) -> FileEntry | None:
    """The entry that begins at `offset`, not yet checked.

    Args:
        window: Window of the part.
        offset: Its start.
        end: End of the part, or of the range to read.
        limits: Limits on the content of the file.

    Returns:
        The entry, or None when it does not end before `end`.

    Raises:
        CorruptChunk: Frames that do not belong together, or more of them than the limits allow.
    """
    at = offset
    frames: list[FramePlace] = []
    while True:
        header = read_header(window, at, end)
        if header is None:
            return None
        if (
            header.length > limits.payload_bytes
            or at - offset > limits.event_bytes
            or len(frames) > _MOST_FRAMES
        ):
            raise CorruptChunk(
                f"damaged at byte {at}: frame type {header.type:#04x} of {header.length} bytes is over the limits",
                offset=at,
            )
        after = at + HEADER.size + header.length
        frames.append(FramePlace(header, at - offset, after - offset))
        _check_company(frames, at)
        at = after
        if header.type in (FrameType.EVENT, FileFrame.SEAL, *BLOCKS):
            break
    data = window.get(offset, at - offset)
    return FileEntry(offset, data, frames) if len(data) == at - offset else None


def read_entries(
    window: Window, offset: int, end: int, limits: Limits, chunk: int
) -> Iterator[FileEntry]:
    """The entries of a range of a chunk, in order, each checked.

    Args:
        window: Window of the part.
        offset: Start of the first.
        end: End of the range.
        limits: Limits on the content of the file.
        chunk: Number of the chunk, for errors.

    Raises:
        CorruptChunk: An entry is damaged, or does not end in the range.
    """
    while offset < end:
        entry = read_entry(window, offset, end, limits)
        if entry is None:
            raise CorruptChunk(
                f"damaged at byte {offset}: a frame leaves its chunk", offset=offset, chunk=chunk
            )
        check_entry(entry)
        yield entry
        offset = entry.end


def _check_company(frames: list[FramePlace], offset: int) -> None:
    """An event is made of an event's frames, everything else of none; a chunk begins an entry."""
    kind = frames[-1].header.type
    of_event = is_event_frame(kind) or kind == FrameType.EVENT
    wrong = of_event != (
        is_event_frame(frames[0].header.type) or frames[0].header.type == FrameType.EVENT
    )
    alone = kind in _ALONE
    if (wrong or alone) and len(frames) > 1:
        raise CorruptChunk(
            f"damaged at byte {offset}: a frame of type {kind:#04x} does not belong there",
            offset=offset,
        )


def check_entry(entry: FileEntry) -> int:
    """Compare the CRC of an entry.

    Returns:
        The CRC.

    Raises:
        CorruptChunk: It is another.
    """
    last = entry.frames[-1]
    payload = entry.payload(last)
    if entry.is_block:
        if len(payload) < 4:
            raise CorruptChunk(
                f"damaged at byte {entry.offset}: a block without a CRC", offset=entry.offset
            )
        promised = int.from_bytes(payload[:4], "little")
        view = memoryview(entry.data)
        found = zlib.crc32(view[HEADER.size + 4 :], zlib.crc32(view[: HEADER.size]))
    elif entry.is_event:
        if len(payload) < 4 or last.header.flags & FLAG_ZSTD:
            raise CorruptChunk(
                f"damaged at byte {entry.offset}: an EVENT without a CRC", offset=entry.offset
            )
        view = memoryview(entry.data)
        crcs = [zlib.crc32(view[place.start : place.end]) for place in entry.frames[:-1]]
        head = entry.data[last.start : last.start + HEADER.size]
        promised = int.from_bytes(payload[:4], "little")
        found = crc_of_crcs(struct.pack(f"<{len(crcs)}I", *crcs), head + payload[4:])
    else:
        if len(payload) != 4:
            raise CorruptChunk(
                f"damaged at byte {entry.offset}: a SEAL of {len(payload)} bytes",
                offset=entry.offset,
            )
        promised = int.from_bytes(payload, "little")
        found = zlib.crc32(memoryview(entry.data)[:-4])
    if found != promised:
        raise CorruptChunk(
            f"damaged between bytes {entry.offset} and {entry.end}: CRC {found:#010x} instead of {promised:#010x}",
            offset=entry.offset,
        )
    return found
