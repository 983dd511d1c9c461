"""`AccessTable`: the accesses of a program that notes them itself, by 16 bytes; and `TableAges`, for how long memory was not accessed.

A program that is compiled with ``-fsanitize=thread`` and linked to ``gcspy_accesses.c`` writes the
number of the current period into a table at each access. We advance that number, two bytes in the
program, and read the table; nothing waits. A unit was accessed in a
period if its mark is the number of that period, or has changed since the last reading: so a thread
that was interrupted between reading the number and writing it loses nothing. After 65,535 periods
the numbers come again: then a unit that was idle for all that time may seem accessed once, never the other
way round.

A program whose checks are compiled in place notes only the first access of a period: where a byte
of a second table is not 0. After advancing the number we set those bytes again, of the memory that
we follow. A byte that is still 0 then belongs to a unit that is noted in the period that ends.

Knows the program's page of control, which it does not trust, and marks; does not know what is in the memory.

Source: `drivers/native/include/gcspy_accesses.c`, struct control.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
from gcspy_protocol.errors import TargetError

from gcspy_drivers.remote.address import PAGE_BYTES
from gcspy_drivers.remote.mapping_table import read_mapping_table
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.memory_writer import write
from gcspy_drivers.remote.pages.memory_ages import AGE_SECS
from gcspy_drivers.remote.pages.page_ranges import NO_RANGES, PageRanges
from gcspy_drivers.remote.process import Process

__all__ = ["AccessTable", "TableAges"]

_MAPPED_AS: Final = "/memfd:gcspy-accesses"
_CONTROL: Final = struct.Struct("<8s2I4Q")
_MAGIC: Final = b"gcspyac\0"
_VERSION: Final = 2
_UNIT_BYTES: Final = 16
_UNITS: Final = PAGE_BYTES // _UNIT_BYTES
_TABLE: Final = 0x100000000000
_CHECKS: Final = 0x200000000000
_CHECKED_BYTES: Final = 8
_UNCHECKED: Final = b"\x80" * 4096
_PERIODS: Final = (1 << 16) - 1
_LEAST_SECS: Final = 1
_NANOS: Final = 1_000_000_000
_REST: Final = 20
"""Reading may take one in this many nanoseconds of ours."""

I64 = npt.NDArray[np.int64]
Marks = npt.NDArray[np.uint16]


class AccessTable:
    """The table of one process.

    Args:
        process: The process; borrowed.
        period_at: Where it has the number of the period.
        in_place: Whether its checks are compiled in place.

    Attributes:
        period: The number of the current period.
    """

    def __init__(self, process: Process, period_at: int, *, in_place: bool = False) -> None:
        self._process = process
        self._in_place = in_place
        self._memory = Memory(process)
        self._period_at = period_at
        self.period = int.from_bytes(self._memory.read(period_at, 2), "little")

    @classmethod
    def find(cls, process: Process) -> AccessTable | None:
        """Find the table; None: the program has none.

        Raises:
            TargetError: It has one of another version, or one that contradicts itself.
        """
        rows = read_mapping_table(process).rows
        place = next((row.start for row in rows if row.path.startswith(_MAPPED_AS)), None)
        if place is None:
            return None
        raw = Memory(process).read(place, _CONTROL.size)
        magic, version, unit_bytes, table, table_bytes, period_at, checks = _CONTROL.unpack(raw)
        expected = _MAGIC, _VERSION, _UNIT_BYTES, _TABLE, _TABLE
        if (magic, version, unit_bytes, table, table_bytes) != expected or checks not in (
            0,
            _CHECKS,
        ):
            raise TargetError(
                f"process {process.pid}: its table of accesses is of another version ({version}): link the program to the "
                "gcspy_accesses.c of this gcspy"
            )
        return cls(process, period_at, in_place=bool(checks))

    def advance(self) -> None:
        """Begin the next period.

        Raises:
            TargetError: The process has ended, or its number cannot be written.
        """
        self.period = self.period % _PERIODS + 1
        write(self._process, self._period_at, self.period.to_bytes(2, "little"))

    def check_again(self, ranges: PageRanges) -> None:
        """Have the first access to each unit noted from now on, if checks are in place; the period has begun before.

        Args:
            ranges: The memory.

        Raises:
            TargetError: The process has ended, or its table cannot be written.
        """
        if not self._in_place:
            return
        for begin, pages in zip(ranges.begin.tolist(), ranges.pages.tolist(), strict=True):
            place = _CHECKS + begin // _CHECKED_BYTES
            left = 0 if begin >> 47 else pages * PAGE_BYTES // _CHECKED_BYTES
            while left > 0:
                size = min(left, len(_UNCHECKED))
                write(self._process, place, _UNCHECKED[:size])
                place, left = place + size, left - size

    def marks(self, begin: int, pages: int) -> Marks:
        """Return the marks of some pages of memory, (pages × 256,); zeros where they cannot be read.

        Args:
            begin: Address of the first page.
            pages: Their number.
        """
        found = np.zeros(pages * _UNITS, dtype=np.uint16)
        if begin >> 47 or not self._memory.read_into(_TABLE + begin // 8, found.view(np.uint8)):
            self._process.check()
            found[:] = 0
        return found


class TableAges:
    """The ages of one process's memory by its table; see `MemoryAges`.

    Args:
        table: The table.
        time_nanos: Monotonic clock.

    Attributes:
        begun_nanos: When the first reading was, by the clock; 0: there was none.
        looked_nanos: When the latest was.
    """

    unit_bytes = _UNIT_BYTES
    sees_reads = True

    def __init__(
        self, table: AccessTable, *, time_nanos: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._table = table
        self._time_nanos = time_nanos
        self._ranges = NO_RANGES
        self._marks: Marks = np.zeros(0, dtype=np.uint16)
        self._last: npt.NDArray[np.uint32] = np.zeros(0, dtype=np.uint32)
        self._times: list[int] = []
        self._next_look = 0
        self.begun_nanos = self.looked_nanos = 0

    def take_charge(self) -> int:
        """Return 0: the program pays at each access, whether anybody reads its table or not."""
        return 0

    def look(self, ranges: PageRanges) -> None:
        """Read what was accessed, if that is due, and begin the next period.

        Args:
            ranges: The memory now.

        Raises:
            TargetError: The process has ended.
        """
        begun = self._time_nanos()
        if begun < self._next_look:
            return
        ended = self._table.period
        self._table.advance()
        self._table.check_again(ranges)
        marks = np.concatenate(
            [
                np.zeros(0, dtype=np.uint16),
                *(
                    self._table.marks(begin, pages)
                    for begin, pages in zip(
                        ranges.begin.tolist(), ranges.pages.tolist(), strict=True
                    )
                ),
            ]
        )
        number = len(self._times)
        now = self._time_nanos()
        before, last = self._moved(ranges, number)
        accessed = (marks != before) | (marks == np.uint16(ended))
        last[accessed] = number
        self._times.append(now)
        self._marks, self._last, self._ranges = marks, last, ranges
        self.begun_nanos = self.begun_nanos or now
        self.looked_nanos = now
        self._next_look = now + max(_LEAST_SECS * _NANOS, _REST * (now - begun))

    def _moved(self, ranges: PageRanges, number: int) -> tuple[Marks, npt.NDArray[np.uint32]]:
        """Return the marks of the last reading and the numbers of the last readings with an access, for other ranges."""
        if ranges.same(self._ranges):
            return self._marks, self._last
        before = np.zeros((ranges.total, _UNITS), dtype=np.uint16)
        last = np.full((ranges.total, _UNITS), number, dtype=np.uint32)
        rows = self._ranges.rows(ranges.addresses)
        there = rows >= 0
        before[there] = self._marks.reshape(-1, _UNITS)[rows[there]]
        last[there] = self._last.reshape(-1, _UNITS)[rows[there]]
        return before.reshape(-1), last.reshape(-1)

    def _ages(self) -> I64:
        """Return the age of each number of a reading, (readings,), in seconds."""
        return (self.looked_nanos - np.array(self._times, dtype=np.int64)) // _NANOS

    def seconds(self, address: npt.NDArray[np.uint64]) -> I64:
        """Return for how long nothing of the page at each address was accessed, (n,), whole seconds; -1: not known."""
        rows = self._ranges.rows(address)
        found = np.full(len(address), -1, dtype=np.int64)
        there = rows >= 0
        if there.any():
            latest = self._last.reshape(-1, _UNITS)[rows[there]].max(axis=1)
            found[there] = self._ages()[latest]
        return found

    def steps(self, begin: int, end: int) -> npt.NDArray[np.uint8]:
        """Return how many of `AGE_SECS` each 16 bytes of a range have reached, (units,); 0 as well where nothing is known."""
        first = begin // _UNIT_BYTES
        count = max(0, -(-end // _UNIT_BYTES) - first)
        found = np.zeros(count, dtype=np.uint8)
        if not self._times or not count:
            return found
        step = np.searchsorted(np.array(AGE_SECS), self._ages(), side="right").astype(np.uint8)
        pages = PageRanges.of(np.array([begin], dtype=np.uint64), end - begin)
        rows = self._ranges.rows(pages.addresses)
        known = np.zeros((pages.total, _UNITS), dtype=np.uint8)
        there = rows >= 0
        known[there] = step[self._last.reshape(-1, _UNITS)[rows[there]]]
        skipped = first - int(pages.begin[0]) // _UNIT_BYTES
        found[:] = known.reshape(-1)[skipped : skipped + count]
        return found

    def sums(self, address: npt.NDArray[np.uint64], sizes: npt.NDArray[np.uint64]) -> I64:
        """Return the bytes of ranges by the age of that part of each that was accessed last, (ages, ranges)."""
        found = np.zeros((len(AGE_SECS) + 1, len(address)), dtype=np.int64)
        for row, (begin, size) in enumerate(zip(address.tolist(), sizes.tolist(), strict=True)):
            steps = self.steps(begin, begin + size)
            found[int(steps.min(initial=len(AGE_SECS))), row] = size
        return found

    def close(self) -> None:
        """Stop; the program goes on to note its accesses."""
