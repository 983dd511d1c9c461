"""The sample trace that is part of GCspy.

Knows files; does not open them. In a wheel it is beside this module, in a source tree in
`objects/samples/`, among others for tests.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

__all__ = ["SampleTrace", "sample_traces"]


class SampleTrace(NamedTuple):
    """A sample trace.

    Attributes:
        path: Path of the archive.
        title: A few words.
        about: A sentence.
    """

    path: Path
    title: str
    about: str


_ABOUT = {
    "promote.tar.xz": (
        "A Java program, object by object",
        "A trace of every allocation and every move: trees are promoted, half of them are dropped, and a full collection finds them dead.",
    ),
}


def sample_traces() -> tuple[SampleTrace, ...]:
    """The traces that are installed."""
    here = Path(__file__).resolve().parent
    installed = here / "sample_files"
    folder = installed if installed.is_dir() else here.parent / "samples" / "anttracks"
    found = ((folder / name, *told) for name, told in _ABOUT.items())
    return tuple(SampleTrace(*one) for one in found if one[0].is_file())
