"""A small run that is made, with each kind of event and of symbol; and decoding by each of the two ways."""

from __future__ import annotations

from typing import Any

import numpy as np
from gcspy_objects.anttracks.buffers import Chunk
from gcspy_objects.anttracks.decoding import Decoded, kernel, vectors
from gcspy_objects.anttracks.decoding.problem import Problem
from gcspy_objects.anttracks.decoding.tables import (
    FIXED_WORDS,
    SPARE_BITS,
    Columns,
    SymbolTables,
    columns_for,
)
from gcspy_objects.anttracks.layout import EventId

from benchmarks.targets.anttracks_writer import (
    CLASS_TYPE,
    SymbolsWriter,
    TraceWriter,
    alloc,
    head,
    long,
    word,
)

INTS, OBJECT, CLASS, POINT, LINES = 1, 2, 3, 4, 5
"""Types: int[], Object, Class, a class of 24 bytes, String[][]."""
INTERNAL, COLLECTOR, CLONE, NEW_POINT, NEW_INTS, NEW_LINES, NEW_BIG = 1, 2, 5, 20, 21, 22, 0x80000D
"""Sites."""
MAIN, WORKER, GC_THREAD = 0x7F0000001000, 0x7F0000002000, 0x7F0000003000
BASE = 0xFFC00000


def symbols(flags: int = 0) -> SymbolsWriter:
    made = SymbolsWriter(flags)
    made.cause(0, "System.gc()")
    made.cause(14, "Allocation Failure")
    for number, name in (
        (INTERNAL, "VM internal"),
        (COLLECTOR, "VM GC"),
        (3, "VM GC Dead Space"),
        (CLONE, "java.lang.Object.clone()Ljava/lang/Object;"),
    ):
        made.vm_site(number, name)
    made.type(INTS, "[I", 16 << 8 | 4)
    made.type(OBJECT, "Ljava/lang/Object;", 16, [])
    made.type(CLASS, CLASS_TYPE, 96, [("Ljava.lang.String;", "name", 2)])
    made.type(POINT, "Lapp/Point;", 24, [("I", "x", 2), ("[Ljava.lang.String;", "tags", 0x12)])
    made.mirror(CLASS, 96, "Lapp/Point;", [("I", "ORIGIN", 8)])
    made.type(LINES, "[[Ljava/lang/String;", 16 << 8 | 8)
    made.site(
        NEW_POINT,
        [
            ("app.Main.make(I[Lapp/Point;)Lapp/Point;", 7),
            ("$$Recursion.repeat_2_last_frames_n_times()V", 40),
            ("app.Main.main([Ljava/lang/String;)V", -1),
        ],
        POINT,
    )
    made.site(NEW_INTS, [("app.Main.ints(J)[I", 3)], INTS)
    made.site(NEW_LINES, [("app.Main.lines()[[Ljava/lang/String;", 9)], LINES)
    made.site(NEW_BIG, [("app.Point.<clinit>()V", 1)], POINT)
    return made


def thread(address: int, name: str, kind: int = 3) -> bytes:
    text = name.encode()[:47] + b"\0"
    words = [
        int.from_bytes(text[at : at + 4].ljust(4, b"\0"), "big") for at in range(0, len(text), 4)
    ]
    return head(EventId.THREAD_ALIVE, kind << 8) + long(address) + b"".join(map(word, words))


def gc(
    event: EventId, number: int, *, kind: int = 0, cause: int = 14, failed: bool = False
) -> bytes:
    return (
        head(event, kind << 16 | cause << 8 | failed)
        + word(number)
        + long(1000 + number)
        + long(BASE)
    )


def pointing(event: EventId, kinds: list[int], rest: int = 0) -> bytes:
    return head(event, rest | sum(kind << (22 - 2 * place) for place, kind in enumerate(kinds)))


