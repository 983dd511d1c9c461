"""The full symbol table of an ELF file, which has static variables too, in its sections: pyelftools finds them.

A program's table has 30,000 symbols and more, and an object for each took 1.7 s; so names are found in the table of strings, and only
the symbols of a name are made. Knows sections; does not know processes.

Source: System V ABI, chapter "Object Files", section "Symbol Table".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Section, SymbolTableSection
from elftools.elf.sections import Symbol as ElfSymbol

if TYPE_CHECKING:
    from gcspy_drivers.remote.elf.file import LimitedReader

__all__ = ["SymbolTables"]

_MAX_SECTIONS: Final = 4096
_MAX_TABLE_BYTES: Final = 256 << 20
_MAX_PLACES: Final = 10_000  # at which a name may stand; names of CPython's stand at one or two
_SYMBOL_BYTES: Final = 24


class SymbolTables:
    """The symbol tables of a file; read once.

    Args:
        source: Its bytes.

    Raises:
        ValueError: The file is damaged.
    """

    def __init__(self, source: LimitedReader) -> None:
        try:
            self._names = list(_tables_of(source))
        except (ELFError, AssertionError) as error:  # pyelftools checks some numbers
            raise ValueError(str(error)) from error

    def places(self, name: str) -> set[tuple[int, int]]:
        """Return address as linked and size of each defined symbol of a name.

        Raises:
            ValueError: The file is damaged.
        """
        try:
            return {
                (symbol["st_value"], symbol["st_size"])
                for names in self._names
                for symbol in names.called(name)
            }
        except (ELFError, AssertionError) as error:
            raise ValueError(str(error)) from error


@dataclass(frozen=True, eq=False)
class _Names:
    """The names of a symbol table: (n,) offset of each in the string table, whose strings end with zeros."""

    table: SymbolTableSection
    begins: npt.NDArray[np.uint32]
    texts: bytes

    def called(self, name: str) -> list[ElfSymbol]:
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


def _tables_of(source: LimitedReader) -> Iterator[_Names]:
    elf = ELFFile(source)
    if elf.num_sections() > _MAX_SECTIONS:
        return
    for table in elf.iter_sections("SHT_SYMTAB"):
        if isinstance(table, SymbolTableSection) and table["sh_entsize"] == _SYMBOL_BYTES:
            columns = np.frombuffer(_bytes_of(source, table), dtype="<u4").reshape(
                -1, _SYMBOL_BYTES // 4
            )
            yield _Names(table, columns[:, 0].copy(), _bytes_of(source, table.stringtable))


def _bytes_of(source: LimitedReader, section: Section) -> bytes:
    size_bytes = section["sh_size"]
    if size_bytes > _MAX_TABLE_BYTES:
        raise ELFError(f"a section of {size_bytes} bytes (at most {_MAX_TABLE_BYTES})")
    return source.read_table(section["sh_offset"], size_bytes)
