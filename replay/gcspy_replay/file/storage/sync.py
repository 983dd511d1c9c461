"""Flushes files to the disk periodically, so that written data survives a crash of the machine, and not only of this process.

A write passes bytes to the kernel. A kill of the process does not affect them, but a crash or a
loss of power does, until they are on the disk; Linux writes them there after some thirty seconds.
`fdatasync` waits for the disk, milliseconds to seconds, so a separate thread calls it while events
are being written.

Knows files; does not know their content.
"""

from __future__ import annotations

import os
import threading
from io import FileIO
from pathlib import Path

from gcspy_protocol.errors import RecordingError

__all__ = ["Syncer"]


class Syncer:
    """Flushes the files of one store to the disk, and closes finished ones.

    Args:
        every_secs: How often; 0: never, and no thread.
    """

    def __init__(self, every_secs: float) -> None:
        self._every_secs = every_secs
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._current: FileIO | None = None
        self._finished: list[FileIO] = []
        self._folders: set[Path] = set()
        self._ending = False
        self._error: RecordingError | None = None

    def created(self, path: Path) -> None:
        """A file has a name now: the folder is brought to the disk with it."""
        if self._every_secs:
            with self._changed:
                self._folders.add(path.parent)

    def wrote(self, file: FileIO) -> None:
        """There is something new in the file, which is to be brought to the disk within the time.

        Raises:
            RecordingError: Earlier data cannot be flushed.
        """
        if not self._every_secs:
            return
        with self._changed:
            self._current = file
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="gcspy-sync", daemon=True)
                self._thread.start()
            self._complain()

    def finish(self, file: FileIO) -> None:
        """Close a file in which nothing more will be written, once it is on the disk."""
        with self._changed:
            if self._thread is None:
                file.close()
                return
            self._current = None
            self._finished.append(file)
            self._changed.notify_all()

    def close(self) -> None:
        """Wait until everything is on the disk.

        Raises:
            RecordingError: It cannot be brought there.
        """
        thread = self._thread
        if thread is None:
            return
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        thread.join()
        self._thread = None
        with self._changed:
            self._complain()

    def _complain(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ending or self._finished, self._every_secs)
                ending = self._ending
                finished, self._finished = self._finished, []
                folders, self._folders = self._folders, set()
                current, self._current = self._current, None
            for file in finished:
                self._bring(file.fileno(), str(file.name))
                file.close()
            if current is not None:
                self._bring(
                    current.fileno(), str(current.name)
                )  # open still: only this thread closes
            for folder in folders:
                self._bring_folder(folder)
            if ending:
                return

    def _bring_folder(self, folder: Path) -> None:
        if os.name == "nt":
            return  # a folder cannot be opened there
        try:
            number = os.open(folder, os.O_RDONLY)
        except OSError:
            return  # gone, or not ours to read: the files themselves are what counts
        try:
            self._bring(number, str(folder))
        finally:
            os.close(number)

    def _bring(self, number: int, name: str) -> None:
        try:
            if hasattr(os, "fdatasync"):
                os.fdatasync(number)
            else:
                os.fsync(number)
        except OSError as error:
            with self._changed:
                self._error = RecordingError(
                    f"cannot flush {name} to the disk: {error.strerror or error}; its latest seconds would be lost in a crash of the machine"
                )
