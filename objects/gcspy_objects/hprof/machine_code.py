"""The loops as machine code: what `gcspy_compiled.machine_code` needs to know about them.

Knows names and types of the loops; does not know their purpose.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from gcspy_compiled.c_loops import CLibrary
from gcspy_compiled.machine_code import Compiled
from gcspy_objects.hprof import loops

__all__ = ["LIBRARY", "Loops", "as_written", "load"]

LIBRARY: Final = CLibrary("gcspy-dump", Path(__file__).parent / "compiled")

_I64, _I64_2, _I32, _U8 = "int64[::1]", "int64[:,::1]", "int32[::1]", "uint8[::1]"
_TABLES = f"UniTuple({_I64_2}, 4)"

_HELPERS: Final = {
    "u1": f"int64({_U8}, int64)",
    "u2": f"int64({_U8}, int64)",
    "u4": f"int64({_U8}, int64)",
    "identifier": f"int64({_U8}, int64, int64)",
    "type_bytes": "int64(int64, int64)",
    "root_bytes": "int64(int64, int64)",
    "class_end": f"int64({_U8}, int64, int64, int64, {_I64})",
    "sub_bytes": f"int64({_U8}, int64, int64, int64, {_I64})",
    "record": f"int64({_U8}, int64, int64, int64, {_TABLES}, {_I64})",
    "number_of": f"int64(int64, {_I64}, {_I32}, int64)",
    "row_of": f"int64(int64, {_I64})",
    "refer": f"void(int64, {_I64}, {_I32}, int64, {_I32}, {_I64})",
    "refer_of_instance": f"void({_U8}, int64, int64, int64, int64, {_I64}, int64, {_I64}, {_I32}, int64, {_I32}, {_I64})",
    "refer_of_class": f"void({_U8}, int64, int64, {_I64_2}, {_I64_2}, {_I64}, {_I32}, int64, {_I32}, {_I64})",
}
_LOOPS: Final = {
    "count_records": f"int64({_U8}, {_I64})",
    "scan": f"int64({_U8}, int64, {_TABLES}, {_I64}, {_I64}, {_I64}, {_I64}, int64)",
    "describe": f"void({_U8}, int64, {_I64}, {_I64_2}, {_I64_2}, {_I64_2})",
    "follow": f"int64({_U8}, int64, {_I64}, {_I64}, {_I32}, int64, UniTuple({_I64}, 6), {_I64_2}, {_I64_2}, {_I64_2}, {_I32}, {_I64}, {_I64}, "
    f"{_I32}, {_I64}, int64)",
}


class Loops(NamedTuple):
    """The functions of `loops`, compiled or not; see there."""

    count_records: Callable[..., int]
    scan: Callable[..., int]
    describe: Callable[..., None]
    follow: Callable[..., int]


_compiled: Final = Compiled(loops, Loops, _HELPERS, _LOOPS, LIBRARY)


def load() -> Loops:
    """Return the loops: in C; compiled, which takes seconds the first time; or in Python if there is no numba."""
    return _compiled.load() or as_written()


def as_written() -> Loops:
    """Return the loops as Python runs them: the same answers, a hundred times slower."""
    return Loops(loops.count_records, loops.scan, loops.describe, loops.follow)
