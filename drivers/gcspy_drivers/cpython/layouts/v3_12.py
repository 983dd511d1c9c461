"""CPython 3.12: each interpreter has its own state of pymalloc; those that share the main one leave theirs empty.

Source: measured on 3.12.1 and Ubuntu's 3.12.3; pycore_runtime.h, pycore_interp.h, pycore_gc.h, pycore_obmalloc.h.
"""

from gcspy_drivers.cpython.layouts.layout import (
    GraphLayout,
    ObjectLayout,
    ObmallocHome,
    VersionLayout,
)

LAYOUT = VersionLayout(
    version=(3, 12),
    interpreters_head=40,
    interpreter_next=0,
    interpreter_id=8,
    interpreter_gc=112,
    interpreter_bytes=16384,
    objects=ObjectLayout(
        prefix_flags=24,
        compact_keys=True,
        ascii_at=40,
        text_at=56,
        cached_keys_at=880,
        digits_shift=3,
    ),
    obmalloc_home=ObmallocHome.EMBEDDED,
    interpreter_obmalloc=3960,
    tracemalloc=2768,
    graph=GraphLayout(
        modules=944,
        builtins=360,
        sys_names=352,
        threads=72,
        interpreter_bytes=383552,
        thread_native=144,
        thread_ident=136,
        thread_frame_in=0,
        thread_bytes=288,
        static_type_bytes=416,
    ),
)
