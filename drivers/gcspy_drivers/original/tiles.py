"""The tiles of a space of the original, as names of the server's API.

Knows names of tiles; does not know streams.
"""

from __future__ import annotations

from typing import Final

from gcspy_original.wire.schema import SpaceDefinition
from gcspy_original.wire.tile_names import addresses_of, texts_of

from gcspy_server.api import ExtentNames, StringNames, TileNames

__all__ = ["tiles_of_space"]

_MOST_KEYS: Final = 1 << 16
"""More texts are not hashed at each resize: their numbers are their keys."""


def tiles_of_space(space: SpaceDefinition) -> TileNames:
    """Return the tiles: by address if all names are addresses, else by text."""
    found = addresses_of(space.names)
    if found is None:
        # Texts of strangers: what is no UTF-8 cannot be sent on.
        texts = [
            text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            for text in texts_of(space.names)
        ]
        if not any(texts):
            texts = [str(number) for number in range(len(texts))]
        return StringNames(texts) if len(texts) > _MOST_KEYS else StringNames.by_text(texts)
    # Not uniform names, though most blocks have one size: the last one of a heap that grows often has another,
    # and a space cannot change the kind of its names.
    return ExtentNames(*found)
