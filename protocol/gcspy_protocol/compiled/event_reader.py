"""The messages of a whole event, from one call of ``decode.c`` that has checked its bytes.

C only says where things are in an event that is right: whatever is wrong with it, `EventReader.read`
returns None, and `gcspy_protocol.connection` reads the same bytes frame by frame, which raises the
error. So there is one place that says what a peer did wrong. Compressed frames and maps are read in
Python in either case.

Knows bytes and arrays; does not know who may send what.
"""

from __future__ import annotations

import ctypes
import struct
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gcspy_compiled.libraries import Library
from gcspy_protocol.codec import decode, unpack
from gcspy_protocol.errors import RemoteProtocolError
from gcspy_protocol.frames.frame import HEADER, Header, raw_size
from gcspy_protocol.limits import Limits
from gcspy_protocol.messages import FrameType, Message, StreamDelta, StreamKey, Summary, Unknown
from gcspy_protocol.model import DTYPES

__all__ = ["EventReader", "ReadEvent"]

_WHOLE, _TOO_MANY = 0, 3
_OTHER, _KEY, _DELTA, _SUMMARY, _END = range(5)

_FRAME: Final = struct.Struct("<9Q3I3H2B4x")
"""``struct frame``."""

_FEWEST_FRAMES, _MOST_FRAMES = 256, 1 << 14
_FRAME_TYPES: Final = frozenset(map(int, FrameType))
_LONG_BYTES: Final = 1 << 20
"""From this many bytes on a call takes so long that other threads may run meanwhile."""

_TYPES: Final = {number: np.dtype("<" + name) for name, number in DTYPES.items()}
_NO_TILES: Final[NDArray[np.int64]] = np.empty(0, dtype=np.int64)
_NO_VALUES: Final = {number: np.empty(0, dtype=dtype) for number, dtype in _TYPES.items()}


class _Limits(ctypes.Structure):
    """``struct limits``."""

    _fields_ = (
        ("payload_bytes", ctypes.c_uint64),
        ("event_bytes", ctypes.c_uint64),
        ("tiles", ctypes.c_uint64),
    )


class _Found(ctypes.Structure):
    """``struct found``."""

    _fields_ = (
        ("bytes", ctypes.c_uint64),
        ("numbers", ctypes.c_uint64),
        ("frames", ctypes.c_uint32),
    )


class ReadEvent(NamedTuple):
    """An event that was read.

    Attributes:
        messages: Its messages, the `Event` last.
        frames: Number of its frames.
        sent_bytes: Its bytes.
        raw_bytes: Its bytes after decompression.
    """

    messages: list[Message]
    frames: int
    sent_bytes: int
    raw_bytes: int


