"""CPython 3.9: arenas of 256 KiB and pools of 4 KiB; everything static, and no ``Py_Version`` to read.

Source: measured on 3.9.18; pycore_runtime.h, pycore_interp.h, pycore_gc.h, Objects/obmalloc.c.
"""

from gcspy_drivers.cpython.layouts.layout import Layout, ObjectLayout, ObmallocHome, PoolGeometry

LAYOUT = Layout(
    version=(3, 9),
    interpreters_head=32,
    interpreter_next=0,
    interpreter_id=24,
    interpreter_gc=616,
    interpreter_bytes=4096,
    objects=ObjectLayout(cached_keys_at=864),
    obmalloc_home=ObmallocHome.STATIC,
    geometry=PoolGeometry(arena_bytes=1 << 18, pool_bytes=1 << 12),
)
