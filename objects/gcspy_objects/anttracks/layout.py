"""The bytes of AntTracks traces: the layout of the three files of a run, and the numbers of events.

All whole numbers are little endian. A *word* is 4 bytes; all events are whole words. There is no index, footer, checksum or count of records.

Prefix of each file of a run:

    ======= ===============================================================
    bytes   field
    ======= ===============================================================
    4       0x00C0FFEE
    4       K = 42
    4 * K   random words, the same in all files of a run: its key
    4       type of file: 0 symbols, 1 trace, 2 class definitions
    ======= ===============================================================

The prefix of a trace file is followed by its index (4 bytes; it counts up if a trace is rotated),
then buffers up to its end:

    ======= ===============================================================
    8       owner: address of the VM's thread that filled it
    4       bits 0..28 bytes of payload; 29..30 mode; 31 compressed (`lzw`)
    n       payload: events, none of which crosses its end
    ======= ===============================================================

Modes: 0 the buffer was full; 1 its last event keeps its order with other threads' (SPACE events, the NOP barrier); 2 all threads had
written theirs just before (GC_START, GC_END, the NOP before GC_FAILED). Only buffers of mode 0 are compressed.

The first word of an event has its id in bits 26..31. In the table, *w* is that word; its fields
follow in this order, [..] if present:

    == ========================= ====== ======================================================================================
    id event                     words  what it has
    == ========================= ====== ======================================================================================
    0  NOP                       1      a barrier
    1  MARK                      3      u64 the program's number
    2  GC_START                  6      w 16..23 kind, 8..15 cause, 0 failed; u32 number; u64 milliseconds; u64 base address
    3  GC_END                    6      the same
    4  GC_INFO                   2      w 0..23 index of a collected space; u32 number of the collection
    5  GC_FAILED                 1      w 0..23 index of the space whose evacuation failed
    6  SPACE_CREATE              6      u32 index; u64 start; u64 bytes
    7  SPACE_ALLOC               2      w 18..25 kind (0 eden, 1 survivor, 2 old), 10..17 mode; u32 index
    8  SPACE_RELEASE             2      u32 index
    9  SPACE_REDEFINE            6      as SPACE_CREATE
    10 SPACE_DESTROY             4      u32 first index; u64 count
    11 THREAD_ALIVE              3 + n  w 8..23 kind (0 VM, 1 GC, 2 compiler, 3 Java, 4 other); u64 address; name to its NUL, at most 48
                                        bytes, big endian in each word
    12 THREAD_DEATH              3      u64 address
    13 TLAB_ALLOC                5      u64 bytes; u64 start
    14 PLAB_ALLOC                5      u64 bytes; u64 start
    15 ALLOC_SLOW                4..6   by the VM; site; u64 address; [u32 length]; u32 type; [u32 size]
    16 20 25 .._ALLOC_SLOW       3, 4   IR, C1, C2: site; u64 address; [u32 length]
    17 21 26 .._SLOW_DEVIANT     4..6   site; u64 address; [u32 length]; u32 type; [u32 size]
    18 22 27 .._ALLOC_NORMAL     3, 4   outside of a TLAB: site; u64 address; [u32 length]
    19 23 28 .._ALLOC_FAST       1, 2   in the owner's TLAB: site; [u32 length]
    29 C2_ALLOC_FAST_DEVIANT     2, 3   site; [u32 length]; u32 type
    30 GC_MOVE_SLOW              5      u64 from; u64 to
    31 GC_MOVE_FAST_WIDE         3      w 24..25 kind of space; u64 from
    32 GC_MOVE_FAST              2      w 24..25 kind of space; u32 (from - base) / 8
    33 GC_MOVE_FAST_NARROW       1      w 24..25 kind of space; w 2..23 (from - base) / 8
    34 GC_MOVE_REGION            5      w 0..23 count of neighbours; u64 from; u64 to (the same: they stay)
    35 GC_KEEP_ALIVE             3      u64 address
    36 SYNC_OBJ                  6..8   site; u32 type; u64 from; u64 to; [u32 length if array]; [u32 size if java.lang.Class]
    37 SYNC_OBJ_NARROW           4..6   site; u32 type; u64 address; [u32 length if array]; [u32 size if java.lang.Class]
    39 GC_MOVE_SLOW_PTR          5 + p  w pointer kinds; u64 from; u64 to; pointers
    40 GC_MOVE_FAST_WIDE_PTR     3 + p  w 24..25 kind of space, pointer kinds; u64 from; pointers
    41 GC_MOVE_FAST_PTR          2 + p  w 24..25 kind of space, pointer kinds; u32 (from - base) / 8; pointers
    42 GC_KEEP_ALIVE_PTR         3 + p  w pointer kinds; u64 address; pointers
    43 GC_OBJ_PTR                3 + p  w pointer kinds; u64 object; pointers
    44 GC_OBJ_ARR_PTR            3 + p  the same
    45 GC_ROOT_PTR               3 + p  the same, of roots
    46 GC_CROSSGENERATIONAL_PTR  3 + p  the same
    == ========================= ====== ======================================================================================

Bits of w that are not named are 0, and so is the length of an object that is not an array;
`SPARE_BITS` has those for which that was observed in real traces. 24, 38 and 47..63 are not
written. If the symbols' flag says so, each event is followed by one more word (an anchor of
debugging VMs).

*Site*: bit 23 of w set: 0..23 are the number of a big site, and there is no length (the type is no array). Clear: 8..22 are the number of a
small site, 0..7 the length of the array, 255: it is in the u32 length. *Type*: the site's, or the event's u32 type, which wins. *Size*: only if
the type is java.lang.Class. An object is as large as its type's instances, or for arrays header + element * length, rounded up to 8.

*Base*: of the latest GC_START or GC_END. *Pointer kinds*: twelve pairs of bits in w 0..23, the
first in the highest: 0 none; 1 relative (an i32 word); 2 absolute (u64); 3 null (no word). The word
of a relative pointer is the distance, backwards in units of 8 bytes, from the target of the
previous pointer, not counting nulls; for the first one from the object itself, at its place after
the move. In a full collection pointers have the addresses of objects after it, in a minor one those
before it: an object's pointers are reported as it is copied. Observed in a real trace: all 73,974
of three full and three minor collections lead to an object.

Source: the output of AntTracksVM (HotSpot 25.71) with the parallel collectors; P. Lengauer, V.
Bitto, H. Mössenböck: Accurate and Efficient Object Tracing for Java Applications (ICPE 2015),
section 3.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

__all__ = [
    "ALL_FLAGS",
    "BUFFER_HEADER_BYTES",
    "DATA_OFFSET",
    "HAS_ANCHORS",
    "HAS_POINTERS",
    "KEY_WORDS",
    "MAGIC",
    "MAX_PAYLOAD_BYTES",
    "MAX_THREAD_NAME_WORDS",
    "PREFIX_BYTES",
    "EventId",
    "FileType",
]

MAGIC: Final = 0x00C0FFEE
KEY_WORDS: Final = 42
PREFIX_BYTES: Final = 4 + 4 + 4 * KEY_WORDS + 4
DATA_OFFSET: Final = PREFIX_BYTES + 4
"""Offset of the first buffer of a trace file."""
BUFFER_HEADER_BYTES: Final = 12
MAX_PAYLOAD_BYTES: Final = 4 << 20
"""The VM's own buffers have 16 KiB, half as much more at most. Who sets them two hundred times as large is refused."""
MAX_THREAD_NAME_WORDS: Final = 12
HAS_ANCHORS: Final = 1
"""Bit of the symbols' flags: a word more after each event."""
HAS_POINTERS: Final = 2
"""Bit of the symbols' flags: moves include pointers."""
ALL_FLAGS: Final = 7
"""The symbols' flags that there are; 4: the collector is a concurrent one."""


