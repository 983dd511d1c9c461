"""A scale for bytes from zero to a round number.

Knows numbers.
"""

from __future__ import annotations

from gcspy_client.model.text import size_in_words

__all__ = ["ByteScale"]

_ROUND = tuple(sorted({1.0} | {base * 2**power for base in (1.0, 1.5) for power in range(10)}))
"""Times a power of 1024: each has a short label that is exact."""

_LEAST = 4096


class ByteScale:
    """A scale from 0 to `top` bytes.

    Args:
        most: The greatest value to be shown.

    Attributes:
        top: A round number of bytes, not less.
        label: It, in words.
    """

    def __init__(self, most: int) -> None:
        most = max(most, _LEAST)
        unit = 1
        while unit * _ROUND[-1] < most:
            unit *= 1024
        self.top = next(int(one * unit) for one in _ROUND if one * unit >= most)
        self.label = size_in_words(self.top).replace(".0 ", " ")
