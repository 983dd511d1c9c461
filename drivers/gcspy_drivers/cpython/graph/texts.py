"""`text_at`: a ``str`` of the target, from a copy of its memory; `text_of_bytes_at`: a text of C code.

Source: CPython 3.9 to 3.15 Include/cpython/unicodeobject.h.
"""

from __future__ import annotations

from typing import Final

from gcspy_drivers.cpython.graph.memory_copy import MemoryCopy
from gcspy_drivers.cpython.layouts import ObjectLayout

__all__ = ["MOST_CHARACTERS", "text_at", "text_of_bytes_at"]

MOST_CHARACTERS: Final = 200
"""Longer texts are cut."""

_ENCODINGS: Final = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}


def text_at(copy: MemoryCopy, layout: ObjectLayout, address: int) -> str | None:
    """Read a text.

    Args:
        copy: The memory.
        layout: Layout of objects.
        address: Address of the ``str``.

    Returns:
        The text, cut to `MOST_CHARACTERS`; None if it is not one or was not copied.
    """
    length, flags = copy.word(address + 16), copy.word(address + 32)
    if length is None or flags is None or length < 0:
        return None
    width, compact, is_ascii = (flags >> 2) & 7, (flags >> 5) & 1, (flags >> 6) & 1
    encoding = _ENCODINGS.get(width)
    if encoding is None:
        return None
    if compact:
        begin = address + (layout.ascii_at if is_ascii else layout.text_at)
    else:
        begin = copy.word(address + layout.text_at) or 0
    data = copy.bytes_at(begin, min(length, MOST_CHARACTERS) * width)
    return None if data is None else data.decode(encoding, "replace")


def text_of_bytes_at(copy: MemoryCopy, address: int) -> str | None:
    """Read a text in UTF-8 that ends with a zero.

    Args:
        copy: The memory.
        address: Address of its first byte.

    Returns:
        The text, cut to `MOST_CHARACTERS` bytes; None if it was not copied.
    """
    data = b""
    while len(data) < MOST_CHARACTERS and b"\0" not in data:
        # Never more than a word at once: it may be the last that was copied.
        word = copy.bytes_at(address + len(data), 8 - (address + len(data)) % 8)
        if word is None:
            return None
        data += word
    return data.partition(b"\0")[0][:MOST_CHARACTERS].decode("utf-8", "replace")
