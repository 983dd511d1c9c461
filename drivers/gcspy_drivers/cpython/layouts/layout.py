"""The form in which each version's numbers are given: offsets in bytes into CPython's structures.

A layout has the offsets of fields; it does not read them. All numbers are for x86-64 and builds
with a GIL, measured with ``offsetof`` on each version's own headers.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = [
    "GcLayout",
    "GraphLayout",
    "VersionLayout",
    "ObjectLayout",
    "ObmallocHome",
    "ObmallocLayout",
    "PoolGeometry",
]


class ObmallocHome(Enum):
    """Place of the state of pymalloc in a version."""

    STATIC = "static variables of the image"
    EMBEDDED = "inside PyInterpreterState"
    POINTER = "PyInterpreterState points to it"


@dataclass(frozen=True, kw_only=True)
class PoolGeometry:
    """Sizes that pymalloc was built with.

    Attributes:
        arena_bytes: Size of an arena.
        pool_bytes: Size and alignment of a pool.
        header_bytes: The part of a pool that is not for blocks.
        alignment_bytes: Block sizes are multiples of this.
        size_classes: How many sizes of blocks there are.
    """

    arena_bytes: int = 1 << 20
    pool_bytes: int = 1 << 14
    header_bytes: int = 48
    alignment_bytes: int = 16
    size_classes: int = 32


@dataclass(frozen=True, kw_only=True)
class ObmallocLayout:
    """Offsets into ``struct _obmalloc_state``."""

    arenas: int = 512
    maxarenas: int = 520
    arenas_now: int = 1064
    arenas_ever: int = 1072
    arenas_most: int = 1080
    size_bytes: int = 263248


@dataclass(frozen=True, kw_only=True)
class GcLayout:
    """Offsets into ``struct _gc_runtime_state``.

    ``generations`` is what upstream has; the state's own ``generation0`` pointer is preferred, because distributions
    are known to patch the alignment (Debian and Ubuntu 3.13: 20 instead of 24). With ``stats_rings`` there is a pointer to
    rings of the latest collections at ``stats``, otherwise three totals for each generation. At ``garbage`` is the pointer to
    the list ``gc.garbage``, at ``long_lived`` two numbers of 64 bits: how many objects survived the last full collection, and how
    many the middle generation's collections have moved to the oldest since.
    """

    size_bytes: int = 240
    enabled: int = 12
    generations: int = 24
    generation0: int = 96
    permanent: int = 104
    stats: int = 128
    stats_rings: bool = False
    collecting: int = 200
    garbage: int = 208
    long_lived: int = 224


@dataclass(frozen=True, kw_only=True)
class ObjectLayout:
    """The layout of an object.

    Attributes:
        gc_head_bytes: Before an object that the collector may track.
        prefix_flags: Flags of a type whose objects have two words more before that head: Py_TPFLAGS_MANAGED_DICT (16), since
            3.12 Py_TPFLAGS_MANAGED_WEAKREF (8) too.
        prefix_bytes: These two words.
        refcount_flags: Bits of the word with the reference count that are something else.
        most_references: The largest valid reference count.
        compact_keys: Whether the head of a dictionary's table has sizes in single bytes (from 3.11 on), and not in words.
        ascii_at: In a ``str``: its text, if that is ASCII.
        text_at: In another ``str``: its text; in an instance of a derived class: pointer to it.
        cached_keys_at: In a class: pointer to the table of names that its instances share.
        digits_shift: Bits of the word behind an ``int``'s type that are no digits; 0: the word is their number, negative as the number is.
        bytearray_object: Whether a ``bytearray`` keeps its bytes in an object of type ``bytes`` (3.15).
    """

    gc_head_bytes: int = 16
    prefix_flags: int = 0
    prefix_bytes: int = 16
    refcount_flags: int = 0
    most_references: int = (1 << 33) - 1
    compact_keys: bool = False
    ascii_at: int = 48
    text_at: int = 72
    cached_keys_at: int = 872
    digits_shift: int = 0
    bytearray_object: bool = False


@dataclass(frozen=True, kw_only=True)
class GraphLayout:
    """Offsets of roots, and of their names.

    Attributes:
        modules: In PyInterpreterState: pointer to the dictionary of modules.
        builtins: In PyInterpreterState: pointer to the dictionary of builtins.
        sys_names: In PyInterpreterState: pointer to the dictionary of ``sys``.
        threads: In PyInterpreterState: pointer to the newest thread's state.
        interpreter_bytes: Size of PyInterpreterState.
        thread_next: In PyThreadState: pointer to the next older one.
        thread_native: In PyThreadState: the system's number of the thread; 0: only ``thread_ident``.
        thread_ident: In PyThreadState: the number that ``threading`` knows.
        thread_frame: In PyThreadState: pointer to its frame, or to what has that.
        thread_frame_in: In its target: pointer to the frame; -1: it is the frame.
        thread_bytes: Size of PyThreadState.
        frame_code: In a frame: pointer to its code; in 3.9 and 3.10 a frame is an object.
        frame_function: In a frame: pointer to its function; 0: it has none.
        frame_previous: In a frame: pointer to its caller's.
        frame_globals: In a frame: pointer to its module's names.
        frame_names: In a frame: pointer to a dictionary of its names, if it has one.
        frame_top: In a frame: number of words in use, 32 bits; negative while it runs. In 3.10 of the stack alone; in 3.9 a pointer behind
            it, none while it runs; from 3.14 on a pointer behind the stack's words, which may be an old one while it runs.
        frame_owner: In a frame: its owner, a byte.
        frame_variables: In a frame: its variables.
        frame_tags: Whether the variables, the code and the function are tagged: the lowest bit is no part of an address, and with the
            lowest two the word is a number.
        frame_stack: In 3.9 and 3.10, in a frame: pointer behind its variables.
        generator_frame: In a generator: its frame; pointer to it in 3.9 and 3.10.
        generator_state: In a generator: its state, a signed byte.
        generator_ended: The lowest state of one that has ended.
        code_name: In code: pointer to its name.
        code_first_line: In code: its first line, 32 bits.
        code_lines: In code: pointer to its table of lines.
        code_variables: In code: number of variables, 32 bits; in 3.9 and 3.10 without cells.
        code_variable_names: In code: pointers to tuples of their names.
        static_type_bytes: Size of a type that is no class of a program.
        tuple_items: In a tuple: its items.
        module_state: In a module: pointer to the state of its C code.
        module_state_bytes: In a module: the size of that state; 0: its definition has it.
    """

    modules: int
    builtins: int
    sys_names: int
    threads: int
    interpreter_bytes: int
    thread_next: int = 8
    thread_native: int = 0
    thread_ident: int = 152
    thread_frame: int = 56
    thread_frame_in: int = -1
    thread_bytes: int = 304
    frame_code: int = 0
    frame_function: int = 16
    frame_previous: int = 8
    frame_globals: int = 24
    frame_names: int = 40
    frame_top: int = 64
    frame_owner: int = 70
    frame_variables: int = 72
    frame_tags: bool = False
    frame_stack: int = 0
    generator_frame: int = 72
    generator_state: int = 67
    generator_ended: int = 1
    code_name: int = 120
    code_first_line: int = 68
    code_lines: int = 136
    code_variables: int = 72
    code_variable_names: tuple[int, ...] = (96,)
    static_type_bytes: int = 408
    tuple_items: int = 24
    module_state: int = 32
    module_state_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class VersionLayout:
    """Offsets of the fields that we read in one minor version of CPython.

    Attributes:
        version: Major and minor version.
        interpreters_head: In ``_PyRuntime``: pointer to the newest interpreter.
        interpreter_next: In PyInterpreterState: pointer to the next older one.
        interpreter_id: In PyInterpreterState: its id, 64 bits.
        interpreter_gc: In PyInterpreterState: the collector's state.
        interpreter_bytes: How much of PyInterpreterState may be searched for the state of pymalloc.
        obmalloc_home: Kind of the place with the state of pymalloc.
        interpreter_obmalloc: In PyInterpreterState, if it is there: the state, or the pointer to
            it.
        obmalloc: Inside the state of pymalloc, where it is a structure.
        gc: Inside the collector's state.
        objects: Layout of objects.
        geometry: Sizes of arenas, pools and blocks.
        debug_offsets: Whether ``_PyRuntime`` begins with a table of its own offsets, which then is preferred.
        debug_gc_at: In that table: offset of the collector's state in PyInterpreterState.
        debug_gc_size_at: In that table: the size of that state, followed by the offset of ``collecting`` in it.
        debug_support_at: In that table: where a script to run is stored; 0 in versions without
            this.
        graph: Offsets of roots; None: holders are not supported for this version.
        tracemalloc: In ``_PyRuntime``: the state of ``tracemalloc``; 0: it is in static variables.
        tracemalloc_bytes: Whether its names of files are bytes that end with a zero, and not objects.
    """

    version: tuple[int, int]
    interpreters_head: int
    interpreter_next: int
    interpreter_id: int
    interpreter_gc: int
    interpreter_bytes: int
    obmalloc_home: ObmallocHome
    interpreter_obmalloc: int | None = None
    obmalloc: ObmallocLayout = ObmallocLayout()
    gc: GcLayout = GcLayout()
    objects: ObjectLayout = ObjectLayout()
    geometry: PoolGeometry = PoolGeometry()
    debug_offsets: bool = False
    debug_gc_at: int = 80
    debug_gc_size_at: int = 568
    debug_support_at: int = 0
    graph: GraphLayout | None = None
    tracemalloc: int = 0
    tracemalloc_bytes: bool = False