EVENTS: list[bytes] = [
    thread(MAIN, "main"),
    thread(WORKER, "a name that is much longer than forty-eight bytes are", 1),
    head(EventId.THREAD_DEATH) + long(WORKER),
    head(EventId.SPACE_CREATE) + word(1) + long(BASE) + long(1 << 20),
    head(EventId.SPACE_ALLOC, 2 << 18 | 1 << 10) + word(1),
    head(EventId.SPACE_RELEASE) + word(1),
    head(EventId.SPACE_REDEFINE) + word(1) + long(BASE) + long(2 << 20),
    head(EventId.SPACE_DESTROY) + word(4) + long(3),
    head(EventId.MARK) + long(77),
    head(EventId.TLAB_ALLOC) + long(4096) + long(BASE),
    head(EventId.PLAB_ALLOC) + long(8192) + long(BASE + 65536),
    alloc(EventId.ALLOC_SLOW, INTERNAL, address=BASE, type_id=OBJECT),
    alloc(EventId.ALLOC_SLOW, INTERNAL, address=BASE, length=300, type_id=INTS),
    alloc(EventId.ALLOC_SLOW, INTERNAL, address=BASE, type_id=CLASS, size=104),
    alloc(EventId.ALLOC_SLOW, COLLECTOR, address=BASE, length=9, type_id=INTS),
    alloc(EventId.ALLOC_SLOW, CLONE, address=BASE, length=255, type_id=LINES),
    *(
        alloc(event, site, address=BASE + 64, length=length)
        for event in map(EventId, (16, 20, 25, 18, 22, 27))
        for site, length in ((NEW_POINT, 0), (NEW_BIG, 0), (NEW_INTS, 254), (NEW_LINES, 255))
    ),
    *(
        alloc(event, NEW_LINES, address=BASE + 64, length=length, type_id=INTS)
        for event in map(EventId, (17, 21, 26))
        for length in (3, 70_000)
    ),
    *(
        alloc(event, site, length=length)
        for event in map(EventId, (19, 23, 28))
        for site, length in ((NEW_POINT, 0), (NEW_BIG, 0), (NEW_INTS, 0), (NEW_INTS, 256))
    ),
    alloc(EventId.C2_ALLOC_FAST_DEVIANT, NEW_LINES, length=5, type_id=INTS),
    head(EventId.NOP),
    gc(EventId.GC_START, 3),
    head(EventId.GC_INFO, 1) + word(3),
    head(EventId.GC_FAILED, 1),
    head(EventId.GC_MOVE_SLOW) + long(BASE) + long(BASE + 4096),
    head(EventId.GC_MOVE_FAST_WIDE, 1 << 24) + long(BASE + 8),
    head(EventId.GC_MOVE_FAST, 2 << 24) + word(5 << 22),
    head(EventId.GC_MOVE_FAST_NARROW, 1 << 24 | 12 << 2),
    head(EventId.GC_MOVE_REGION, 1000) + long(BASE) + long(BASE),
    head(EventId.GC_KEEP_ALIVE) + long(BASE),
    gc(EventId.GC_END, 3, failed=True),
    head(EventId.SYNC_OBJ, NEW_POINT << 8) + word(POINT) + long(BASE) + long(BASE + 8),
    head(EventId.SYNC_OBJ, NEW_INTS << 8) + word(INTS) + long(BASE) + long(BASE + 8) + word(3),
    head(EventId.SYNC_OBJ_NARROW, NEW_BIG) + word(POINT) + long(BASE),
    head(EventId.SYNC_OBJ_NARROW, INTERNAL << 8) + word(CLASS) + long(BASE) + word(112),
    pointing(EventId.GC_MOVE_SLOW_PTR, [1, 2, 1, 3])
    + long(BASE)
    + long(BASE + 4096)
    + word(2**32 - 5)
    + long(BASE + 800)
    + word(4),
    pointing(EventId.GC_MOVE_FAST_WIDE_PTR, [], 2 << 24) + long(BASE),
    pointing(EventId.GC_MOVE_FAST_PTR, [3] * 12, 1 << 24) + word(8),
    pointing(EventId.GC_KEEP_ALIVE_PTR, [1, 1]) + long(BASE) + word(1) + word(2),
    *(
        pointing(event, [2, 3]) + long(BASE) + long(BASE + 16)
        for event in map(EventId, (43, 44, 45, 46))
    ),
]
"""One of each kind of event, at least, in each of its shapes."""


def trace(anchors: bool = False) -> TraceWriter:
    """All of `EVENTS`, in buffers of three threads, one of them compressed."""
    made = TraceWriter(anchors=anchors)
    third = len(EVENTS) // 3
    made.buffer(MAIN, *EVENTS[:third], mode=1)
    made.buffer(WORKER, *EVENTS[third : 2 * third], packed=True)
    made.buffer(GC_THREAD)
    made.buffer(GC_THREAD, *EVENTS[2 * third :], mode=2)
    return made


def as_written(
    chunk: Chunk, owners: np.ndarray[Any, Any], base: int, anchor: int, tables: SymbolTables
) -> Decoded:
    """Decode with the loop that numba compiles, as it is written: on whole numbers of Python."""
    columns = columns_for(len(chunk.words))
    state: Any = [base, 0, 0, 0, 0]
    plain: list[Any] = [one.tolist() for one in (chunk.words, chunk.bounds, owners)]
    arguments: list[Any] = [
        *plain,
        state,
        anchor,
        *(one.tolist() for one in (FIXED_WORDS, SPARE_BITS, *tables)),
        *columns,
    ]
    count = kernel.decode(*arguments)
    found = {
        name: one[: state[4] if name.startswith("pointer") else count]
        for name, one in columns._asdict().items()
    }
    return Decoded(Columns(**found), state[0], Problem(state[1]), state[2], state[3])


def in_numpy(
    chunk: Chunk, owners: np.ndarray[Any, Any], base: int, anchor: int, tables: SymbolTables
) -> Decoded:
    """Decode with numpy."""
    columns, base, problem, at, buffer = vectors.decode(
        chunk.words, chunk.bounds, owners, base, anchor, tables
    )
    return Decoded(columns, base, Problem(problem), at, buffer)


def same(one: Decoded, other: Decoded) -> None:
    """Assert that two ways found the same, to the bit."""
    assert (
        one[1:] == other[1:]
        if one.problem
        else (one.base, one.problem) == (other.base, other.problem)
    )
    for name in Columns._fields:
        left, right = getattr(one.columns, name), getattr(other.columns, name)
        assert left.dtype == right.dtype, name
        np.testing.assert_array_equal(left, right, err_msg=name)
