"""The mappings of the target, row by row: ``/proc/PID/maps``.

Without numpy, for who asks a few questions of many processes. `gcspy_drivers.remote.maps` has the
same as columns. Knows files and permissions; does not know what a runtime stores there.

Source: proc(5), proc_pid_maps(5).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from gcspy_protocol.errors import TargetError

from gcspy_drivers.remote.address import Addr
from gcspy_drivers.remote.process import Process

__all__ = [
    "EXECUTE",
    "PRIVATE",
    "READ",
    "WRITE",
    "Mapping",
    "MappingTable",
    "parse_rows",
    "read_mapping_table",
]

READ, WRITE, EXECUTE, PRIVATE = 1, 2, 4, 8
"""Bits of `Mapping.permissions`."""

_HEADER: Final = re.compile(
    rb"^([0-9a-f]{1,16})-([0-9a-f]{1,16}) ([-r][-w][-x][ps]) ([0-9a-f]{1,16}) ([0-9a-f]+:[0-9a-f]+) (\d{1,19}) *(.*)$",
    re.M,
)
_LETTERS: Final = ((b"-r", READ), (b"-w", WRITE), (b"-x", EXECUTE), (b"sp", PRIVATE))
_DELETED: Final = " (deleted)"


class Mapping(NamedTuple):
    """One mapping.

    Attributes:
        start: Its first address.
        end: The address after its last byte.
        permissions: Bits READ, WRITE, EXECUTE and PRIVATE.
        offset: Where in its file it begins, bytes; 0 for memory that has no file.
        device: Device of its file as the kernel writes it (``fe:00``).
        inode: Inode of its file; 0 for memory that has no file.
        path: Its file, or a name such as ``[heap]`` or ``[anon:…]``, or ``""``, with the kernel's
            ``" (deleted)"`` where the file is gone.
    """

    start: int
    end: int
    permissions: int
    offset: int
    device: str
    inode: int
    path: str

    @property
    def is_deleted(self) -> bool:
        """Whether its file was removed or replaced since it was mapped."""
        return bool(self.inode) and self.path.endswith(_DELETED)

    @property
    def file(self) -> str:
        """The path of its file without the kernel's mark for a removed one."""
        return self.path.removesuffix(_DELETED) if self.is_deleted else self.path


@dataclass(frozen=True, eq=False)
class MappingTable:
    """The mappings of a process at one moment.

    Attributes:
        rows: The mappings, in order of address.
    """

    rows: tuple[Mapping, ...]

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def path(self) -> tuple[str, ...]:
        """The path of each mapping; see `Mapping`."""
        return tuple(row.path for row in self.rows)

    @cached_property
    def _readable(self) -> tuple[list[int], list[int]]:
        """First addresses and end addresses of readable memory; neighbouring mappings are one range."""
        starts: list[int] = []
        ends: list[int] = []
        for row in self.rows:
            if not row.permissions & READ:
                continue
            if ends and ends[-1] == row.start:
                ends[-1] = row.end
            else:
                starts.append(row.start)
                ends.append(row.end)
        return starts, ends

    def cover(self, addr: int, size_bytes: int = 1) -> bool:
        """Return whether all of ``size_bytes`` from one address on is readable."""
        starts, ends = self._readable
        at = bisect_right(starts, addr) - 1
        return at >= 0 and addr < ends[at] and addr + size_bytes <= ends[at]

    def rows_of_file(self, path: str) -> list[int]:
        """Return the rows that map a file, in order of address."""
        return [number for number, name in enumerate(self.path) if name == path]

    def first_addr(self, path: str) -> Addr | None:
        """Return the lowest address at which a file is mapped; None if it is not."""
        found = self.rows_of_file(path)
        return Addr(self.rows[found[0]].start) if found else None

    def is_deleted(self, row: int) -> bool:
        """Return whether the file of a mapping was removed or replaced since it was mapped."""
        return self.rows[row].is_deleted

    def file_of(self, row: int) -> str:
        """Return the path of a mapping's file without the kernel's mark for a removed one."""
        return self.rows[row].file


def parse_rows(text: bytes) -> tuple[Mapping, ...]:
    """Parse ``/proc/PID/maps``, or the header lines of ``smaps``.

    Args:
        text: The whole file.

    Raises:
        TargetError: It is not empty, and no line is a mapping.
    """
    found = _HEADER.findall(text)
    if not found and text.strip():
        raise TargetError(
            f"the memory map of the target has an unknown format ({len(text)} bytes, none is a mapping): {text[:80]!r}"
        )
    return tuple(
        Mapping(
            int(start, 16),
            int(end, 16),
            _PERMISSIONS[letters],
            int(offset, 16),
            device.decode("ascii"),
            int(inode),
            _unescape(path),
        )
        for start, end, letters, offset, device, inode, path in found
    )


def read_mapping_table(process: Process) -> MappingTable:
    """Read the mappings of a process.

    Raises:
        TargetGone: The process has ended.
        NotPermitted: The system does not show us its maps.
    """
    return MappingTable(parse_rows(process.read_file("maps")))


def _permissions() -> dict[bytes, int]:
    """Bits of each group of letters, such as ``r-xp``."""
    found = {b"": 0}
    for letters, bit in _LETTERS:
        found = {
            name + letters[at : at + 1]: bits | (bit if at else 0)
            for name, bits in found.items()
            for at in (0, 1)
        }
    return found


_PERMISSIONS: Final = _permissions()


def _unescape(path: bytes) -> str:
    # The kernel escapes only the newline, as \012; other bytes are the file's own and need not be UTF-8.
    return path.replace(b"\\012", b"\n").decode("utf-8", "surrogateescape")
