"""The destinations of a recording: one file, several by size, or a ring that keeps the latest.

A recording consists of parts. Each part is a complete recording, so that it can be sent, opened or
deleted alone. That is why a ring is a directory of parts: deleting its oldest file frees the space
at once, on every system, and needs no rewriting that a SIGKILL could interrupt.

Knows files; does not know the meaning of the bytes.
"""

from __future__ import annotations

import os
from collections import deque
from io import FileIO
from pathlib import Path
from typing import Protocol, runtime_checkable

from gcspy_protocol.errors import RecordingError

from gcspy_replay.file.storage.sync import Syncer

__all__ = ["SUFFIX", "FileStore", "MemoryStore", "RingStore", "SplitStore", "Store", "TimedStore"]

SUFFIX = ".gcspy"

_RING_PARTS = 8
"""Fraction of its size that a ring frees at a time: an eighth."""


class Store(Protocol):
    """The destination of a writer. All data of one call is one write of the system."""

    def begin(self, part: int) -> None:
        """A new part begins."""

    def append(self, data: bytes, *, time_nanos: int) -> None:
        """Write bytes of the part; `time_nanos` is that of the latest event in them.

        Raises:
            RecordingError: They cannot be written; earlier data is safe.
        """

    def is_full(self, *, part_bytes: int) -> bool:
        """Whether the next chunk should begin a new part."""

    def end(self) -> None:
        """The part is finished."""

    def close(self) -> None:
        """Nothing more will be written."""


@runtime_checkable
class TimedStore(Protocol):
    """A store whose parts should last a certain time."""

    @property
    def part_nanos(self) -> int | None:
        """How long a part should last; None: that does not matter."""


def _create(path: Path, syncer: Syncer, *, replace: bool) -> FileIO:
    try:
        # Unbuffered: written data is in the kernel, whatever happens to this process.
        file = FileIO(path, "w" if replace else "x")
    except FileExistsError as error:
        raise RecordingError(f"{path} exists already: name another file, or remove it") from error
    except OSError as error:
        raise RecordingError(f"cannot write {path}: {error.strerror or error}") from error
    syncer.created(path)
    return file


def _write(file: FileIO, data: bytes, syncer: Syncer) -> None:
    left = memoryview(data)
    try:
        while left:  # one write, but for a disk that fills up
            left = left[file.write(left) or 0 :]
    except OSError as error:
        raise RecordingError(
            f"cannot continue writing {file.name!s}: {error.strerror or error}; the part already written is readable"
        ) from error
    syncer.wrote(file)


class FileStore:
    """One file.

    Args:
        path: Path of the file.
        replace: Whether a file of that name may be replaced.
        sync_secs: How often it is brought to the disk (`Syncer`); 0: when the system likes.

    Raises:
        RecordingError: It cannot be created, or is there already.
    """

    def __init__(self, path: Path, *, replace: bool = False, sync_secs: float = 0) -> None:
        self.path = path
        self._syncer = Syncer(sync_secs)
        # A file that is to be replaced stays as it is until there is something to replace it with.
        self._file = None if replace else _create(path, self._syncer, replace=False)
        self._for_nothing = not replace  # created here, and nothing written yet

    def begin(self, part: int) -> None:
        """There is one part."""
        if self._file is None:
            self._file = _create(self.path, self._syncer, replace=True)

    def append(self, data: bytes, *, time_nanos: int) -> None:
        """Write to the file."""
        assert self._file is not None, "begin comes first"
        self._for_nothing = False
        _write(self._file, data, self._syncer)

    def is_full(self, *, part_bytes: int) -> bool:
        """Never."""
        return False

    def end(self) -> None:
        """The file is finished with the store."""

    def close(self) -> None:
        """Close the file; one that was created for nothing goes."""
        if self._file is not None:
            self._syncer.finish(self._file)
            self._file = None
            if self._for_nothing:
                self.path.unlink(missing_ok=True)
        self._syncer.close()


class SplitStore:
    """Files of about a given size: ``x.gcspy``, ``x.0001.gcspy``, ``x.0002.gcspy`` and so on.

    Args:
        path: Path of the first.
        part_bytes: A file of this size gets no further chunk.
        replace: Whether files of those names may be replaced.
        sync_secs: How often they are brought to the disk (`Syncer`); 0: when the system likes.
    """

    def __init__(
        self, path: Path, *, part_bytes: int, replace: bool = False, sync_secs: float = 0
    ) -> None:
        self.paths: list[Path] = []
        self._syncer = Syncer(sync_secs)
        self._path, self._part_bytes, self._replace = path, part_bytes, replace
        self._file: FileIO | None = None

    def begin(self, part: int) -> None:
        """Create the next file."""
        path = self._path
        if part:
            path = path.with_name(f"{path.stem}.{part:04d}{path.suffix}")
        self._file = _create(path, self._syncer, replace=self._replace)
        self.paths.append(path)

    def append(self, data: bytes, *, time_nanos: int) -> None:
        """Write to the latest file."""
        assert self._file is not None, "begin comes first"
        _write(self._file, data, self._syncer)

    def is_full(self, *, part_bytes: int) -> bool:
        """When the file has the requested size."""
        return part_bytes >= self._part_bytes

    def end(self) -> None:
        """Close the latest file."""
        if self._file is not None:
            self._syncer.finish(self._file)
            self._file = None

    def close(self) -> None:
        """Close the latest file."""
        self.end()
        self._syncer.close()


