"""Where the target keeps a named variable: symbols of its executable or of a shared library.

An `Image` is an ELF file as one process has mapped it. Exported symbols come from its file, and when the
file cannot be opened (replaced by an upgrade, in a container we cannot enter), from the copy of the dynamic
section that the loader keeps in the target's memory. Static symbols are in the file only, and only
when it was not stripped.

Knows x86-64 and AArch64 ELF as numpy tables, and nothing of what a symbol means. Why not pyelftools: a symbol table
of 30,000 entries is one numpy comparison here, and the same few structures are needed for bytes that come
from memory and have no sections.

Source: System V ABI, chapters "Object Files" and "Program Loading"; the GNU hash section as glibc's
elf/dl-lookup.c reads it; proc(5) for map_files and root.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from gcspy_protocol.errors import NotPermitted, TargetError

from gcspy_drivers.remote.address import PAGE_BYTES, Addr
from gcspy_drivers.remote.maps import EXECUTE, Maps
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.process import Process

__all__ = ["MACHINE_AARCH64", "MACHINE_X86_64", "ElfFile", "Image", "Symbol", "open_file", "open_image"]

MACHINE_X86_64: Final = 62
MACHINE_AARCH64: Final = 183

_TYPE_EXEC, _TYPE_DYN = 2, 3
_LOAD, _DYNAMIC = 1, 2
_FLAG_EXECUTE, _FLAG_WRITE = 1, 2
_SECTION_SYMTAB, _SECTION_DYNSYM = 2, 11
_DT_STRTAB, _DT_SYMTAB, _DT_GNU_HASH = 5, 6, 0x6FFFFEF5

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = np.dtype(
    [
        ("type", "<u4"), ("flags", "<u4"), ("offset", "<u8"), ("vaddr", "<u8"), ("paddr", "<u8"),
        ("filesz", "<u8"), ("memsz", "<u8"), ("align", "<u8"),
    ]
)
_SECTION = np.dtype(
    [
        ("name", "<u4"), ("type", "<u4"), ("flags", "<u8"), ("addr", "<u8"), ("offset", "<u8"), ("size", "<u8"),
        ("link", "<u4"), ("info", "<u4"), ("addralign", "<u8"), ("entsize", "<u8"),
    ]
)
_SYMBOL = np.dtype([("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")])
_DYNAMIC_ENTRY = np.dtype([("tag", "<i8"), ("value", "<u8")])

# Bounds of numbers that are found in files and memory which others wrote. CPython's have 10 to 14 and about 40.
_MAX_SEGMENTS = 64
_MAX_SECTIONS = 4096
_MAX_CHAIN = 4096

Table = npt.NDArray[np.void]


@dataclass(frozen=True)
class Symbol:
    """A named place in an ELF file.

    Attributes:
        vaddr: Its address as linked; a mapped image adds its bias.
        size_bytes: Its size; 0 when the file does not say.
    """

    vaddr: int
    size_bytes: int


@dataclass(frozen=True)
class _Header:
    kind: int
    machine: int
    segment_offset: int
    segment_count: int
    section_offset: int
    section_count: int


class ElfFile:
    """An ELF file on disk, mapped into our memory.

    Args:
        fd: Descriptor of the file; closed here.
        name: Its path, for messages.

    Raises:
        TargetError: It is not a 64-bit little-endian ELF file, or is damaged.
    """

    def __init__(self, fd: int, name: str) -> None:
        self.name = name
        try:
            self.inode = os.fstat(fd).st_ino
            self._map = mmap.mmap(fd, 0, access=mmap.ACCESS_READ)
        except (ValueError, OSError) as error:
            raise TargetError(f"cannot map {name}: {error}") from None
        finally:
            os.close(fd)
        try:
            header = _parse_header(self._map[: _HEADER.size], name)
            self.machine = header.machine
            self.relocatable = header.kind == _TYPE_DYN
            self.segments = self._table(header.segment_offset, header.segment_count, _SEGMENT)
            self._sections = self._table(header.section_offset, header.section_count, _SECTION)
        except TargetError:
            self._map.close()
            raise

    def __enter__(self) -> ElfFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Unmap the file. May be called twice."""
        self._map.close()

    def exported(self, name: str) -> Symbol | None:
        """Find a symbol that the dynamic linker can see, in stripped files too; None when there is none."""
        return next(self._named(name, _SECTION_DYNSYM), None)

    def static(self, name: str) -> Symbol | None:
        """Find a symbol in the full symbol table; None when the file was stripped or has two of that name."""
        found = set(self._named(name, _SECTION_SYMTAB))
        return found.pop() if len(found) == 1 else None

    def bytes_at(self, vaddr: int, size_bytes: int) -> bytes | None:
        """Read initialised data as the file has it; None when it is not in the file (zeroed at start)."""
        for segment in self.segments[self.segments["type"] == _LOAD]:
            inside = vaddr - int(segment["vaddr"])
            if inside >= 0 and inside + size_bytes <= int(segment["filesz"]):
                begin = int(segment["offset"]) + inside
                return self._map[begin : begin + size_bytes]
        return None

    def _named(self, name: str, section_type: int) -> Iterator[Symbol]:
        wanted = name.encode("ascii") + b"\0"
        for section in self._sections[self._sections["type"] == section_type]:
            symbols = self._table(int(section["offset"]), int(section["size"]) // _SYMBOL.itemsize, _SYMBOL)
            if int(section["link"]) >= len(self._sections):
                continue
            texts = self._sections[int(section["link"])]
            # The linker lets names share their tails ("arenas" may be the end of "maxarenas"), so every place counts.
            places = list(_places(self._map, wanted, int(texts["offset"]), int(texts["offset"]) + int(texts["size"])))
            match = np.isin(symbols["name"], np.array(places, dtype=np.uint32)) & (symbols["section"] != 0)
            for symbol in symbols[match]:
                yield Symbol(int(symbol["value"]), int(symbol["size"]))

    def _table(self, offset: int, count: int, dtype: np.dtype[np.void]) -> Table:
        end = offset + count * dtype.itemsize
        if end > len(self._map):
            raise TargetError(f"{self.name} is damaged: a table ends at byte {end}, the file at {len(self._map)}")
        # A copy, so that closing the file leaves nobody pointing into it.
        return np.frombuffer(self._map[offset:end], dtype=dtype)


@dataclass(frozen=True, eq=False)
class Image:
    """An ELF file as one process has it mapped.

    Attributes:
        path: The file, as the target names it.
        bias: What the loader added to every address of the file; 0 for a file with fixed addresses.
        writable: Address ranges (first, end) of its variables, initialised or zeroed at start.
        file: The file itself; None when it could not be opened, and symbols come from memory.
    """

    path: str
    bias: int
    writable: tuple[tuple[Addr, Addr], ...]
    file: ElfFile | None
    _memory: Memory
    _dynamic: Addr | None

    def exported(self, name: str) -> Addr | None:
        """Return where an exported symbol is in the target; None when the image does not export it."""
        if self.file is None:
            return self._exported_from_memory(name)
        found = self.file.exported(name)
        return None if found is None else Addr(self.bias + found.vaddr)

    def static(self, name: str) -> Addr | None:
        """Return where a static variable is in the target; None when the file is stripped, ambiguous or not at hand."""
        found = None if self.file is None else self.file.static(name)
        return None if found is None else Addr(self.bias + found.vaddr)

    def bytes_at(self, addr: Addr, size_bytes: int) -> bytes | None:
        """Read what the target has at an address; None when it is not readable."""
        return self._memory.try_read(addr, size_bytes)

    def close(self) -> None:
        """Let the file go. Symbols cannot be asked for afterwards."""
        if self.file is not None:
            self.file.close()

    def _exported_from_memory(self, name: str) -> Addr | None:
        """Look a name up as the dynamic linker does, by the GNU hash table in the target's memory."""
        tables = self._dynamic_tables()
        if tables is None:
            return None
        texts, symbols, hashes = tables
        memory = self._memory
        buckets, first_symbol, bloom_words = struct.unpack("<III", memory.read(hashes, 12))
        if not buckets:
            return None
        hashed = _gnu_hash(name)
        bucket_table = hashes + 16 + 8 * bloom_words
        chain_table = bucket_table + 4 * buckets
        index = _u32(memory.read(bucket_table + 4 * (hashed % buckets), 4))
        for _ in range(_MAX_CHAIN):
            if index < first_symbol:
                return None
            chained = _u32(memory.read(chain_table + 4 * (index - first_symbol), 4))
            if (chained | 1) == (hashed | 1):
                symbol = np.frombuffer(memory.read(symbols + index * _SYMBOL.itemsize, _SYMBOL.itemsize), dtype=_SYMBOL)[0]
                wanted = name.encode("ascii") + b"\0"
                if symbol["section"] and memory.read(texts + int(symbol["name"]), len(wanted)) == wanted:
                    return Addr(self.bias + int(symbol["value"]))
            if chained & 1:  # the lowest bit ends the chain
                return None
            index += 1
        return None

    def _dynamic_tables(self) -> tuple[int, int, int] | None:
        """Return where names, symbols and GNU hashes are, in the target."""
        if self._dynamic is None:
            return None
        found = self._memory.try_read(self._dynamic, 64 * _DYNAMIC_ENTRY.itemsize) or self._memory.read(
            self._dynamic, 24 * _DYNAMIC_ENTRY.itemsize
        )
        entries = {int(entry["tag"]): int(entry["value"]) for entry in np.frombuffer(found, dtype=_DYNAMIC_ENTRY)[::-1]}
        places = [entries.get(tag) for tag in (_DT_STRTAB, _DT_SYMTAB, _DT_GNU_HASH)]
        # glibc writes the final addresses into the table while it loads; musl leaves them as linked.
        texts, symbols, hashes = (place if place is None or place >= self.bias else place + self.bias for place in places)
        return None if texts is None or symbols is None or hashes is None else (texts, symbols, hashes)


def open_file(process: Process, maps: Maps, path: str) -> ElfFile | None:
    """Open the very file that a process has mapped, also in another mount namespace or after it was replaced.

    Args:
        process: The process.
        maps: Its mappings.
        path: The file, as ``maps`` names it (with its mark when it was deleted).

    Returns:
        The file, which the caller closes; None when it cannot be had.

    Raises:
        TargetGone: The process has ended.
        TargetError: It is no ELF file that we can read.
    """
    rows = maps.rows_of_file(path)
    if not rows:
        return None
    row = rows[0]
    # By its name in the target's own tree; else the kernel's handle on the mapping, which needs CAP_CHECKPOINT_RESTORE;
    # else the handle on the executable, which any reader may use. Each is believed only with the mapping's inode.
    ways = [] if maps.is_deleted(row) else ["root" + path]
    ways += [f"map_files/{int(maps.start[row]):x}-{int(maps.end[row]):x}", "exe"]
    for way in ways:
        try:
            fd = process.open_file(way)
        except (NotPermitted, TargetError):
            process.check()
            continue
        if os.fstat(fd).st_ino != int(maps.inode[row]):
            os.close(fd)
            continue
        return ElfFile(fd, maps.file_of(row))
    return None


def open_image(process: Process, memory: Memory, maps: Maps, path: str) -> Image:
    """Find out how a process has an ELF file mapped.

    Args:
        process: The process.
        memory: Its memory, for when the file cannot be had.
        maps: Its mappings.
        path: The file, as ``maps`` names it.

    Returns:
        The image; the caller closes it.

    Raises:
        TargetError: The file is not mapped, not an ELF file, or mapped as no loader does it.
        TargetGone: The process has ended.
    """
    file = open_file(process, maps, path)
    if file is not None:
        segments, relocatable = file.segments, file.relocatable
    else:
        segments, relocatable = _segments_from_memory(memory, maps, path)
    try:
        bias = _bias(segments, maps, path) if relocatable else 0
    except TargetError:
        if file is not None:
            file.close()
        raise
    loads = segments[segments["type"] == _LOAD]
    dynamic = segments[segments["type"] == _DYNAMIC]
    return Image(
        path=path.removesuffix(" (deleted)"),
        bias=bias,
        writable=tuple(
            (Addr(bias + int(load["vaddr"])), Addr(bias + int(load["vaddr"]) + int(load["memsz"])))
            for load in loads[(loads["flags"] & _FLAG_WRITE) != 0]
        ),
        file=file,
        _memory=memory,
        _dynamic=Addr(bias + int(dynamic["vaddr"][0])) if len(dynamic) else None,
    )


def _parse_header(found: bytes, name: str) -> _Header:
    if len(found) < _HEADER.size or found[:6] != b"\x7fELF\x02\x01":
        raise TargetError(f"{name} is not a 64-bit little-endian ELF file (it begins with {found[:6]!r})")
    _, kind, machine, _, _, segments, sections, _, _, _, segment_count, _, section_count, _ = _HEADER.unpack(found[: _HEADER.size])
    if kind not in (_TYPE_EXEC, _TYPE_DYN) or segment_count > _MAX_SEGMENTS or section_count > _MAX_SECTIONS:
        raise TargetError(f"{name} is no program or library: ELF type {kind}, {segment_count} segments, {section_count} sections")
    return _Header(kind, machine, segments, segment_count, sections, section_count)


def _segments_from_memory(memory: Memory, maps: Maps, path: str) -> tuple[Table, bool]:
    start = maps.first_addr(path)
    if start is None:
        raise TargetError(f"process {memory.process.pid} has not mapped {path}")
    header = _parse_header(memory.read(start, _HEADER.size), path)
    found = memory.read(start + header.segment_offset, header.segment_count * _SEGMENT.itemsize)
    return np.frombuffer(found, dtype=_SEGMENT), header.kind == _TYPE_DYN


def _bias(segments: Table, maps: Maps, path: str) -> int:
    """Return what the loader added, from where the code is: a file may also be mapped by somebody who only reads it."""
    page = PAGE_BYTES - 1
    code = segments[(segments["type"] == _LOAD) & ((segments["flags"] & _FLAG_EXECUTE) != 0)]
    for row in maps.rows_of_file(path):
        if not maps.permissions[row] & EXECUTE:
            continue
        for segment in code:
            if int(segment["offset"]) & ~page == int(maps.offset[row]):
                return int(maps.start[row]) - (int(segment["vaddr"]) & ~page)
    raise TargetError(f"the code of {path} is not mapped where its {len(code)} code segments say")


def _places(texts: mmap.mmap, wanted: bytes, begin: int, end: int) -> Iterator[int]:
    place = texts.find(wanted, begin, end)
    while place >= 0:
        yield place - begin
        place = texts.find(wanted, place + 1, end)


def _gnu_hash(name: str) -> int:
    hashed = 5381
    for byte in name.encode("ascii"):
        hashed = (hashed * 33 + byte) & 0xFFFFFFFF
    return hashed


def _u32(found: bytes) -> int:
    return int.from_bytes(found, "little")
