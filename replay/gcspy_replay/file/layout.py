"""The frames that only files have, and the row of the event table (FORMAT.md sections 2 to 5).

After its first twelve bytes a recording consists of frames of the wire protocol. Nine types of them,
0x70 to 0x78, belong to files only: they contain the boundaries of chunks and their CRC, and since
version 2 the records of events. A client of the wire skips them as it skips any unknown type.

Knows bytes; does not know files or sessions.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Any, NamedTuple

import numpy as np
from gcspy_protocol.errors import (
    CorruptChunk,
    GCspyError,
    NotARecording,
    RemoteProtocolError,
    TruncatedRecording,
)
from gcspy_protocol.frames.fields import Fields, pack_map
from gcspy_protocol.frames.frame import (
    HEADER,
    Header,
    check_raw_size,
    inflate,
    pack_frame,
    raw_size,
)
from gcspy_protocol.limits import Limits
from numpy.typing import NDArray

__all__ = [
    "BLOCKS",
    "CHUNK_BYTES",
    "CHUNK_ENDS",
    "CHUNK_MAGIC",
    "COLUMNS",
    "EVENT_FRAME_BYTES",
    "FOOTER_BYTES",
    "FORMAT_VERSION",
    "MAGIC",
    "MOST_EVENTS",
    "PREAMBLE_BYTES",
    "ROWS",
    "SEAL_BYTES",
    "WIRE_VERSION",
    "ChunkEnd",
    "ChunkFlag",
    "ChunkHead",
    "ChunkPlace",
    "FileFrame",
    "PartFacts",
    "blamed",
    "empty_rows",
    "pack_chunk",
    "pack_chunk_end",
    "pack_facts",
    "pack_footer",
    "pack_index",
    "pack_preamble",
    "pack_seal",
    "pack_table",
    "read_chunk",
    "read_chunk_end",
    "read_copied_end",
    "read_facts",
    "read_footer",
    "read_index",
    "read_preamble",
]

MAGIC = b"GCrec\r\n\x1a"
"""First eight bytes of a file. CR, LF and Ctrl-Z show a copy that mangled them, as PNG's do."""

FORMAT_VERSION = 2
"""Increased only for changes that an older reader would misunderstand; data that it can skip needs no new version."""

WIRE_VERSION = 1
"""The version whose events are frames of the wire; it is read for ever, and written where frames are kept as they came."""

FRAMES_VERSION = 1
"""Version of the wire protocol of the frames. Version 2 adds frames of the handshake, which a
recording does not contain: each reader of version 1 can read today's recordings."""

_PREAMBLE = struct.Struct("<8sHH")
"""0 magic, 8 u16 format version, 10 u16 version of the wire protocol that the frames are of."""

PREAMBLE_BYTES = _PREAMBLE.size

CHUNK_MAGIC = bytes.fromhex("8947437370794368756e6b0d0a1a9d5c")
"""Sixteen bytes (0x89 "GCspyChunk" CR LF Ctrl-Z 0x9D "\\") by which a chunk is found in a damaged file."""

_CHUNK = struct.Struct("<16s16sQQQII")
"""CHUNK payload, 64 bytes.

    offset size  field
    0      16    CHUNK_MAGIC
    16     16    id of the recording, as in RECORDING
    32     8     number of the chunk, from 0
    40     8     number of its first new event
    48     8     head: bytes from the start of this frame to the first new frame
    56     4     flags: `ChunkFlag`
    60     4     reserved
"""

_CHUNK_END = struct.Struct("<QII")
"""CHUNK_END payload, before the columns: u64 bytes since the CHUNK frame's start, u32 CRC of the
chunk's CRCs, u32 events n; then the columns of `COLUMNS`, n values each."""

_INDEX = struct.Struct("<II")
"""INDEX payload, before the columns of `_PLACES`: u32 chunks, u32 bytes of the ends of chunks behind the columns."""