class EventReader:
    """Reads whole events of a server.

    Args:
        library: The loaded library.
        limits: Limits on what the server may send.
    """

    def __init__(self, library: Library, limits: Limits) -> None:
        self._library = library
        self._limits = limits
        self._raw_limits = _Limits(limits.payload_bytes, limits.event_bytes, limits.tiles)
        self._found = _Found()
        self._room = 0
        self._frames = ctypes.create_string_buffer(0)

    def read(self, buffer: bytearray, at: int) -> ReadEvent | None:
        """The event that begins at a place of a buffer.

        Returns:
            None: it is not complete, or not right, or not of the usual kind; nothing was done.
        """
        outcome = self._check(buffer, at)
        while outcome == _TOO_MANY and self._room < _MOST_FRAMES:
            self._room = max(_FEWEST_FRAMES, 4 * self._room)
            self._frames = ctypes.create_string_buffer(_FRAME.size * self._room)
            outcome = self._check(buffer, at)
        if outcome != _WHOLE:
            return None
        with memoryview(buffer) as view:
            data = bytes(view[at : at + self._found.bytes])
        try:
            return self._build(data)
        except RemoteProtocolError:
            return None

    def _check(self, buffer: bytearray, at: int) -> int:
        """Let C check the event and describe its frames."""
        available = len(buffer) - at
        library = self._library.released if available >= _LONG_BYTES else self._library.held
        first = ctypes.c_char.from_buffer(buffer, at)  # until it is gone the buffer keeps its size
        outcome: int = library.gcspy_check_event(
            ctypes.byref(first),
            ctypes.c_uint64(available),
            ctypes.byref(self._raw_limits),
            self._frames,
            ctypes.c_uint32(self._room),
            ctypes.byref(self._found),
        )
        return outcome

    def _list_tiles(self, data: bytes) -> NDArray[np.int64]:
        """Tile numbers of all DELTAs, one after the other."""
        numbers = np.empty(self._found.numbers, dtype=np.int64)
        if len(numbers):
            self._library.held.gcspy_list_tiles(
                ctypes.c_char_p(data),
                self._frames,
                ctypes.c_uint32(self._found.frames),
                ctypes.c_void_p(numbers.ctypes.data),
                ctypes.c_uint64(len(numbers)),
            )
        return numbers

    def _build(self, data: bytes) -> ReadEvent | None:
        """Make the messages of an event whose bytes were checked; None: it is larger than it may be.

        Raises:
            RemoteProtocolError: A part of it that C does not read is wrong.
        """
        numbers = self._list_tiles(data)
        messages: list[Message] = []
        raw_bytes = 0
        frames = memoryview(self._frames)[: _FRAME.size * self._found.frames]
        for (
            at,
            size,
            sequence,
            time_nanos,
            occurrence,
            base_sequence,
            bitmap_at,
            values_at,
            first,
            count,
            length,
            _,
            space,
            stream,
            event,
            kind,
            number,
        ) in _FRAME.iter_unpack(frames):
            if kind == _SUMMARY:
                messages.append(
                    Summary(
                        space=space,
                        stream=stream,
                        sequence=sequence,
                        time_nanos=time_nanos,
                        values=struct.unpack_from(f"<{length}q", data, values_at),
                        covered=count,
                    )
                )
            elif kind == _DELTA:
                messages.append(
                    StreamDelta(
                        space=space,
                        stream=stream,
                        sequence=sequence,
                        time_nanos=time_nanos,
                        event=event,
                        occurrence=occurrence,
                        base_sequence=base_sequence,
                        count=count,
                        indices=numbers[first : first + length] if length else _NO_TILES,
                        values=np.frombuffer(data, _TYPES[number], length, values_at)
                        if length
                        else _NO_VALUES[number],
                        known=_bitmap(data, bitmap_at, length),
                    )
                )
            elif kind == _KEY:
                messages.append(
                    StreamKey(
                        space=space,
                        stream=stream,
                        sequence=sequence,
                        time_nanos=time_nanos,
                        event=event,
                        occurrence=occurrence,
                        values=np.frombuffer(data, _TYPES[number], length, values_at)
                        if length
                        else _NO_VALUES[number],
                        known=_bitmap(data, bitmap_at, length),
                    )
                )
            else:
                header = Header._make(HEADER.unpack_from(data, at))
                payload = data[at + HEADER.size : at + size]
                if header.type in _FRAME_TYPES:  # else of a later version: skipped, whatever it is
                    unpacked = HEADER.size + raw_size(header, payload, self._limits, 0)
                    # Before it is decompressed: a hundred frames may declare more than an event may have.
                    if raw_bytes + unpacked > self._limits.event_bytes and kind != _END:
                        return None
                    packed, payload = payload, unpack(header, payload, self._limits, 0)
                message = decode(header, payload, self._limits)
                if isinstance(message, StreamDelta):  # C reads those that are not compressed
                    message = replace(message, packed=packed)
                if not isinstance(message, Unknown):
                    messages.append(message)
                raw_bytes += HEADER.size + len(payload) - size
            raw_bytes += size
            if raw_bytes > self._limits.event_bytes and kind != _END:
                return None
        return ReadEvent(messages, self._found.frames, len(data), raw_bytes)


def _bitmap(data: bytes, at: int, count: int) -> NDArray[np.bool_] | None:
    """Shape (count,), which values are known; None: there is no bitmap."""
    if not at:
        return None
    if not count:
        return np.empty(0, dtype=np.bool_)
    packed = np.frombuffer(data, np.uint8, (count + 7) // 8, at)
    return np.unpackbits(packed, count=count, bitorder="little").view(np.bool_)
