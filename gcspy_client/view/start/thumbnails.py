"""Small pictures of earlier sessions, for the list of recent ones; stored in the user's cache folder.

A file is named by a hash of the opened source, so no name of a recording gets into a path. Number
and size of the files are limited, and a file that is damaged, too large or a link is ignored.
Nothing here raises: a cache that cannot be written has no pictures.

Knows images and files; does not know sessions.
"""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QSize, Qt
from PySide6.QtGui import QImage, QImageReader, QImageWriter

__all__ = ["MOST_BYTES", "MOST_FILES", "THUMBNAIL", "ThumbnailStore"]

THUMBNAIL = QSize(256, 144)
"""Size of a picture, in pixels."""

MOST_FILES = 24
"""As many as are listed as recent: recordings and servers."""

MOST_BYTES = 256 << 10
"""Maximum size of a file; a picture of this size without compression has 147 KB."""

_SUFFIX = ".png"
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)  # not on all systems
_BINARY = getattr(os, "O_BINARY", 0)


class ThumbnailStore:
    """The pictures of a user.

    Args:
        folder: Where they are kept; None: nowhere.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def store(self, what: str, picture: QImage) -> None:
        """Keep the upper left part of a picture, scaled, instead of the one before.

        Args:
            what: Identification of the opened source; only its hash is stored.
            picture: Picture of the session.
        """
        if self._folder is None or picture.isNull():
            return
        data = _encoded(picture)
        if not data or len(data) > MOST_BYTES:
            return
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self._path(self._folder, what)
            fresh = path.with_suffix(f".{os.getpid()}")
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW | _BINARY
            try:
                with open(os.open(fresh, flags, 0o600), "wb") as file:
                    file.write(data)
                os.replace(fresh, path)
            finally:
                fresh.unlink(missing_ok=True)
            self._prune()

    def picture(self, what: str) -> QImage | None:
        """The picture of what was opened; None: there is none, or none that can be read."""
        if self._folder is None:
            return None
        try:
            # Without O_NONBLOCK, a named pipe in its place would block the window.
            flags = os.O_RDONLY | _NO_FOLLOW | _BINARY | getattr(os, "O_NONBLOCK", 0)
            with open(os.open(self._path(self._folder, what), flags), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return None
                data = file.read(MOST_BYTES + 1)
        except OSError:
            return None
        return _decoded(data) if len(data) <= MOST_BYTES else None

    def forget(self) -> None:
        """Delete all pictures."""
        for path in self._files():
            with suppress(OSError):
                path.unlink()

    def _path(self, folder: Path, what: str) -> Path:
        digest = hashlib.sha256(what.encode("utf-8", "surrogatepass")).hexdigest()
        return folder / f"{digest[:40]}{_SUFFIX}"

    def _files(self) -> list[Path]:
        if self._folder is None:
            return []
        try:
            return [one for one in self._folder.iterdir() if one.suffix == _SUFFIX]
        except OSError:
            return []

    def _prune(self) -> None:
        """Delete the oldest pictures beyond the limit."""

        def age(path: Path) -> float:
            try:
                return path.lstat().st_mtime_ns
            except OSError:
                return 0.0

        for path in sorted(self._files(), key=age, reverse=True)[MOST_FILES:]:
            with suppress(OSError):
                path.unlink()


def _encoded(picture: QImage) -> bytes:
    scaled = picture.scaled(
        THUMBNAIL,
        Qt.AspectRatioMode.KeepAspectRatioByExpanding,
        Qt.TransformationMode.SmoothTransformation,
    )
    scaled.setDevicePixelRatio(1)
    cut = scaled.copy(0, 0, THUMBNAIL.width(), THUMBNAIL.height())
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    plain = cut.convertToFormat(QImage.Format.Format_RGB32)
    written = QImageWriter(buffer, QByteArray(b"png")).write(plain)
    return bytes(buffer.data().data()) if written else b""


def _decoded(data: bytes) -> QImage | None:
    """Read a picture; its size is checked before it is decoded."""
    buffer = QBuffer()
    buffer.setData(QByteArray(data))
    buffer.open(QIODevice.OpenModeFlag.ReadOnly)
    reader = QImageReader(buffer, QByteArray(b"png"))
    reader.setAutoDetectImageFormat(False)
    if reader.size() != THUMBNAIL:
        return None
    found = reader.read()
    return None if found.isNull() else found
