"""Packed recordings that are made of an input: frames and tables that pass zstd's own checks, and say what no recording would.

A mutation of the bytes of a packed file breaks a checksum of zstd, nearly always, and what is behind that is never reached. So an
input is a list of changes, and a recording: it is cut, packed and summarised as the changes say.

    u8 changes · (u8 what · u24 number) a change · the recording
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from itertools import pairwise

import zstandard

__all__ = ["CHANGES", "change", "made"]

CHANGES = (
    "cut", "swap", "repeat", "drop", "row packed", "row raw", "no size", "other size",
    "no checksum", "skippable", "one byte", "checksums in the table", "no table", "count",
    "flags", "magic", "table bytes", "behind", "before", "shorten",
)  # fmt: skip
"""Kinds of change; a change's number determines the place, or the new value."""

_MOST_CHANGES = 12
_MOST_FRAMES = 64
_SKIPPABLE_MAGIC, _FOOTER_MAGIC = 0x184D2A5E, 0x8F92EAB1


def change(what: str, number: int = 0) -> bytes:
    """The bytes of one change."""
    return bytes([CHANGES.index(what)]) + number.to_bytes(3, "little")


@dataclass
class _Frame:
    """A frame, and what the table says of it."""

    data: bytes
    packed: int
    raw: int


@dataclass
class _Table:
    """The part behind the rows, with a wrong content."""

    wanted: bool = True
    checksums: bool = False
    other: dict[str, int] = field(default_factory=dict)


def _frame(data: bytes, *, size: bool = True, checksum: bool = True) -> bytes:
    compressor = zstandard.ZstdCompressor(level=1, write_checksum=checksum, write_content_size=size)
    return compressor.compress(data)


def _sized(told: int, data: bytes) -> bytes:
    """A frame of one raw block, whose header declares another size than it has (RFC 8878, section 3.1.1)."""
    head = bytes.fromhex("28b52ffd") + b"\xa0" + (told & 0xFFFFFFFF).to_bytes(4, "little")
    return head + (len(data) << 3 | 1).to_bytes(3, "little") + data


def _one_byte(size: int) -> bytes:
    """A frame of one block that is one byte again and again."""
    size = min(size, (1 << 17) - 1)
    head = bytes.fromhex("28b52ffd") + b"\xa0" + size.to_bytes(4, "little")
    return head + (size << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"\0"


def made(data: bytes) -> bytes:
    """The packed file that an input describes."""
    count = data[0] % (_MOST_CHANGES + 1) if data else 0
    body = data[1 + 4 * count :]
    changes = [
        (CHANGES[piece[0] % len(CHANGES)], int.from_bytes(piece[1:], "little"))
        for piece in (data[1 + 4 * at : 5 + 4 * at] for at in range(count))
        if piece
    ]
    cuts = sorted({number % (len(body) + 1) for what, number in changes if what == "cut"})
    pieces = [body[begin:end] for begin, end in pairwise([0, *cuts, len(body)]) if begin < end]
    frames = [_Frame(_frame(one), 0, len(one)) for one in pieces]
    for one in frames:
        one.packed = len(one.data)
    table, behind, before, shorter = _Table(), b"", b"", 0
    for what, number in changes:
        if what in ("checksums in the table", "no table"):
            table.checksums |= what == "checksums in the table"
            table.wanted &= what != "no table"
        elif what in ("count", "flags", "magic", "table bytes"):
            table.other[what] = number
        elif what == "behind":
            behind = bytes(number % 64)
        elif what == "before":
            before = _skippable(bytes(number % 64))
        elif what == "shorten":
            shorter = number % 256
        elif frames:
            _change_frame(frames, pieces, what, number)
            del frames[_MOST_FRAMES:]
    whole = before + b"".join(one.data for one in frames) + _written(table, frames) + behind
    return whole[: len(whole) - shorter] if shorter else whole


def _change_frame(frames: list[_Frame], pieces: list[bytes], what: str, number: int) -> None:
    at = number % len(frames)
    one, other = frames[at], number // len(frames)
    piece = pieces[at % len(pieces)]
    match what:
        case "swap":
            to = other % len(frames)
            frames[at], frames[to] = frames[to], frames[at]
        case "repeat":
            frames[at:at] = [one] * (other % 8)
        case "drop":
            del frames[at]
        case "row packed":
            frames[at] = _Frame(one.data, other, one.raw)
        case "row raw":
            frames[at] = _Frame(one.data, one.packed, other)
        case "no size" | "no checksum":
            again = _frame(piece, size=what != "no size", checksum=what != "no checksum")
            frames[at] = _Frame(again, len(again), len(piece))
        case "other size":
            again = _sized(other, piece)
            frames[at] = _Frame(again, len(again), other)
        case "skippable":
            again = _skippable(bytes(other % 32))
            frames[at:at] = [_Frame(again, len(again), 0)]
        case "one byte":
            again = _one_byte(other)
            frames[at:at] = [_Frame(again, len(again), min(other, (1 << 17) - 1))]


def _skippable(data: bytes) -> bytes:
    return struct.pack("<II", _SKIPPABLE_MAGIC, len(data)) + data


def _written(table: _Table, frames: list[_Frame]) -> bytes:
    if not table.wanted:
        return b""
    rows = b"".join(
        struct.pack("<II", one.packed & 0xFFFFFFFF, one.raw & 0xFFFFFFFF)
        + (b"\0\0\0\0" if table.checksums else b"")
        for one in frames
    )
    footer = struct.pack(
        "<IBI",
        table.other.get("count", len(frames)),
        table.other.get("flags", 0x80 if table.checksums else 0) & 0xFF,
        table.other.get("magic", _FOOTER_MAGIC),
    )
    size = table.other.get("table bytes", len(rows) + len(footer))
    return struct.pack("<II", _SKIPPABLE_MAGIC, size) + rows + footer
