"""CPython 3.15: the collector's statistics are rings of its latest collections, on the heap.

Source: measured on Debian's 3.15.2; pycore_runtime.h, pycore_debug_offsets.h, pycore_interp_structs.h, pycore_gc.h,
pycore_interpframe_structs.h, pycore_stackref.h, pycore_moduleobject.h.
"""

from gcspy_drivers.cpython.layouts.layout import (
    GcLayout,
    GraphLayout,
    ObjectLayout,
    ObmallocHome,
    VersionLayout,
)

LAYOUT = VersionLayout(
    version=(3, 15),
    interpreters_head=936,
    interpreter_next=7264,
    interpreter_id=7272,
    interpreter_gc=7400,
    interpreter_bytes=226240,
    objects=ObjectLayout(
        prefix_flags=24,
        refcount_flags=0xFFFF << 48,
        compact_keys=True,
        ascii_at=40,
        text_at=56,
        cached_keys_at=888,
        digits_shift=3,
        bytearray_object=True,
    ),
    obmalloc_home=ObmallocHome.POINTER,
    interpreter_obmalloc=10880,
    gc=GcLayout(
        size_bytes=176,
        enabled=0,
        generations=8,
        generation0=168,
        permanent=80,
        stats=104,
        stats_rings=True,
        collecting=112,
        garbage=128,
        long_lived=152,
    ),
    debug_offsets=True,
    debug_gc_at=88,
    debug_gc_size_at=752,
    debug_support_at=840,
    graph=GraphLayout(
        modules=7592,
        builtins=7584,
        sys_names=7576,
        threads=7336,
        interpreter_bytes=226240,
        thread_native=184,
        thread_ident=176,
        thread_frame=72,
        thread_bytes=1096,
        frame_owner=74,
        frame_variables=80,
        frame_tags=True,
        generator_ended=5,
        static_type_bytes=424,
        tuple_items=32,
        module_state=24,
        module_state_bytes=56,
    ),
)
