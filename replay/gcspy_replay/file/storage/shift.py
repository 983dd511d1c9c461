"""Time shift: stores the messages of a live client, so that it can look back.

It has parts like a ring: the latest in memory up to a budget, older ones in temporary files up to
another, the oldest dropped. A part moves to its file when memory is needed, a few megabytes at a
time, so that no thread waits long for it.

Knows bytes; does not know their meaning.
"""

from __future__ import annotations

import tempfile
import threading
from bisect import bisect_right
from typing import IO

from gcspy_protocol.errors import RecordingError

from gcspy_replay.file.parts.source import ByteSource
from gcspy_replay.file.reader import Recording

__all__ = ["ShiftStore"]

_PARTS = 32
"""Number of parts in the memory budget: moving one to its file takes milliseconds."""

_FILES = 128
"""Number of parts in the disk budget, each an open file, unless the next rule prevents it: some systems allow a process 256."""

_FEWEST_PARTS = 8
"""But of the memory budget, which is never exceeded, no more than an eighth is moved or given up at a time."""

_LEAST_PART_BYTES = 1 << 16
_PIECE_BYTES = 1 << 16


class _Pieces:
    """Bytes that grow at their end without being moved: one large array would be copied each time it does.

    Attributes:
        pieces: The bytes, in order; small ones that came one after the other are one piece.
    """

    def __init__(self) -> None:
        self.pieces: list[bytes | bytearray] = []
        self._starts: list[int] = []
        self._size = 0

    def append(self, data: bytes) -> None:
        last = self.pieces[-1] if self.pieces else b""
        if isinstance(last, bytearray) and len(last) + len(data) <= _PIECE_BYTES:
            last += data
        else:
            small = len(data) <= _PIECE_BYTES // 2
            self.pieces.append(bytearray(data) if small else data)
            self._starts.append(self._size)
        self._size += len(data)

    def read_at(self, offset: int, size: int) -> bytes:
        found = []
        i = bisect_right(self._starts, offset) - 1
        while size > 0 and 0 <= i < len(self.pieces):
            at = offset - self._starts[i]
            part = bytes(memoryview(self.pieces[i])[at : at + size])
            found.append(part)
            offset, size, i = offset + len(part), size - len(part), i + 1
        return b"".join(found)


