"""An ELF file: where it is mapped, and its exported symbols, found as the dynamic linker finds them: by hash.

So a symbol is found in stripped files too, and with a few small reads of a file of any size. Loads neither numpy nor a library, since
lists of processes ask every program. Does not know the meaning of a symbol, nor where the bytes come from. Why are the section headers
ignored? A program does not need them to run, so they are not in memory, and a file may contain any.

Source: System V ABI, chapters "Object Files", "Program Loading" and "Dynamic Linking"; glibc elf/dl-lookup.c for the GNU hash table.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from gcspy_protocol.errors import TargetError

if TYPE_CHECKING:
    from gcspy_drivers.remote.elf.symbol_table import SymbolTables

__all__ = ["MACHINE_X86_64", "ElfFile", "LimitedReader", "Load", "Symbol"]

MACHINE_X86_64: Final = "EM_X86_64"
_MACHINES: Final = {
    3: "EM_386",
    40: "EM_ARM",
    62: MACHINE_X86_64,
    183: "EM_AARCH64",
    243: "EM_RISCV",
}

# Limits for numbers from files and memory of others. CPython's have 10 to 14 segments and 30 dynamic entries.
_MAX_SEGMENTS: Final = 64
_MAX_DYNAMIC: Final = 1024
_MAX_PIECES: Final = 250_000
"""Pieces that answering one question may take: a chain of a hash table has a few, a circular one has no end."""
_MAX_PIECE_BYTES: Final = 4096
_BUFFER_BYTES: Final = 16 << 10

_HEADER: Final = struct.Struct("<4sBB10xHHIQQQIHHH6x")
_SEGMENT: Final = struct.Struct("<IIQQ8xQQ8x")
_ENTRY: Final = struct.Struct("<QQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_GNU_HASH: Final = struct.Struct("<IIII")
_OLD_HASH: Final = struct.Struct("<II")
_NUMBER: Final = struct.Struct("<I")
_WORD: Final = struct.Struct("<Q")
_PROGRAM, _LIBRARY = 2, 3  # ET_EXEC, ET_DYN
_LOADED, _DYNAMIC = 1, 2  # PT_LOAD, PT_DYNAMIC
_END, _HASH, _STRINGS, _SYMBOLS, _GNU = 0, 4, 5, 6, 0x6FFFFEF5  # DT_…

_DAMAGE: Final = (struct.error, ArithmeticError, LookupError, OSError, ValueError)


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
class Load:
    """A part of the file that is mapped: addresses as linked, sizes in bytes.

    Attributes:
        vaddr: Its first address.
        offset: Where it begins in the file.
        file_bytes: Its bytes in the file.
        memory_bytes: Its bytes in memory; what is beyond those of the file is zeroed.
        flags: Bits of permission: 1 to execute, 2 to write, 4 to read.
    """

    vaddr: int
    offset: int
    file_bytes: int
    memory_bytes: int
    flags: int

    @property
    def executable(self) -> bool:
        """Whether it has code."""
        return bool(self.flags & 1)

    @property
    def writable(self) -> bool:
        """Whether it has variables."""
        return bool(self.flags & 2)


@dataclass(frozen=True)
class _Exports:
    """Where the tables of exported symbols are in the file; `gnu` and `old` are the hash tables, -1: there is none."""

    symbols: int
    strings: int
    gnu: int
    old: int


class ElfFile:
    """An ELF file, on disk or as a process has it mapped.

    Args:
        source: Its bytes, seekable; this takes ownership, even if it fails.
        name: Its path, for messages.
        mapped: Whether the bytes come from a process's mappings, without the unmapped parts.

    Attributes:
        name: Its path.
        machine: Its architecture, as the ABI names it; a number if that is not known here.
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
        self._stream = LimitedReader(source)
        self._exports: _Exports | None = None
        self._looked = False
        self._symbols: SymbolTables | None = None
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
        wanted = name.encode() + b"\0"
        with self._question():
            if not self._looked:
                self._exports, self._looked = self._find_exports(), True
            exports = self._exports
            if exports is None:
                return None
            rows = (
                self._gnu_rows(exports.gnu, wanted)
                if exports.gnu >= 0
                else self._old_rows(exports.old, wanted)
            )
            for row in rows:
                at, _, _, section, vaddr, size = self._unpack(
                    _SYMBOL, exports.symbols + _SYMBOL.size * row
                )
                if section and self._bytes(exports.strings + at, len(wanted)) == wanted:
                    return Symbol(vaddr, size)
        return None

    def static(self, name: str) -> Symbol | None:
        """Find a symbol in the full symbol table; None if the file was stripped, is only mapped, or has two of that name.

        Raises:
            TargetError: The file is damaged.
        """
        if self._mapped:
            return None
        from gcspy_drivers.remote.elf.symbol_table import SymbolTables  # with numpy, and a library

        with self._question():
            if self._symbols is None:
                self._symbols = SymbolTables(self._stream)
            found = self._symbols.places(name)
        return Symbol(*found.pop()) if len(found) == 1 else None

    def bytes_at(self, vaddr: int, size_bytes: int) -> bytes | None:
        """Read initialised data from the file; None if it is not in the file (zeroed at start).

        Raises:
            TargetError: The file is damaged.
        """
        offset = self._offset_of(vaddr, size_bytes)
        if offset is None:
            return None
        with self._question():
            self._stream.seek(offset)
            found = self._stream.read(size_bytes)
        return found if len(found) == size_bytes else None

    def _open(self) -> None:
        magic, kind, order, what, machine, _, _, segments_at, _, _, _, size, count = self._unpack(
            _HEADER, 0
        )
        if magic != b"\x7fELF":
            raise ValueError("it does not begin as one")
        if kind != 2 or order != 1:
            raise TargetError(
                f"{self.name} is not a 64-bit little-endian ELF file ({32 * kind} bits)"
            )
        if what not in (_PROGRAM, _LIBRARY) or count > _MAX_SEGMENTS:
            raise TargetError(
                f"{self.name} is neither a program nor a library: ELF type {what}, {count} segments"
            )
        if count and size != _SEGMENT.size:
            raise ValueError(f"its segments have descriptions of {size} bytes")
        table = self._bytes(segments_at, count * _SEGMENT.size)
        segments = [_SEGMENT.unpack_from(table, row * _SEGMENT.size) for row in range(count)]
        self.machine = _MACHINES.get(machine, str(machine))
        self.relocatable = what == _LIBRARY
        self.loads = tuple(
            Load(vaddr, offset, file_bytes, memory_bytes, flags)
            for type_, flags, offset, vaddr, file_bytes, memory_bytes in segments
            if type_ == _LOADED
        )
        self._dynamic = next((one for one in segments if one[0] == _DYNAMIC), None)

    def _find_exports(self) -> _Exports | None:
        """Find the tables by the dynamic segment; None: it has no such tables."""
        if self._dynamic is None:
            return None
        _, _, offset, _, file_bytes, _ = self._dynamic
        found: dict[int, int] = {}
        for row in range(min(file_bytes // _ENTRY.size, _MAX_DYNAMIC)):
            tag, value = self._unpack(_ENTRY, offset + row * _ENTRY.size)
            if tag == _END:
                break
            if tag in (_HASH, _STRINGS, _SYMBOLS, _GNU):
                found.setdefault(tag, self._table_at(value))
        gnu, old = found.get(_GNU, -1), found.get(_HASH, -1)
        if gnu < 0 and old < 0:
            return None
        return _Exports(found[_SYMBOLS], found[_STRINGS], gnu, old)

    def _table_at(self, addr: int) -> int:
        """Return a table's offset in the file: glibc adds its bias to the address in memory, musl does not."""
        offset = self._offset_of(addr - self._loaded_at if addr >= self._loaded_at else addr, 1)
        if offset is None:
            raise ValueError(f"a table at {addr:#x}, where it has no part")
        return offset

    def _gnu_rows(self, at: int, name: bytes) -> Iterator[int]:
        """Yield the symbols of which the GNU hash table says that they may have a name, which ends with a zero."""
        buckets, first, words, shift = self._unpack(_GNU_HASH, at)
        number = 5381
        for letter in name[:-1]:
            number = (number * 33 + letter) & 0xFFFFFFFF
        at += _GNU_HASH.size
        (word,) = self._unpack(_WORD, at + 8 * (number // 64 % words))
        if not word >> number % 64 & word >> (number >> shift) % 64 & 1:
            return
        at += 8 * words
        (row,) = self._unpack(_NUMBER, at + 4 * (number % buckets))
        if row < first:
            return
        at += 4 * (buckets - first)
        while True:
            (other,) = self._unpack(_NUMBER, at + 4 * row)
            if other | 1 == number | 1:
                yield row
            if other & 1:
                return
            row += 1

    def _old_rows(self, at: int, name: bytes) -> Iterator[int]:
        """Yield the symbols of a bucket of the old hash table: of musl's linker, and of what was linked with ``--hash-style=sysv``."""
        buckets, chains = self._unpack(_OLD_HASH, at)
        number = 0
        for letter in name[:-1]:
            number = (number << 4) + letter
            number = (number ^ number >> 24 & 0xF0) & 0x0FFFFFFF
        at += _OLD_HASH.size
        (row,) = self._unpack(_NUMBER, at + 4 * (number % buckets))
        for _ in range(chains):
            if not row:
                return
            yield row
            (row,) = self._unpack(_NUMBER, at + 4 * (buckets + row))

    def _offset_of(self, vaddr: int, size_bytes: int) -> int | None:
        """Return where initialised data is in the file; None: it is not in it."""
        for load in self.loads:
            inside = vaddr - load.vaddr
            if inside >= 0 and inside + size_bytes <= load.file_bytes:
                return load.offset + inside
        return None

    def _unpack(self, record: struct.Struct, offset: int) -> tuple[Any, ...]:
        return record.unpack(self._bytes(offset, record.size))

    def _bytes(self, offset: int, size_bytes: int) -> bytes:
        self._stream.seek(offset)
        found = self._stream.read(size_bytes)
        if len(found) != size_bytes:
            raise ValueError(f"it ends within {size_bytes} bytes at {offset:#x}")
        return found

    @contextmanager
    def _question(self) -> Iterator[None]:
        """Reset the limit of pieces, and convert what invalid numbers lead to into messages."""
        self._stream.pieces_left = _MAX_PIECES
        try:
            yield
        except _DAMAGE as error:
            raise TargetError(
                f"{self.name} is damaged, or not a 64-bit little-endian ELF file: {type(error).__name__}: {error}"
            ) from error


class LimitedReader(io.BufferedReader):
    """A buffered file with a limited number of pieces of limited size, since numbers in a damaged file may request any."""

    def __init__(self, source: io.RawIOBase | io.BufferedIOBase) -> None:
        super().__init__(source, _BUFFER_BYTES)
        self.pieces_left = 0

    def read(self, size: int | None = -1, /) -> bytes:
        """Read one piece; `ValueError` beyond the limit."""
        self.pieces_left -= 1
        if size is None or not 0 <= size <= _MAX_PIECE_BYTES or self.pieces_left < 0:
            raise ValueError(
                f"its numbers ask for more than {_MAX_PIECES} pieces of {_MAX_PIECE_BYTES} bytes"
            )
        return super().read(size)

    def read_table(self, offset: int, size_bytes: int) -> bytes:
        """Read a table of a checked size with one read; `ValueError` if it is not all there."""
        self.seek(offset)
        found = super().read(size_bytes)
        if len(found) != size_bytes:
            raise ValueError(f"a table of {size_bytes} bytes, of which {len(found)} are there")
        return found
