"""`CollectionAccesses`: which pages of pymalloc's arenas a CPython accessed since its last full collection.

In CPython each use of an object writes its reference count, so the pages that were written are
those that were accessed. The collector itself writes to most pages. So an interval ends when a full
collection starts, and the next one begins when it has ended, while the program stands still.

Not seen: uses of immortal objects (3.12 and later: None, small integers, interned strings), and C
code that reads without a reference of its own.

Knows a stub's events and arenas; does not know spaces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from gcspy_protocol.errors import NotPermitted, TargetError, TargetGone

from gcspy_drivers.cooperative.line import StubEvent, StubLine
from gcspy_drivers.cpython.layouts import PoolGeometry
from gcspy_drivers.cpython.pool_writes import arena_ranges
from gcspy_drivers.cpython.pymalloc.obmalloc import Arenas
from gcspy_drivers.remote.pages.accesses import AccessedPages, CellAccesses, PageAccesses
from gcspy_drivers.remote.pages.page_ranges import PageRanges
from gcspy_drivers.remote.pages.protection import ProtectedPages
from gcspy_drivers.remote.pages.trial import try_pages
from gcspy_drivers.remote.pages.written_pages import WrittenPages
from gcspy_drivers.remote.process import Process

__all__ = [
    "CHOICES",
    "FULL_COLLECTIONS",
    "CollectionAccesses",
    "ProgramPages",
    "open_accesses",
    "open_pages",
]

FULL_COLLECTIONS: Final = "full"
CHOICES: Final = {FULL_COLLECTIONS: 2, "middle": 1, "all": 0}
"""The youngest generation whose collections bound an interval, by the user's choice; any other choice: accesses are not followed."""

_MOST_KEPT_BYTES: Final = 64 << 20
"""Most bytes about the pages at events that are recorded and not read yet; older ones are unknown then."""


@dataclass(frozen=True, eq=False)
class ProgramPages:
    """The written pages of a program, if its kernel and its stub can tell.

    Attributes:
        pages: They; None: they cannot be told.
        source: How the kernel tells; None as `pages`.
        refusal: Why not.
        fault_nanos: What the first write to a protected page costs the program.
    """

    pages: WrittenPages | None
    refusal: str = ""
    fault_nanos: int = 0
    source: ProtectedPages | None = None


def open_pages(process: Process, line: StubLine) -> ProgramPages:
    """Make it possible to see which pages are written.

    Args:
        process: The process; borrowed.
        line: The connection to its stub, which has said hello; borrowed.

    Raises:
        TargetGone: The process has ended.
    """
    trial = try_pages()
    if not trial.works:
        return ProgramPages(None, trial.refusal)
    descriptor = line.take_pages()
    if descriptor < 0:
        return ProgramPages(None, "the program's system allows it no userfaultfd")
    try:
        source = ProtectedPages(process, descriptor)
    except TargetGone:
        raise
    except TargetError as error:
        return ProgramPages(None, str(error))
    return ProgramPages(WrittenPages(source), fault_nanos=trial.fault_nanos, source=source)


def open_accesses(
    opened: ProgramPages, line: StubLine, geometry: PoolGeometry, choice: str
) -> tuple[CollectionAccesses | None, str]:
    """Follow accesses, if kernel and stub can.

    Args:
        opened: The program's written pages; borrowed.
        line: The connection to its stub, which has said hello; borrowed.
        geometry: Sizes of its pymalloc.
        choice: Which collections bound intervals, one of `CHOICES`.

    Returns:
        The accesses; None: they cannot be seen. And why not; empty if nobody asked.
    """
    generation = CHOICES.get(choice)
    if generation is None:
        return None, ""
    if opened.pages is None:
        return None, f"accesses to memory are not known: {opened.refusal}"
    return CollectionAccesses(opened.pages, line, geometry, opened.fault_nanos, generation), ""


