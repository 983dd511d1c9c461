"""Names of places in a source without the folders of its file, for where there is little room.

Knows texts only.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["short_place"]

_FOLDERS: Final = re.compile(r"\((?:[^()/]*/)+(?=[^()/]+\))")


def short_place(name: str) -> str:
    """``f (…/a.py) @ 3`` for ``f (/usr/lib/a.py) @ 3``; other names stay as they are."""
    return _FOLDERS.sub("(…/", name)
