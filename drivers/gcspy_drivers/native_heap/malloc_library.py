"""The library in C that walks chunks and follows lists, loaded once."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from gcspy_compiled.libraries import Library, find_library, load_library

__all__ = ["FOLDER", "NAME", "malloc_library"]

NAME = "gcspy-malloc"
FOLDER = Path(__file__).parent / "compiled"


@cache
def malloc_library() -> Library | None:
    """Return the library; None: it was not built, or libraries are disabled (``GCSPY_C_CODE=no``). Decided once in a process."""
    path = find_library(NAME, FOLDER)
    return None if path is None else load_library(path)
