"""Finds named variables of the target: exported symbols of its executable or of a shared library.

An `Image` is an ELF file as one process has it mapped. This module provides the bytes, from the
file itself or, if the file cannot be opened (replaced by an upgrade, in a container we cannot
enter), from the target's mappings of it; `gcspy_drivers.remote.elf.file` parses them. Does not know
the meaning of a symbol.

Source: System V ABI, chapter "Program Loading"; proc(5) for map_files and root.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from gcspy_protocol.errors import TargetError

from gcspy_drivers.remote.address import PAGE_BYTES, Addr
from gcspy_drivers.remote.elf.file import ElfFile, Load
from gcspy_drivers.remote.files import RegularFile, TargetRoot, reopen_regular
from gcspy_drivers.remote.mapping_table import EXECUTE, READ, MappingTable
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.positioned_file import PositionedFile
from gcspy_drivers.remote.process import Process

__all__ = ["Image", "open_file", "open_image"]

_MAX_MAPPINGS: Final = 256  # of one file; a libjvm has 5


@dataclass(frozen=True, eq=False)
class Image:
    """An ELF file as one process has it mapped.

    Attributes:
        path: The file, as named by the target.
        bias: The amount that the loader added to every address of the file; 0 for a file with fixed
            addresses.
        writable: Address ranges (first, end) of its variables, initialised or zeroed at start.
        file: The file.
        from_memory: Whether the file could not be opened, and its bytes come from the target's mappings.
    """

    path: str
    bias: int
    writable: tuple[tuple[Addr, Addr], ...]
    file: ElfFile
    from_memory: bool

    def exported(self, name: str) -> Addr | None:
        """Return the address of an exported symbol in the target; None if the image does not export it.

        Raises:
            TargetError: The file is damaged.
        """
        found = self.file.exported(name)
        return None if found is None else Addr(self.bias + found.vaddr)

    def static(self, name: str) -> Addr | None:
        """Return the address of a static variable in the target; None if the file is stripped, ambiguous or not available.

        Raises:
            TargetError: The file is damaged.
        """
        found = self.file.static(name)
        return None if found is None else Addr(self.bias + found.vaddr)

    def close(self) -> None:
        """Close the file. Symbols cannot be looked up afterwards."""
        self.file.close()


def open_file(process: Process, maps: MappingTable, path: str) -> ElfFile | None:
    """Open the very file that a process has mapped, also in another mount namespace or after it was replaced.

    Args:
        process: The process.
        maps: Its mappings.
        path: The file, as ``maps`` names it (with its mark when it was deleted).

    Returns:
        The file, which the caller closes; None if it is not available.

    Raises:
        TargetGone: The process has ended.
        TargetError: It is not an ELF file that we can read.
    """
    rows = maps.rows_of_file(path)
    if not rows:
        return None
    first = maps.rows[rows[0]]
    # By its name in the target's own tree; else the kernel's handle on the mapping, which needs
    # CAP_CHECKPOINT_RESTORE; else the handle on the executable, which any reader may use. Each is
    # accepted only with the mapping's inode.
    links = [f"map_files/{first.start:x}-{first.end:x}", "exe"]
    ways = [partial(_open_link, process, link) for link in links]
    if not first.is_deleted:
        ways.insert(0, partial(_open_name, process, path))
    for way in ways:
        try:
            fd = way()
        except (OSError, TargetError):
            process.check()
            continue
        if os.fstat(fd).st_ino != first.inode:
            os.close(fd)
            continue
        return ElfFile(RegularFile(fd), first.file)
    return None


def _open_name(process: Process, path: str) -> int:
    with TargetRoot(process) as root:
        return root.regular(path)


def _open_link(process: Process, link: str) -> int:
    looked_at = process.follow(link)
    try:
        return reopen_regular(looked_at)
    finally:
        os.close(looked_at)


def open_image(process: Process, memory: Memory, maps: MappingTable, path: str) -> Image:
    """Determine how a process has an ELF file mapped.

    Args:
        process: The process.
        memory: Its memory, in case the file is not available.
        maps: Its mappings.
        path: The file, as ``maps`` names it.

    Returns:
        The image; the caller closes it.

    Raises:
        TargetError: The file is not mapped, not an ELF file, or mapped in a way that no loader
            uses.
        TargetGone: The process has ended.
    """
    rows = maps.rows_of_file(path)
    if not rows:
        raise TargetError(f"process {process.pid} has not mapped {path}")
    file = open_file(process, maps, path)
    from_memory = file is None
    if file is None:
        file = ElfFile(_MappedFile(memory, maps, rows), path, mapped=True)
    try:
        bias = _bias(file.loads, maps, path) if file.relocatable else 0
    except TargetError:
        file.close()
        raise
    if from_memory:
        file.loaded_at(bias)
    return Image(
        path=path.removesuffix(" (deleted)"),
        bias=bias,
        writable=tuple(
            (Addr(bias + load.vaddr), Addr(bias + load.vaddr + load.memory_bytes))
            for load in file.loads
            if load.writable
        ),
        file=file,
        from_memory=from_memory,
    )


class _MappedFile(PositionedFile):
    """The mapped parts of a file, at the file's own offsets; between the mappings it reads as end of file.

    Args:
        memory: The process's memory.
        maps: Its mappings.
        rows: Those of the file.
    """

    def __init__(self, memory: Memory, maps: MappingTable, rows: list[int]) -> None:
        super().__init__()
        self._memory = memory
        mapped = [maps.rows[row] for row in rows[:_MAX_MAPPINGS]]
        # (offset in the file, offset of its end, address) of each
        self._pieces = [
            (one.offset, one.offset + one.end - one.start, one.start)
            for one in mapped
            if one.permissions & READ and one.inode == mapped[0].inode
        ]

    def end(self) -> int:
        """Return where the last mapping ends."""
        return max((end for _, end, _ in self._pieces), default=0)

    def readinto(
        self, buffer: Any, /
    ) -> int:  # a writable buffer, which has no name before Python 3.12
        """Fill a buffer from the mapping that holds the position, as far as it goes."""
        out = memoryview(buffer).cast("B")
        for first, end, addr in self._pieces:
            if first <= self.position < end:
                size_bytes = min(len(out), end - self.position)
                found = self._memory.try_read(addr + self.position - first, size_bytes)
                if found is not None:
                    out[:size_bytes] = found
                    self.position += size_bytes
                    return size_bytes
        return 0


def _bias(loads: tuple[Load, ...], maps: MappingTable, path: str) -> int:
    """Return the loader's bias, computed from the address of the code, since a file may also be mapped just for reading."""
    page = PAGE_BYTES - 1
    code = [load for load in loads if load.executable]
    for row in maps.rows_of_file(path):
        mapping = maps.rows[row]
        if not mapping.permissions & EXECUTE:
            continue
        for load in code:
            bias = mapping.start - (load.vaddr & ~page)
            if load.offset & ~page == mapping.offset and bias >= 0:
                return bias
    raise TargetError(f"the code of {path} is not mapped where its {len(code)} code segments say")
