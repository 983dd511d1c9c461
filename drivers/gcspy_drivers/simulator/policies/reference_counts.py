"""The check of plans that count references: each object's count is the number of references to it.

Knows objects and fields; does not know when a count changes.
"""

from __future__ import annotations

import numpy as np

from gcspy_drivers.simulator.heap import HEADER_WORDS, Heap, Objects

__all__ = ["wrong_counts"]


def wrong_counts(heap: Heap, objects: Objects) -> list[str]:
    """Return a line for each object whose count is not the number of references from roots and fields.

    Args:
        heap: The heap.
        objects: Its objects; their links are their counts.
    """
    words = heap.words
    counts = np.zeros(len(words), dtype=np.int64)
    np.add.at(counts, heap.roots, 1)
    for cell, fields in zip(objects.cells.tolist(), objects.fields.tolist(), strict=True):
        np.add.at(counts, words[cell + HEADER_WORDS : cell + HEADER_WORDS + fields], 1)
    wrong = objects.where(objects.links != counts[objects.cells])
    told = wrong.identities.tolist(), wrong.links.tolist(), counts[wrong.cells].tolist()
    return [
        f"object {one} is counted {counted} times, and referred to {found} times"
        for one, counted, found in zip(*told, strict=True)
    ]
