"""The fields of a frame: integers (big-endian), texts that end with a zero byte, arrays.

    byte 1, bool 1 (0 or 1), short 2, int 4, text = bytes and 00, array = int and that many items

Knows bytes; does not know messages.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import numpy as np
from gcspy_protocol.errors import LocalProtocolError, RemoteProtocolError
from numpy.typing import NDArray

from gcspy_original.wire.limits import MOST_TEXT_BYTES

__all__ = ["FieldReader", "FieldWriter"]

_SHORT: Final = struct.Struct(">h")
_INT: Final = struct.Struct(">i")


class FieldReader:
    """Reads the fields of one frame.

    Args:
        data: The frame's payload.
        offset: Its place in the stream of bytes, for messages.
    """

    def __init__(self, data: bytes, offset: int = 0) -> None:
        self._data = data
        self._offset = offset
        self._at = 0

    @property
    def left(self) -> int:
        """Bytes that are not read yet."""
        return len(self._data) - self._at

    def wrong(self, what: str) -> RemoteProtocolError:
        """Return an error at the current place."""
        return RemoteProtocolError(
            f"{what} (byte {self._offset + self._at:,} of the original's wire)",
            offset=self._offset + self._at,
        )

    def take(self, count: int, what: str) -> bytes:
        """Read bytes.

        Raises:
            RemoteProtocolError: The frame ends before.
        """
        if count > self.left:
            raise self.wrong(f"{what} needs {count:,} bytes, and the frame has {self.left:,} more")
        found = self._data[self._at : self._at + count]
        self._at += count
        return found

    def byte(self, what: str) -> int:
        """Read a signed byte."""
        value = self.take(1, what)[0]
        return value - 256 if value > 127 else value

    def index(self, what: str) -> int:
        """Read a byte that numbers a space, a stream or an event: 0 to 127."""
        value = self.byte(what)
        if value < 0:
            raise self.wrong(f"{what} is {value}; it is 0 to 127")
        return value

    def boolean(self, what: str) -> bool:
        """Read a truth value; like the original's server, everything but 0 is true."""
        return self.take(1, what)[0] != 0

    def short(self, what: str) -> int:
        """Read two bytes."""
        found: int = _SHORT.unpack(self.take(2, what))[0]
        return found

    def number(self, what: str) -> int:
        """Read four bytes."""
        found: int = _INT.unpack(self.take(4, what))[0]
        return found

    def count(self, what: str, most: int, *, short: bool = False) -> int:
        """Read a number of things.

        Raises:
            RemoteProtocolError: It is negative, or more than `most`.
        """
        found = self.short(what) if short else self.number(what)
        if not 0 <= found <= most:
            raise self.wrong(f"{what} is {found:,}; it is 0 to {most:,}")
        return found

    def text(self, what: str) -> str:
        """Read a text; bytes that are no UTF-8 become surrogates, so that they can be written again."""
        end = self._data.find(b"\0", self._at, self._at + MOST_TEXT_BYTES + 1)
        if end < 0:
            raise self.wrong(f"{what} does not end within {MOST_TEXT_BYTES:,} bytes of its frame")
        found = self._data[self._at : end]
        self._at = end + 1
        return found.decode("utf-8", "surrogateescape")

    def some_texts(self, count: int, what: str) -> tuple[str, ...]:
        """Read that many texts, with more fields behind them."""
        return tuple(self.text(what) for _ in range(count))

    def text_block(self, count: int, what: str) -> bytes:
        """Read that many texts as bytes, each with its zero byte; more fields may follow.

        Raises:
            RemoteProtocolError: The frame has fewer, or one is too long.
        """
        if count > self.left:
            raise self.wrong(f"{what}: {count:,} texts are announced, {self.left:,} bytes are left")
        if not count:
            return b""
        ends = np.flatnonzero(np.frombuffer(self._data, np.uint8, offset=self._at) == 0)
        if len(ends) < count:
            raise self.wrong(
                f"{what}: {count:,} texts are announced, {len(ends):,} are in the frame"
            )
        longest = int(np.diff(ends[:count], prepend=-1).max())
        if longest > MOST_TEXT_BYTES + 1:
            raise self.wrong(f"{what}: one text has {longest - 1:,} bytes")
        return self.take(int(ends[count - 1]) + 1, what)

    def array(self, count: int, dtype: str, what: str) -> NDArray[Any]:
        """Read an array.

        Returns:
            Shape (count,), a copy in the machine's byte order.
        """
        kind = np.dtype(dtype)
        if count < 0:
            raise self.wrong(f"{what}: {count:,} values")
        data = self.take(count * kind.itemsize, what)
        return np.frombuffer(data, kind.newbyteorder(">")).astype(kind)

    def end(self, what: str) -> None:
        """Refuse bytes behind the last field."""
        if self.left:
            raise self.wrong(f"{what} has {self.left:,} bytes more than its fields")


class FieldWriter:
    """Writes the fields of one frame."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def byte(self, value: int, what: str = "a byte") -> None:
        """Write a signed byte.

        Raises:
            LocalProtocolError: It does not fit; as the other numbers.
        """
        self._pack("b", value, what)

    def boolean(self, value: bool) -> None:
        """Write 0 or 1."""
        self._parts.append(b"\1" if value else b"\0")

    def short(self, value: int, what: str = "a short") -> None:
        """Write two bytes."""
        self._pack("h", value, what)

    def number(self, value: int, what: str = "an int") -> None:
        """Write four bytes."""
        self._pack("i", value, what)

    def text(self, value: str) -> None:
        """Write a text and its zero byte; a zero within it would end it, and is left out."""
        self._parts.append(value.replace("\0", "").encode("utf-8", "surrogateescape") + b"\0")

    def raw(self, data: bytes) -> None:
        """Write bytes as they are."""
        self._parts.append(data)

    def array(self, values: NDArray[Any]) -> None:
        """Write the values of an array, big-endian, without their number."""
        self._parts.append(values.astype(values.dtype.newbyteorder(">"), copy=False).tobytes())

    def frame(self) -> bytes:
        """Return all fields as one frame: its length, and the fields."""
        payload = b"".join(self._parts)
        return struct.pack(">I", len(payload)) + payload

    def _pack(self, kind: str, value: int, what: str) -> None:
        try:
            self._parts.append(struct.pack(">" + kind, value))
        except struct.error as error:
            raise LocalProtocolError(
                f"{what} of {value} does not fit the original's wire"
            ) from error
