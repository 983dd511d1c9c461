"""CPython 3.14 from 3.14.5 on: generations as before 3.14, the fields around them in other places.

Up to 3.14.4 the collector was an incremental one, whose state has another size: it is refused by that.

Source: measured on Debian's 3.14.10; pycore_runtime.h, pycore_debug_offsets.h, pycore_interp_structs.h,
pycore_interpframe_structs.h, pycore_stackref.h.
"""

from gcspy_drivers.cpython.layouts.layout import (
    GcLayout,
    GraphLayout,
    ObjectLayout,
    ObmallocHome,
    VersionLayout,
)

LAYOUT = VersionLayout(
    version=(3, 14),
    interpreters_head=808,
    interpreter_next=7272,
    interpreter_id=7280,
    interpreter_gc=7408,
    interpreter_bytes=194968,
    objects=ObjectLayout(
        prefix_flags=24,
        refcount_flags=0xFFFF << 48,
        compact_keys=True,
        ascii_at=40,
        text_at=56,
        cached_keys_at=880,
        digits_shift=3,
    ),
    obmalloc_home=ObmallocHome.POINTER,
    interpreter_obmalloc=10904,
    gc=GcLayout(
        size_bytes=264,
        generation0=256,
        permanent=96,
        stats=120,
        collecting=192,
        garbage=200,
        long_lived=240,
    ),
    debug_offsets=True,
    debug_gc_at=88,
    debug_gc_size_at=648,
    debug_support_at=712,
    tracemalloc=10296,
    graph=GraphLayout(
        modules=7688,
        builtins=7680,
        sys_names=7672,
        threads=7344,
        interpreter_bytes=225864,
        thread_native=160,
        thread_ident=152,
        thread_frame=72,
        thread_bytes=936,
        frame_owner=74,
        frame_variables=80,
        frame_tags=True,
        static_type_bytes=416,
        tuple_items=32,
    ),
)
