"""Hostile names of files: whatever a file system takes."""

from __future__ import annotations

import os
from pathlib import Path

from tests.hostile.corpus import corpus

__all__ = ["file_names"]

_MOST_BYTES = 200
"""A file system takes 255, and endings are to come."""


def file_names(sentinel: Path) -> dict[str, str]:
    """Names by what is hostile in them; they mean the sentinel in its own folder.

    Args:
        sentinel: A picture that must never be opened.
    """
    made = {
        "relative": f'<img src="{sentinel.name}">',
        "quoted": f"'\"><img src={sentinel.name} x='",
        "no text": "not\udcffUTF-8\udc80",
        "option": "--version -o x",
        "dots": "..%2f..%2f$(id)`id`",
    }
    return made | {kind: _name(text) for kind, text in corpus(sentinel).items()}


def _name(text: str) -> str:
    raw = text.replace("/", "\u2215").replace("\0", "").encode("utf-8", "replace")
    # A name cut in the middle of a character is not valid UTF-8; file systems accept such names too.
    return os.fsdecode(raw[:_MOST_BYTES])
