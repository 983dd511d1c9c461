"""Names of tiles: usually the addresses of a tile, ``[0x200000-0x208000)``, else any text.

Knows texts as bytes, each with its zero byte; does not know spaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["address_names", "addresses_of", "text_names", "texts_of"]

_ADDRESSES: Final = re.compile(
    rb"[ \t]*\[0[xX]([0-9a-fA-F]{1,16})[ \t]*-[ \t]*0[xX]([0-9a-fA-F]{1,16})\)[ \t]*\0"
)


def addresses_of(names: bytes) -> tuple[NDArray[np.uint64], NDArray[np.uint64]] | None:
    """Return the addresses that all names are, if they are disjoint and none is empty.

    Args:
        names: The names of all tiles, each with its zero byte.

    Returns:
        First addresses and bytes, shape (tiles,) each; None: some name is another text.
    """
    count = names.count(b"\0")
    first = _ADDRESSES.match(names)
    if first is None:
        return None
    found = _ADDRESSES.findall(names)
    if len(found) != count or sum(map(_length_of, _ADDRESSES.finditer(names))) != len(names):
        return None
    starts = np.array([int(start, 16) for start, _ in found], dtype=np.uint64)
    ends = np.array([int(end, 16) for _, end in found], dtype=np.uint64)
    order = np.argsort(starts, kind="stable")
    if np.any(ends <= starts) or np.any(ends[order][:-1] > starts[order][1:]):
        return None
    return starts, ends - starts


def _length_of(match: re.Match[bytes]) -> int:
    return match.end() - match.start()


def texts_of(names: bytes) -> list[str]:
    """Return all names; bytes that are no UTF-8 become surrogates."""
    return names.decode("utf-8", "surrogateescape").split("\0")[:-1]


def address_names(starts: Iterable[int], ends: Iterable[int]) -> bytes:
    """Return names for addresses."""
    return b"".join(
        b"[0x%x-0x%x)\0" % (start, end) for start, end in zip(starts, ends, strict=True)
    )


def text_names(texts: Iterable[str]) -> bytes:
    """Return texts as names."""
    joined = "".join(text.replace("\0", "") + "\0" for text in texts)
    return joined.encode("utf-8", "surrogateescape")
