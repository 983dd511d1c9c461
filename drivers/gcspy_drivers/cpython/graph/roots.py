"""The roots of references: modules, threads' variables, the interpreter and libraries, each with a name that a programmer knows.

Knows layouts and a copy of memory; follows no references.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gcspy_drivers.cpython.collector.interpreters import Interpreter
from gcspy_drivers.cpython.graph.memory_copy import MemoryCopy
from gcspy_drivers.cpython.graph.texts import text_at
from gcspy_drivers.cpython.layouts import GraphLayout, VersionLayout

__all__ = ["Root", "RootKind", "library_words", "named_roots", "state_words", "variable_names"]

_MOST_THREADS: Final = 4096
_MOST_FRAMES: Final = 10_000
_MOST_VARIABLES: Final = 1 << 16
_U32: Final = (1 << 32) - 1
_SIGN_32: Final = 1 << 31


class RootKind(IntEnum):
    """Kind of a root, the most informative first."""

    MODULES = 0
    VARIABLE = 1
    STACK = 2
    FRAME = 3
    THREAD = 4
    INTERPRETER = 5
    LIBRARY = 6
    UNSEEN = 7
    """The collector has it on a list, and no known reference leads to it: C code holds it, or it is garbage."""


@dataclass(frozen=True)
class Root:
    """A place outside of all objects that refers to one.

    Attributes:
        address: Address of the object.
        kind: Kind of the root.
        name: Its name: ``sys.modules``, a variable, a library's file name.
        function: The function that a variable is in; else empty.
        thread: The system's number of the thread, or that of ``threading``; 0: no thread's.
    """

    address: int
    kind: RootKind
    name: str
    function: str = ""
    thread: int = 0

    def __str__(self) -> str:
        """Describe it as text."""
        if self.kind in (RootKind.VARIABLE, RootKind.STACK, RootKind.FRAME):
            return f"thread {self.thread}, {self.function}(), {self.name}"
        return self.name


def named_roots(
    copy: MemoryCopy, layout: VersionLayout, interpreters: tuple[Interpreter, ...]
) -> list[Root]:
    """List modules, and the variables of all threads' functions.

    Args:
        copy: The memory.
        layout: Offsets of the version, with a graph's.
        interpreters: The interpreters, the main one first.
    """
    places = layout.graph
    if places is None:
        return []
    found = []
    for interpreter in interpreters:
        which = "" if interpreter.ident == 0 else f" of interpreter {interpreter.ident}"
        for offset, name in (
            (places.modules, "sys.modules"),
            (places.builtins, "builtins"),
            (places.sys_names, "sys"),
        ):
            address = copy.word(interpreter.address + offset)
            if address:
                found.append(Root(address, RootKind.MODULES, name + which))
        for state in _threads(copy, places, interpreter.address):
            found.extend(_variables(copy, layout, places, state))
    return found


def state_words(
    copy: MemoryCopy, layout: VersionLayout, interpreters: tuple[Interpreter, ...]
) -> Iterator[tuple[str, RootKind, NDArray[np.int64]]]:
    """Yield the words of the interpreters' and threads' own structures: name, kind, words."""
    places = layout.graph
    if places is None:
        return
    for interpreter in interpreters:
        which = "" if interpreter.ident == 0 else f" {interpreter.ident}"
        words = _words(copy, interpreter.address, places.interpreter_bytes)
        yield f"the interpreter{which} itself", RootKind.INTERPRETER, words
        for state in _threads(copy, places, interpreter.address):
            yield (
                f"thread {_number(copy, places, state)}",
                RootKind.THREAD,
                _words(copy, state, places.thread_bytes),
            )


def library_words(copy: MemoryCopy) -> Iterator[tuple[str, RootKind, NDArray[np.int64]]]:
    """Yield the words of libraries' writable memory: file name, kind, words."""
    for row in np.flatnonzero(copy.maps.inode != 0).tolist():
        first, end = int(copy.maps.start[row]), int(copy.maps.end[row])
        if copy.place(first) is not None:
            name = copy.maps.file_of(row).rpartition("/")[2]
            yield f"memory of {name}", RootKind.LIBRARY, _words(copy, first, end - first)


