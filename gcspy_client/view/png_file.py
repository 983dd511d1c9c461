"""Pictures of Qt as PNG files, under whatever name Python takes: Qt would write a name that is no UTF-8 as another one.

Knows pictures and paths; does not know the content of a picture.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice
from PySide6.QtGui import QImage, QImageWriter

__all__ = ["write_png"]


def write_png(picture: QImage, path: Path) -> None:
    """Write a picture to a file, or over it.

    Args:
        picture: The picture.
        path: The path to write to.

    Raises:
        OSError: The file cannot be written, or there is nothing in the picture.
    """
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    if not QImageWriter(buffer, QByteArray(b"png")).write(picture):
        raise OSError(None, f"{path.name} could not be written: the picture is empty")
    path.write_bytes(bytes(buffer.data().data()))
