"""CPython 3.11: the state of pymalloc is in static variables, whose names a stripped build does not contain.

Source: measured on 3.11.7 and on Debian's 3.11.2; pycore_runtime.h, pycore_interp.h, pycore_gc.h, Objects/obmalloc.c.
"""

from gcspy_drivers.cpython.layouts.layout import (
    GraphLayout,
    ObjectLayout,
    ObmallocHome,
    VersionLayout,
)

LAYOUT = VersionLayout(
    version=(3, 11),
    interpreters_head=40,
    interpreter_next=0,
    interpreter_id=48,
    interpreter_gc=648,
    interpreter_bytes=4096,
    objects=ObjectLayout(prefix_flags=16, compact_keys=True),
    obmalloc_home=ObmallocHome.STATIC,
    graph=GraphLayout(
        code_first_line=72,
        modules=888,
        builtins=912,
        sys_names=904,
        threads=16,
        interpreter_bytes=107752,
        thread_native=160,
        thread_frame_in=8,
        thread_bytes=360,
        frame_code=32,
        frame_function=0,
        frame_previous=48,
        frame_globals=8,
        frame_names=24,
        frame_owner=69,
        generator_frame=80,
        generator_state=75,
        code_variables=76,
    ),
)
