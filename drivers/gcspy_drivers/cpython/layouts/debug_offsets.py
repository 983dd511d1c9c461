"""``_Py_DebugOffsets``: what CPython 3.13 and later say themselves about their structures.

The table is at the beginning of ``_PyRuntime`` and all 64-bit numbers; only its beginning and the collector's size are of
use here. It was made so that tools like this need no guesses, so where it speaks it overrides our numbers.

Source: CPython 3.13 Include/internal/pycore_runtime.h, 3.14 and 3.15 pycore_debug_offsets.h, struct _Py_DebugOffsets.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Final

from gcspy_protocol.errors import TargetError, Unsupported

from gcspy_drivers.cpython.layouts.layout import Layout

__all__ = ["TABLE_BYTES", "apply"]

TABLE_BYTES: Final = 888
_COOKIE = b"xdebugpy"
_HEAD = struct.Struct("<8sQQ3Q3Q")
_NUMBER = struct.Struct("<Q")
_GC = struct.Struct("<QQ")
_MOST_BYTES: Final = 1 << 20  # PyInterpreterState of 3.15 has 226 kB


def apply(layout: Layout, table: bytes) -> Layout:
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
            f"the target's _PyRuntime begins with {cookie!r}, not {_COOKIE!r}: it has not started yet, or is no CPython"
        )
    found = (version >> 24 & 0xFF, version >> 16 & 0xFF)
    if free_threaded:
        raise Unsupported(
            "free-threaded CPython has neither pymalloc nor generations to show",
            found=f"CPython {found[0]}.{found[1]}t",
            known="builds with a GIL",
        )
    inside = (
        max(ident, following) + 8 <= interp_bytes
        and gc + gc_bytes <= interp_bytes
        and head + 8 <= runtime_bytes
    )
    if found != layout.version or not inside or interp_bytes > _MOST_BYTES or collecting + 4 > gc_bytes:
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
        interpreters_head=head,
        interpreter_next=following,
        interpreter_id=ident,
        interpreter_gc=gc,
        interpreter_bytes=interp_bytes,
        gc=replace(layout.gc, collecting=collecting),
    )
