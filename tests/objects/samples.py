"""The sample traces that AntTracks' own VM wrote, with what their programs and their VM said: found once, opened for each test."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import gcspy_objects

__all__ = ["NAMES", "path_of", "text_of"]

NAMES = ("churn", "compressed", "list", "pointers", "promote", "threads")

_FOLDER = Path(gcspy_objects.__file__).parents[1] / "samples" / "anttracks"


def path_of(name: str) -> Path:
    """Return where a sample is."""
    return _FOLDER / f"{name}.tar.xz"


def text_of(name: str, file: str) -> list[str]:
    """Return the lines of a text file of a sample."""
    with tarfile.open(path_of(name)) as archive:
        member = next(one for one in archive.getmembers() if Path(one.name).name == file)
        found = archive.extractfile(member)
        assert found is not None
        return io.TextIOWrapper(found, "utf-8").read().splitlines()
