"""The destination of a recording: checked before anything is attached, created when there is data to write.

Knows names of files; does not know their content. The writer is loaded when it is needed, so that
an impossible name is reported at once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gcspy_protocol.errors import CommandError

from gcspy.output.quantities import Kept

if TYPE_CHECKING:
    from gcspy_replay.file import Sidecar, Store

__all__ = ["Destination"]


@dataclass(kw_only=True)
class Destination:
    """The destination of a recording: a file, several by size, or a folder that keeps the latest.

    Attributes:
        path: Of the file, of the first of several, or of the folder.
        split_bytes: Size at which a file is followed by another; None: one file.
        keep: The limit of the folder; None: everything is kept.
        replace: Whether an existing recording may be replaced.
        sync_secs: How often data is flushed to the disk; 0: left to the system.
        address: Of a folder in a storage, in place of the path; it needs a limit.
    """

    path: Path
    split_bytes: int | None = None
    keep: Kept | None = None
    replace: bool = False
    sync_secs: float = 0.0
    address: str | None = None
    _store: Store | None = field(default=None, init=False, repr=False)

    def check(self) -> None:
        """Refuse early what `open` would refuse when the first event has arrived.

        Raises:
            CommandError: A recording exists and may not be replaced, or its folder does not exist.
        """
        if self.address is not None:
            from gcspy.storage.file_system import file_system_of

            file_system_of(self.address)
            return
        if not self.path.parent.is_dir():
            raise CommandError(
                f"there is no folder {self.path.parent} for {self.path.name}: create it first"
            )
        if self.keep is None and self.path.is_dir():
            raise CommandError(
                f"{self.path} is a folder: name a file; only --keep-last takes a folder"
            )
        if self.keep is not None and self.path.exists() and not self.path.is_dir():
            raise CommandError(f"{self.path} is a file: --keep-last needs a folder")
        there = self._there()
        if there and not self.replace:
            raise CommandError(
                f"{there[0]} exists already: name another file, or overwrite it with --force"
            )

    def _there(self) -> list[Path]:
        """Existing files of the recording to be replaced, including the further parts of a split one."""
        if self.keep is not None:
            return self._parts()
        found = [self.path] if self.path.exists() else []
        if self.split_bytes is None or not self.path.parent.is_dir():
            return found
        part = re.compile(re.escape(self.path.stem) + r"\.\d{4,}" + re.escape(self.path.suffix))
        return found + sorted(
            path for path in self.path.parent.iterdir() if part.fullmatch(path.name)
        )

    def _parts(self) -> list[Path]:
        """The parts in the folder."""
        from gcspy_replay.file import SUFFIX

        return sorted(self.path.glob("*" + SUFFIX))

    def open(self) -> Store:
        """Create it; existing files to be replaced are removed now.

        Raises:
            RecordingError: It cannot be created.
        """
        from gcspy_replay.file import FileStore, RingStore, SplitStore

        if self.address is not None:
            from gcspy.storage.remote_store import RemoteRing

            assert self.keep is not None
            self._store = RemoteRing(
                self.address,
                keep_bytes=self.keep.size_bytes,
                keep_nanos=self.keep.nanos,
                replace=self.replace,
            )
            return self._store
        # A part of the previous recording, left beside the new ones, would be taken for one of
        # them.
        if self.replace and (self.keep is not None or self.split_bytes is not None):
            for path in self._there():
                path.unlink(missing_ok=True)
        if self.keep is not None:
            self._store = RingStore(
                self.path,
                keep_bytes=self.keep.size_bytes,
                keep_nanos=self.keep.nanos,
                sync_secs=self.sync_secs,
            )
        elif self.split_bytes is not None:
            self._store = SplitStore(
                self.path,
                part_bytes=self.split_bytes,
                replace=self.replace,
                sync_secs=self.sync_secs,
            )
        else:
            self._store = FileStore(self.path, replace=self.replace, sync_secs=self.sync_secs)
        return self._store

    def put_beside(self, added: Sidecar) -> None:
        """Write bookmarks beside it; nothing if there are none, or no file.

        Raises:
            RecordingError: It cannot be written.
        """
        from gcspy_replay.file import put_sidecar, sidecar_path

        files = [] if self.address is not None else self.files()
        if files and not added.empty:
            put_sidecar(sidecar_path(self.path if self.keep is not None else files[0]), added)

    def sizes(self) -> dict[str, int]:
        """Bytes of each of its existing files, in order."""
        if self.address is not None:
            from gcspy.storage.remote_store import RemoteRing

            return self._store.kept if isinstance(self._store, RemoteRing) else {}
        return {str(path): path.stat().st_size for path in self.files()}

    def files(self) -> list[Path]:
        """Its existing files, in order."""
        if self._store is None:
            return []
        if self.split_bytes is not None:
            return self._there()
        found = self._parts() if self.keep is not None else [self.path]
        return [path for path in found if path.exists()]
