"""Answers to questions about a traced session at any of its events, from the rebuilt heap.

The session continues, or has ended long ago; the heap at the event in question is rebuilt from the
checkpoint before it, and the latest few are kept.

Knows the questions; does not know who asks, nor how an answer is sent.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict

import numpy as np
from gcspy_objects.access.history import AccessesUntil
from gcspy_objects.heap import HeapSnapshot
from gcspy_objects.object_search import rows_of, sought_of
from gcspy_protocol.errors import CommandError
from numpy.typing import NDArray

from gcspy_drivers.traced.heap_answers import TracedGraph, answer_of_graph, graph_at
from gcspy_drivers.traced.kinds import (
    FLAME,
    KINDS_OF_ALL,
    LIFE,
    NEIGHBOURS,
    OBJECTS,
    SITES,
    THREADS,
    TYPES,
)
from gcspy_drivers.traced.lives import life_table, neighbour_table
from gcspy_drivers.traced.session import TracedSession
from gcspy_drivers.traced.tables import by_category, flame_table, object_table, place_of
from gcspy_drivers.traced.whole import Whole
from gcspy_server.api import DetailTable, HeapQuestion

__all__ = ["TraceQueryService"]

_KEPT = 3
"""Heaps of events that were asked about: a user asks several things about one, and steps back and forth."""


class TraceQueryService:
    """Answers questions about a tile, a space, or the whole heap. May be called in any thread, one call at a time.

    Args:
        session: Which has gone through all its events.
    """

    def __init__(self, session: TracedSession) -> None:
        self._session, self._heap = session, session.heap
        self._kept: OrderedDict[int, HeapSnapshot] = OrderedDict()
        self._whole = Whole(self._heap)
        self._graph: tuple[int, TracedGraph] | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Remove its files."""
        with self._lock:
            self._whole.close()

    def tell(
        self,
        kind: str,
        text: str,
        most: int,
        *,
        number: int,
        space: str,
        tile: int | None,
        extent: tuple[int, int] | None,
    ) -> DetailTable | None:
        """Answer a question.

        Args:
            kind: One of `kinds.KINDS_ASKED`.
            text: The search.
            most: Rows.
            number: Number of the session's event, from 1.
            space: Name of the space.
            tile: Which of its tiles; None: all of it.
            extent: Address and bytes of the tile, if it has any.

        Raises:
            CommandError: The text is invalid, or there is no such object.
            TraceError: The trace cannot be read any more.
        """
        if not 1 <= number <= len(self._session.events):
            return None
        with self._lock:
            self._session.prepare(number)
            if kind in KINDS_OF_ALL:
                return self._whole.tell(kind, text, most)
            now = self._at(self._session.events[number - 1])
            if kind in (LIFE, NEIGHBOURS):
                return self._of_one(kind, now, text, most)
            return self._of_many(
                kind, now, self._there(now, space, tile, extent, whole=kind == OBJECTS), text, most
            )

    def investigate(self, question: HeapQuestion, number: int) -> DetailTable | None:
        """Answer who holds objects, or what keeps most alive.

        Args:
            question: The question.
            number: Number of the session's event, from 1.

        Raises:
            CommandError: The trace does not say who refers to whom at this event.
            TargetError: There are no such objects.
            TraceError: The trace cannot be read any more.
        """
        if not 1 <= number <= len(self._session.events):
            return None
        event = self._session.events[number - 1]
        with self._lock:
            self._session.prepare(number)
            if self._graph is None or self._graph[0] != event:
                self._graph = event, graph_at(self._heap, event, self._at(event))
            return answer_of_graph(self._graph[1], self._heap.trace, question, self.number_after)

    def _at(self, event: int) -> HeapSnapshot:
        found = self._kept.pop(event, None)
        self._kept[event] = found = self._heap.at(event) if found is None else found
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return found

    def _there(
        self,
        now: HeapSnapshot,
        space: str,
        tile: int | None,
        extent: tuple[int, int] | None,
        *,
        whole: bool,
    ) -> NDArray[np.bool_]:
        """Return which objects belong to a tile, or a space; `whole`: also objects that only extend into the tile."""
        named = self._session.names.get(space)
        if named is not None:
            column = {TYPES: now.type, SITES: now.site, THREADS: now.thread}[
                self._session.category_of(space)
            ]
            return (
                np.ones(len(now), dtype=np.bool_)
                if tile is None
                else named.tiles_of(column) == tile
            )
        if extent is not None:
            start, end = extent[0], sum(extent)
            return (now.address < end) & (now.address + (now.size if whole else 1) > start)
        kinds = np.array([*(one.kind for one in now.spaces), -1])
        mask: NDArray[np.bool_] = kinds[now.space] == self._session.kind_of(space)
        return mask

    def _of_many(
        self, kind: str, now: HeapSnapshot, there: NDArray[np.bool_], text: str, most: int
    ) -> DetailTable | None:
        trace = self._heap.trace
        sought = sought_of(text)
        accesses = None
        # The accesses of all objects are read for those who ask for them, and shown from then on.
        if sought.accesses is not None or sought.idle is not None or self._whole.has_read_accesses:
            accesses = self._accesses_at(now)
        rows = rows_of(now, trace, sought, accesses)
        rows = rows[there[rows]]
        if kind == OBJECTS:
            return object_table(now, trace, rows, most, accesses)
        if kind == FLAME:
            return flame_table(now, trace, rows[~now.filler[rows]], most)
        if kind == TYPES:
            return by_category(
                now, rows, now.type, "Type", lambda row: str(trace.types.names[row]), most
            )
        if kind == SITES:
            return by_category(now, rows, now.site, "Site", trace.sites.name, most)
        if kind == THREADS:
            return by_category(now, rows, now.thread, "Thread", trace.threads.name, most)
        return None

    def _accesses_at(self, now: HeapSnapshot) -> AccessesUntil | None:
        """Return the accesses to the objects of a snapshot until then; None: the trace has none."""
        history = self._whole.history
        if not history.observed.any():
            return None
        return history.until(now.collections, now.birth.astype(np.int64))

    def _of_one(self, kind: str, now: HeapSnapshot, text: str, most: int) -> DetailTable:
        address = sought_of(f"address:{text.strip()}").address
        assert address is not None
        row = now.row_at(address[0])
        if row is None:
            raise CommandError(
                f"no object has the address {address[0]:#x} at this event ({place_of(now, address[0])})"
            )
        if now.filler[row]:
            raise CommandError(f"{address[0]:#x} is in a filler, not in an object of the program")
        if kind == NEIGHBOURS:
            return neighbour_table(self._heap, now, row, most)
        return life_table(
            self._heap,
            self._heap.follow(int(now.birth[row])),
            int(now.birth_bytes[row]),
            self.number_after,
        )

    def number_after(self, event: int) -> int:
        """The first event of the session that shows the effect of an event of the trace."""
        events = self._session.events
        return min(bisect_right(events, event) + 1, len(events))
