"""Names what a process has instead of glibc's malloc, for the message that refuses it.

By the names of mapped libraries, and by texts that allocators have in them when they are linked into a program. Knows names; reads files.
"""

from __future__ import annotations

import re
from typing import Final

from gcspy_protocol.errors import TargetError, TargetGone

from gcspy_drivers.remote.elf.file import ElfFile
from gcspy_drivers.remote.elf.image import open_file
from gcspy_drivers.remote.mapping_table import EXECUTE, READ, WRITE, MappingTable
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.process import Process

__all__ = [
    "SHOWN_BY_LIBRARY",
    "allocator_of",
    "describe_allocator",
    "mapped_allocator",
    "other_way",
]

_LIBRARIES: Final = (
    ("jemalloc", re.compile(r"/libjemalloc[^/]*\.so")),
    ("mimalloc", re.compile(r"/libmimalloc[^/]*\.so")),
    ("tcmalloc", re.compile(r"/libtcmalloc[^/]*\.so")),
    ("snmalloc", re.compile(r"/libsnmalloc[^/]*\.so")),
    ("Hoard", re.compile(r"/libhoard[^/]*\.so")),
    ("musl's malloc", re.compile(r"/(ld-musl-[^/]*\.so|libc\.musl-[^/]*\.so)")),
    ("Bionic's malloc", re.compile(r"/system/(lib64/libc\.so|bin/linker64)")),
)
_TEXTS: Final = (
    ("jemalloc", re.compile(rb"<jemalloc>|je_mallctl|JEMALLOC_|\x00mallctl\x00")),
    ("mimalloc", re.compile(rb"mimalloc: |mi_heap_|\x00mi_malloc\x00")),
    ("tcmalloc", re.compile(rb"tcmalloc: |TCMALLOC_")),
    ("musl's malloc", re.compile(rb"\x00__libc_malloc_impl\x00|musl libc")),
)
_VERSIONS: Final = {
    "jemalloc": re.compile(rb"(\d+\.\d+\.\d+)-\d+-g[0-9a-f]{40}"),
}
SHOWN_BY_LIBRARY: Final = ("jemalloc", "mimalloc", "tcmalloc")
"""Allocators for which there is a library that shows them; see docs/gcspy-h.md."""

_MOST_BYTES: Final = 256 << 20
_WINDOW_BYTES: Final = 4 << 20
_OVERLAP_BYTES: Final = 128


def mapped_allocator(maps: MappingTable) -> str:
    """Return the allocator whose library is mapped; empty: none that is known."""
    for name, pattern in _LIBRARIES:
        if any(pattern.search(path) for path in set(maps.path)):
            return name
    return ""


def other_way(name: str, pid: int | str = "PID") -> str:
    """Return the command that shows an allocator by a library; empty: there is no library for it."""
    if name not in SHOWN_BY_LIBRARY:
        return ""
    return f"gcspy attach {pid} --driver published --inject allocator"


def allocator_of(process: Process, memory: Memory, maps: MappingTable) -> str:
    """Return the name of a process's allocator, mapped or linked into its program; empty: none that is known.

    Raises:
        TargetGone: The process has ended.
    """
    program = process.read_link("exe") or ""
    return mapped_allocator(maps) or _linked_in(memory, maps, program)[0]


def describe_allocator(process: Process, memory: Memory, maps: MappingTable) -> str:
    """Say which allocator a process has, as far as that can be seen.

    Raises:
        TargetGone: The process has ended.
    """
    library = mapped_allocator(maps)
    if library:
        path = next(
            path
            for path in maps.path
            for name, pattern in _LIBRARIES
            if name == library and pattern.search(path)
        )
        version = _version(library, memory, maps, path)
        return f"{library}{version}, loaded from {path}"
    program = process.read_link("exe") or ""
    name, version = _linked_in(memory, maps, program)
    if name:
        return f"{name}{version}, linked into {program}"
    if not any(re.search(r"/libc[.-][^/]*so", path) for path in maps.path):
        try:
            file: ElfFile | None = open_file(process, maps, program)
        except TargetGone:
            raise
        except TargetError:
            file = None
        if file is not None:
            file.close()
            return f"{program}, which is linked statically to another C library, or has not called malloc"
        return "no C library"
    return "a C library whose malloc was not called, or is replaced"


def _version(name: str, memory: Memory, maps: MappingTable, path: str) -> str:
    pattern = _VERSIONS.get(name)
    if pattern is None:
        return ""
    for text in _texts(memory, maps, path):
        found = pattern.search(text)
        if found is not None:
            return f" {found[1].decode('ascii')}"
    return ""


def _linked_in(memory: Memory, maps: MappingTable, path: str) -> tuple[str, str]:
    for text in _texts(memory, maps, path):
        for name, pattern in _TEXTS:
            if pattern.search(text) is not None:
                return name, _version(name, memory, maps, path)
    return "", ""


def _texts(memory: Memory, maps: MappingTable, path: str) -> list[bytes]:
    """Read the constants of a file, as mapped."""
    found: list[bytes] = []
    left = _MOST_BYTES
    for number in maps.rows_of_file(path):
        row = maps.rows[number]
        if row.permissions & (READ | WRITE | EXECUTE) not in (READ, READ | EXECUTE):
            continue
        for low in range(row.start, row.end, _WINDOW_BYTES):
            size = min(_WINDOW_BYTES + _OVERLAP_BYTES, row.end - low)
            left -= size
            if left < 0:
                return found
            text = memory.try_read(low, size)
            if text is not None:
                found.append(text)
    return found
