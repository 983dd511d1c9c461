"""CPython 3.10: as 3.9, with arenas of 1 MiB and pools of 16 KiB.

Source: measured on 3.10.13; pycore_runtime.h, pycore_interp.h, pycore_gc.h, Objects/obmalloc.c.
"""

from gcspy_drivers.cpython.layouts.layout import Layout, ObmallocHome

LAYOUT = Layout(
    version=(3, 10),
    interpreters_head=32,
    interpreter_next=0,
    interpreter_id=24,
    interpreter_gc=616,
    interpreter_bytes=4096,
    obmalloc_home=ObmallocHome.STATIC,
)
