"""Libraries in C: which one belongs to its sources, and loading it.

``hatch_build.py`` builds them when gcspy is installed. The name of a library contains a hash of its
sources, which lie beside it: so Python never calls functions of other sources than those it was
written for, even where somebody changed them and did not install again. Without a library the
caller does the same in Python. Where only a build of other sources is found, a warning says so.

Knows names of files; does not know what a library computes. Loads neither numpy nor ctypes before a
library is loaded.
"""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import ctypes

__all__ = ["HEADERS", "VARIABLE", "Library", "find_library", "hash_of_sources", "load_library"]

VARIABLE: Final = "GCSPY_C_CODE"
"""Set to ``no`` to disable libraries in C; loops that numba compiles have a variable of their own."""

HEADERS: Final = Path(__file__).parent
"""Folder of headers that several libraries include."""

_HASH_DIGITS = 12


class Library(NamedTuple):
    """A loaded library, twice: the same functions, called with or without the interpreter's lock.

    Attributes:
        held: Keeps the lock during a call: for calls of some microseconds, since a thread that
            gives it up may have to wait milliseconds for it.
        released: Gives it up during a call.
    """

    held: ctypes.PyDLL
    released: ctypes.CDLL


def hash_of_sources(folder: Path) -> str:
    """Return the hash of the C sources in a folder and of the headers beside this module, as in the names of libraries built of them."""
    state = hashlib.sha256()
    for path in [*_sources(folder), *_sources(HEADERS)]:
        state.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return state.hexdigest()[:_HASH_DIGITS]


def _sources(folder: Path) -> list[Path]:
    return sorted(one for one in folder.iterdir() if one.suffix in (".c", ".h"))


def find_library(name: str, folder: Path) -> Path | None:
    """Return the library that was built of the sources in a folder.

    Args:
        name: Beginning of its file name.
        folder: Folder of the sources and the library.

    Returns:
        None: it was not built, or of other sources, or libraries are disabled (``GCSPY_C_CODE=no``).
    """
    if os.environ.get(VARIABLE) == "no":
        return None
    try:
        built = next(iter(sorted(folder.glob(f"{name}-{hash_of_sources(folder)}-*.so"))), None)
        if built is None and any(folder.glob(f"{name}-*-*.so")):
            _warn_of_old_build(name)
    except OSError:  # installed as an archive, say
        return None
    return built


@cache
def _warn_of_old_build(name: str) -> None:
    """Tell, once for each library, that Python computes what an older build would have: nobody would notice but by the clock."""
    import logging  # only here: a command that starts in 60 ms does without

    logging.getLogger(__name__).warning(
        "%s was built from other sources than these, so slower Python code replaces it: install gcspy again "
        "(in a source tree: .venv/bin/python hatch_build.py)",
        name,
    )


def load_library(path: Path) -> Library | None:
    """Load a library; None if the system refuses: it was built for another kind of machine."""
    import ctypes  # not before it is needed

    try:
        return Library(ctypes.PyDLL(str(path)), ctypes.CDLL(str(path)))
    except OSError:
        return None