_MOST_END_BYTES = 32 << 20
"""Bytes of the ends of chunks in an index; with more of them it has none."""

_FOOTER = struct.Struct("<QQ8sI")
"""FOOTER payload: u64 offset of the INDEX frame, u64 bytes of it with its SEAL, 8 magic, u32 CRC of
the frame before these four bytes."""

_TRAILING_BYTES = 64 << 10
"""Extra bytes that a later version may append to a payload of this version."""

_FOOTER_MAGIC = b"GCend\r\n\x1a"

FOOTER_BYTES = HEADER.size + _FOOTER.size

_TABLE = struct.Struct("<QII")
"""TABLE payload, before the columns: as `_CHUNK_END`; each number of a column less the one before it
in the chunk, modulo 2**64, and the bytes of a column in planes: all lowest bytes first."""

_FEW_EVENTS = 512
"""Events of a table that need no plausible number of bytes: those of a packed block."""

_LEAST_RECORD_BYTES = 32
"""Least bytes of an event of more than `_FEW_EVENTS`: the frame of its record."""


class ChunkFlag(IntFlag):
    """Flags of a CHUNK frame."""

    CONTINUES = 1
    """The head repeats the state after the event before."""
    RECORDS = 2
    """Its events are records, and its end is a TABLE (version 2)."""
    PACKED = 4
    """Its records are one block of columns."""


MOST_EVENTS = 1 << 16
"""Most events of a chunk: a reader takes no memory for more."""

EVENT_FRAME_BYTES = HEADER.size + 40
"""Least bytes of an event: no file holds more events than its length divided by this."""


class FileFrame(IntEnum):
    """Types of frame that only files have; the wire keeps 0x70 to 0x7F free for them."""

    RECORDING = 0x70
    CHUNK = 0x71
    SEAL = 0x72
    CHUNK_END = 0x73
    INDEX = 0x74
    FOOTER = 0x75
    RECORDS = 0x76
    COLUMNS = 0x77
    TABLE = 0x78


CHUNK_ENDS = (FileFrame.CHUNK_END, FileFrame.TABLE)
"""Frames that end a chunk."""

BLOCKS = (FileFrame.RECORDS, FileFrame.COLUMNS)
"""Frames that are an entry of their own, with the CRC in their first four bytes."""


COLUMNS: tuple[tuple[str, str], ...] = (
    ("start", "<u8"),
    ("end", "<u8"),
    ("sequence", "<u8"),
    ("time_nanos", "<u8"),
    ("occurrence", "<u8"),
    ("gather_nanos", "<u8"),
    ("held_nanos", "<u8"),
    ("missed_total", "<u8"),
    ("event", "<u2"),
    ("flags", "<u2"),
)
"""Columns of the event table of a chunk, in the order in which they lie in CHUNK_END. `start` and
`end` count from the CHUNK frame, so that a chunk can be moved; `flags` are those of EVENT."""

ROWS = np.dtype(list(COLUMNS))
"""One event of a chunk as a structured numpy type."""

_PLACES: tuple[tuple[str, str], ...] = (
    ("offset", "<u8"),
    ("size", "<u8"),
    ("end_at", "<u8"),
    ("number", "<u8"),
    ("first", "<u8"),
    ("first_time", "<u8"),
    ("last_time", "<u8"),
    ("events", "<u4"),
    ("reserved", "<u4"),
)


class ChunkPlace(NamedTuple):
    """Place and content of a chunk: a row of the index.

    Attributes:
        offset: Offset of its CHUNK frame in the part.
        size: Bytes, its end and the seal of that included.
        end_at: Offset of its CHUNK_END, from `offset`; 0 if it has none.
        number: Its number.
        first: Number of its first event.
        first_time: Nanoseconds of that event.
        last_time: Nanoseconds of its last event.
        events: How many.
    """

    offset: int
    size: int
    end_at: int
    number: int
    first: int
    first_time: int
    last_time: int
    events: int


