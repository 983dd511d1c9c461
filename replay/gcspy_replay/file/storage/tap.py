"""The bytes of a server, beside the connection that decodes them.

With a tap the writer stores the server's own bytes: nothing is encoded again, and frames of a later
version, which this one cannot decode, are kept too. It never reads ahead of the connection: a
message that the connection has released was checked, and so were the bytes up to it.

Knows frame headers; does not know their payloads.
"""

from __future__ import annotations

from functools import cache

from gcspy_protocol.connection import is_event_frame, preamble
from gcspy_protocol.errors import LocalProtocolError
from gcspy_protocol.frames.frame import HEADER
from gcspy_protocol.messages import FrameType, Message, Unknown

__all__ = ["WireTap", "frame_type_of", "is_recorded"]

_KEPT = frozenset(
    {
        FrameType.SPACE_DEFINED,
        FrameType.SPACE_REMOVED,
        FrameType.EPOCH_END,
        FrameType.TILE_NAMES,
        FrameType.COUNTERS,
        FrameType.STATE,
        FrameType.FILTERS,
        FrameType.MISSED,
        FrameType.TRIGGERS,
        FrameType.FIRED,
        FrameType.SETTINGS,
        FrameType.BUDGET,
    }
)
"""Recorded messages other than events. The list of clients, errors and pings concern this client only."""

_KNOWN = frozenset(FrameType)
_OF_FILES = range(0x70, 0x80)

_PREAMBLE_BYTES = len(preamble())
_COMPACT_BYTES = 1 << 20


def frame_type_of(message: Message) -> int:
    """The type of the frame that a message came in."""
    if isinstance(message, Unknown):
        return message.type
    return _frame_type(type(message).__name__)


@cache
def _frame_type(name: str) -> int:
    """The type of frame of the class of a message."""
    return FrameType[
        "".join("_" + c if c.isupper() and i else c for i, c in enumerate(name)).upper()
    ]


def is_recorded(frame_type: int) -> bool:
    """Whether frames of a type are recorded between events; those of unknown types are."""
    # A server that sends the file's own frames could write chunks of its own.
    return frame_type in _KEPT or (frame_type not in _KNOWN and frame_type not in _OF_FILES)


class WireTap:
    """Keeps received bytes until the message made from them is taken.

    Give it the same bytes as the connection, from the first on, and the writer this tap::

        connection.receive_data(data)
        tap.receive_data(data)
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._at = 0
        self._skip = _PREAMBLE_BYTES

    def receive_data(self, data: bytes | bytearray | memoryview) -> None:
        """Keep bytes that the server sent."""
        self._buffer += data

    def take(self, message: Message, *, events: bool = True) -> tuple[bytes, bytes]:
        """The bytes up to and including a message that the connection released, in the order in which it did.

        Args:
            message: The message.
            events: Whether the frames of events are requested.

        Returns:
            The frames to record between events, and those of an event.

        Raises:
            LocalProtocolError: The tap did not get the same bytes as the connection.
        """
        wanted = frame_type_of(message)
        notices, event = bytearray(), bytearray()
        at = self._at + self._skip
        while True:
            if at + HEADER.size > len(self._buffer):
                raise LocalProtocolError(
                    f"the tap has no {type(message).__name__}: give it all that the connection gets"
                )
            length, kind, *_ = HEADER.unpack_from(self._buffer, at)
            after = at + HEADER.size + length
            if is_event_frame(kind) or kind == FrameType.EVENT:
                if events:
                    event += self._buffer[at:after]
            elif is_recorded(kind):
                notices += self._buffer[at:after]
            at = after
            if kind == wanted:
                break
        self._skip = 0
        self._at = at
        if at == len(self._buffer) or at > _COMPACT_BYTES:
            del self._buffer[:at]
            self._at = 0
        return bytes(notices), bytes(event)
