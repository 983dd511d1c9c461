"""The loops over a copied heap as machine code: what `gcspy_compiled.machine_code` needs to know about them.

Knows names and types of the loops; does not know their purpose.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from gcspy_compiled.c_loops import CLibrary
from gcspy_compiled.machine_code import Compiled
from gcspy_drivers.hotspot.copied import kernels

__all__ = ["LIBRARY", "CopyLoops", "as_written", "load"]

LIBRARY: Final = CLibrary("gcspy-copied-heap", Path(__file__).parent / "compiled")

_I64, _I64_2, _I32, _U8 = "int64[::1]", "int64[:,::1]", "int32[::1]", "uint8[::1]"

_HELPERS: Final = {
    "number_at": f"int64({_U8}, int64, int64)",
    "put": f"void({_U8}, int64, int64, int64)",
    "value": f"int64({_U8}, int64, int64, {_I64}, {_U8}, int64)",
    "next_mark": f"int64({_I64}, int64, {_I64})",
    "without_objects": f"int64(int64, int64, {_I64}, {_I64_2}, {_I64})",
    "class_word": f"int64({_I64}, int64, {_I64})",
    "size_of": f"int64({_I64}, int64, {_I64}, {_I64})",
    "number_of": f"int64(int64, {_I64}, {_I32})",
}
_LOOPS: Final = {
    "index": f"int64({_I64}, {_I64}, {_I64}, {_I64}, {_I64}, {_I32}, {_I64_2}, {_I64_2}, {_I64}, {_I64}, {_I32})",
    "emit": f"int64({_U8}, int64, {_I64}, {_I32}, {_I64_2}, {_I64}, {_I64}, {_I64}, {_I64_2}, {_I64}, {_U8}, int64)",
}


class CopyLoops(NamedTuple):
    """The functions of `kernels`, compiled or not; see there."""

    index: Callable[..., int]
    emit: Callable[..., int]


_compiled: Final = Compiled(kernels, CopyLoops, _HELPERS, _LOOPS, LIBRARY)


def load() -> CopyLoops:
    """Return the loops: in C; compiled, which takes seconds the first time; or in Python if there is no numba."""
    return _compiled.load() or as_written()


def as_written() -> CopyLoops:
    """Return the loops as Python runs them: the same results, a hundred times slower."""
    return CopyLoops(kernels.index, kernels.emit)
