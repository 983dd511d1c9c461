"""The recordings that are part of GCspy, for first experiments and for each lesson.

Knows files; does not open them. In a wheel they are beside this module, in a source tree in
`replay/samples/`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["Sample", "lesson_recording", "samples"]


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample recording.

    Attributes:
        path: Path of the file.
        title: A few words.
        about: A sentence.
    """

    path: Path
    title: str
    about: str


_ABOUT = {
    "demo-cpython-3.11.gcspy": (
        "A Python service",
        "A small web service on CPython 3.11, its first 20 s: the cache fills, and an import allocates arenas and frees most of them.",
    ),
    "semispace.gcspy": (
        "A semi-space collector",
        "A simulated collector, 50 collections: the two halves of its heap alternate.",
    ),
}


def samples() -> tuple[Sample, ...]:
    """The installed samples, in a good order for newcomers."""
    folder = _folder()
    found = ((folder / name, *told) for name, told in _ABOUT.items())
    return tuple(Sample(*one) for one in found if one[0].is_file())


def lesson_recording(name: str) -> Path | None:
    """The recording of the lesson of this name; None: none is installed."""
    path = _folder() / "lessons" / f"{name}.gcspy.zst"
    return path if path.is_file() else None


def _folder() -> Path:
    here = Path(__file__).resolve().parent
    installed = here / "sample_files"
    return installed if installed.is_dir() else here.parent / "samples"
