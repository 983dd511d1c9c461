"""Texts for the original's client, which takes bytes in its platform's character set: ASCII is safe everywhere.

Knows texts only.
"""

from __future__ import annotations

import unicodedata
from typing import Final

__all__ = ["ascii_lines", "ascii_text"]

_LIKE: Final = str.maketrans(
    {"×": "x", "–": "-", "—": "-", "’": "'", "‘": "'", "“": '"', "”": '"', "…": "...", "µ": "u"}
)
_MOST_CHARS: Final = 8000


def ascii_text(text: str) -> str:
    """Return a text in ASCII, on one line; what has no likeness becomes ``?``."""
    return ascii_lines(text).replace("\n", " ")


def ascii_lines(text: str) -> str:
    """Return a text in ASCII that may have several lines."""
    if text.isascii() and text.isprintable() and len(text) <= _MOST_CHARS:
        return text
    plain = unicodedata.normalize("NFKD", text[:_MOST_CHARS].translate(_LIKE))
    kept = "".join(one for one in plain if not unicodedata.combining(one))
    found = kept.encode("ascii", "replace").decode("ascii")
    return "".join(one if one.isprintable() or one == "\n" else "?" for one in found)[:_MOST_CHARS]
