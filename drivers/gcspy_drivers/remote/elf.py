"""Finds named variables of the target: exported symbols of its executable or of a shared library.

An `Image` is an ELF file as one process has it mapped. pyelftools parses it. This module provides
the bytes, from the file itself or, if the file cannot be opened (replaced by an upgrade, in a
container we cannot enter), from the target's mappings of it; and it limits how much is read. A
symbol is looked up as the dynamic linker does it, by hash, so that it is found in stripped files
too.

Does not know the meaning of a symbol. Why are the section headers ignored? A program does not need
them to run, so they are not in memory, and a file may contain any. Why no symbols of static
variables? They are in sections only; pyelftools made an object for each of the 30,000 in a
libpython, which took 1.7 s.

Source: System V ABI, chapters "Object Files" and "Program Loading"; proc(5) for map_files and root.
"""

from __future__ import annotations

import io
import os
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from elftools.common.exceptions import ELFError
from elftools.elf.constants import P_FLAGS
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.hash import ELFHashTable, GNUHashTable
from elftools.elf.sections import Section, SymbolTableSection
from elftools.elf.sections import Symbol as ELFSymbol
from gcspy_protocol.errors import TargetError

from gcspy_drivers.remote.address import PAGE_BYTES, Addr
from gcspy_drivers.remote.files import RegularFile, TargetRoot, reopen_regular
from gcspy_drivers.remote.maps import EXECUTE, READ, Maps
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.process import Process

__all__ = ["MACHINE_X86_64", "ElfFile", "Image", "Symbol", "open_file", "open_image"]

MACHINE_X86_64: Final = "EM_X86_64"

# Limits for numbers from files and memory of others. CPython's have 10 to 14 segments.
_MAX_SEGMENTS = 64
_MAX_MAPPINGS = 256  # of one file; a libjvm has 5
_MAX_SECTIONS = 4096
_MAX_TABLE_BYTES = 256 << 20
_MAX_PLACES = 10_000  # at which a name may stand; names of CPython's stand at one or two
_SYMBOL_BYTES = 24
# Pieces that answering one question may take. A libpython takes 2,000 and node, with its 110,000
# symbols, 41,000 (0.1 s); a file with circular references is given up well within a second.
_MAX_PIECES = 250_000
_MAX_PIECE_BYTES = 4096
_BUFFER_BYTES = 16 << 10

# Exceptions of pyelftools for invalid numbers: it checks some, and computes with the others.
_DAMAGE = (
    ELFError,
    struct.error,
    ArithmeticError,
    AssertionError,
    LookupError,
    OSError,
    ValueError,
)


@dataclass(frozen=True)
class Symbol:
    """A named place in an ELF file.

    Attributes:
        vaddr: Its address as linked; a mapped image adds its bias.
        size_bytes: Its size; 0 if the file does not say.
    """

    vaddr: int
    size_bytes: int


@dataclass(frozen=True)
class _Load:
    """A part of the file that is mapped: addresses as linked, sizes in bytes."""

    vaddr: int
    offset: int
    file_bytes: int
    memory_bytes: int
    flags: int


