"""Names of native code: functions and lines of addresses, from the symbol tables and the debug information of files.

Sources: System V ABI, chapter 4 (symbol tables); DWARF 5, 6.1.2 and 6.2 (address ranges, line numbers).

Knows ELF files; does not know traces. Files of a traced program are untrusted: one that cannot be read has no names.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from elftools.common.exceptions import DWARFError, ELFError
from elftools.construct.core import ConstructError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection, SymbolTableSection
from numpy.typing import NDArray

__all__ = ["CodePlace", "resolve_places"]

_SYMBOL: Final = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)  # fmt: skip
_FUNCTION, _INDIRECT = 2, 10
_MOST_SYMBOLS: Final = 20_000_000
_LINE_SECS: Final = 20.0
"""Processor time for the lines of all files of a trace; addresses that are left have their function only."""
_DEBUG_FOLDER: Final = Path("/usr/lib/debug/.build-id")
_FLAWS: Final = (ELFError, DWARFError, ConstructError, OSError, ValueError, KeyError, IndexError, AttributeError, TypeError, AssertionError)  # fmt: skip
"""What pyelftools raises at files that are damaged."""


class CodePlace(NamedTuple):
    """Where in the source some code is.

    Attributes:
        function: Its name as people write it; empty: not known.
        file: Path of its source; empty: not known.
        line: From 1; 0: not known.
    """

    function: str = ""
    file: str = ""
    line: int = 0


def resolve_places(path: str, addresses: Sequence[int], spent: list[float]) -> list[CodePlace]:
    """Return the places of addresses in a file.

    Args:
        path: Of the file.
        addresses: As in the file.
        spent: One number: seconds of processor time that lines have taken so far; is added to.
    """
    asked = np.array(addresses, np.uint64)
    functions = [""] * len(asked)
    lines: list[tuple[str, int]] = [("", 0)] * len(asked)
    for one in _files_of(path):
        try:
            with one.open("rb") as file:
                elf = ELFFile(file)
                for row, name in _functions(elf, asked):
                    functions[row] = functions[row] or name
                if elf.has_dwarf_info() and spent[0] < _LINE_SECS:
                    begin = time.process_time()
                    for row, place in _lines(elf, asked, begin + _LINE_SECS - spent[0]):
                        lines[row] = place
                    spent[0] += time.process_time() - begin
        except _FLAWS:
            continue
    return [
        CodePlace(_demangled(name), *place) for name, place in zip(functions, lines, strict=True)
    ]


def _files_of(path: str) -> Iterator[Path]:
    """Yield a file of code, and that of its debug information."""
    yield Path(path)
    try:
        with Path(path).open("rb") as file:
            for section in ELFFile(file).iter_sections():
                if isinstance(section, NoteSection) and section.name == ".note.gnu.build-id":
                    for note in section.iter_notes():
                        found = str(note["n_desc"])
                        yield _DEBUG_FOLDER / found[:2] / f"{found[2:]}.debug"
    except _FLAWS:
        return


def _functions(elf: ELFFile, asked: NDArray[np.uint64]) -> Iterator[tuple[int, str]]:
    """Yield rows and names of functions."""
    for section in elf.iter_sections():
        if not isinstance(section, SymbolTableSection) or section["sh_entsize"] != _SYMBOL.itemsize:
            continue
        data = section.data()
        table = np.frombuffer(data, _SYMBOL, min(len(data) // _SYMBOL.itemsize, _MOST_SYMBOLS))
        kind = table["info"] & 15
        table = table[((kind == _FUNCTION) | (kind == _INDIRECT)) & (table["section"] != 0)]
        if not len(table):
            continue
        # Of several at an address the largest; aliases have one size.
        table = table[np.lexsort((table["size"], table["value"]))]
        row = np.searchsorted(table["value"], asked, side="right") - 1
        chosen = table[np.maximum(row, 0)]
        inside = (row >= 0) & (asked < chosen["value"] + np.maximum(chosen["size"], 1))
        texts = elf.get_section(section["sh_link"]).data()
        for index in np.flatnonzero(inside).tolist():
            start = int(chosen["name"][index])
            yield index, texts[start : texts.find(b"\0", start)].decode("utf-8", "replace")


def _lines(
    elf: ELFFile, asked: NDArray[np.uint64], deadline: float
) -> Iterator[tuple[int, tuple[str, int]]]:
    """Yield rows and places in the source."""
    dwarf = elf.get_dwarf_info(relocate_dwarf_sections=False)
    for unit, rows in _units(dwarf, asked):
        if time.process_time() > deadline:
            return
        program = dwarf.line_program_for_CU(unit)
        if program is None:
            continue
        addresses, files, numbers = [], [], []
        for entry in program.get_entries():
            state = entry.state
            if state is not None:
                addresses.append(state.address)
                files.append(-1 if state.end_sequence else state.file)
                numbers.append(state.line)
        if not addresses:
            continue
        at = np.array(addresses, np.uint64)
        order = np.argsort(at, kind="stable")
        found = np.searchsorted(at[order], asked[rows], side="right") - 1
        for row, index in zip(rows.tolist(), found.tolist(), strict=True):
            if index >= 0 and files[order[index]] >= 0:
                yield row, (_file_name(program, files[order[index]]), numbers[order[index]])


def _units(dwarf: Any, asked: NDArray[np.uint64]) -> Iterator[tuple[Any, NDArray[np.int64]]]:
    """Yield the units that have some of the addresses, with their rows."""
    ranges = dwarf.get_aranges()
    rows = np.arange(len(asked))
    if ranges is not None:
        found = [ranges.cu_offset_at_addr(int(one)) for one in asked]
        offsets = np.array([-1 if one is None else one for one in found], np.int64)
        for offset in np.unique(offsets).tolist():
            if offset >= 0:
                yield dwarf.get_CU_at(offset), rows[offsets == offset]
        asked, rows = asked[offsets < 0], rows[offsets < 0]
    if not len(asked):
        return
    for unit in dwarf.iter_CUs():
        top = unit.get_top_DIE().attributes
        if "DW_AT_low_pc" not in top or "DW_AT_high_pc" not in top:
            continue
        low, high = top["DW_AT_low_pc"].value, top["DW_AT_high_pc"]
        end = high.value if high.form == "DW_FORM_addr" else low + high.value
        inside = (asked >= low) & (asked < end)
        if inside.any():
            yield unit, rows[inside]


def _file_name(program: Any, number: int) -> str:
    header = program.header
    index = number - (0 if header["version"] >= 5 else 1)
    if not 0 <= index < len(header["file_entry"]):
        return ""
    entry = header["file_entry"][index]
    name = _text(entry.name)
    folders = header["include_directory"]
    folder_index = entry.dir_index - (0 if header["version"] >= 5 else 1)
    folder = _text(folders[folder_index]) if 0 <= folder_index < len(folders) else ""
    if name.startswith("/") or not folder:
        return name
    return f"{folder}/{name}"


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


@cache
def _demangler() -> Any:
    """Return ``__cxa_demangle`` and ``free``, or None where there is no libstdc++."""
    try:
        function = ctypes.CDLL("libstdc++.so.6")["__cxa_demangle"]
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_void_p
    free = ctypes.CDLL(None)["free"]
    free.argtypes = [ctypes.c_void_p]
    return function, free


def _demangled(name: str) -> str:
    """Return a name of C++ as people write it; another one as it is."""
    if not name.startswith("_Z"):
        return name
    both = _demangler()
    if both is None:
        return name
    function, free = both
    status = ctypes.c_int()
    at = function(name.encode(), None, None, ctypes.byref(status))
    if not at:
        return name
    try:
        return ctypes.string_at(at).decode("utf-8", "replace")
    finally:
        free(at)
