"""The kernels as machine code: compiled by numba where it is installed, in a thread of their own, and kept for the next time.

numba is a large library and compiling takes seconds, so nothing of it is loaded before somebody asks for objects, and nobody waits: until
the code is there, and where there is no numba, numpy does the same work. The first reading of a session may therefore take longer than the
later ones.

Where what was compiled is kept, and when it is not: `gcspy_objects.machine_code`.

Knows names and types of the kernels, and nothing of what they are for.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from types import FunctionType, SimpleNamespace
from typing import Any, Final, NamedTuple

from gcspy_objects.machine_code import VARIABLE, cache_folder

from gcspy_drivers.cpython.objects import kernels

__all__ = ["VARIABLE", "Kernels", "build", "cache_folder", "compiled", "load", "want"]

_I64, _I32, _U16, _I8, _FLAGS = "int64[::1]", "int32[::1]", "uint16[::1]", "int8[::1]", "boolean[::1]"
_I64_2, _I32_2 = "int64[:,::1]", "int32[:,::1]"
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
    give_lists: Callable[..., None]
    enter_kept: Callable[..., None]
    count_references: Callable[..., None]
    lead_out: Callable[..., int]


_state = SimpleNamespace(lock=threading.Lock(), thread=None, kernels=None)


def want() -> None:
    """Have the kernels compiled, or loaded, in a thread; returns at once. Only the first call does anything."""
    with _state.lock:
        if _state.thread is None and os.environ.get(VARIABLE) != "no":
            # A daemon: who leaves meanwhile does not wait for the compiler.
            _state.thread = threading.Thread(target=_prepare, name="gcspy machine code", daemon=True)
            _state.thread.start()


def compiled(*, wait_secs: float = 0.0) -> Kernels | None:
    """Return the compiled kernels; None while they are not there, or when they never will be.

    Args:
        wait_secs: How long to wait for them, if they were wanted.
    """
    if os.environ.get(VARIABLE) == "no":
        return None
    thread: threading.Thread | None = _state.thread
    if thread is not None and wait_secs > 0:
        thread.join(wait_secs)
    found: Kernels | None = _state.kernels
    return found


def load() -> Kernels | None:
    """Compile the kernels, or load what was compiled before; None without numba. Takes seconds."""
    try:
        import numba
    except ImportError:
        return None
    folder = cache_folder()
    if folder is not None:
        numba.config.CACHE_DIR = str(folder)
    return build(numba.njit, keep=folder is not None)


def build(njit: Callable[..., Callable[[Any], Any]], *, keep: bool) -> Kernels:
    """Compile the kernels with numba's decorator; `keep` says whether numba may write down what it compiled."""
    # The kernels are compiled as functions of a module of their own, in which the helpers are compiled ones.
    space = dict(vars(kernels))
    options: Mapping[str, Any] = {"nogil": True, "cache": keep, "error_model": "numpy"}
    made = {}
    for name, signature in {**_HELPERS, **_KERNELS}.items():
        written = getattr(kernels, name)
        function = FunctionType(written.__code__, space, name)
        function.__qualname__, function.__module__ = name, written.__module__
        made[name] = space[name] = njit([signature], **options)(function)
    return Kernels(**{name: made[name] for name in _KERNELS})


def _prepare() -> None:
    _state.kernels = load()