class RingStore:
    """A directory that keeps the latest seconds or bytes, in parts of an eighth of that.

    Args:
        folder: Is created; must hold no recording yet.
        keep_bytes: Maximum bytes, including the part that is being written; None: no limit.
        keep_nanos: Minimum time to keep, exceeded by at most an eighth and an event; None: none.
            Time is how far the clock of the events moved, also backwards: that of a playback that
            loops never gets further, and the ring must not grow forever.
        sync_secs: How often the parts are brought to the disk (`Syncer`); 0: when the system likes.

    Raises:
        RecordingError: The folder cannot be created, or holds a recording.
    """

    def __init__(
        self,
        folder: Path,
        *,
        keep_bytes: int | None = None,
        keep_nanos: int | None = None,
        sync_secs: float = 0,
    ) -> None:
        if (keep_bytes or keep_nanos or 0) <= 0:
            raise RecordingError("a ring needs a positive number of bytes or seconds")
        self.folder = folder
        self._syncer = Syncer(sync_secs)
        self._keep_bytes, self._keep_nanos = keep_bytes, keep_nanos
        self._kept: deque[tuple[Path, int, int]] = (
            deque()
        )  # path, bytes, run time at its first event
        self._file: FileIO | None = None
        self._path = folder
        self._bytes = 0
        self._time_nanos: int | None = None
        self._run_nanos = 0  # how far the clock moved in all
        self._part_nanos = 0  # since the first event of the part
        self._first_nanos = 0  # and at that
        try:
            folder.mkdir(parents=True, exist_ok=True)
            taken = any(folder.glob("*" + SUFFIX))
        except OSError as error:
            raise RecordingError(
                f"cannot write to the folder {folder}: {error.strerror or error}"
            ) from error
        if taken:
            raise RecordingError(
                f"the folder {folder} already contains a recording: name another folder, or remove the recording"
            )

    def begin(self, part: int) -> None:
        """Create the next file."""
        self._path = self.folder / f"{part:06d}{SUFFIX}"
        self._file = _create(self._path, self._syncer, replace=False)
        self._bytes = 0
        self._part_nanos = 0
        self._first_nanos = self._run_nanos

    def append(self, data: bytes, *, time_nanos: int) -> None:
        """Write to the latest file, after room was made for it."""
        assert self._file is not None, "begin comes first"
        moved = 0 if self._time_nanos is None else abs(time_nanos - self._time_nanos)
        self._run_nanos += moved
        self._part_nanos += moved if self._bytes else 0
        self._first_nanos = self._first_nanos if self._bytes else self._run_nanos
        self._time_nanos = time_nanos
        self._drop(len(data))
        _write(self._file, data, self._syncer)
        self._bytes += len(data)

    def _drop(self, more: int) -> None:
        """Remove the oldest parts that are not to be kept any longer."""
        held = self._bytes + more + sum(size for _, size, _ in self._kept)
        while self._kept:
            path, size, _ = self._kept[0]
            too_many = self._keep_bytes is not None and held > self._keep_bytes
            # Without it the recording begins with the next part, and that must be long enough ago.
            begins = self._kept[1][2] if len(self._kept) > 1 else self._first_nanos
            too_old = self._keep_nanos is not None and begins <= self._run_nanos - self._keep_nanos
            if not (too_many or too_old):
                return
            try:
                os.unlink(path)
            except OSError:
                return  # the system does not delete a file that is being read: tried again with the next write
            self._kept.popleft()
            held -= size

    def is_full(self, *, part_bytes: int) -> bool:
        """When the part has an eighth of the ring's size."""
        by_size = self._keep_bytes is not None and part_bytes * _RING_PARTS >= self._keep_bytes
        return by_size or (
            self._keep_nanos is not None and self._part_nanos * _RING_PARTS >= self._keep_nanos
        )

    def end(self) -> None:
        """Close the latest file."""
        if self._file is not None:
            self._syncer.finish(self._file)
            self._file = None
            self._kept.append((self._path, self._bytes, self._first_nanos))

    @property
    def part_nanos(self) -> int | None:
        """How long a part should last; None: that does not matter."""
        return None if self._keep_nanos is None else self._keep_nanos // _RING_PARTS

    def close(self) -> None:
        """Close the latest file."""
        self.end()
        self._syncer.close()


class MemoryStore:
    """One part in memory, for tests and for small recordings that go elsewhere.

    Attributes:
        data: The written data.
    """

    def __init__(self) -> None:
        self.data = bytearray()

    def begin(self, part: int) -> None:
        """There is one part."""

    def append(self, data: bytes, *, time_nanos: int) -> None:
        """Keep the bytes."""
        self.data += data

    def is_full(self, *, part_bytes: int) -> bool:
        """Never."""
        return False

    def end(self) -> None:
        """The part is finished."""

    def close(self) -> None:
        """Nothing to release."""
