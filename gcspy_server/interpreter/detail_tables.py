"""The tables that answer questions about tiles and spaces: for each space the latest of its driver (SPEC.md section 8.11).

The driver's thread stores them, after the arrays are filled and before the event is posted; any
other thread answers. Stored objects never change, so answering takes no lock while it works, and
delays neither driver nor session. Knows functions and tile names; does not know the content of a
table.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass

import numpy as np
from gcspy_protocol.details import Answer, AnswerState, DetailTable, Query

from gcspy_server import binning
from gcspy_server.names import StringNames, TileNames, UniformNames
from gcspy_server.spaces import DetailFunction, ServerSpace

__all__ = ["DetailTables", "extent_of"]

log = logging.getLogger("gcspy.server")


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """The answers of one space.

    Attributes:
        sequence: Sequence of the snapshot that they are of.
        kinds: All kinds of question that the space supports.
        names: Its tiles at that time.
        functions: By kind; missing: no data.
    """

    sequence: int
    kinds: tuple[str, ...]
    names: TileNames
    functions: dict[str, DetailFunction]


class DetailTables:
    """The latest answers of all spaces. May be used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spaces: dict[int, _Kept] = {}

    def keep(self, space: ServerSpace, sequence: int) -> None:
        """Store the answers of a space from now on; in the driver's thread."""
        kept = _Kept(sequence, space.schema.details, space.names, dict(space._details))
        with self._lock:
            self._spaces[space.id] = kept

    def forget(self, space: int) -> None:
        """Drop a space that was removed."""
        with self._lock:
            self._spaces.pop(space, None)

    def answer(self, query: Query) -> Answer:
        """Answer a question; never raises, and does not read the target."""
        with self._lock:
            kept = self._spaces.get(query.space)
        if kept is None:
            return _without(
                query,
                0,
                AnswerState.UNKNOWN,
                "the current level gathers no such data: see the levels of the driver",
            )
        if query.kind not in kept.kinds:
            told = ", ".join(kept.kinds) or "nothing"
            reason = f"this space does not answer {query.kind[:100]!r}; it answers {told}"
            return _without(query, kept.sequence, AnswerState.REFUSED, reason)
        tile = None if query.key is None else _tile(kept.names, query.key)
        if tile == -1:
            return _without(query, kept.sequence, AnswerState.GONE, "this tile no longer exists")
        function = kept.functions.get(query.kind)
        table: DetailTable | None = None
        if function is not None:
            try:
                table = function(tile, query.most)
            except Exception:  # a driver's fault must not end the session
                log.exception("space %d: the driver failed to report %r", query.space, query.kind)
        if table is None:
            return _without(
                query,
                kept.sequence,
                AnswerState.UNKNOWN,
                "it was not gathered or could not be read",
            )
        return Answer(
            number=query.number,
            space=query.space,
            sequence=kept.sequence,
            state=AnswerState.ANSWERED,
            table=table,
        )


def extent_of(names: TileNames, key: int) -> tuple[int, int] | None:
    """Address and bytes of the tile with a stable key; None: there is no such tile, or it has no addresses."""
    if isinstance(names, StringNames):
        return None
    tile = _tile(names, key)
    if tile < 0:
        return None
    if isinstance(names, UniformNames):
        return names.base + tile * names.tile_bytes, names.tile_bytes
    return int(names.bases[tile]), int(names.sizes[tile])


def _without(query: Query, sequence: int, state: AnswerState, reason: str) -> Answer:
    return Answer(
        number=query.number, space=query.space, sequence=sequence, state=state, reason=reason
    )


def _tile(names: TileNames, key: int) -> int:
    """The tile with a stable key; -1 if there is none."""
    if isinstance(names, StringNames):
        return key if key < names.count else -1
    tile = int(binning.tiles_of(names, np.array([key], dtype=np.uint64))[0])
    # An address in the middle of a tile is not a key.
    before = (
        int(binning.tiles_of(names, np.array([key - 1], dtype=np.uint64))[0])
        if key and tile >= 0
        else -1
    )
    return -1 if tile >= 0 and before == tile else tile