class ChunkHead(NamedTuple):
    """Fields of a CHUNK frame."""

    recording: bytes
    number: int
    first: int
    head_bytes: int
    flags: ChunkFlag

    @property
    def continues(self) -> bool:
        """Whether the head repeats the state after the event before."""
        return bool(self.flags & ChunkFlag.CONTINUES)

    @property
    def has_records(self) -> bool:
        """Whether its events are records; otherwise frames of the wire."""
        return bool(self.flags & ChunkFlag.RECORDS)


class ChunkEnd(NamedTuple):
    """Fields of a CHUNK_END frame; `rows` has the dtype `ROWS`."""

    size: int
    crc: int
    rows: NDArray[Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class PartFacts:
    """Fields of the RECORDING frame at the start of a file.

    Attributes:
        recording: Sixteen random bytes, the same in all parts of a recording.
        part: Number of this file among the parts, from 0.
        software: The program that wrote it.
        created: Nanoseconds since 1970, by the recorder's clock; 0 if not given.
        note: Text; the origin of a cut or a repair.
    """

    recording: bytes
    part: int = 0
    software: str = "gcspy"
    created: int = 0
    note: str = ""


def empty_rows(count: int = 0) -> NDArray[Any]:
    """An event table of `count` rows, all zero."""
    return np.zeros(count, dtype=ROWS)


# ------------------------------------------------------------------ writing


def pack_preamble(version: int = FORMAT_VERSION) -> bytes:
    """The first twelve bytes of a file of a version."""
    return _PREAMBLE.pack(MAGIC, version, FRAMES_VERSION)


def pack_facts(facts: PartFacts) -> bytes:
    """A RECORDING frame."""
    fields = {
        "recording": facts.recording.hex(),
        "part": facts.part,
        "software": facts.software,
        "created": facts.created,
        "note": facts.note,
    }
    return pack_frame(FileFrame.RECORDING, pack_map(fields)).data


def pack_seal(data: bytes) -> bytes:
    """The SEAL of these bytes, which end at it."""
    head = HEADER.pack(4, FileFrame.SEAL, 0, 0, 0, 0, 0, 0)
    return head + zlib.crc32(head, zlib.crc32(data)).to_bytes(4, "little")


def pack_chunk(head: ChunkHead) -> bytes:
    """A CHUNK frame."""
    payload = _CHUNK.pack(
        CHUNK_MAGIC, head.recording, head.number, head.first, head.head_bytes, head.flags, 0
    )
    return pack_frame(FileFrame.CHUNK, payload, compress=False).data


CHUNK_BYTES = HEADER.size + _CHUNK.size
"""Bytes of a CHUNK frame as it is written here."""

SEAL_BYTES = HEADER.size + 4
"""Bytes of a SEAL frame."""


def pack_chunk_end(size: int, crcs: bytes, rows: NDArray[Any]) -> bytes:
    """A CHUNK_END frame with its SEAL.

    Args:
        size: Bytes from the CHUNK frame to here.
        crcs: The CRCs of the chunk's seals and events, u32 each, in order.
        rows: The event table, dtype `ROWS`.
    """
    columns = [np.ascontiguousarray(rows[name]).tobytes() for name, _ in COLUMNS]
    payload = _CHUNK_END.pack(size, zlib.crc32(crcs), len(rows)) + b"".join(columns)
    end = pack_frame(FileFrame.CHUNK_END, payload).data
    return end + pack_seal(end)


def pack_table(size: int, crcs: bytes, rows: NDArray[Any]) -> bytes:
    """A TABLE frame with its SEAL: the end of a chunk of records; arguments as of `pack_chunk_end`."""
    parts = [_TABLE.pack(size, zlib.crc32(crcs), len(rows))]
    for name, kind in COLUMNS:
        column = rows[name].astype(kind)
        column[1:] -= column[:-1].copy()
        parts.append(column.view(np.uint8).reshape(len(rows), column.itemsize).T.tobytes())
    end = pack_frame(FileFrame.TABLE, b"".join(parts)).data
    return end + pack_seal(end)


def pack_index(places: Sequence[ChunkPlace], ends: Sequence[bytes] = ()) -> bytes:
    """An INDEX frame with its SEAL.

    Args:
        places: The chunks.
        ends: The CHUNK_END or TABLE frame of each, without its SEAL, so that a reader of all tables need not read them one by one;
            empty, or too many bytes: the index has none.
    """
    columns = np.array(places, dtype="<u8").reshape(len(places), len(ChunkPlace._fields)).T
    end_bytes = sum(map(len, ends))
    if end_bytes > _MOST_END_BYTES:
        ends, end_bytes = (), 0
    parts = [_INDEX.pack(len(places), end_bytes)]
    for i, (_, kind) in enumerate(_PLACES):
        column = columns[i] if i < len(columns) else np.zeros(len(places))
        parts.append(column.astype(kind).tobytes())
    parts += ends
    index = pack_frame(FileFrame.INDEX, b"".join(parts)).data
    return index + pack_seal(index)


def pack_footer(index_offset: int, index_bytes: int) -> bytes:
    """The FOOTER frame, the last of a file that was closed."""
    head = HEADER.pack(_FOOTER.size, FileFrame.FOOTER, 0, 0, 0, 0, 0, 0)
    frame = head + _FOOTER.pack(index_offset, index_bytes, _FOOTER_MAGIC, 0)[:-4]
    return frame + zlib.crc32(frame).to_bytes(4, "little")


# ------------------------------------------------------------------ reading


def read_preamble(data: bytes) -> tuple[int, int]:
    """Format and protocol version of a file that begins with these bytes.

    Raises:
        NotARecording: They are not ours, or of a later version.
        TruncatedRecording: There are too few of them.
    """
    if data[: len(MAGIC)] != MAGIC[: len(data)] or not data:
        raise NotARecording(
            f"not a GCspy recording: it begins with {data[:8]!r}" if data else "the file is empty"
        )
    if len(data) < _PREAMBLE.size:
        raise TruncatedRecording(
            f"the recording ends after {len(data)} of the {_PREAMBLE.size} bytes that it begins with"
        )
    _, format_version, protocol = _PREAMBLE.unpack_from(data)
    if not WIRE_VERSION <= format_version <= FORMAT_VERSION or protocol != FRAMES_VERSION:
        raise NotARecording(
            f"a recording of format version {format_version} with protocol version {protocol}; this GCspy reads "
            f"formats up to {FORMAT_VERSION} with protocol {FRAMES_VERSION}: install a newer release"
        )
    return format_version, protocol


def _corrupt(offset: int, what: str) -> CorruptChunk:
    return CorruptChunk(f"damaged at byte {offset}: {what}", offset=offset)


def _inflate(header: Header, payload: bytes, limits: Limits, offset: int, *, most: int) -> bytes:
    """The original payload, decompressed if it is not larger than it can need to be."""
    try:
        check_raw_size(header, raw_size(header, payload, limits, offset), most, offset)
        return inflate(header, payload, limits, offset)
    except RemoteProtocolError as error:
        raise _corrupt(offset, str(error)) from error


def read_facts(header: Header, payload: bytes, limits: Limits, offset: int) -> PartFacts:
    """Read a RECORDING payload.

    Raises:
        CorruptChunk: It is not what its type promises.
    """
    try:
        most = limits.unpacked_map_bytes(len(payload))
        raw = _inflate(header, payload, limits, offset, most=most)
        fields = Fields.unpack(raw, "recording", text_chars=limits.text_chars)
        recording = bytes.fromhex(fields.text("recording"))
        if len(recording) != 16:
            raise _corrupt(offset, f"an id of {len(recording)} bytes instead of 16")
        return PartFacts(
            recording=recording,
            part=fields.integer("part", 0, 1 << 32, 0),
            software=fields.text("software", ""),
            created=fields.integer("created", 0, (1 << 63) - 1, 0),
            note=fields.text("note", ""),
        )
    except (RemoteProtocolError, ValueError) as error:
        raise _corrupt(offset, f"the description of the recording: {error}") from error


def read_chunk(payload: bytes, offset: int) -> ChunkHead:
    """Read a CHUNK payload; the SEAL after it proves that it is intact.

    Raises:
        CorruptChunk: It is too short, or impossible.
    """
    if len(payload) < _CHUNK.size:
        raise _corrupt(offset, f"a chunk begins with {len(payload)} of {_CHUNK.size} bytes")
    magic, recording, number, first, head_bytes, flags, _ = _CHUNK.unpack_from(payload)
    if magic != CHUNK_MAGIC or not 1 <= first < 1 << 62 or number >= 1 << 62:
        raise _corrupt(offset, "no chunk begins here")
    return ChunkHead(recording, number, first, head_bytes, ChunkFlag(flags & 7))


def read_chunk_end(
    header: Header, payload: bytes, limits: Limits, offset: int, *, size: int
) -> ChunkEnd:
    """Read a CHUNK_END or TABLE payload and check that its rows lie in the chunk.

    Args:
        header: Header of the frame.
        payload: The payload in the file.
        limits: Limits on its content.
        offset: Offset of the frame, for the error.
        size: Bytes from the CHUNK frame to here.

    Raises:
        CorruptChunk: It is impossible.
    """
    of_records = header.type == FileFrame.TABLE
    plausible = size // EVENT_FRAME_BYTES
    if of_records:
        plausible = max(_FEW_EVENTS, size // _LEAST_RECORD_BYTES)
    plausible = min(MOST_EVENTS, plausible)
    most = _CHUNK_END.size + plausible * ROWS.itemsize
    raw = _inflate(header, payload, limits, offset, most=most + _TRAILING_BYTES)
    if len(raw) < _CHUNK_END.size:
        raise _corrupt(offset, f"the end of a chunk has {len(raw)} of {_CHUNK_END.size} bytes")
    told, crc, count = _CHUNK_END.unpack_from(raw)
    if told != size:
        raise _corrupt(offset, f"a chunk of {size} bytes that should have {told}")
    if count > plausible or len(raw) < _CHUNK_END.size + count * ROWS.itemsize:
        raise _corrupt(offset, f"{count} events do not fit a chunk of {size} bytes")
    rows = empty_rows(count)
    at = _CHUNK_END.size
    for name, kind in COLUMNS:
        width = np.dtype(kind).itemsize
        if of_records:
            planes = np.frombuffer(raw, np.uint8, count * width, at).reshape(width, count)
            steps = np.ascontiguousarray(planes.T).view(kind).reshape(count)
            rows[name] = np.cumsum(steps, dtype=kind)
        else:
            rows[name] = np.frombuffer(raw, kind, count, at)
        at += width * count
    _check_rows(rows, size, offset)
    return ChunkEnd(size, crc, rows)


def _check_rows(rows: NDArray[Any], size: int, offset: int) -> None:
    if not len(rows):
        return
    starts, ends = rows["start"].astype(np.float64), rows["end"].astype(np.float64)
    apart = bool((ends[:-1] <= starts[1:]).all())
    together = bool((starts == starts[0]).all()) and bool((ends == ends[0]).all())
    ordered = bool((starts < ends).all()) and (apart or together)
    if not ordered or int(rows["end"].max()) > size:
        raise _corrupt(offset, f"the event table leaves its chunk of {size} bytes")


def read_index(
    header: Header, payload: bytes, limits: Limits, offset: int
) -> tuple[list[ChunkPlace], dict[int, bytes]]:
    """Read an INDEX payload and check that its chunks lie before it, in order.

    Returns:
        The chunks, and by their numbers the frames that end them, if the index has these; they are not checked.

    Raises:
        CorruptChunk: It is impossible.
    """
    most = _INDEX.size + offset // CHUNK_BYTES * np.dtype(list(_PLACES)).itemsize
    # The ends of chunks are in the file before it, too.
    most += max(_TRAILING_BYTES, min(offset, _MOST_END_BYTES))
    raw = _inflate(header, payload, limits, offset, most=most)
    if len(raw) < _INDEX.size:
        raise _corrupt(offset, "the index has no length")
    (count, end_bytes) = _INDEX.unpack_from(raw)
    if (
        count * CHUNK_BYTES > offset
        or len(raw) < _INDEX.size + count * np.dtype(list(_PLACES)).itemsize
    ):
        raise _corrupt(offset, f"an index of {count} chunks in {len(raw)} bytes")
    columns = []
    at = _INDEX.size
    for _, kind in _PLACES:
        columns.append(np.frombuffer(raw, kind, count, at))
        at += np.dtype(kind).itemsize * count
    wide = [column.astype(np.float64) for column in columns]
    begins, sizes, ends, numbers, firsts, events = (
        wide[0],
        wide[1],
        wide[2],
        wide[3],
        wide[4],
        wide[7],
    )
    good = bool((begins[:-1] + sizes[:-1] <= begins[1:]).all()) and bool((ends < sizes).all())
    good = (
        good
        and bool((firsts[:-1] + events[:-1] <= firsts[1:]).all())
        and bool((numbers[:-1] < numbers[1:]).all())
    )
    if not good or (
        count
        and (begins[-1] + sizes[-1] > offset or firsts.min() < 1 or events.max() > MOST_EVENTS)
    ):
        raise _corrupt(offset, "the index names chunks that overlap or lie outside")
    rows = zip(*(column.tolist() for column in columns[: len(ChunkPlace._fields)]), strict=True)
    places = [ChunkPlace(*row) for row in rows]
    return places, _ends_of(places, raw[at : at + end_bytes])


def _ends_of(places: Sequence[ChunkPlace], data: bytes) -> dict[int, bytes]:
    """Return the frames that end chunks, by the chunks' numbers; none if they are not one for each."""
    found: dict[int, bytes] = {}
    at = 0
    for place in places:
        after = at + HEADER.size + int.from_bytes(data[at : at + 4], "little")
        if after > len(data):
            return {}
        found[place.number] = data[at:after]
        at = after
    return found if at == len(data) else {}


def read_copied_end(data: bytes, limits: Limits, offset: int, *, size: int) -> ChunkEnd:
    """Read the frame that ends a chunk as an index has it.

    Args:
        data: The frame, without its SEAL.
        limits: Limits on its content.
        offset: Offset of the chunk, for the error.
        size: Bytes from the CHUNK frame to its own place.

    Raises:
        CorruptChunk: It is impossible.
    """
    header = Header(*HEADER.unpack_from(data))
    if header.type not in CHUNK_ENDS:
        raise _corrupt(offset, f"a chunk that ends with a frame of type {header.type:#x}")
    return read_chunk_end(header, data[HEADER.size :], limits, offset, size=size)


def read_footer(data: bytes) -> tuple[int, int] | None:
    """Offset and bytes of the index, from the last `FOOTER_BYTES` of a file; None when that is no footer."""
    if len(data) != FOOTER_BYTES:
        return None
    header = Header._make(HEADER.unpack_from(data))
    index_offset, index_bytes, magic, crc = _FOOTER.unpack_from(data, HEADER.size)
    if header.type != FileFrame.FOOTER or header.length != _FOOTER.size or magic != _FOOTER_MAGIC:
        return None
    return (index_offset, index_bytes) if zlib.crc32(data[:-4]) == crc else None


def blamed(error: GCspyError, offset: int, chunk: int | None) -> CorruptChunk:
    """Convert an error of the wire's decoder into an error of the file."""
    return CorruptChunk(f"damaged at byte {offset}: {error}", offset=offset, chunk=chunk)
