"""The loops as machine code: what `gcspy_compiled.machine_code` needs to know about them.

Knows names and types of the loops; does not know their purpose.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from gcspy_compiled.c_loops import CLibrary
from gcspy_compiled.machine_code import Compiled
from gcspy_drivers.cpython.graph import loops

__all__ = ["LIBRARY", "Loops", "as_written", "load"]

LIBRARY: Final = CLibrary("gcspy-walk", Path(__file__).parent / "compiled")

_I64, _I32, _I64_2 = "int64[::1]", "int32[::1]", "int64[:,::1]"
_COPY = f"{_I64}, {_I64_2}, {_I32}"
_WALKED = (
    f"Tuple(({_COPY}, {_I32}, {_I64}, {_I32}, {_I32}, {_I32}, {_I64}, {_I32}, {_I64}, {_I64}))"
)

_HELPERS: Final = {
    "locate": f"int64(int64, {_I64_2}, {_I32})",
    "place": f"int64(int64, int64, {_I64_2}, {_I32})",
    "next_run": f"int64(int64, {_I64_2})",
    "rounded": "int64(int64)",
    "chunk": "int64(int64)",
    "magnitude": "int64(int64)",
    "shape_bytes": "int64(int64)",
    "resident": f"int64(int64, int64, {_I64_2})",
    "enter": f"int64(int64, int64, {_WALKED})",
    "refer": f"boolean(int64, int64, {_WALKED})",
    "follow": f"void(int64, int64, int64, int64, {_WALKED})",
    "follow_tagged": f"void(int64, int64, int64, {_WALKED})",
    "key_table": f"UniTuple(int64, 4)(int64, {_COPY}, {_I64})",
    "values_before": "int64(int64, int64)",
    "shared_keys": f"int64(int64, int64, {_WALKED})",
    "dictionary": f"int64(int64, int64, {_WALKED})",
    "frame": f"int64(int64, int64, {_WALKED})",
    "attributes": f"int64(int64, int64, int64, int64, int64, {_WALKED})",
    "deque": f"int64(int64, int64, {_WALKED})",
    "array_bytes": f"int64(int64, {_COPY})",
    "text_bytes": f"int64(int64, {_I64}, {_I64})",
    "look_into": f"void(int64, {_WALKED}, {_I64_2}, {_I64})",
    "measure": f"void(int64, int64, {_WALKED}, {_I64})",
    "module_state": f"int64(int64, int64, int64, {_WALKED})",
    "frames": f"int64(int64, int64, int64, int64, {_WALKED})",
    "follow_behind": f"void(int64, int64, int64, {_WALKED}, {_I64})",
    "outside": f"void(int64, {_WALKED}, {_I64_2}, {_I64})",
}
_LOOPS: Final = {
    "find_words": f"int64({_I64}, {_I64}, {_I64})",
    "enter_all": f"int64({_I64}, {_WALKED})",
    "walk": f"int64({_WALKED}, {_I64_2}, {_I64}, {_I64}, {_I64}, int64)",
    "on_lists": f"int64({_I64}, {_COPY}, {_I64})",
    "residents": f"void({_I64}, {_I64}, {_I64_2}, {_I64})",
    "malloc_free_bytes": f"int64(int64, int64, {_COPY})",
    "malloc_unknown": f"int64(int64, int64, {_COPY}, {_I64}, {_I64}, {_I64})",
}


class Loops(NamedTuple):
    """The functions of `loops`, compiled or not; see there."""

    find_words: Callable[..., int]
    enter_all: Callable[..., int]
    walk: Callable[..., int]
    on_lists: Callable[..., int]
    residents: Callable[..., None]
    malloc_free_bytes: Callable[..., int]
    malloc_unknown: Callable[..., int]


_compiled: Final = Compiled(loops, Loops, _HELPERS, _LOOPS, LIBRARY)


def load() -> Loops:
    """Return the loops: in C; compiled, which takes seconds the first time; or in Python if there is no numba."""
    return _compiled.load() or as_written()


def as_written() -> Loops:
    """Return the loops as Python runs them: the same answers, a hundred times slower."""
    # Hashes wrap around.
    quiet = np.errstate(over="ignore")
    return Loops(*(quiet(getattr(loops, name)) for name in Loops._fields))
