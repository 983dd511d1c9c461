"""The kinds of questions that a space of a traced session supports (SPEC.md section 8.11).

Knows words.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "ACCESSES", "COLLECTIONS", "FLAME", "KINDS_ASKED", "KINDS_OF_ALL", "LIFE", "LIFETIMES_BYTES", "LIFETIMES_GCS", "NEIGHBOURS", "OBJECTS", "SITES",
    "SURVIVAL_BYTES", "SURVIVAL_GCS", "THREADS", "TYPES",
]  # fmt: skip

TYPES: Final = "types"
SITES: Final = "sites"
THREADS: Final = "threads"
OBJECTS: Final = "objects"
"""Single objects, found by the search in the question's text."""
LIFE: Final = "life"
"""The places of the object whose address is the text, from its birth to its death."""
NEIGHBOURS: Final = "neighbours"
"""The fate of the objects of the same site that lie next to it."""

FLAME: Final = "flame"
"""Allocation stacks of the objects, merged: rows of parent (a row, -1 of the root), name, objects, bytes; the text is a search."""

SURVIVAL_BYTES: Final = "survival.bytes"
SURVIVAL_GCS: Final = "survival.gcs"
"""Share of the trace's objects that is still there at each age, in bytes and in collections; the text is a type's name."""
LIFETIMES_BYTES: Final = "lifetimes.bytes"
LIFETIMES_GCS: Final = "lifetimes.gcs"
"""Number of the trace's objects that died at each age; the text is a type's name."""
COLLECTIONS: Final = "collections"
"""Objects that survived each collection, were promoted or died in it; the text is a type's name."""

ACCESSES: Final = "accesses"
"""Objects allocated, accessed and collected in each interval between collections; the text is a type's name."""

KINDS_OF_ALL: Final = (
    SURVIVAL_BYTES,
    SURVIVAL_GCS,
    LIFETIMES_BYTES,
    LIFETIMES_GCS,
    COLLECTIONS,
    ACCESSES,
)
"""Kinds about the whole trace: they do not depend on the event or tile on display."""

KINDS_ASKED: Final = (TYPES, SITES, THREADS, OBJECTS, LIFE, NEIGHBOURS, FLAME, *KINDS_OF_ALL)