def _threads(copy: MemoryCopy, places: GraphLayout, interpreter: int) -> list[int]:
    """Return the addresses of an interpreter's threads' states."""
    found: list[int] = []
    state = copy.word(interpreter + places.threads)
    while state and len(found) < _MOST_THREADS and state not in found:
        found.append(state)
        state = copy.word(state + places.thread_next)
    return found


def _number(copy: MemoryCopy, places: GraphLayout, state: int) -> int:
    return copy.word(state + (places.thread_native or places.thread_ident)) or 0


def _variables(
    copy: MemoryCopy, layout: VersionLayout, places: GraphLayout, state: int
) -> Iterator[Root]:
    """Yield the objects that a thread's functions hold, the innermost first."""
    thread = _number(copy, places, state)
    frame = copy.word(state + places.thread_frame)
    if frame and places.thread_frame_in >= 0:
        frame = copy.word(frame + places.thread_frame_in)
    seen = 0
    while frame and seen < _MOST_FRAMES:
        seen += 1
        yield from _frame(copy, layout, places, frame, thread)
        frame = copy.word(frame + places.frame_previous)


def _frame(
    copy: MemoryCopy, layout: VersionLayout, places: GraphLayout, frame: int, thread: int
) -> Iterator[Root]:
    code = (copy.word(frame + places.frame_code) or 0) & ~7
    names = variable_names(copy, layout, places, code)
    if names is None:
        return  # not a function's: 3.12 and later put frames of their own between those of C and of Python
    function = text_at(copy, layout.objects, copy.word(code + places.code_name) or 0) or "?"
    top = copy.word(frame + places.frame_top) if layout.version >= (3, 11) else None
    count = len(names)
    if top is not None and places.frame_tags:
        count = max(count, min((top - frame - places.frame_variables) // 8, _MOST_VARIABLES))
    elif top is not None and (top & _U32) < _SIGN_32:
        count = max(count, min(top & _U32, _MOST_VARIABLES))
    for row in range(count):
        address = copy.word(frame + places.frame_variables + 8 * row)
        if address and not (places.frame_tags and address & 3 == 3):
            is_variable = row < len(names)
            name = f"variable {names[row]}" if is_variable else "a value in use"
            kind = RootKind.VARIABLE if is_variable else RootKind.STACK
            yield Root(address & ~7, kind, name, function, thread)
    for offset in (
        places.frame_code,
        places.frame_globals,
        places.frame_names,
        places.frame_function,
    ):
        address = copy.word(frame + offset)
        if address:
            yield Root(address & ~7, RootKind.FRAME, "the frame", function, thread)


def variable_names(
    copy: MemoryCopy, layout: VersionLayout, places: GraphLayout, code: int
) -> list[str] | None:
    """Return the names of a function's variables; None if that is no code.

    Args:
        copy: The memory.
        layout: Offsets of the version.
        places: Its graph's.
        code: Address of the code object.
    """
    found: list[str] = []
    for offset in places.code_variable_names:
        table = copy.word(code + offset) if code else None
        count = copy.word(table + 16) if table else None
        if table is None or count is None or not 0 <= count <= _MOST_VARIABLES:
            return None
        for row in range(count):
            text = text_at(
                copy, layout.objects, copy.word(table + places.tuple_items + 8 * row) or 0
            )
            if text is None:
                return None
            found.append(text)
    return found


def _words(copy: MemoryCopy, first: int, size_bytes: int) -> NDArray[np.int64]:
    """Return distinct words of a piece of memory that may be addresses; none if it was not copied."""
    parts = []
    row = int(np.searchsorted(copy.runs[:, 0], first, side="right")) - 1
    for begin, end, at in copy.runs[max(row, 0) :].tolist():
        low, high = max(begin, first), min(end, first + size_bytes)
        if begin >= first + size_bytes:
            break
        if low < high:
            parts.append(copy.words[at + (low - begin) // 8 : at + (high - begin) // 8])
    if not parts:
        return np.zeros(0, dtype=np.int64)
    words = np.concatenate(parts)
    return np.unique(words[(words > 0) & (words & 7 == 0)])
