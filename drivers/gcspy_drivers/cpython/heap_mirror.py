"""`HeapMirror`: a copy of a program's memory, as it was at an event, in which objects are searched for while the program runs.

    an event at which the program waits ──all pages──▶ mirror
    a recorded event ──the pages written since──▶ mirror ──▶ objects

The mirror is complete once all pages were copied while the program stood still. Then each recorded
event brings the pages that were written since the one before. If some of them are missing, it is
incomplete until all have been copied again.

Knows written pages, copies of them, and the target; does not know spaces, or when events happen.
"""

from __future__ import annotations

import time
from typing import Final

import numpy as np
import numpy.typing as npt
from gcspy_protocol.errors import TargetError

from gcspy_drivers.cooperative.ring_buffer import PageCopies
from gcspy_drivers.cpython.target import Target
from gcspy_drivers.remote.address import PAGE_BYTES
from gcspy_drivers.remote.maps import parse_maps
from gcspy_drivers.remote.pages.mirror import ADDRESS_END, MirroredProcess, own_ranges
from gcspy_drivers.remote.pages.page_ranges import PageRanges
from gcspy_drivers.remote.pages.protection import ProtectedPages
from gcspy_drivers.remote.pages.written_pages import WrittenPages

__all__ = ["HeapMirror", "MirroredWrites"]

MOST_PAGES: Final = (32 << 20) // PAGE_BYTES
"""Most written pages that an event records; one with more waits."""

_MOST_BYTES: Final = 512 << 20
"""The most memory of a program that is mirrored."""

_REST_NANOS: Final = 20_000_000
_LONG_REST_NANOS: Final = 200_000_000
"""How long mappings that are new are copied whole before they are looked for."""

U64 = npt.NDArray[np.uint64]


class MirroredWrites:
    """The pools that were written between two searches in a mirror; a `kept_pools.WrittenPools`.

    Args:
        pool_bytes: Size of a pool.
    """

    def __init__(self, pool_bytes: int) -> None:
        self.number = 0
        self._mask = np.uint64(~(pool_bytes - 1) & (2**64 - 1))
        self._new: list[U64] | None = None
        self._pools: U64 | None = None

    def add(self, pages: U64) -> None:
        """Add pages by their addresses."""
        if self._new is not None:
            self._new.append(pages & self._mask)

    def add_all(self) -> None:
        """Take all pools as written."""
        self._new = None

    def take(self) -> None:
        """Begin a search: what was added until now counts for it, and no longer afterwards."""
        self.number += 1
        new = self._new
        self._pools = None if new is None else np.unique(np.concatenate((*new, _NONE)))
        self._new = []

    def among(self, address: U64) -> npt.NDArray[np.bool_]:
        """Return which pools may have been written, by their addresses, (n,)."""
        pools = self._pools
        if pools is None:
            return np.ones(len(address), dtype=np.bool_)
        if not len(pools):
            return np.zeros(len(address), dtype=np.bool_)
        row = np.minimum(np.searchsorted(pools, address), len(pools) - 1)
        return np.asarray(pools[row] == address)

    def examined(self, _pools: int, _nanos: int) -> None:
        """Do nothing: pages are followed whatever that costs."""


_NONE: Final[U64] = np.zeros(0, dtype=np.uint64)


