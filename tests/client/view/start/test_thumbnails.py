"""Pictures of recent sessions: bounded, safe from hostile names and files, and never an error."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QColor, QImage

from gcspy_client.view.png_file import write_png
from gcspy_client.view.start.thumbnails import MOST_BYTES, MOST_FILES, THUMBNAIL, ThumbnailStore


def picture(colour: str, size: QSize | None = None) -> QImage:
    made = QImage(size or QSize(1200, 800), QImage.Format.Format_ARGB32)
    made.fill(QColor(colour))
    return made


@pytest.mark.parametrize(
    "name",
    ["a.gcspy", "../../etc/passwd", "/", "x\0y", "\udce9\udcff", "a\nb", "n" * 9000, "con", ""],
)
def test_any_name_has_a_picture_of_its_own_inside_the_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "pictures"
    store = ThumbnailStore(folder)
    store.store("other", picture("blue"))
    store.store(name, picture("red"))
    found = store.picture(name)
    assert found is not None
    assert found.size() == THUMBNAIL
    assert found.pixelColor(5, 5) == QColor("red")
    assert len(list(folder.iterdir())) == 2
    assert list(tmp_path.iterdir()) == [folder]
    assert all(file.stat().st_mode & 0o077 == 0 for file in folder.iterdir())


def test_the_oldest_pictures_go(tmp_path: Path) -> None:
    store = ThumbnailStore(tmp_path)
    for number in range(MOST_FILES + 5):
        store.store(f"{number}", picture("red"))
        (newest,) = [path for path in tmp_path.iterdir() if path.stat().st_mtime_ns > 10**15]
        os.utime(newest, ns=(number, number))
    assert len(list(tmp_path.iterdir())) <= MOST_FILES + 1
    assert store.picture("0") is None
    assert store.picture(f"{MOST_FILES + 4}") is not None


def test_a_picture_replaces_the_one_before(tmp_path: Path) -> None:
    store = ThumbnailStore(tmp_path)
    store.store("a", picture("red"))
    store.store("a", picture("blue"))
    found = store.picture("a")
    assert found is not None
    assert found.pixelColor(9, 9) == QColor("blue")
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_that_is_damaged_too_large_a_link_or_a_pipe_is_no_picture(tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    store = ThumbnailStore(folder)
    store.store("a", picture("red"))
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    for bad in (b"", b"GIF89a", whole[:40], whole[:-30], whole + b"x" * MOST_BYTES):
        file.write_bytes(bad)
        found = store.picture("a")
        assert found is None or found.size() == THUMBNAIL
    file.write_bytes(whole + b"x" * MOST_BYTES)
    assert store.picture("a") is None
    write_png(picture("red", QSize(4000, 4000)), file)
    assert file.stat().st_size < MOST_BYTES
    assert store.picture("a") is None, "too many pixels for so few bytes"
    elsewhere = tmp_path / "elsewhere.png"
    elsewhere.write_bytes(whole)
    file.unlink()
    file.symlink_to(elsewhere)
    assert store.picture("a") is None
    store.store("a", picture("blue"))
    assert elsewhere.read_bytes() == whole, "a link is replaced, not followed"
    file.unlink()
    os.mkfifo(file)
    assert store.picture("a") is None


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for folder in (file, file / "below", None):
        store = ThumbnailStore(folder)
        store.store("a", picture("red"))
        assert store.picture("a") is None
        store.forget()
    ThumbnailStore(tmp_path).store("a", QImage())
    assert list(tmp_path.iterdir()) == [file]
