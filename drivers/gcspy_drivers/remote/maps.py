"""The mappings of the target: ``/proc/PID/maps`` and ``/proc/PID/smaps`` as columns.

Pointers found in the target are followed only if its maps have readable memory there; this is the
check, for whole columns of pointers at once. Knows files, permissions and resident bytes; does not
know what a runtime stores there.

Source: proc(5), proc_pid_maps(5), proc_pid_smaps(5); the kernel's Documentation/filesystems/proc.rst.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from gcspy_protocol.errors import TargetError

from gcspy_drivers.remote.mapping_table import READ, MappingTable, parse_rows
from gcspy_drivers.remote.process import Process

__all__ = [
    "LiveMaps",
    "Maps",
    "ResidentMaps",
    "parse_maps",
    "figures_of",
    "parse_smaps",
    "read_maps",
    "read_smaps",
]

U64 = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Maps(MappingTable):
    """The mappings of a process at one moment, in order of address, as rows and as columns."""

    @cached_property
    def start(self) -> U64:
        """(n,) first address of each mapping."""
        return np.array([row.start for row in self.rows], dtype=np.uint64)

    @cached_property
    def end(self) -> U64:
        """(n,) address after its last byte."""
        return np.array([row.end for row in self.rows], dtype=np.uint64)

    @cached_property
    def permissions(self) -> npt.NDArray[np.uint8]:
        """(n,) bits READ, WRITE, EXECUTE and PRIVATE."""
        return np.array([row.permissions for row in self.rows], dtype=np.uint8)

    @cached_property
    def offset(self) -> U64:
        """(n,) where in its file it begins, bytes; 0 for memory that has no file."""
        return np.array([row.offset for row in self.rows], dtype=np.uint64)

    @cached_property
    def inode(self) -> U64:
        """(n,) inode of its file; 0 for memory that has no file."""
        return np.array([row.inode for row in self.rows], dtype=np.uint64)

    @cached_property
    def device(self) -> tuple[str, ...]:
        """Device of the file of each mapping; see `Mapping`."""
        return tuple(row.device for row in self.rows)

    @cached_property
    def readable(self) -> tuple[U64, U64]:
        """(ranges,) first addresses and end addresses of readable memory; neighbouring mappings are one range."""
        readable = (self.permissions & READ) != 0
        start, end = self.start[readable], self.end[readable]
        if not len(start):
            return start, end
        begins = np.concatenate(([True], start[1:] != end[:-1]))
        return start[begins], end[np.concatenate((begins[1:], [True]))]

    def covers(
        self, addrs: npt.NDArray[np.integer], size_bytes: int | npt.NDArray[np.integer] = 1
    ) -> npt.NDArray[np.bool_]:
        """For each address, check whether all of ``size_bytes`` from it on is readable.

        Args:
            addrs: Addresses, any shape and integer type; negative ones and those that would overflow are not covered.
            size_bytes: Bytes needed from all of them, or from each (the shape of ``addrs``).

        Returns:
            A new array of the shape of ``addrs``.
        """
        start, end = self.readable
        if not len(start):
            return np.zeros(addrs.shape, dtype=np.bool_)
        wanted = addrs.astype(np.uint64)
        row = np.searchsorted(start, wanted, side="right") - 1
        inside = row >= 0
        room = (
            end[row] - wanted
        )  # wraps where wanted is beyond the end; such rows fail the next test
        return np.asarray(
            inside & (wanted < end[row]) & (room >= np.asarray(size_bytes, dtype=np.uint64))
        )

    def row_of(self, addr: int) -> int | None:
        """Return the row of the mapping that holds an address; None if there is none."""
        row = int(self.rows_of(np.array([addr], dtype=np.uint64))[0])
        return row if row >= 0 else None

    def rows_of(self, addrs: npt.NDArray[np.integer]) -> npt.NDArray[np.intp]:
        """Return the row of the mapping that holds each address; -1 if there is none."""
        if not len(self):
            return np.full(addrs.shape, -1, dtype=np.intp)
        wanted = addrs.astype(np.uint64)
        row = np.searchsorted(self.start, wanted, side="right") - 1
        return np.where((row >= 0) & (wanted < self.end[row]), row, -1)


@dataclass(frozen=True, eq=False)
class ResidentMaps:
    """The mappings and their resident bytes, all from one reading of ``smaps``.

    Attributes:
        maps: The mappings.
        rss_bytes: (n,) resident bytes of each; their sum is the process's RSS at this reading.
        dirty_bytes: (n,) resident bytes that only this process has and that cannot be read again
            from a file.
        anonymous_bytes: (n,) resident bytes that do not belong to a file.
        swap_bytes: (n,) bytes that were moved out to swap.
        huge_bytes: (n,) resident bytes in transparent huge pages.
    """

    maps: Maps
    rss_bytes: U64
    dirty_bytes: U64
    anonymous_bytes: U64
    swap_bytes: U64
    huge_bytes: U64


class LiveMaps:
    """The maps of a process that keeps mapping: read again only when a pointer is not covered by the known ones.

    Memory that was unmapped since still counts as covered; reading it then fails, which is the
    decisive test.

    Args:
        process: The process.
        maps: The known maps.
    """

    def __init__(self, process: Process, maps: Maps) -> None:
        self._process = process
        self._text = b""
        self.maps = maps

    def covers(self, addrs: npt.NDArray[np.integer], size_bytes: int = 1) -> npt.NDArray[np.bool_]:
        """For each address, check whether ``size_bytes`` from it on are readable, as `Maps.covers` does.

        Raises:
            TargetGone: The process has ended.
            NotPermitted: The system does not show us its maps any more.
        """
        covered = self.maps.covers(addrs, size_bytes)
        if not covered.all():
            self.refresh()
            covered = self.maps.covers(addrs, size_bytes)
        return covered

    def refresh(self) -> None:
        """Read the maps again, for callers that ask about many numbers of which some are never covered.

        Raises:
            TargetGone: The process has ended.
            NotPermitted: The system does not show us its maps any more.
        """
        text = self._process.read_file("maps")
        if text != self._text:  # to parse it takes five times as long as to read it
            self.maps = parse_maps(text)
            self._text = text


def parse_maps(text: bytes) -> Maps:
    """Parse ``/proc/PID/maps``, or the header lines of ``smaps``.

    Args:
        text: The whole file.

    Raises:
        TargetError: It is not empty, and no line is a mapping.
    """
    return Maps(parse_rows(text))


def parse_smaps(text: bytes) -> ResidentMaps:
    """Parse ``/proc/PID/smaps``.

    Args:
        text: The whole file.

    Raises:
        TargetError: Some mapping lacks its figures.
    """
    maps = parse_maps(text)
    return ResidentMaps(
        maps=maps,
        rss_bytes=figures_of(text, b"Rss", maps),
        dirty_bytes=figures_of(text, b"Private_Dirty", maps),
        anonymous_bytes=figures_of(text, b"Anonymous", maps),
        swap_bytes=figures_of(text, b"Swap", maps),
        huge_bytes=figures_of(text, b"AnonHugePages", maps),
    )


def read_maps(process: Process) -> Maps:
    """Read the mappings of a process.

    Raises:
        TargetGone: The process has ended.
        NotPermitted: The system does not show us its maps.
    """
    return parse_maps(process.read_file("maps"))


def read_smaps(process: Process) -> ResidentMaps:
    """Read the mappings of a process and their resident bytes. The kernel walks its page tables for this.

    Raises:
        TargetGone: The process has ended.
        NotPermitted: The system does not show us its maps.
    """
    return parse_smaps(process.read_file("smaps"))


def figures_of(text: bytes, name: bytes, maps: Maps) -> U64:
    """Return the figures of one name in ``smaps`` as bytes, one a mapping, (n,).

    Raises:
        TargetError: Some mapping lacks it.
    """
    # The kernel prints the same lines for each mapping, in one order: so the nth figure is the nth mapping's.
    found = re.findall(rb"^" + name + rb": +(\d{1,16}) kB$", text, re.M)
    if len(found) != len(maps):
        raise TargetError(
            f"smaps of the target has {len(maps)} mappings and {len(found)} figures {name.decode()}: no sums can be made"
        )
    return np.array(found, dtype=np.uint64) * np.uint64(1024)