class HeapMirror:
    """The mirror of one program.

    Args:
        target: The program.
        pages: Its written pages, of which others are told that this one protects them; borrowed.
        source: How the kernel tells which were written; borrowed.
        fault_nanos: What the first write to a protected page costs the program.

    Attributes:
        refusal: Why the program is not mirrored; empty: it can be.
        writes: The pools that were written since the search before.
    """

    def __init__(
        self, target: Target, pages: WrittenPages, source: ProtectedPages, fault_nanos: int
    ) -> None:
        self._target = target
        self._pages = pages
        self._source = source
        self._fault_nanos = fault_nanos
        self._process: MirroredProcess | None = None
        self._mirrored: Target | None = None
        self._ignored = self._charge = self._due_nanos = 0
        self._followed = b""
        self.refusal = ""
        self.writes = MirroredWrites(target.geometry.pool_bytes)

    @property
    def complete(self) -> bool:
        """Whether it has all pages, as they were at the event that was taken last."""
        return self._mirrored is not None

    @property
    def target(self) -> Target | None:
        """The program at that event; None: the mirror is not complete."""
        return self._mirrored

    def take_charge(self) -> int:
        """Return what following has cost the program since the last call, in nanoseconds: its faults."""
        charge, self._charge = self._charge, 0
        return charge

    def copy(self, pending: int, *, lost: bool) -> bool:
        """Copy what was written, or everything, from the program, which stands still; return whether the mirror is complete.

        Args:
            pending: How many recorded events were not taken yet: older than this copy.
            lost: Whether some pages that were written may be protected already: then everything is copied.

        Raises:
            TargetGone: The program has ended.
            NotPermitted: The system does not let us read it.
        """
        if self.refusal:
            return False
        if lost:
            self.leave()
        process = self._process
        if process is None:
            process = self._process = MirroredProcess(self._target.process)
        try:
            text = self._target.process.read_file("maps")
            process.follow_maps(text)
            ranges = own_ranges(process.maps)
            self._source.follow(ranges)
            regions = self._source.take_anonymous(ADDRESS_END)
            self._note(regions)
            if (
                self._mirrored is None
            ):  # all pages, of which those that are protected were not listed
                self._source.release(ranges)
                regions = self._source.take_anonymous(ADDRESS_END)
            wanted = int(regions[:, 1].sum()) * PAGE_BYTES
            if wanted + process.used_bytes > _MOST_BYTES:
                self._give_up(f"it has {(wanted + process.used_bytes) >> 20} MiB to be mirrored")
                return False
            whole = self._mirrored is None
            pages = process.copy(regions)
            self._pages.lent = True
            if whole:
                process.copy_written_files()
                process.copy_constants(process.maps)
                self.writes.add_all()
                self._mirrored = self._target.mirrored(process)
            else:
                self._charge += len(pages) * self._fault_nanos
                self.writes.add(pages)
        except TargetError as error:
            self._give_up(str(error))
            self._target.process.check()
            return False
        self._ignored = pending
        return True

    def take(self, copies: PageCopies | None) -> bool:
        """Take the pages of a recorded event; return whether the mirror is complete.

        Raises:
            TargetError: They are not valid.
        """
        process = self._process
        if process is None or self._mirrored is None:
            return False
        if self._ignored:  # copied since
            self._ignored -= 1
            return False
        if copies is None:
            self.leave()
            return False
        if copies.maps is not None:
            process.follow_maps(copies.maps)
        regions = np.frombuffer(copies.regions, dtype="<u8").reshape(-1, 2)
        pages = process.put(regions, copies.content)
        self._charge += len(pages) * self._fault_nanos
        self.writes.add(pages)
        if process.used_bytes > _MOST_BYTES:
            self._give_up(f"it has {process.used_bytes >> 20} MiB to be mirrored")
        return self.complete

    def note(self, regions: memoryview) -> None:
        """Tell others who ask for written pages of those that an event has recorded.

        Args:
            regions: See `PageCopies.regions`.
        """
        found = np.frombuffer(regions, dtype="<u8").reshape(-1, 2)
        pages = found[:, 1]
        if int(pages.max(initial=0)) <= MOST_PAGES and int(pages.sum()) <= 2 * MOST_PAGES:
            self._note(found)

    def _note(self, regions: U64) -> None:
        pages = PageRanges(regions[:, 0], regions[:, 1].astype(np.int64))
        self._pages.note(pages.addresses)

    def follow_new(self) -> None:
        """Have the pages of new mappings followed, while the program runs; not more often than it is worth.

        Raises:
            TargetGone: The program has ended.
            TargetError: Its memory map cannot be read.
        """
        now = time.monotonic_ns()
        if not self.complete or now < self._due_nanos:
            return
        text = self._target.process.read_file("maps")
        # The stack is never followed, and copied each time: nothing else may be new.
        self._due_nanos = now + (_LONG_REST_NANOS if text == self._followed else _REST_NANOS)
        if text != self._followed:
            self._followed = text
            maps = parse_maps(text)
            self._source.follow(own_ranges(maps))
            process = self._process
            if process is not None:
                process.copy_constants(maps)

    def leave(self) -> None:
        """Forget the copies; the next search needs all pages again."""
        self._mirrored = None
        self._pages.lent = False
        if self._process is not None:
            self._process.close()
            self._process = None
        self.writes.add_all()

    def close(self) -> None:
        """Free everything."""
        self.leave()

    def _give_up(self, why: str) -> None:
        self.refusal = why
        self.leave()
