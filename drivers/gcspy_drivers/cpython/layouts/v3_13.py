"""CPython 3.13: interpreters point to a state of pymalloc, and ``_PyRuntime`` begins with a table of offsets.

The table (``_Py_DebugOffsets``) covers the interpreters and the place of the collector's state, but
not its content and not pymalloc.

Source: measured on 3.13.0, 3.13.5, 3.13.7 and 3.13.18; pycore_runtime.h, pycore_interp.h, pycore_gc.h, pycore_obmalloc.h.
"""

from gcspy_drivers.cpython.layouts.layout import (
    GraphLayout,
    ObjectLayout,
    ObmallocHome,
    VersionLayout,
)

LAYOUT = VersionLayout(
    version=(3, 13),
    interpreters_head=632,
    interpreter_next=7264,
    interpreter_id=7272,
    interpreter_gc=7400,
    interpreter_bytes=194968,
    objects=ObjectLayout(
        prefix_flags=24,
        compact_keys=True,
        ascii_at=40,
        text_at=56,
        cached_keys_at=880,
        digits_shift=3,
    ),
    obmalloc_home=ObmallocHome.POINTER,
    interpreter_obmalloc=10800,
    debug_offsets=True,
    tracemalloc=10080,
    graph=GraphLayout(
        modules=7656,
        builtins=7648,
        sys_names=7640,
        threads=7344,
        interpreter_bytes=194968,
        thread_native=160,
        thread_frame=72,
        static_type_bytes=416,
    ),
)