class _ShiftPart:
    """A part, in memory or in a temporary file.

    One thread writes. Its lock is held while bytes are added or read, and while memory is freed for
    the file that was written before: a reader of memory never waits for a disk.

    Args:
        number: Number of the part.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.size = 0
        self._lock = threading.Lock()
        self._memory: _Pieces | None = _Pieces()
        self._file: IO[bytes] | None = None
        self._gone = False

    @property
    def memory_bytes(self) -> int:
        return 0 if self._memory is None else self.size

    @property
    def disk_bytes(self) -> int:
        return 0 if self._file is None else self.size

    def append(self, data: bytes) -> None:
        with self._lock:
            if self._memory is not None:
                self._memory.append(data)
            else:
                assert self._file is not None
                self._file.seek(self.size)
                _write(self._file, data)
            self.size += len(data)

    def spill(self, folder: str | None) -> None:
        """Move to a temporary file, which has no name where the system allows that."""
        memory = self._memory
        if memory is None:
            return
        file = tempfile.TemporaryFile(dir=folder, prefix="gcspy-shift-", buffering=0)  # noqa: SIM115  # lives as long as the part
        try:
            for piece in memory.pieces:
                _write(file, piece)
        except OSError:
            file.close()
            raise
        with self._lock:
            self._file, self._memory = file, None

    def read_at(self, offset: int, size: int) -> bytes:
        with self._lock:
            if self._gone:
                raise RecordingError(
                    "the requested events are no longer stored: they are older than the time shift's budget"
                )
            if self._memory is not None:
                return self._memory.read_at(offset, size)
            assert self._file is not None
            try:
                return _read(self._file, offset, min(size, max(0, self.size - offset)))
            except OSError as error:
                raise RecordingError(
                    f"the time shift cannot be read: {error.strerror or error}"
                ) from error

    def give_up(self) -> None:
        with self._lock:
            self._gone = True
            self._memory = None
            if self._file is not None:
                self._file.close()
                self._file = None


def _write(file: IO[bytes], data: bytes | bytearray) -> None:
    with memoryview(data) as whole:
        at = 0
        while at < len(whole):  # an unbuffered write may take less than all
            at += file.write(whole[at:]) or 0


def _read(file: IO[bytes], offset: int, size: int) -> bytes:
    file.seek(offset)
    found = file.read(size)
    while len(found) < size and (more := file.read(size - len(found))):
        found += more
    return found


class _ShiftSource(ByteSource):
    """A part as a reader sees it."""

    def __init__(self, part: _ShiftPart) -> None:
        self._part = part

    @property
    def name(self) -> str:
        return f"time shift, part {self._part.number}"

    def size(self) -> int:
        return self._part.size

    def read_at(self, offset: int, size: int) -> bytes:
        return self._part.read_at(offset, size)

    def again(self) -> ByteSource:
        return _ShiftSource(self._part)

    def close(self) -> None:
        """The store owns the part."""


class ShiftStore:
    """Keeps a writer's data within two budgets; a `Store`.

    One thread writes; any may read and ask.

    Args:
        memory_bytes: Most bytes in memory, always.
        disk_bytes: Most bytes in temporary files; 0: none, so that the oldest is given up when memory is full.
        folder: Folder for temporary files; by default the system's.
    """

    def __init__(self, *, memory_bytes: int, disk_bytes: int, folder: str | None = None) -> None:
        self._memory_budget, self._disk_budget, self._folder = memory_bytes, disk_bytes, folder
        self._parts: list[
            _ShiftPart
        ] = []  # replaced when it changes, so that other threads may read it at any time
        self._peak = 0

    @property
    def memory_bytes(self) -> int:
        """Bytes in memory now."""
        return sum(part.memory_bytes for part in self._parts)

    def set_budgets(self, *, memory_bytes: int, disk_bytes: int) -> None:
        """Change the budgets for the following bytes; from any thread."""
        self._memory_budget, self._disk_budget = memory_bytes, disk_bytes

    @property
    def peak_memory_bytes(self) -> int:
        """Most bytes in memory at any time."""
        return self._peak

    @property
    def disk_bytes(self) -> int:
        """Bytes in temporary files now."""
        return sum(part.disk_bytes for part in self._parts)

    @property
    def oldest_part(self) -> int | None:
        """Number of the oldest part that is kept; None when nothing is."""
        parts = self._parts
        return parts[0].number if parts else None

    def begin(self, part: int) -> None:
        """A new part begins."""
        self._parts = [*self._parts, _ShiftPart(part)]

    def append(self, data: bytes, *, time_nanos: int) -> None:
        """Keep bytes of the latest part, after room was made for them.

        Raises:
            RecordingError: Temporary files cannot be written.
        """
        try:
            self._make_room(len(data))
            self._parts[-1].append(data)
        except OSError as error:
            raise RecordingError(
                f"the time shift cannot be stored: {error.strerror or error}"
            ) from error
        self._peak = max(self._peak, self.memory_bytes)

    def _make_room(self, more: int) -> None:
        for part in self._parts:
            if self.memory_bytes + more <= self._memory_budget:
                break
            if part.memory_bytes or part is self._parts[-1]:
                if self._disk_budget:
                    self._make_disk_room(part.size)
                    part.spill(self._folder)
                elif part is not self._parts[-1]:
                    self._give_up(part)
        if self._disk_budget:
            self._make_disk_room(0)

    def _make_disk_room(self, more: int) -> None:
        # The latest part stays, whatever it takes: without it there would be nothing to write to.
        while (
            len(self._parts) > 1
            and self._parts[0].disk_bytes
            and self.disk_bytes + more > self._disk_budget
        ):
            self._give_up(self._parts[0])

    def give_up_oldest(self) -> None:
        """Drop the oldest part, unless it is the latest: the writer's thread only."""
        if len(self._parts) > 1:
            self._give_up(self._parts[0])

    def _give_up(self, part: _ShiftPart) -> None:
        self._parts = [other for other in self._parts if other is not part]
        part.give_up()

    def is_full(self, *, part_bytes: int) -> bool:
        """When the part has the size that the budgets imply: a thirty-second of the memory budget, more if the disk budget is large."""
        size = max(
            self._memory_budget // _PARTS,
            min(self._disk_budget // _FILES, self._memory_budget // _FEWEST_PARTS),
        )
        return part_bytes >= max(_LEAST_PART_BYTES, size)

    def end(self) -> None:
        """The part is finished; it stays."""

    def close(self) -> None:
        """Nothing more will be written; the data can be read until `discard`."""

    def discard(self) -> None:
        """Give everything back."""
        for part in self._parts:
            self._give_up(part)

    def sources(self) -> list[ByteSource]:
        """The parts that are kept now."""
        return [_ShiftSource(part) for part in self._parts if part.size]

    def recording(self) -> Recording:
        """The stored data, to be read while it grows: call its `refresh` for new data.

        Raises:
            RecordingError: Nothing was kept yet.
        """
        return Recording(self.sources(), catalogue=self.sources)
