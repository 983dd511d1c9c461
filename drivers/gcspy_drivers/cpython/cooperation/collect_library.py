"""The library in C with which a stub records events: where it is, if it was built.

Without it the program waits at each event while it is read. Knows a name; does not know what is in it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gcspy_compiled.libraries import find_library

__all__ = ["collect_library"]

_FOLDER: Final = Path(__file__).parent / "compiled"


def collect_library() -> str:
    """Return the path of the library; empty: it was not built, or machine code is disabled."""
    return str(find_library("gcspy-collect", _FOLDER) or "")
