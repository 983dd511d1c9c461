"""CPython 3.9: arenas of 256 KiB and pools of 4 KiB; everything static, and no ``Py_Version`` to read.

Source: measured on 3.9.18; pycore_runtime.h, pycore_interp.h, pycore_gc.h, Objects/obmalloc.c.
"""

from gcspy_drivers.cpython.layouts.layout import (
    GraphLayout,
    ObjectLayout,
    ObmallocHome,
    PoolGeometry,
    VersionLayout,
)

LAYOUT = VersionLayout(
    version=(3, 9),
    interpreters_head=32,
    interpreter_next=0,
    interpreter_id=24,
    interpreter_gc=616,
    interpreter_bytes=4096,
    objects=ObjectLayout(cached_keys_at=864),
    obmalloc_home=ObmallocHome.STATIC,
    geometry=PoolGeometry(arena_bytes=1 << 18, pool_bytes=1 << 12),
    graph=GraphLayout(
        modules=856,
        builtins=880,
        sys_names=872,
        threads=8,
        interpreter_bytes=5656,
        thread_ident=176,
        thread_frame=24,
        thread_bytes=264,
        frame_code=32,
        frame_function=0,
        frame_previous=24,
        frame_globals=48,
        frame_names=56,
        frame_top=72,
        frame_owner=0,
        frame_variables=360,
        frame_stack=64,
        generator_frame=16,
        generator_state=0,
        code_name=112,
        code_first_line=40,
        code_lines=120,
        code_variables=28,
        code_variable_names=(72, 88, 80),
    ),
)
