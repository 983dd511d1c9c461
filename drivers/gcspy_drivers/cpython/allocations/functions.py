"""`FunctionFinder`: the function that a line of a file belongs to, by the code objects of the process.

``tracemalloc`` knows files and lines. A code object has the name of its file and its function, and
a table of its lines.

Knows code objects and copies. Source: CPython 3.9 to 3.14 Include/cpython/code.h (struct PyCodeObject).
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gcspy_drivers.cpython.allocations.line_tables import lines_of_code
from gcspy_drivers.cpython.graph.memory_copy import MemoryCopy
from gcspy_drivers.cpython.graph.texts import text_at
from gcspy_drivers.cpython.layouts import VersionLayout

__all__ = ["FunctionFinder"]

_MOST_TABLE_BYTES: Final = 1 << 16
_BYTES_AT, _SIZE_AT = 32, 16  # in a ``bytes``
_MODULE: Final = "<module>"


class FunctionFinder:
    """Finds functions.

    Args:
        copy: The memory.
        layout: Offsets of the version, with a graph's.
        code: (c,) addresses of code objects.
    """

    def __init__(self, copy: MemoryCopy, layout: VersionLayout, code: NDArray[np.int64]) -> None:
        self._copy = copy
        self._layout = layout
        self._code = code
        self._known: dict[tuple[str, int], str] = {}

    def function_at(self, file: str, line: int) -> str:
        """Return the name of the function that has a line; empty: not known."""
        known = self._known.get((file, line))
        if known is None:
            known = self._known[file, line] = self._find(file, line)
        return known

    @cached_property
    def _by_file(self) -> dict[str, NDArray[np.int64]]:
        """Address of the code objects of each file."""
        places = self._layout.graph
        if places is None:
            return {}
        words, ok = self._copy.many(self._code + (places.code_name - 8), 1)
        code, names = self._code[ok], words[ok, 0]
        found: dict[str, NDArray[np.int64]] = {}
        distinct, row = np.unique(names, return_inverse=True)
        order = np.argsort(row, kind="stable")
        parts = np.split(code[order], np.cumsum(np.bincount(row, minlength=len(distinct)))[:-1])
        for name, part in zip(distinct.tolist(), parts, strict=True):
            text = text_at(self._copy, self._layout.objects, name)
            if text is not None:
                found[text] = np.append(found.get(text, part[:0]), part)
        return found

    def _find(self, file: str, line: int) -> str:
        """Return the function that begins last of those with this line; a lambda or a comprehension only if there is no other."""
        best = (False, -1, "")
        for code in self._by_file.get(file, np.zeros(0, dtype=np.int64)).tolist():
            first = self._first_line(code)
            if first is None or first > line or line not in self._lines(code, first):
                continue
            name = self._name(code)
            named = not name.rpartition(".")[2].startswith("<") or name == _MODULE
            best = max(best, (named, first, name))
        return best[2]

    def _first_line(self, code: int) -> int | None:
        places = self._layout.graph
        data = self._copy.bytes_at(code + places.code_first_line, 4) if places else None
        return None if data is None else int.from_bytes(data, "little", signed=True)

    def _lines(self, code: int, first: int) -> set[int]:
        places, copy = self._layout.graph, self._copy
        table = copy.word(code + places.code_lines) or 0 if places else 0
        size = min(copy.word(table + _SIZE_AT) or 0, _MOST_TABLE_BYTES)
        data = copy.bytes_at(table + _BYTES_AT, size)
        return set() if data is None else lines_of_code(self._layout.version, first, data)

    def _name(self, code: int) -> str:
        """Return the name, from 3.11 on with those of the class and the functions around it."""
        places = self._layout.graph
        if places is None:
            return ""
        at = places.code_name + (8 if self._layout.version >= (3, 11) else 0)
        return text_at(self._copy, self._layout.objects, self._copy.word(code + at) or 0) or ""