class FileType(IntEnum):
    """The files of a run."""

    SYMBOLS = 0
    TRACE = 1
    CLASS_DEFINITIONS = 2


class EventId(IntEnum):
    """Ids of events, by the VM's names."""

    NOP = 0
    MARK = 1
    GC_START = 2
    GC_END = 3
    GC_INFO = 4
    GC_FAILED = 5
    SPACE_CREATE = 6
    SPACE_ALLOC = 7
    SPACE_RELEASE = 8
    SPACE_REDEFINE = 9
    SPACE_DESTROY = 10
    THREAD_ALIVE = 11
    THREAD_DEATH = 12
    TLAB_ALLOC = 13
    PLAB_ALLOC = 14
    ALLOC_SLOW = 15
    IR_ALLOC_SLOW = 16
    IR_ALLOC_SLOW_DEVIANT = 17
    IR_ALLOC_NORMAL = 18
    IR_ALLOC_FAST = 19
    C1_ALLOC_SLOW = 20
    C1_ALLOC_SLOW_DEVIANT = 21
    C1_ALLOC_NORMAL = 22
    C1_ALLOC_FAST = 23
    C2_ALLOC_SLOW = 25
    C2_ALLOC_SLOW_DEVIANT = 26
    C2_ALLOC_NORMAL = 27
    C2_ALLOC_FAST = 28
    C2_ALLOC_FAST_DEVIANT = 29
    GC_MOVE_SLOW = 30
    GC_MOVE_FAST_WIDE = 31
    GC_MOVE_FAST = 32
    GC_MOVE_FAST_NARROW = 33
    GC_MOVE_REGION = 34
    GC_KEEP_ALIVE = 35
    SYNC_OBJ = 36
    SYNC_OBJ_NARROW = 37
    GC_MOVE_SLOW_PTR = 39
    GC_MOVE_FAST_WIDE_PTR = 40
    GC_MOVE_FAST_PTR = 41
    GC_KEEP_ALIVE_PTR = 42
    GC_OBJ_PTR = 43
    GC_OBJ_ARR_PTR = 44
    GC_ROOT_PTR = 45
    GC_CROSSGENERATIONAL_PTR = 46
