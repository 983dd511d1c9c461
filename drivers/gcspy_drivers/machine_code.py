"""Where compiled loops are kept, and whether they are wanted: what drivers that compile some have in common.

What was compiled is kept in ``$XDG_CACHE_HOME/gcspy/numba`` (``~/.cache`` without it). numba believes what it finds there, so it is kept only
in a directory that belongs to us and that nobody else may write; otherwise it is compiled anew for each session. ``GCSPY_MACHINE_CODE=no`` does
without.

Knows nothing of what is compiled, and does not load numba.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

__all__ = ["VARIABLE", "cache_folder"]

VARIABLE: Final = "GCSPY_MACHINE_CODE"
"""Says ``no`` where machine code is not wanted."""


def cache_folder() -> Path | None:
    """Return the folder for what was compiled, made if need be; None where it would not be safe."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(given) if given.startswith("/") else Path("~/.cache").expanduser()
    folder = base / "gcspy" / "numba"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Who may write one of the folders on the way may put another one in its place.
        for each in (folder, folder.parent):
            found = each.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
                return None
        return folder if os.access(folder, os.W_OK | os.X_OK) else None
    except (OSError, RuntimeError):  # no home, or one that cannot be written
        return None
