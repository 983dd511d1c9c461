"""A session of a trace: the rebuilt heap goes through its moments, and each is an event.

There is no target: events follow each other as fast as they are gathered, with their original
times. The data of an event is the heap itself, so every value is exact.

Knows how the parts are connected; their modules know the data of each space.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from gcspy_objects.heap import RebuiltHeap, Spaces
from gcspy_objects.records import SpaceKind

from gcspy_drivers.kit.embedded_session import EmbeddedSession
from gcspy_drivers.traced.heap_space import TITLES, TracedHeapSpace
from gcspy_drivers.traced.kinds import KINDS_ASKED, SITES, THREADS, TYPES
from gcspy_drivers.traced.name_space import NameSpace
from gcspy_drivers.traced.options import TracedOptions
from gcspy_drivers.traced.trace_states import KINDS, TraceState, moments_of
from gcspy_server.api import EventKind, GatherRequest, Mode, PauseActsOn, Server

__all__ = ["PROGRAM_CLOCK", "TracedSession"]

PROGRAM_CLOCK: Final = EmbeddedSession.clock

_ABOUT: Final = (
    "The trace begins: nothing is allocated yet.",
    "The program has allocated the given number of further bytes.",
    "A collection starts; the survivors are already known.",
    "A collection has ended.",
    "The trace ends.",
)


_PROVENANCE: Final = (
    "program", "pid", "host", "writer", "unit", "births", "deaths", "moves", "stacks"
)  # fmt: skip
"""What the HEADER of a trace of ours says of its origin and of its exactness."""


class TracedSession(EmbeddedSession):
    """The session of one trace.

    Args:
        heap: The rebuilt heap; it is read once from end to end if it was not.
        options: The options.

    Attributes:
        events: For each event of the session the event of the trace before which the heap is shown.
        names: The spaces whose tiles have names, by title.

    Raises:
        LocalProtocolError: The options make too many tiles or events.
        TraceError: The trace cannot be read.
    """

    def __init__(self, heap: RebuiltHeap, options: TracedOptions | None = None) -> None:
        options = options or TracedOptions()
        end = heap.at(heap.events)
        spaces = [one.spaces_before for one in heap.collections] + [end.spaces]
        largest = max(spaces, key=lambda row: sum(one.end - one.start for one in row))
        self.tile_bytes = options.tile_of(sum(one.end - one.start for one in largest))
        self.clock_bytes = options.clock_of(end.allocated_bytes)
        kinds = {one.kind for row in spaces for one in row}
        self.heap, self._named = heap, heap.trace
        self._set_up(largest, kinds, self._general_info(), self._facts(end.allocated_bytes))

    def _set_up(
        self, largest: Spaces, kinds: set[int], general_info: str, facts: dict[str, str]
    ) -> None:
        """Make the server and its spaces."""
        trace = self._named
        self.events: list[int] = []
        self._now = 0
        self._moment: TraceState | None = None
        self._since = 0
        self.server = Server(
            trace.name,
            events=tuple(
                EventKind(id=number, name=name, description=about)
                for number, (name, about) in enumerate(zip(KINDS, _ABOUT, strict=True))
            ),
            mode=Mode.PLAYBACK,  # nothing runs any more
            pause_acts_on=PauseActsOn.PLAYBACK,
            general_info=general_info,
            target=facts,
            time_nanos=lambda: self._now,
        )
        self._heaps = [
            TracedHeapSpace(
                self.server,
                kind,
                largest,
                types=trace.types,
                tile_bytes=self.tile_bytes,
                details=KINDS_ASKED,
            )
            for kind in sorted(kinds & {int(one) for one in SpaceKind})
        ]
        self._types = self._add_names("Types", "Type", lambda row: str(trace.types.names[row]))
        self._sites = self._add_names(
            "Allocation sites", "Site", lambda row: str(trace.sites.name(row))
        )
        self._threads = self._add_names("Threads", "Thread", trace.threads.name)
        self.names = {one.space.name: one for one in (self._types, self._sites, self._threads)}
        for heap_space in self._heaps:
            heap_space.add_streams(self._types, self._threads)

    def _add_names(self, title: str, one: str, name: Callable[[int], str]) -> NameSpace:
        return NameSpace(self.server, title, one, name, details=KINDS_ASKED)

    def _general_info(self) -> str:
        collections = self.heap.collections
        full = sum(one.full for one in collections)
        words = f"{self.heap.events:,} events, {len(collections) - full:,} minor and {full:,} full collections"
        ended = self.heap.ended
        what = (
            "every allocation and every free"
            if self.heap.frees
            else "every allocation and every move"
        )
        return f"A trace of {what}: {words}." + (
            f" It was rebuilt as far as it goes: {ended}" if ended else ""
        )

    @property
    def wall_offset_nanos(self) -> int:
        """Offset to add to times of this session for nanoseconds since 1970; 0: the trace does not say when it was written."""
        said = getattr(self.heap.trace, "header", {}).get("started", "")
        return int(said) if said.isascii() and said.isdigit() and len(said) < 20 else 0

    @property
    def length_nanos(self) -> int:
        """How long the trace takes, as far as it says so, nanoseconds."""
        collections = self.heap.collections
        return collections[-1].end_millis * 1_000_000 if len(collections) else 0

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the accuracy of the heap, one line each."""
        ended, findings = self.heap.ended, self.heap.findings
        notes = [f"rebuilt as far as it goes: {ended}"] if ended else []
        if len(findings):
            notes.append(
                f"{len(findings):,} things in the trace contradict each other (gcspy objects check says which); the first: {findings.first}"
            )
        return tuple(notes)

    def _facts(self, allocated_bytes: int) -> dict[str, str]:
        said = getattr(self.heap.trace, "header", {})
        return {
            **{name: said[name] for name in _PROVENANCE if said.get(name)},
            "runtime": "trace",
            "trace": self.heap.trace.name,
            "allocated": f"{allocated_bytes:,} bytes",
            "tile": f"{self.tile_bytes:,} bytes",
            "clock": f"{self.clock_bytes:,} allocated bytes",
        }

    def prepare(self, number: int) -> None:
        """Have the rebuilt heap reach event `number` of the session, from 1, before questions about it."""

    def run(self, on_progress: Callable[[int, int], None] | None = None) -> None:
        """Go through the trace from beginning to end.

        Args:
            on_progress: Called with the number of events of the trace done, and the total.

        Raises:
            TraceError: The trace cannot be read.
        """
        since = 0
        for moment in moments_of(self.heap, self.clock_bytes):
            self._event(moment, since)
            since = moment.heap.event
            if on_progress is not None:
                on_progress(since, self.heap.events)

    def _event(self, moment: TraceState, since: int) -> None:
        self._now = moment.nanos
        self.events.append(moment.heap.event)
        self._moment, self._since = moment, since
        self.happen(moment.kind, moment.cause, holds=False)

    @property
    def clock_value(self) -> int:
        """Bytes that the program has allocated at the moment that is shown."""
        return 0 if self._moment is None else self._moment.heap.allocated_bytes

    def gather(self, _request: GatherRequest) -> None:
        """Fill all spaces: the reader of a trace requests everything."""
        moment, since = self._moment, self._since
        if moment is None:
            return
        heap = moment.heap
        for named, rows in (
            (self._types, heap.type),
            (self._sites, heap.site),
            (self._threads, heap.thread),
        ):
            named.gather(heap, rows, since, frees=moment.frees)
        for space in self._heaps:
            space.gather(moment, since)

    def category_of(self, title: str) -> str:
        """The items of one of `names`, as a kind of question."""
        return {
            self._types.space.name: TYPES,
            self._sites.space.name: SITES,
            self._threads.space.name: THREADS,
        }[title]

    def kind_of(self, title: str) -> int | None:
        """The kind of space with this title; None: it is not a space of the heap."""
        return TITLES.index(title) if title in TITLES else None