class ElfFile:
    """An ELF file, on disk or as a process has it mapped.

    Args:
        source: Its bytes, seekable; this takes ownership, even if it fails.
        name: Its path, for messages.
        mapped: Whether the bytes come from a process's mappings, without the unmapped parts.

    Attributes:
        machine: Its architecture, as pyelftools names it; a number if it has no name.
        relocatable: Whether it can be loaded at any address.
        loads: Its mapped parts.

    Raises:
        TargetError: It is not a 64-bit little-endian ELF program or library, or is damaged.
    """

    def __init__(
        self, source: io.RawIOBase | io.BufferedIOBase, name: str, *, mapped: bool = False
    ) -> None:
        self.name = name
        self._mapped = mapped
        self._stream = _Limited(source)
        self._tables: list[GNUHashTable | ELFHashTable] | None = None
        self._names: list[_Names] | None = None
        self._loaded_at = 0
        try:
            with self._question():
                self._open()
        except TargetError:
            self.close()
            raise

    def __enter__(self) -> ElfFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. May be called twice."""
        self._stream.close()

    def loaded_at(self, bias: int) -> None:
        """Note that these bytes come from a process, where the loader may have added its bias to addresses in them."""
        self._loaded_at = bias

    def exported(self, name: str) -> Symbol | None:
        """Find a symbol that the dynamic linker can see, in stripped files too; None if there is none.

        Raises:
            TargetError: The file is damaged.
        """
        with self._question():
            if self._tables is None:
                self._tables = list(self._hash_tables())
            for table in self._tables:
                found = table.get_symbol(name)
                if found is not None and found["st_shndx"] != "SHN_UNDEF":
                    return Symbol(found["st_value"], found["st_size"])
        return None

    def static(self, name: str) -> Symbol | None:
        """Find a symbol in the full symbol table; None if the file was stripped, is only mapped, or has two of that name.

        Raises:
            TargetError: The file is damaged.
        """
        with self._question():
            if self._names is None:
                self._names = list(self._symbol_tables())
            found = {
                Symbol(symbol["st_value"], symbol["st_size"])
                for names in self._names
                for symbol in names.called(name)
            }
        return found.pop() if len(found) == 1 else None

    def bytes_at(self, vaddr: int, size_bytes: int) -> bytes | None:
        """Read initialised data from the file; None if it is not in the file (zeroed at start).

        Raises:
            TargetError: The file is damaged.
        """
        for load in self.loads:
            inside = vaddr - load.vaddr
            if inside >= 0 and inside + size_bytes <= load.file_bytes:
                with self._question():
                    self._stream.seek(load.offset + inside)
                    found = self._stream.read(size_bytes)
                return found if len(found) == size_bytes else None
        return None

    def _open(self) -> None:
        elf = self._elf = ELFFile(self._stream)
        kind, segments = elf["e_type"], elf["e_phnum"]
        if elf.elfclass != 64 or not elf.little_endian:
            raise TargetError(
                f"{self.name} is not a 64-bit little-endian ELF file ({elf.elfclass} bits)"
            )
        if kind not in ("ET_EXEC", "ET_DYN") or segments > _MAX_SEGMENTS:
            raise TargetError(
                f"{self.name} is neither a program nor a library: ELF type {kind}, {segments} segments"
            )
        elf.header["e_shoff"] = (
            0  # all but `static` does without sections, so that file and memory are read in one way
        )
        headers = [segment.header for segment in elf.iter_segments()]
        self.machine = str(elf["e_machine"])
        self.relocatable = kind == "ET_DYN"
        self.loads = tuple(
            _Load(
                header["p_vaddr"],
                header["p_offset"],
                header["p_filesz"],
                header["p_memsz"],
                header["p_flags"],
            )
            for header in headers
            if header["p_type"] == "PT_LOAD"
        )
        self._dynamic = next(
            (header for header in headers if header["p_type"] == "PT_DYNAMIC"), None
        )

    def _hash_tables(self) -> Iterator[GNUHashTable | ELFHashTable]:
        if self._dynamic is None:
            return
        dynamic = _Dynamic(self._dynamic, self._stream, self._elf)
        dynamic.loaded_at = self._loaded_at
        _, gnu = dynamic.get_table_offset("DT_GNU_HASH")
        _, old = dynamic.get_table_offset("DT_HASH")
        if gnu is not None:
            yield GNUHashTable(self._elf, gnu, dynamic)
        elif old is not None:  # musl's linker, and what was linked with --hash-style=sysv
            yield ELFHashTable(self._elf, old, None, dynamic)

    def _symbol_tables(self) -> Iterator[_Names]:
        elf = ELFFile(self._stream)  # this one with sections
        if self._mapped or elf.num_sections() > _MAX_SECTIONS:
            return
        for table in elf.iter_sections("SHT_SYMTAB"):
            if isinstance(table, SymbolTableSection) and table["sh_entsize"] == _SYMBOL_BYTES:
                columns = np.frombuffer(self._stream.table(table), dtype="<u4").reshape(
                    -1, _SYMBOL_BYTES // 4
                )
                yield _Names(table, columns[:, 0].copy(), self._stream.table(table.stringtable))

    @contextmanager
    def _question(self) -> Iterator[None]:
        """Reset the limit of pieces, and convert exceptions of pyelftools into messages."""
        self._stream.pieces_left = _MAX_PIECES
        try:
            yield
        except _DAMAGE as error:
            raise TargetError(
                f"{self.name} is damaged, or not a 64-bit little-endian ELF file: {type(error).__name__}: {error}"
            ) from error


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


def open_file(process: Process, maps: Maps, path: str) -> ElfFile | None:
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
    row = rows[0]
    # By its name in the target's own tree; else the kernel's handle on the mapping, which needs
    # CAP_CHECKPOINT_RESTORE; else the handle on the executable, which any reader may use. Each is
    # accepted only with the mapping's inode.
    links = [f"map_files/{int(maps.start[row]):x}-{int(maps.end[row]):x}", "exe"]
    ways = [partial(_open_link, process, link) for link in links]
    if not maps.is_deleted(row):
        ways.insert(0, partial(_open_name, process, path))
    for way in ways:
        try:
            fd = way()
        except (OSError, TargetError):
            process.check()
            continue
        if os.fstat(fd).st_ino != int(maps.inode[row]):
            os.close(fd)
            continue
        return ElfFile(RegularFile(fd), maps.file_of(row))
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


def open_image(process: Process, memory: Memory, maps: Maps, path: str) -> Image:
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
            if load.flags & P_FLAGS.PF_W
        ),
        file=file,
        from_memory=from_memory,
    )


@dataclass(frozen=True, eq=False)
class _Names:
    """The names of a symbol table: (n,) offset of each in the string table, whose strings end with zeros."""

    table: SymbolTableSection
    begins: npt.NDArray[np.uint32]
    texts: bytes

    def called(self, name: str) -> list[ELFSymbol]:
        """Return the defined symbols of that name."""
        wanted = name.encode() + b"\0"
        # The linker lets names share their tails ("arenas" may be the end of "maxarenas"), so every place counts.
        found = re.finditer(re.escape(wanted), self.texts)
        places = [match.start() for match in islice(found, _MAX_PLACES)]
        if len(places) == _MAX_PLACES:
            raise ELFError(f"the name {name} stands at {_MAX_PLACES} places or more")
        rows = np.flatnonzero(np.isin(self.begins, np.array(places, dtype=np.uint32)))
        symbols = [self.table.get_symbol(int(row)) for row in rows]
        return [symbol for symbol in symbols if symbol["st_shndx"] != "SHN_UNDEF"]


class _Dynamic(DynamicSegment):
    """The dynamic segment of a file whose bytes may come from a process."""

    loaded_at = 0

    def get_table_offset(self, tag_name: str) -> tuple[int | None, int | None]:
        """Return address and file offset of a table, minus the loader's addition: glibc adds its bias, musl does not."""
        place, offset = super().get_table_offset(tag_name)
        if place is None or place < self.loaded_at:
            return place, offset
        return place - self.loaded_at, next(
            self.elffile.address_offsets(place - self.loaded_at), None
        )


