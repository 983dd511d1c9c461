"""How high the panels of spaces are, one above the other, for very different tile counts.

A space of four tiles gets a row of four cells, not a quarter of the window; the large spaces share
the rest, in proportion to their size.

Knows counts and pixels; does not know widgets.
"""

from __future__ import annotations

from math import log2

__all__ = ["allot_heights", "wanted_height"]

_LEAST_HEIGHT = 84
"""A large space is still readable in this."""


def wanted_height(
    count: int, width: int, *, cell_width: int, cell_height: int, most_labelled: int = 96
) -> int | None:
    """The height that labelled cells need in a width; None for a space of too many tiles for labels."""
    if count > most_labelled:
        return None
    per_row = max(1, width // cell_width)
    return max(1, -(-count // per_row)) * cell_height


def allot_heights(total: int, wanted: list[int | None], counts: list[int]) -> list[int]:
    """Share a height among panels.

    Args:
        total: Height there is.
        wanted: For each panel the height it needs, or None: as much as possible.
        counts: Tiles per panel; the share of a large one grows with their logarithm.

    Returns:
        Heights; their sum is `total` when every panel can have its least, more when not.
    """
    fixed = [0 if height is None else height for height in wanted]
    shares = [
        0.0 if height is not None else log2(max(2, count)) ** 1.5
        for height, count in zip(wanted, counts, strict=True)
    ]
    flexible = [i for i, share in enumerate(shares) if share]
    rest = total - sum(fixed)
    if not flexible:
        return fixed
    if rest < _LEAST_HEIGHT * len(flexible):
        return [
            _LEAST_HEIGHT if share else height for share, height in zip(shares, fixed, strict=True)
        ]
    spare = rest - _LEAST_HEIGHT * len(flexible)
    heights = [
        height if not share else _LEAST_HEIGHT + int(spare * share / sum(shares))
        for share, height in zip(shares, fixed, strict=True)
    ]
    heights[max(flexible, key=lambda i: shares[i])] += total - sum(heights)
    return heights
