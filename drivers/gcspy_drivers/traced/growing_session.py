"""A session of a trace that is shown while it is read, or while it is still written: it goes forwards, and each event shows the heap as it is then.

Knows the spaces of a traced session; does not know formats.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from gcspy_objects.heap import RebuiltHeap
from gcspy_objects.heap.growing_heap import GrowingHeap
from gcspy_objects.records import SpaceKind
from gcspy_objects.trace import Trace

from gcspy_drivers.traced.options import TracedOptions
from gcspy_drivers.traced.session import TracedSession
from gcspy_drivers.traced.trace_states import CLOCK, ENDS, STARTS, TraceState

__all__ = ["GrowingSession"]

_FIRST_EVENTS: Final = 1 << 16
"""Records before the first event with objects: its memory decides how large tiles are."""
_CAUGHT_UP_EVENTS: Final = 1 << 22
"""Records between two events of the session once it waits for more."""
_LEAST_TILE: Final = 4096
_SHORTEST_NANOS: Final = 1000


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
        spaces = first.view().spaces
        self._growing = GrowingHeap(trace)
        used = sum(one.end - one.start for one in spaces)
        self.tile_bytes = max(options.tile_of(used), options.tile_bytes or _LEAST_TILE)
        self.clock_bytes = 0
        self._shown = 0
        info = "A trace of every allocation and every free, shown while it is read."
        facts = self._facts(0)
        del facts["allocated"], facts["clock"]
        self._set_up(spaces, {one.kind for one in spaces} | {SpaceKind.HEAP}, info, facts)

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
        if not self._shown:
            self._show(STARTS)
        while True:
            if self._growing.advance(events):
                self._show(CLOCK)
                if on_progress is not None:
                    on_progress(self._growing.event, self._growing.event)
            elif more():
                events = max(events, _CAUGHT_UP_EVENTS)
            else:
                break
        self._show(ENDS)

    def _show(self, kind: int) -> None:
        heap = self._growing.view()
        for space in self._heaps:
            space.types = self._named.types
        nanos = max(self._growing.nanos, self._now + _SHORTEST_NANOS)
        self._event(TraceState(kind, heap, "", nanos, frees=True), self._shown)
        self._shown = heap.event
