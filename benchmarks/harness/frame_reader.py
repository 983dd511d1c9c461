"""`FrameReader`: the frames of a session, for programs that stand in for a hundred viewers.

Only frames of a few types are read; of the others no byte is copied, so that the load is the
server's. Knows headers; does not know messages or sockets.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from gcspy_protocol.codec import decode
from gcspy_protocol.frames.frame import HEADER, Header, inflate
from gcspy_protocol.limits import CLIENT_LIMITS
from gcspy_protocol.messages import Message

__all__ = ["Frame", "FrameReader"]

_LENGTH_AND_TYPE = struct.Struct("<IB7xQ")
_PREAMBLE_BYTES = 12


class Frame(NamedTuple):
    """A frame that came.

    Attributes:
        kind: Its `FrameType`.
        sequence: As in its header.
        message: What it means; None: frames of this type are not read.
    """

    kind: int
    sequence: int
    message: Message | None


class FrameReader:
    """Takes bytes as they come.

    Args:
        reads: Whether frames of a type are read.
    """

    def __init__(self, reads: Callable[[int], bool]) -> None:
        self._reads = reads
        self._buffer = bytearray()
        self._skip = 0
        self._begun = False

    def take(self, data: bytes | memoryview) -> Iterator[Frame]:
        """Return the frames that are whole with these bytes, and those not read as soon as they begin; iterate to the end."""
        at = min(self._skip, len(data))
        self._skip -= at
        if at == len(data):
            return
        buffer = self._buffer
        buffer += data[at:]
        at = 0
        if not self._begun:
            if len(buffer) < _PREAMBLE_BYTES:
                return
            at, self._begun = _PREAMBLE_BYTES, True
        while len(buffer) - at >= HEADER.size:
            length, kind, sequence = _LENGTH_AND_TYPE.unpack_from(buffer, at)
            end = at + HEADER.size + length
            reads = self._reads(kind)
            if len(buffer) < end and reads:
                break
            yield Frame(kind, sequence, _message(bytes(buffer[at:end])) if reads else None)
            self._skip = max(0, end - len(buffer))
            at = min(end, len(buffer))
        del buffer[:at]


def _message(frame: bytes) -> Message:
    header = Header._make(HEADER.unpack_from(frame))
    return decode(header, inflate(header, frame[HEADER.size :], CLIENT_LIMITS, 0), CLIENT_LIMITS)