class CollectionAccesses:
    """The accesses of one process.

    Args:
        pages: Its written pages; borrowed.
        line: The connection to its stub; borrowed.
        geometry: Sizes of its pymalloc.
        fault_nanos: What the first write to a page costs it.
        generation: The youngest generation whose collections bound intervals.

    Attributes:
        pages: Its written pages, for others who ask.
        problem: Why nothing is known any more; empty: it is.
    """

    def __init__(
        self,
        pages: WrittenPages,
        line: StubLine,
        geometry: PoolGeometry,
        fault_nanos: int,
        generation: int,
    ) -> None:
        self.pages = pages
        self.problem = ""
        self._line = line
        self._geometry = geometry
        self._generation = generation
        self._accesses = PageAccesses(pages, fault_nanos)
        self._inside = False
        self._collection = 0
        self._kept: dict[tuple[int, int], tuple[AccessedPages, str]] = {}
        self._kept_bytes = 0

    @property
    def number(self) -> int:
        """A number that changes whenever something may be different."""
        return self._accesses.number + self._accesses.intervals

    def follow(self, arenas: Sequence[Arenas], *, wanted: bool) -> None:
        """Begin or end at a tick, as somebody asks for accesses or nobody does.

        Args:
            arenas: The arenas now.
            wanted: Whether anybody asks.

        Raises:
            TargetGone: The process has ended.
            NotPermitted: The system does not let us read it any more.
        """
        accesses = self._accesses
        if self.problem or self._inside:
            return
        if accesses.measures and not wanted:
            self._try(lambda: accesses.end(self._ranges(arenas)))
        elif not accesses.measures and wanted and accesses.allowed:
            self._try(lambda: accesses.begin(self._ranges(arenas)))
        self._tell_stub()

    def ends_at(self, event: StubEvent) -> bool:
        """Return whether an event is of a collection that ends an interval."""
        return not self.problem and event.generation >= self._generation

    def announced(self, event: StubEvent, arenas: Sequence[Arenas]) -> None:
        """End an interval when a collection starts, and begin the next when it has ended; the program stands still.

        Args:
            event: The event.
            arenas: The arenas now.

        Raises:
            TargetGone: The process has ended.
            NotPermitted: The system does not let us read it any more.
        """
        accesses = self._accesses
        if not self.ends_at(event):
            return
        if event.kind == 0:
            self._inside = accesses.measures
            self._try(lambda: accesses.end(self._ranges(arenas)))
        else:
            if self._inside and accesses.allowed:
                self._try(lambda: accesses.begin(self._ranges(arenas)))
            self._inside = False
            self._collection = event.number
        self._tell_stub()

    def refresh(self, arenas: Sequence[Arenas]) -> None:
        """Read what was accessed in the interval until now, if that is due.

        Args:
            arenas: The arenas now.

        Raises:
            TargetGone: The process has ended.
            NotPermitted: The system does not let us read it any more.
        """
        if not self.problem:
            self._try(lambda: self._accesses.refresh(self._ranges(arenas)))

    def of_pools(self, address: npt.NDArray[np.uint64]) -> CellAccesses:
        """Return the accesses to pools, by their addresses, (pools,)."""
        return self._accesses.of_cells(address, self._geometry.pool_bytes)

    def keep(self, event: StubEvent) -> None:
        """Keep what is known at an event that was recorded, and is read later: others may happen before."""
        pages = self._accesses.now()
        self._kept[event.kind, event.number] = pages, self.since(event.time_nanos)
        self._kept_bytes += pages.nbytes
        while self._kept_bytes > _MOST_KEPT_BYTES:
            self._drop(next(iter(self._kept)))

    def at(
        self, event: StubEvent, address: npt.NDArray[np.uint64]
    ) -> tuple[CellAccesses | None, str] | None:
        """Return the accesses to pools at a recorded event, and to which time they belong.

        Args:
            event: The event, not older than those of earlier calls.
            address: (pools,) where each pool begins.

        Returns:
            None: the interval of the event goes on, so that what is known now is of it.
        """
        for key in [one for one in self._kept if one[0] == event.kind and one[1] < event.number]:
            self._drop(key)
        found = self._kept.get((event.kind, event.number))
        if found is not None:
            pages, text = found
            return pages.of_cells(address, self._geometry.pool_bytes), text
        changed = max(self._accesses.begun_nanos, self._accesses.ended_nanos)
        if event.time_nanos < changed:
            return None, "accesses not known: this was read after the next full collection"
        return None

    def _drop(self, key: tuple[int, int]) -> None:
        self._kept_bytes -= self._kept.pop(key)[0].nbytes

    def take_charge(self) -> int:
        """Return what following accesses has cost the program since the last call, in nanoseconds."""
        return self._accesses.take_charge()

    def since(self, now_nanos: int) -> str:
        """Say to which interval the accesses belong."""
        if self.problem:
            return f"accesses not known: {self.problem}"
        accesses = self._accesses
        if not accesses.begun_nanos:
            return "accesses not known yet"
        what = {2: "full collection", 1: "collection of the middle generation", 0: "collection"}
        since = f"the last {what[self._generation]}" if accesses.intervals else "monitoring began"
        secs = (now_nanos - accesses.begun_nanos) / 1e9
        if accesses.measures:
            return f"accesses since {since}, {secs:.1f} s ago"
        until = (now_nanos - accesses.ended_nanos) / 1e9
        return f"accesses of {secs - until:.1f} s that ended {until:.1f} s ago"

    def close(self) -> None:
        """Stop to follow accesses."""
        self._accesses.close()

    def _ranges(self, arenas: Sequence[Arenas]) -> PageRanges:
        return arena_ranges(arenas, self._geometry)

    def _tell_stub(self) -> None:
        follows = not self.problem and (self._accesses.measures or self._inside)
        self._line.always_report(self._generation if follows else None)

    def _try(self, step: Callable[[], None]) -> None:
        try:
            step()
        except (TargetGone, NotPermitted):
            raise
        except TargetError as error:
            self.problem = str(error)
