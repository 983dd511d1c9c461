"""`TraceCache`: what was found out about traces, kept for later questions: the index of each, and the lives of its objects.

    ~/.cache/gcspy/traces/<identity>/index, checkpoints    of `gcspy_objects.heap.index`
                                    /lives/, *.parquet     of `gcspy_objects.analysis.store`
                                    /lock, lives-complete

An entry is valid as long as the trace's files are the same: their device, number, size, and times of last change.
Entries that are in use have a shared lock, and stay. One process at a time writes into an entry.

`GCSPY_CACHE` names another folder, or is "no". `GCSPY_CACHE_BYTES` limits it; the default is a tenth of the free space of the disk, and 10 GiB at most.

Knows files; does not know what is in them.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from gcspy_protocol.errors import CommandError

__all__ = ["CacheEntry", "TraceCache", "trace_identity"]

_VERSION: Final = "1"
_MOST_BYTES: Final = 10 << 30
_DISK_SHARE: Final = 10
"""The default limit is one part in this many of the free space that the disk would have without the cache."""
_MOST_FILES: Final = 10_000
_SETTLED_SECS: Final = 2.0
"""A file that was changed later than this before may be changed again within the same tick of its clock, or is still written."""
_LEFT_SECS: Final = 3600.0
"""A folder that is made or removed for longer than this was left by somebody who was killed."""


def trace_identity(path: Path) -> str | None:
    """Return what a trace at a path is known by: another text as soon as one of its files changes; None: it is being written, or no file.

    A file named alone has neighbours that belong to it (AntTracks' symbols): those of its folder count, too.
    """
    try:
        folder = path if path.is_dir() else path.parent
        files = sorted(one for one in folder.iterdir() if one.is_file())
        if not path.is_dir() and (len(files) > _MOST_FILES or not _has_neighbours(path)):
            files = [path]
        if not files or len(files) > _MOST_FILES:
            return None
        states = [(one.name, one.stat()) for one in files]
    except OSError:
        return None
    if time.time() - max(one.st_mtime for _, one in states) < _SETTLED_SECS:
        return None
    facts = [
        (name, one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns)
        for name, one in states
    ]
    named = "" if path.is_dir() else path.name
    return hashlib.sha256(repr((_VERSION, named, facts)).encode()).hexdigest()[:32]


def _has_neighbours(path: Path) -> bool:
    """Whether other files belong to a trace file: an archive and a trace of ours have none."""
    return "".join(path.suffixes[-2:]) not in (".tar.xz", ".tar.gz") and path.suffix not in (
        ".gctrace",
        ".tar",
        ".tgz",
        ".txz",
    )


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """The folder of a trace, which stays while it is in use.

    Attributes:
        folder: It.
    """

    folder: Path

    @property
    def has_lives(self) -> bool:
        """Whether all lives were gathered."""
        return (self.folder / "lives-complete").exists()

    @contextmanager
    def writer(self) -> Iterator[bool]:
        """Write into the folder while the block runs; yields False if another process does so already."""
        with (self.folder / "writer").open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield False
                return
            yield True

    def complete_lives(self) -> None:
        """Note that all lives are there."""
        (self.folder / "lives-complete").touch()

    def clear_lives(self) -> None:
        """Remove lives, complete or not."""
        (self.folder / "lives-complete").unlink(missing_ok=True)
        shutil.rmtree(self.folder / "lives", ignore_errors=True)


class TraceCache:
    """Folders of traces.

    Args:
        folder: Has them; None: the user's folder for caches.
        most_bytes: Maximum of all together; the one that is in use may be larger. None: that of the environment, or the default.
    """

    def __init__(self, folder: Path | None = None, most_bytes: int | None = None) -> None:
        self.folder = folder or _default_folder()
        self._most_bytes = most_bytes if most_bytes is not None else _default_bytes()

    @classmethod
    def of_user(cls) -> TraceCache | None:
        """Return the user's cache; None: the user wants none."""
        return None if os.environ.get("GCSPY_CACHE") == "no" else cls()

    @contextmanager
    def entry(self, identity: str) -> Iterator[CacheEntry | None]:
        """The folder of a trace, an empty one if there was none; None: there can be no folder. It stays while the block runs."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if self.folder.stat().st_uid != os.geteuid():
                yield None
                return
            file = self._locked(identity)
        except OSError:
            yield None
            return
        with file:
            os.utime(file.fileno())
            yield CacheEntry(self.folder / identity)

    def make_room(self) -> None:
        """Remove the entries that were not used for longest, until the others have fewer than the maximum of bytes."""
        rows = []
        for one in self.folder.iterdir() if self.folder.is_dir() else ():
            with suppress(OSError):
                if one.name.startswith((".old-", ".new-")):
                    if time.time() - one.stat().st_mtime > _LEFT_SECS:
                        shutil.rmtree(one, ignore_errors=True)
                    continue
                rows.append(((one / "lock").stat().st_mtime, _bytes_of(one), one))
        rows.sort(reverse=True)
        total, most = 0, self._most(sum(size for _, size, _ in rows))
        for _, size, one in rows:
            total += size
            if total > most and self._remove(one):
                total -= size

    def _most(self, taken: int) -> int:
        """Return the maximum of bytes; `taken`: what the cache has now."""
        if self._most_bytes is not None:
            return self._most_bytes
        try:
            free = shutil.disk_usage(self.folder).free
        except OSError:
            return _MOST_BYTES
        return min(_MOST_BYTES, (free + taken) // _DISK_SHARE)

    def forget(self, identity: str) -> bool:
        """Remove the folder of a trace; return whether there was one that nobody used."""
        return self._remove(self.folder / identity)

    def _locked(self, identity: str) -> IO[bytes]:
        """Return the open lock file of an entry, with a shared lock."""
        place = self.folder / identity
        while True:
            if not place.is_dir():
                made = Path(tempfile.mkdtemp(prefix=".new-", dir=self.folder))
                (made / "lock").touch()
                try:
                    made.rename(place)
                except OSError:  # another process was first
                    shutil.rmtree(made, ignore_errors=True)
            file = (place / "lock").open("r+b")
            fcntl.flock(file, fcntl.LOCK_SH)
            # It may have been removed between opening and locking it.
            with suppress(OSError):
                if os.fstat(file.fileno()).st_ino == (place / "lock").stat().st_ino:
                    return file
            file.close()

    def _remove(self, place: Path) -> bool:
        try:
            with (place / "lock").open("r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                gone = Path(tempfile.mkdtemp(prefix=".old-", dir=self.folder))
                place.rename(gone / "entry")
        except OSError:
            return False
        shutil.rmtree(gone, ignore_errors=True)
        return True


def _default_folder() -> Path:
    named = os.environ.get("GCSPY_CACHE")
    if named:
        return Path(named)
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "gcspy" / "traces"


def _default_bytes() -> int | None:
    text = os.environ.get("GCSPY_CACHE_BYTES", "")
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise CommandError(f"GCSPY_CACHE_BYTES is {text!r}: write a number of bytes")
    return int(text)


def _bytes_of(folder: Path) -> int:
    return sum(one.stat().st_blocks * 512 for one in folder.rglob("*") if one.is_file())
