"""What can be asked of a space of a traced session, as the kinds of questions (SPEC.md section 8.11).

Knows words.
"""

from __future__ import annotations

from typing import Final

__all__ = ["KINDS_ASKED", "LIFE", "NEIGHBOURS", "OBJECTS", "SITES", "THREADS", "TYPES"]

TYPES: Final = "types"
SITES: Final = "sites"
THREADS: Final = "threads"
OBJECTS: Final = "objects"
"""Single objects, found by what the question's text says."""
LIFE: Final = "life"
"""Where the object was whose address the text is, from its birth to its death."""
NEIGHBOURS: Final = "neighbours"
"""What became of the objects of the same site that lie next to it."""

KINDS_ASKED: Final = (TYPES, SITES, THREADS, OBJECTS, LIFE, NEIGHBOURS)
