"""A session of a trace that is shown while it is read, or while it is still written: it goes forwards, and each event shows the heap as it is then.

Knows the spaces of a traced session; does not know formats.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from gcspy_objects.heap import RebuiltHeap
from gcspy_objects.heap.growing_heap import CollectionMoment, GrowingHeap
from gcspy_objects.records import SpaceKind
from gcspy_objects.trace import Trace

from gcspy_drivers.traced.options import TracedOptions
from gcspy_drivers.traced.session import TracedSession
from gcspy_drivers.traced.trace_states import CLOCK, ENDS, GC_END, GC_START, STARTS, words_of
from gcspy_server.api import GatherRequest

__all__ = ["GrowingSession"]

_FIRST_EVENTS: Final = 1 << 16
"""Records before the first event with objects: its memory decides how large tiles are."""
_CAUGHT_UP_EVENTS: Final = 1 << 22
"""Records between two events of the session once it waits for more."""
_LEAST_TILE: Final = 4096
_SHORTEST_NANOS: Final = 1000
_OF_COLLECTORS: Final = {SpaceKind.EDEN, SpaceKind.SURVIVOR, SpaceKind.OLD}


class GrowingSession(TracedSession):
    """The session of one trace, going forwards.

    Args:
        trace: Read here, and by nobody else.
        heap: Of the same trace, opened a second time: for questions about events that were shown. It is indexed by the first one.
        options: The options.
        refresh: Looks for what was added to the trace of `heap`.

    Raises:
        TraceError: The trace cannot be read.
    """

    def __init__(
        self,
        trace: Trace,
        heap: RebuiltHeap,
        options: TracedOptions | None = None,
        *,
        refresh: Callable[[], object],
    ) -> None:
        options = options or TracedOptions()
        self.heap, self._named, self._refresh = heap, trace, refresh
        first = GrowingHeap(trace)
        first.advance(_FIRST_EVENTS)
        spaces = first.spaces
        used = sum(one.end - one.start for one in spaces)
        self.tile_bytes = max(options.tile_of(used), options.tile_bytes or _LEAST_TILE)
        self._growing = GrowingHeap(trace, self.tile_bytes)
        self.clock_bytes = 0
        self._collection: CollectionMoment | None = None
        self._clock = 0
        kinds = {one.kind for one in spaces}
        kinds |= {SpaceKind.HEAP} if kinds <= {SpaceKind.HEAP} else _OF_COLLECTORS
        info = "A trace of every allocation, move and death, shown while it is read."
        facts = self._facts(0)
        del facts["allocated"], facts["clock"]
        self._set_up(spaces, kinds, info, facts)

    @property
    def length_nanos(self) -> int:
        """How long the trace takes, which is not known before it was read."""
        return 0

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the accuracy of the heap: none are known before the trace was read."""
        return ()

    def prepare(self, number: int) -> None:
        """Have the rebuilt heap reach event `number` of the session: the trace may have grown since it was indexed."""
        if self.events[number - 1] > self.heap.events:
            self._refresh()
            self.heap.close()

    def grow(
        self,
        events: int,
        *,
        more: Callable[[], bool],
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Go forwards to the end of the trace.

        Args:
            events: Records between two events of the session, until it has caught up with a trace that is still written.
            more: Asked at the end of what can be read: whether to try again; it may wait.
            on_progress: Called with the number of records, and as many again.

        Raises:
            TraceError: The rest is damaged.
        """
        if not self.events:
            self._show(STARTS)
        while True:
            if self._growing.advance(events, self._show_collection):
                if not self._growing.collecting:
                    self._show(CLOCK)
                if on_progress is not None:
                    on_progress(self._growing.event, self._growing.event)
            elif more():
                events = max(events, _CAUGHT_UP_EVENTS)
            else:
                break
        self._show(ENDS)

    @property
    def clock_value(self) -> int:
        """Bytes that the program has allocated at the moment that is shown."""
        return self._clock

    def gather(self, _request: GatherRequest) -> None:
        """Fill all spaces from the sums of the heap."""
        sums = self._growing.sums
        for named, of in (
            (self._types, sums.by_type),
            (self._sites, sums.by_site),
            (self._threads, sums.by_thread),
        ):
            named.fill(of)
        for space in self._heaps:
            space.fill(sums, self._collection)

    def _show(self, kind: int) -> None:
        self._growing.fit()
        event = self._growing.event
        self._clock = self._growing.allocated_bytes
        self._at(kind, event, self._growing.nanos, "")
        self._growing.sums.begin(event)

    def _show_collection(self, moment: CollectionMoment) -> None:
        self._collection, self._clock = moment, moment.allocated_bytes
        kind = GC_END if moment.ended else GC_START
        self._at(kind, moment.event, moment.nanos, words_of(moment.collection))
        self._collection = None

    def _at(self, kind: int, event: int, nanos: int, cause: str) -> None:
        self._now = max(nanos, self._now + _SHORTEST_NANOS)
        self.events.append(event)
        self.happen(kind, cause, holds=False)
