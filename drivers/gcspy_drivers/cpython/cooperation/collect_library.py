"""Libraries in C for the target: with which a stub records events, and through which a program that runs takes a stub; where they are, if they were built.

Without the first the program waits at each event while it is read. Knows names; does not know what is in them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gcspy_compiled.libraries import find_library

__all__ = ["collect_library", "entry_library"]

_FOLDER: Final = Path(__file__).parent / "compiled"
_ENTRY: Final = Path(__file__).parent / "entry"


def collect_library() -> str:
    """Return the path of the library; empty: it was not built, or machine code is disabled."""
    return str(find_library("gcspy-collect", _FOLDER) or "")


def entry_library() -> str:
    """Return the path of the library that has Python run a file; empty: it was not built, or machine code is disabled."""
    return str(find_library("gcspy-entry", _ENTRY) or "")
