"""Stored traces: all that a server of the original sent, compressed by gzip or plain.

Knows files and gzip; a connection reads the bytes. Traces that the original's own recorder wrote
hold the same data as serialised objects of Java, which this does not read.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from gcspy_protocol.errors import NotARecording, RecordingError

__all__ = ["SUFFIX", "StoredTrace", "is_stored_trace"]

SUFFIX: Final = ".gcspy666"

_GZIP: Final = b"\x1f\x8b"
_JAVA: Final = b"\xac\xed\x00\x05"
_BEGINNING: Final = b"GCspy666\0\0\0\0\1"
_LENGTH_BYTES: Final = 4
_CHUNK_BYTES: Final = 1 << 20
_PACKED_BYTES: Final = 1 << 12
"""Little, so that of a damaged file much is read."""


def is_stored_trace(path: Path) -> bool:
    """Whether a file begins like a stored trace, or like one of the original's own recorder; it may still be unreadable."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            beginning = _beginning(file)
    except OSError:
        return False
    return beginning.startswith(_JAVA) or _is_wire(beginning)


def _is_wire(beginning: bytes) -> bool:
    return beginning[_LENGTH_BYTES:].startswith(_BEGINNING)


def _beginning(file: BinaryIO) -> bytes:
    data = file.read(512)
    if data.startswith(_GZIP):
        try:
            data = zlib.decompressobj(wbits=31).decompress(data, 64)
        except zlib.error:
            return b""
    return data[:64]


class StoredTrace:
    """A stored trace that is read from its beginning.

    Args:
        path: The file.

    Raises:
        NotARecording: It is something else.
        RecordingError: It cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.size = path.stat().st_size
            with path.open("rb") as file:
                beginning = _beginning(file)
        except OSError as error:
            raise RecordingError(f"cannot read {path}: {error.strerror}") from error
        if beginning.startswith(_JAVA):
            raise NotARecording(
                f"{path} holds serialised objects of Java, as the original's own recorder stores them: gcspy reads what a server sends, "
                "so play it with the original, and record it with gcspy record gcspy666://HOST:PORT"
            )
        if not _is_wire(beginning):
            raise NotARecording(f"{path} does not begin as a server of GCspy 1.0 does")

    def chunks(self) -> Iterator[tuple[bytes, int]]:
        """Return the bytes, piece by piece, each with the place in the file up to which it was read.

        Raises:
            RecordingError: The file cannot be read, or is damaged.
        """
        try:
            with self.path.open("rb") as file:
                packed = file.read(len(_GZIP)) == _GZIP
                file.seek(0)
                for data in (
                    _unpacked(file) if packed else iter(lambda: file.read(_CHUNK_BYTES), b"")
                ):
                    yield data, file.tell()
        except (OSError, EOFError, zlib.error) as error:
            raise RecordingError(f"{self.path} is cut short or damaged: {error}") from error


def _unpacked(file: BinaryIO) -> Iterator[bytes]:
    """Decompress a file, in pieces of limited size, up to where it is cut or damaged.

    Raises:
        EOFError: It is cut.
        zlib.error: It is damaged.
    """
    unpacker = zlib.decompressobj(wbits=31)
    data = b""
    while True:
        data = data or unpacker.unconsumed_tail or file.read(_PACKED_BYTES)
        if not data:
            if not unpacker.eof:
                raise EOFError("the compressed data do not end")
            return
        if unpacker.eof:  # a file may have several parts, as gzip appends them
            unpacker = zlib.decompressobj(wbits=31)
        found = unpacker.decompress(data, _CHUNK_BYTES)
        data = unpacker.unused_data
        if found:
            yield found
