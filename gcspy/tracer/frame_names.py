"""`name_frames`: definitions of a trace's native frames, with their functions and lines.

Knows modules of a program; does not know ELF files.
"""

from __future__ import annotations

import numpy as np

from gcspy.tracer.native_symbols import resolve_places
from gcspy.tracer.segment_definitions import SegmentDefinitions

__all__ = ["name_frames"]


def name_frames(definitions: SegmentDefinitions) -> bytes:
    """Return definitions of the frames whose place is known, to be written behind the events."""
    pcs = np.array(definitions.pcs, np.uint64)
    left = pcs != 0
    spent = [0.0]
    parts: list[bytes] = []
    for module in reversed(definitions.modules):
        inside = left & (pcs >= module.start) & (pcs < module.end)
        rows = np.flatnonzero(inside)
        if not len(rows):
            continue
        left &= ~inside
        # The call is before the address to which it returns.
        addresses = [(int(pc) - 1 - module.bias) & (1 << 64) - 1 for pc in pcs[rows]]
        for row, place in zip(
            rows.tolist(), resolve_places(module.path, addresses, spent), strict=True
        ):
            if place.function or place.file:
                parts.append(definitions.named_frame(row + 1, *place))
    return b"".join(parts)
