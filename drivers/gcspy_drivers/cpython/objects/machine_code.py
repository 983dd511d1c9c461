"""The kernels as machine code: what `gcspy_compiled.machine_code` needs to know about them.

The folder ``compiled`` has them in C. Without that library numba compiles them; nothing waits for
it, so the first reading of a session may take longer than the later
ones.

Knows names and types of the kernels; does not know their purpose.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from gcspy_compiled.c_loops import CLibrary
from gcspy_compiled.machine_code import VARIABLE, Compiled, cache_folder
from gcspy_drivers.cpython.objects import kernels

__all__ = [
    "LIBRARY",
    "VARIABLE",
    "Kernels",
    "build",
    "cache_folder",
    "coming",
    "compiled",
    "kept",
    "load",
    "load_kept",
    "want",
]

LIBRARY: Final = CLibrary("gcspy-objects", Path(__file__).parent / "compiled")

_I64, _I32, _U16, _I8, _FLAGS = (
    "int64[::1]",
    "int32[::1]",
    "uint16[::1]",
    "int8[::1]",
    "boolean[::1]",
)
_I64_2, _I32_2 = "int64[:,::1]", "int32[:,::1]"
_U8 = "uint8[::1]"
_I8_2 = "int8[:,::1]"
_MAP = f"{_I8_2}, {_I64}, {_I64}, int64, {_I32}, int64"
_INDEX = f"int64, {_I32}, {_I64_2}, {_I32_2}"

_HELPERS: Final = {
    "_hold": f"void({_I64_2}, int64, int64, int64, int64, {_I64_2}, int64)",
    "_covered": f"boolean({_I64}, {_I64}, int64)",
    "_in_order": f"void({_I32_2}, int64, int64)",
    "_row_of": f"int64(int64, {_INDEX})",
    "_place_of": f"int64(int64, {_I64})",
    "_block_at": f"UniTuple(int64, 2)(int64, {_MAP})",
    "_generation_of": "int64(int64)",
}
_KERNELS: Final = {
    "look_into": (
        f"int64({_I64_2}, {_I64}, {_I64}, {_I64}, {_I64}, {_FLAGS}, {_I64}, int64, {_I64}, {_I64}, {_I64}, {_I32}, {_I64}, {_I64_2}, "
        f"{_I64}, {_I64}, {_FLAGS}, {_I64_2}, {_FLAGS}, {_I64}, {_I32_2}, {_I64_2}, {_I32_2}, {_U16}, {_I64}, {_I64}, {_I8_2}, {_FLAGS}, {_I64_2})"
    ),
    "index_nodes": f"int64({_I64}, {_INDEX})",
    "strangers": f"int64({_I64}, {_INDEX}, {_I64}, {_I64})",
    "rows_of": f"void({_I64}, int64, {_INDEX}, {_I64}, {_I64}, {_I32})",
    "walk": f"void({_I32}, {_I8}, {_I32}, {_I8}, {_I8})",
    "count_nodes": f"void({_I8}, {_I32}, {_U16}, int64, {_I32_2}, {_I64_2})",
    "merge_rows": f"void({_I64}, {_I64}, {_I64}, int64, {_U8}, {_U8}, {_U8})",
    "give_lists": f"void({_MAP}, {_I64}, {_I8}, int64)",
    "enter_kept": f"void({_MAP}, {_I64_2}, {_I64})",
    "lead_out": (
        f"int64({_I8_2}, {_I64}, int64, {_I64_2}, {_I64}, int64, {_FLAGS}, {_I64}, {_I64}, {_I64}, {_I64}, {_I64}, {_I64})"
    ),
    "count_references": f"void({_MAP}, {_I64_2}, {_I64}, {_I64_2})",
}


class Kernels(NamedTuple):
    """The functions of `kernels`, compiled or not; see there."""

    look_into: Callable[..., int]
    index_nodes: Callable[..., int]
    strangers: Callable[..., int]
    rows_of: Callable[..., None]
    walk: Callable[..., None]
    count_nodes: Callable[..., None]
    merge_rows: Callable[..., None]
    give_lists: Callable[..., None]
    enter_kept: Callable[..., None]
    count_references: Callable[..., None]
    lead_out: Callable[..., int]


_compiled: Final = Compiled(kernels, Kernels, _HELPERS, _KERNELS, LIBRARY)
want, compiled, load, build = _compiled.want, _compiled.get, _compiled.load, _compiled.build
kept, load_kept = _compiled.kept, _compiled.load_kept


def coming() -> bool:
    """Whether the loops were requested, and are still being compiled."""
    return _compiled.coming
