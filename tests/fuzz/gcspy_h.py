"""The decoder of the segment of gcspy.h: what a hostile program has in it, read and shown as the driver does.

An input is a short script, since a segment has 80 KB of mostly zeros: changes to a good segment, each an
offset, a length and bytes.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from functools import cache

from gcspy_drivers.published.segment import SegmentReader
from gcspy_drivers.published.spaces import PublishedSpaces, copy_space
from gcspy_protocol.errors import TargetError

from gcspy_server.api import Event, Server

__all__ = ["seeds", "segment"]

_HEAD, _SPACE, _STREAM = 2192, 504, 248
_SPACES_AT, _STREAMS_AT = _HEAD, _HEAD + 32 * _SPACE
_DATA_AT = 81_856
_BYTES = _DATA_AT + 8192
_MOST_CHANGES = 64


def _put(memory: bytearray, at: int, form: str, *values: object) -> None:
    struct.pack_into(form, memory, at, *values)


@cache
def _good() -> bytes:
    """A segment with three spaces, one of each naming, and a stream of each kind."""
    memory = bytearray(_BYTES)
    _put(memory, 0, "<8s2I2Q4I", b"gcspysgm", 1, 1, _BYTES, _BYTES, 2, 3, 5, 1)
    _put(memory, 48, "<5Q", 8, 0, 3, 5_000_000, 77)
    _put(memory, 88, "<32s128s64s", b"allocated", b"full", b"fuzzed")
    _put(memory, 1168, "<32s32s", b"First", b"Second")
    for number, (name, naming, tile) in enumerate(
        [(b"Heap", 0, 4096), (b"Regions", 1, 0), (b"Classes", 2, 0)]
    ):
        at = _SPACES_AT + number * _SPACE
        _put(memory, at, "<64s32s", name, b"Tile")
        _put(
            memory,
            at + 416,
            "<2Q6I2Q",
            0x10000,
            tile,
            8,
            8,
            naming,
            0,
            0,
            number,
            _DATA_AT,
            _DATA_AT + 64,
        )
    for tile in range(8):
        _put(memory, _DATA_AT + 64 + 16 * tile, "<2Q", 0x1000 * (tile + 1), 64)
    for number, (space, presentation, of) in enumerate(
        [(0, 3, 0), (0, 4, 1), (0, 5, 0), (1, 1, 0), (2, 2, 0)]
    ):
        at = _STREAMS_AT + number * _STREAM
        _put(memory, at, "<32s", b"Stream %d" % number)
        _put(
            memory, at + 144, "<4q8I3Q", 0, 4096, 0, 0, presentation, 1, 0x1FF8000, space,
            2 if presentation == 5 else 0, of, 0, 1, _DATA_AT + 1024 + 64 * number, _DATA_AT + 2048, _DATA_AT + 2112,
        )  # fmt: skip
    _put(memory, _DATA_AT + 2048, "<32s32s", b"free", b"used")
    return bytes(memory)


def segment(data: bytes) -> None:
    """Change a good segment, and show it twice: the second time is that of a program that changed its mind."""
    memory = bytearray(_good())
    spaces, server = _shown(memory)
    at = 0
    for _ in range(_MOST_CHANGES):
        if len(data) - at < 4:
            break
        where, size = int.from_bytes(data[at : at + 3], "little") % _BYTES, data[at + 3]
        change = data[at + 4 : at + 4 + size][: _BYTES - where]
        memory[where : where + len(change)] = change
        at += 4 + size
    with suppress(TargetError):
        _show(memory, spaces, server)


def _shown(memory: bytearray) -> tuple[PublishedSpaces, Server]:
    server = Server("fuzz", events=("First", "Second"))
    server.add_observer(_checked)
    spaces = PublishedSpaces(server, "published")
    _show(memory, spaces, server)
    return spaces, server


def _show(memory: bytearray, spaces: PublishedSpaces, server: Server) -> None:
    def read(offset: int, size: int) -> bytes:
        assert 0 <= offset <= offset + size <= len(memory), "it asks for what is not there"
        return bytes(memory[offset : offset + size])

    reader = SegmentReader(read, len(memory), "process 1")
    head = reader.head()
    records = reader.spaces(head)
    copied = {record.index: copy_space(reader, record) for record in records}
    spaces.follow(records)
    request = server.should_transmit(0)
    assert request is not None
    try:
        spaces.fill(copied, request)
    finally:
        server.finish(0, head.cause, head.clock)


def _checked(_event: Event) -> None:
    return


def seeds() -> list[bytes]:
    """Changes of each part: counts, offsets, tiles, names, values."""

    def change(at: int, form: str, *values: int) -> bytes:
        new = struct.pack(form, *values)
        return at.to_bytes(3, "little") + bytes([len(new)]) + new

    space, stream = _SPACES_AT + 416, _STREAMS_AT + 144
    return [
        b"",
        change(32, "<4I", 3, 4, 6, 1),
        change(56, "<3Q", 1, 9, 6_000_000),
        change(space, "<2Q6I2Q", 0x20000, 64, 4, 8, 0, 0, 0, 0, _DATA_AT, 0),
        change(space + _SPACE, "<2Q6I", 0, 0, 3, 8, 1, 2, 0, 1),
        change(stream, "<4q8I3Q", -5, 5, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, _DATA_AT, 0, _DATA_AT),
        change(_DATA_AT + 64, "<4Q", 0x2000, 64, 0x2010, 64),
        change(_DATA_AT + 1024, "<4q", -1, 1 << 62, -(1 << 63), 7) + change(_DATA_AT, "<2I", 0x1F0804FF, 7),
    ]  # fmt: skip
