"""The walk as machine code: what `gcspy_compiled.machine_code` needs to know about it.

``compiled/walk.c`` has it in C. Without that library numba compiles it.

Knows names and types of the kernels; does not know their purpose.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from gcspy_compiled.c_loops import CLibrary
from gcspy_compiled.machine_code import Compiled
from gcspy_drivers.hotspot.objects import kernels

__all__ = ["LIBRARY", "WalkKernels", "build", "coming", "compiled", "load", "want"]

LIBRARY: Final = CLibrary("gcspy-heap-walk", Path(__file__).parent / "compiled")

_I64, _I32, _I8 = "int64[::1]", "int32[::1]", "int8[::1]"
_I64_2 = "int64[:,::1]"

_HELPERS: Final = {
    "_spread": f"void({_I64_2}, int64, int64, int64, int64)",
    "_number_of": f"int64(int64, {_I64}, {_I32})",
    "_next_mark": f"int64({_I64}, int64, {_I64})",
    "_flush": f"int64({_I64_2}, {_I64}, int64, {_I64_2}, int64, int64)",
}
_KERNELS: Final = {
    "_count": f"void({_I64}, int64, int64, {_I64}, {_I64}, {_I64_2}, {_I8})",
    "_refer": f"void({_I64}, int64, int64, int64, {_I64}, {_I64}, {_I64}, {_I64_2}, {_I64_2}, {_I8})",
    "walk": (
        f"int64({_I64}, int64, {_I64}, {_I64}, {_I64}, {_I64}, {_I32}, {_I64_2}, {_I64_2}, {_I64_2}, {_I64}, {_I64_2}, {_I64}, {_I64_2}, "
        f"{_I64_2}, {_I64_2}, {_I64_2}, {_I8})"
    ),
}


class WalkKernels(NamedTuple):
    """The compiled functions of `kernels`; see there."""

    walk: Callable[..., int]


def _kernels_of(**made: Callable[..., Any]) -> WalkKernels:
    return WalkKernels(walk=made["walk"])


_compiled: Final = Compiled(kernels, _kernels_of, _HELPERS, _KERNELS, LIBRARY)
want, compiled, load, build = _compiled.want, _compiled.get, _compiled.load, _compiled.build


def coming() -> bool:
    """Whether the walk was requested, and is still being compiled."""
    return _compiled.coming
