"""The spaces of levels 3 and 4 together: objects by address, by type, and by generation, and references. Added when the level is first requested.

Knows spaces and a target whose objects can be read; does not know events or who asks.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.collector.interpreters import Interpreter
from gcspy_drivers.cpython.objects import machine_code
from gcspy_drivers.cpython.objects.kept_pools import WrittenPools
from gcspy_drivers.cpython.pymalloc.pool_tiling import HeapTiles
from gcspy_drivers.cpython.spaces.arena_pinning_space import ArenaPinningSpace
from gcspy_drivers.cpython.spaces.large_space import LargeSpace
from gcspy_drivers.cpython.spaces.object_space import ObjectSpace, TrackedSpace
from gcspy_drivers.cpython.spaces.reference_space import ReferenceSpace
from gcspy_drivers.cpython.spaces.type_space import TypeSpace
from gcspy_drivers.cpython.spaces.type_tables import TypeTables
from gcspy_drivers.cpython.target import (
    ObjectCopies,
    ObjectReading,
    PymallocHeap,
    Target,
)
from gcspy_drivers.kit.loop_notice import tell_coming
from gcspy_drivers.remote.pages.accesses import CellAccesses
from gcspy_server.api import GatherRequest, Server, ServerSpace

__all__ = ["ObjectView", "title_of"]

_MOST_SHOWN = 16


class ObjectView:
    """The objects of one process, as spaces.

    Args:
        target: The process.
        tiles: About how many tiles a space may have.
    """

    def __init__(self, target: Target, *, tiles: int) -> None:
        self._target = target
        self._tiles = tiles
        self._types: TypeSpace | None = None
        self._heaps: dict[int, ObjectSpace] = {}
        self._tracked: dict[int, TrackedSpace] = {}
        self._references: dict[int, ReferenceSpace] = {}
        self._arenas: dict[int, ArenaPinningSpace] = {}
        self._large: LargeSpace | None = None

    @property
    def spaces(self) -> list[ServerSpace]:
        """The present spaces."""
        found = [] if self._types is None else [self._types.space]
        return [
            *found,
            *(one.space for one in self._heaps.values()),
            *(one.space for one in self._arenas.values()),
            *(one.space for one in self._tracked.values()),
            *([] if self._large is None else [self._large.space]),
            *(one.space for one in self._references.values()),
        ]

    def wants_large(self, request: GatherRequest) -> bool:
        """Return whether a client requests data for which large blocks are needed."""
        if self._large is None or self._types is None:
            return False
        return request.wants(self._large.space) or request.wants(
            self._types.space, self._types.total
        )

    @property
    def reference_spaces(self) -> list[ServerSpace]:
        """The present spaces of references."""
        return [one.space for one in self._references.values()]

    def open(
        self,
        server: Server,
        owners: tuple[int, ...],
        interpreters: tuple[Interpreter, ...],
        *,
        tiles: Mapping[int, HeapTiles],
        references: bool = False,
        accesses: bool = False,
    ) -> None:
        """Add missing spaces and remove obsolete ones, between events.

        Args:
            server: The server of the spaces.
            owners: Ids of the interpreters that have a pymalloc of their own; none: there are no
                pools.
            interpreters: Those that have a collector.
            tiles: The tilings of each pymalloc that has spaces, by the id of its interpreter.
            references: Whether to add a space of references.
            accesses: Whether accesses are seen.
        """
        if not owners:
            return
        machine_code.want()
        if self._types is None:
            self._types = TypeSpace(server, accesses=accesses)
        for ident in owners:
            if ident not in self._heaps and ident in tiles:
                geometry, mine = self._target.geometry, tiles[ident]
                self._heaps[ident] = ObjectSpace(
                    server, title_of("Objects", ident), geometry, self._types, tiles=mine
                )
                self._arenas[ident] = ArenaPinningSpace(
                    server, title_of("Objects in arenas", ident), geometry, self._types, tiles=mine
                )
            if references and ident not in self._references and ident in self._heaps:
                self._references[ident] = ReferenceSpace(
                    server, title_of("References", ident), tiles=tiles[ident]
                )
        present = [interpreter.ident for interpreter in interpreters]
        for ident in present:
            if ident not in self._tracked and len(self._tracked) < _MOST_SHOWN:
                self._tracked[ident] = TrackedSpace(server, title_of("Tracked objects", ident))
        if self._large is None:
            self._large = LargeSpace(server, self._types, tiles=self._tiles)
        for gone in [ident for ident in self._heaps if ident not in owners]:
            server.remove_space(self._heaps.pop(gone).space)
            server.remove_space(self._arenas.pop(gone).space)
            if gone in self._references:
                server.remove_space(self._references.pop(gone).space)
        for gone in [ident for ident in self._tracked if ident not in present]:
            server.remove_space(self._tracked.pop(gone).space)

    def examine(
        self,
        heaps: tuple[PymallocHeap, ...],
        interpreters: tuple[Interpreter, ...],
        *,
        references: bool = False,
        large: bool = False,
        copies: ObjectCopies | None = None,
        written: WrittenPools | None = None,
        mirror: Target | None = None,
    ) -> ObjectReading:
        """Examine the pools: all that is read of the target.

        Args:
            heaps: Their latest reading.
            interpreters: Those that have a collector.
            references: Whether to search for references too.
            large: Whether to search for large blocks too.
            copies: Their copies; without them they are copied now.
            written: Which pools may have been written since the last call; None: it is not known.
            mirror: A copy of the target's memory, to examine instead.

        Raises:
            TargetGone: The target has ended.
            TargetError: It cannot be examined.
        """
        return (self._target if mirror is None else mirror).objects(
            heaps,
            interpreters,
            code=machine_code.compiled(),
            references=references,
            large=large,
            copies=copies,
            written=written,
        )

    def fill(
        self, found: ObjectReading, accesses: Mapping[int, CellAccesses] | None = None
    ) -> dict[int, TypeTables]:
        """Fill the spaces.

        Args:
            found: What was examined.
            accesses: Accesses to the pools of each heap, by its owner; None: they are not known.

        Returns:
            The content of the tiles of each pymalloc, by the id of its interpreter.
        """
        if self._types is None:
            raise AssertionError("open comes before fill")
        self._types.fill(found, accesses)
        tables: dict[int, TypeTables] = {}
        for one in found.heaps:
            space = self._heaps.get(one.heap.owner)
            if space is not None:
                tables[one.heap.owner] = space.fill(one, found)
                self._arenas[one.heap.owner].fill(one)
            counts = self._references.get(one.heap.owner)
            if counts is not None and found.references is not None:
                counts.fill(one, found.references)
        everything = tuple(tables.values()) if len(tables) == len(found.heaps) else ()
        self._types.answer_with(everything)
        for ident, tracked in self._tracked.items():
            tracked.fill(found, ident)
        if self._large is not None:
            self._large.fill(found)
        tell_coming(self.spaces[:1], coming=machine_code.coming())
        return tables

    def lengths(self, ident: int) -> npt.NDArray[np.int64] | None:
        """Return how many objects each generation of an interpreter had at the last filling, (3,); None when that is not known."""
        tracked = self._tracked.get(ident)
        return None if tracked is None else tracked.lengths


def title_of(name: str, ident: int) -> str:
    """Name a space after its interpreter, which is not named when it is the main one."""
    return name if ident == 0 else f"{name} (interpreter {ident})"