class _Limited(io.BufferedReader):
    """A buffered file with a limited number of pieces of limited size, since numbers in a damaged file may request any."""

    def __init__(self, source: io.RawIOBase | io.BufferedIOBase) -> None:
        super().__init__(source, _BUFFER_BYTES)
        self.pieces_left = 0

    def read(self, size: int | None = -1, /) -> bytes:
        """Read one piece; `ELFError` beyond the limit."""
        self.pieces_left -= 1
        if size is None or not 0 <= size <= _MAX_PIECE_BYTES or self.pieces_left < 0:
            raise ELFError(
                f"its numbers ask for more than {_MAX_PIECES} pieces of {_MAX_PIECE_BYTES} bytes"
            )
        return super().read(size)

    def table(self, section: Section) -> bytes:
        """Read a whole section with one read; `ELFError` if it is longer than any can be."""
        size_bytes = section["sh_size"]
        if size_bytes > _MAX_TABLE_BYTES:
            raise ELFError(f"a section of {size_bytes} bytes (at most {_MAX_TABLE_BYTES})")
        self.seek(section["sh_offset"])
        found = super().read(size_bytes)
        if len(found) != size_bytes:
            raise ELFError(f"a section of {size_bytes} bytes, of which {len(found)} are there")
        return found


class _MappedFile(io.RawIOBase):
    """The mapped parts of a file, at the file's own offsets; between the mappings it reads as end of file.

    Args:
        memory: The process's memory.
        maps: Its mappings.
        rows: Those of the file.
    """

    def __init__(self, memory: Memory, maps: Maps, rows: list[int]) -> None:
        super().__init__()
        self._memory = memory
        # (offset in the file, offset of its end, address) of each
        self._pieces = [
            (
                int(maps.offset[row]),
                int(maps.offset[row]) + int(maps.end[row]) - int(maps.start[row]),
                int(maps.start[row]),
            )
            for row in rows[:_MAX_MAPPINGS]
            if maps.permissions[row] & READ and maps.inode[row] == maps.inode[rows[0]]
        ]
        self._position = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to an offset of the file; its end is where the last mapping ends."""
        end = max((end for _, end, _ in self._pieces), default=0)
        self._position = (
            offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: end}[whence]
        )
        if self._position < 0:
            raise ValueError(f"offset {self._position} in a file")
        return self._position

    def readinto(
        self, buffer: Any, /
    ) -> int:  # a writable buffer, which has no name before Python 3.12
        """Fill a buffer from the mapping that holds the position, as far as it goes."""
        out = np.frombuffer(memoryview(buffer), dtype=np.uint8)
        for first, end, addr in self._pieces:
            if first <= self._position < end:
                size_bytes = min(len(out), end - self._position)
                if self._memory.read_into(addr + self._position - first, out[:size_bytes]):
                    self._position += size_bytes
                    return size_bytes
        return 0


def _bias(loads: tuple[_Load, ...], maps: Maps, path: str) -> int:
    """Return the loader's bias, computed from the address of the code, since a file may also be mapped just for reading."""
    page = PAGE_BYTES - 1
    code = [load for load in loads if load.flags & P_FLAGS.PF_X]
    for row in maps.rows_of_file(path):
        if not maps.permissions[row] & EXECUTE:
            continue
        for load in code:
            bias = int(maps.start[row]) - (load.vaddr & ~page)
            if load.offset & ~page == int(maps.offset[row]) and bias >= 0:
                return bias
    raise TargetError(f"the code of {path} is not mapped where its {len(code)} code segments say")
