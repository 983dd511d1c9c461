"""``_Py_DebugOffsets``: the structures of CPython 3.13 and later, as described by the runtime itself.

The table is at the beginning of ``_PyRuntime`` and all 64-bit numbers; only its beginning and the collector's size are of
use here. It was made so that tools like this need no guesses, so where it speaks it overrides our numbers.

Source: CPython 3.13 Include/internal/pycore_runtime.h, 3.14 and 3.15 pycore_debug_offsets.h, struct _Py_DebugOffsets.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Final

from gcspy_protocol.errors import TargetError, Unsupported

from gcspy_drivers.cpython.layouts.layout import GraphLayout, VersionLayout

__all__ = [
    "FREE_THREADED",
    "TABLE_BYTES",
    "DebuggerSupport",
    "apply",
    "debugger_support",
    "with_gil",
]

TABLE_BYTES: Final = 888
_COOKIE = b"xdebugpy"
_HEAD = struct.Struct("<8sQQ3Q3Q")
_NUMBER = struct.Struct("<Q")
_GC = struct.Struct("<QQ")
_SUPPORT = struct.Struct("<6Q")
_ROOTS = struct.Struct("<3Q")
_THREADS_HEAD_AT: Final = 72
_THREADS_MAIN_AT: Final = 80
_MOST_PATH_BYTES: Final = 4096
_MOST_BYTES: Final = 1 << 20  # PyInterpreterState of 3.15 has 226 kB


FREE_THREADED: Final = "free-threaded CPython has neither pymalloc nor generations, and no global lock that could stop it"


def with_gil(version: tuple[int, ...]) -> str:
    """The alternatives to monitoring a free-threaded build, and how to get them."""
    number = ".".join(map(str, version))
    return (
        f"builds with a GIL: start the program with python{number}, not python{number}t; or let it report its "
        "collections: start it by `gcspy run`, or let it call gcspy.listen()"
    )


def apply(layout: VersionLayout, table: bytes) -> VersionLayout:
    """Return the layout with the target's own numbers in place of ours.

    Args:
        layout: Our numbers for this minor version.
        table: The first `TABLE_BYTES` bytes of ``_PyRuntime``.

    Raises:
        Unsupported: The target runs without a GIL: it has neither pymalloc nor lists of tracked objects.
        TargetError: There is no table, or it contradicts itself.
    """
    cookie, version, free_threaded, runtime_bytes, _, head, interp_bytes, ident, following = (
        _HEAD.unpack_from(table)
    )
    (gc,) = _NUMBER.unpack_from(table, layout.debug_gc_at)
    gc_bytes, collecting = _GC.unpack_from(table, layout.debug_gc_size_at)
    if cookie != _COOKIE:
        raise TargetError(
            f"the target's _PyRuntime begins with {cookie!r}, not {_COOKIE!r}: it has not started yet, or is not CPython"
        )
    found = (version >> 24 & 0xFF, version >> 16 & 0xFF)
    if free_threaded:
        raise Unsupported(
            FREE_THREADED,
            found=f"CPython (free-threaded) {found[0]}.{found[1]}",
            known=with_gil(found),
        )
    inside = (
        max(ident, following) + 8 <= interp_bytes
        and gc + gc_bytes <= interp_bytes
        and head + 8 <= runtime_bytes
    )
    if (
        found != layout.version
        or not inside
        or interp_bytes > _MOST_BYTES
        or collecting + 4 > gc_bytes
    ):
        raise TargetError(
            f"the target's table of offsets is not one of CPython {layout.version[0]}.{layout.version[1]}: "
            f"version {version:#010x}, interpreter {interp_bytes} bytes, collector {gc_bytes} bytes at {gc}"
        )
    if gc_bytes != layout.gc.size_bytes:
        raise Unsupported(
            "this build has another collector than its version's",
            found=f"a state of {gc_bytes} bytes",
            known=f"{layout.gc.size_bytes} bytes",
        )
    return replace(
        layout,
        graph=_graph(layout, table, interp_bytes),
        interpreters_head=head,
        interpreter_next=following,
        interpreter_id=ident,
        interpreter_gc=gc,
        interpreter_bytes=interp_bytes,
        gc=replace(layout.gc, collecting=collecting),
    )


def _graph(layout: VersionLayout, table: bytes, interpreter_bytes: int) -> GraphLayout | None:
    """Return where roots are, as far as the table tells."""
    if layout.graph is None:
        return None
    (threads,) = _NUMBER.unpack_from(table, _THREADS_HEAD_AT)
    modules, sys_names, builtins = _ROOTS.unpack_from(table, layout.debug_gc_at + _NUMBER.size)
    if max(threads, modules, sys_names, builtins) + 8 > interpreter_bytes:
        raise TargetError(
            f"the target's table of offsets contradicts itself: modules at {modules}, sys at {sys_names}, builtins at {builtins}, "
            f"threads at {threads} of {interpreter_bytes}"
        )
    return replace(
        layout.graph,
        modules=modules,
        sys_names=sys_names,
        builtins=builtins,
        threads=threads,
        interpreter_bytes=interpreter_bytes,
    )


@dataclass(frozen=True, kw_only=True)
class DebuggerSupport:
    """Where a debugger stores the path of a script for the main thread; offsets in bytes.

    Attributes:
        threads_main: In PyInterpreterState: pointer to the main thread's state.
        enabled: In PyInterpreterState: whether it is enabled, i32.
        eval_breaker: In PyThreadState: the word that interrupts the evaluation loop.
        support: In PyThreadState: the structure of the next two.
        pending_call: In that: 1 when there is a script to run, i32.
        path: In that: its path.
        path_bytes: Room for it, with the zero at its end.
    """

    threads_main: int
    enabled: int
    eval_breaker: int
    support: int
    pending_call: int
    path: int
    path_bytes: int


def debugger_support(layout: VersionLayout, table: bytes) -> DebuggerSupport | None:
    """Return where a script is stored, according to the table; None in versions without this.

    Args:
        layout: Our numbers for this minor version, after `apply`.
        table: See `apply`.

    Raises:
        TargetError: The table contradicts itself.
    """
    if not layout.debug_support_at:
        return None
    breaker, support, enabled, pending, path, path_bytes = _SUPPORT.unpack_from(
        table, layout.debug_support_at
    )
    (threads_main,) = _NUMBER.unpack_from(table, _THREADS_MAIN_AT)
    sane = (
        max(enabled, threads_main) + 8 <= layout.interpreter_bytes
        and max(breaker + 8, support + path + path_bytes, support + pending + 4) <= _MOST_BYTES
        and 0 < path_bytes <= _MOST_PATH_BYTES
    )
    if not sane:
        raise TargetError(
            f"the target's table of offsets contradicts itself: room for a path of {path_bytes} bytes at {support} + {path}, "
            f"enabled at {enabled} of {layout.interpreter_bytes}"
        )
    return DebuggerSupport(
        threads_main=threads_main,
        enabled=enabled,
        eval_breaker=breaker,
        support=support,
        pending_call=pending,
        path=path,
        path_bytes=path_bytes,
    )
