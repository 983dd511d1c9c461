"""`PositionedFile`: what all files of ours that are read from a position have in common.

Knows a position; does not know where the bytes come from.
"""

from __future__ import annotations

import io
from abc import abstractmethod

__all__ = ["PositionedFile"]


class PositionedFile(io.RawIOBase):
    """A file for reading that remembers its position; a subclass has the bytes: `readinto` and `end`.

    Attributes:
        position: Where the next read begins.
    """

    def __init__(self) -> None:
        super().__init__()
        self.position = 0

    @abstractmethod
    def end(self) -> int:
        """Return the offset behind the last byte."""

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to an offset.

        Raises:
            ValueError: It is before the file.
        """
        if whence == io.SEEK_END:
            offset += self.end()
        elif whence == io.SEEK_CUR:
            offset += self.position
        if offset < 0:
            raise ValueError(f"offset {offset} in a file")
        self.position = offset
        return offset
