"""The sources of the bytes of a part: a file, or memory.

Each reader has sources of its own, so that several can read one recording at once. They use plain
`seek` and `read` and no memory map: truncating a mapped file kills the process, and positioned
reads do not exist on every system that views recordings.
"""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol

from gcspy_protocol.errors import CorruptChunk, NotARecording, RecordingError

__all__ = ["FileSource", "MemorySource", "ByteSource", "Window", "WorkExceeded"]


class ByteSource(Protocol):
    """Bytes that can be read at any place; they may grow, and never change.

    Attributes:
        ahead_bytes: Bytes that a `Window` reads at least at a time.
    """

    ahead_bytes: int = 64 << 10
    """Read at once when frames are hopped over: a page-cache read of 64 KiB costs little more than one of 28 bytes."""

    @property
    def name(self) -> str:
        """Name for messages."""

    def size(self) -> int:
        """Bytes that are there now."""

    def read_at(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes; fewer where it ends."""

    def prefetch(self, ranges: Sequence[tuple[int, int]]) -> None:  # noqa: ARG002  # most sources need no hint
        """Prepare for reading these ranges, first byte and byte behind the last, ascending. A hint, for sources where each request costs."""
        return

    def again(self) -> ByteSource:
        """Another source of the same bytes, for another reader."""

    def close(self) -> None:
        """Release its resources."""

    def sent_bytes(self) -> int:
        """Bytes that were sent: fewer than `size` if they are packed. They limit the work of opening."""
        return self.size()

    @property
    def unpacked_bytes(self) -> int:
        """Bytes that were unpacked so far in order to be read."""
        return 0


class FileSource(ByteSource):
    """A file.

    Args:
        path: Of the file.

    Raises:
        RecordingError: It cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            # Checked first: opening a pipe waits for its writer, and a device may never end.
            if not stat.S_ISREG(path.stat().st_mode):
                raise NotARecording(f"{path} is not a file")
            self._file = path.open("rb", buffering=0)
        except OSError as error:
            raise RecordingError(f"cannot read {path}: {error.strerror or error}") from error

    @property
    def name(self) -> str:
        """The path."""
        return str(self._path)

    def size(self) -> int:
        """Bytes that are there now."""
        try:
            return self._file.seek(0, 2)
        except OSError as error:
            raise RecordingError(f"cannot read {self._path}: {error.strerror or error}") from error
        except ValueError as error:
            raise self._gone() from error

    def _gone(self) -> RecordingError:
        return RecordingError(
            f"{self._path} is no longer open: the ring deleted it, or it was closed"
        )

    def read_at(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes; fewer where the file ends."""
        try:
            self._file.seek(offset)
            found = self._file.read(size) or b""
            while len(found) < size and (more := self._file.read(size - len(found))):
                found += more
        except OSError as error:
            raise RecordingError(
                f"cannot read {self._path} at byte {offset}: {error.strerror or error}"
            ) from error
        except ValueError as error:
            raise self._gone() from error
        return found

    def again(self) -> FileSource:
        """Open the file once more."""
        return FileSource(self._path)

    def __enter__(self) -> FileSource:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class MemorySource(ByteSource):
    """Bytes in memory: tests, and recordings that came over another way.

    Args:
        data: The bytes; a bytearray may grow.
        name: Name for messages.
    """

    def __init__(self, data: bytes | bytearray, *, name: str = "memory") -> None:
        self._data, self._name = data, name

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    def size(self) -> int:
        """Bytes that are there now."""
        return len(self._data)

    def read_at(self, offset: int, size: int) -> bytes:
        """A copy of up to `size` bytes."""
        return bytes(self._data[offset : offset + size])

    def again(self) -> MemorySource:
        """Another source of the same bytes."""
        return MemorySource(self._data, name=self._name)

    def close(self) -> None:
        """Nothing to release."""


_CALL_BYTES = 100
"""Charge for a call of `Window.get`, besides the returned bytes: reading a frame's header takes as
long as copying much more than its 28 bytes."""


class WorkExceeded(CorruptChunk):
    """Finding the chunks of a file costs more than a file of its size may."""


class Window:
    """A source with the bytes that were read last, so that hopping from frame to frame is cheap.

    Args:
        source: Source of the bytes.

    Attributes:
        handed_bytes: Bytes handed out so far.
        work_limit: `work_bytes` beyond which nothing is handed out any more; None: no limit.
    """

    def __init__(self, source: ByteSource) -> None:
        self.source = source
        self.handed_bytes = 0
        self.work_limit: int | None = None
        self._charged = 0
        self._start = 0
        self._data = b""

    @property
    def work_bytes(self) -> int:
        """The work that the file has caused: bytes returned, bytes unpacked, and charges."""
        return self.handed_bytes + self._charged + self.source.unpacked_bytes

    @property
    def exhausted(self) -> bool:
        """Whether the limit of work is reached."""
        return self.work_limit is not None and self.work_bytes >= self.work_limit

    def charge(self, size: int) -> None:
        """Count work that is done without `get`."""
        self._charged += size

    def get(self, offset: int, size: int, *, ahead: int | None = None) -> bytes:
        """Up to `size` bytes at `offset`; fewer where the source ends.

        Raises:
            WorkExceeded: The limit of work is reached.
        """
        if self.exhausted:
            raise WorkExceeded(
                f"gave up at byte {offset}: without an index, {self.source.sent_bytes()} bytes may not cost more work",
                offset=offset,
            )
        at = offset - self._start
        if at < 0 or at + size > len(self._data):
            self._start, at = offset, 0
            more = self.source.ahead_bytes if ahead is None else ahead
            self._data = self.source.read_at(offset, max(size, more))
        found = self._data[at : at + size]
        self.handed_bytes += len(found)
        self._charged += _CALL_BYTES
        return found

    def forget(self) -> None:
        """Drop cached bytes: the source may have grown."""
        self._data = b""
