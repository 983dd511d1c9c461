"""`SegmentDrain`: the events of a traced process, taken from the memory that it shares with gcspy, in one order.

Knows the segment and its order of events; does not know files, types or what a site is.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from gcspy_objects.gctrace.address_model import AddressParameters
from gcspy_protocol.errors import CommandError
from numpy.typing import NDArray

from gcspy.exit_codes import ExitCode
from gcspy_compiled.c_loops import CLibrary

__all__ = [
    "OBJECTS_FLAG",
    "OWN_ALLOCATOR_FLAG",
    "PYTHON_FLAG",
    "RUNTIME_FLAG",
    "DefinedBatch",
    "DrainCounts",
    "EncodedEvents",
    "ForkOrigin",
    "ForkedBlocks",
    "LiveBlocks",
    "SegmentDrain",
    "SegmentFacts",
    "rounding_of",
]

_LIBRARY: Final = CLibrary("gcspy-drain", Path(__file__).parent / "compiled")
_U8, _I32, _I64 = "uint8[::1]", "int32[::1]", "int64[::1]"
_SIGNATURES: Final = {
    "drain_new": "int64(int64, int64, int64, int64)",
    "drain_free": "void(int64)",
    "drain_poll": f"int64(int64, int64, {_I64})",
    "drain_merge": f"int64(int64, {_U8}, {_I64}, int64)",
    "drain_definitions": f"void(int64, {_U8})",
    "drain_frames": f"void(int64, {_I64})",
    "drain_payload": "int64()",
    "drain_encode": f"int64(int64, {_U8}, {_I64})",
    "drain_live": f"int64(int64, {_I64}, {_I64}, {_I32}, {_I32}, {_I64})",
    "drain_facts": f"int64(int64, {_I64})",
    "drain_owners": f"int64(int64, {_I64})",
    "drain_forked": f"int64(int64, int64, {_I64}, {_I64}, {_I64}, {_I64})",
    "drain_inherit": f"void(int64, {_I64}, {_I64})",
    "drain_stop": "void(int64)",
}
OWN_ALLOCATOR_FLAG, PYTHON_FLAG, OBJECTS_FLAG, RUNTIME_FLAG = 1, 2, 4, 8
"""Bits of `SegmentFacts.flags`: ``enum segment_flags``."""
_MAGIC: Final = 0x3147455359504347
_BLOCKS: Final = 1024
_BYTES: Final = 16384 + _BLOCKS * (64 + 32768)
"""Size of a segment: `SEGMENT_BYTES` of trace_segment.h."""
_PARENT_AT: Final = 12
_BEGAN_AT: Final = 16
_FORK_AT: Final = 40
_PROGRAM_AT: Final = 48
_PROGRAM_BYTES: Final = 1024
_ARGUMENTS_BYTES: Final = 4096
_RUNTIME_BYTES: Final = 64
_META_BYTES: Final = 4 << 20
_MOST_FORKS: Final = 64
"""`MOST_FORKS` of drain.c."""
_GLIBC: Final = AddressParameters(4, 24, 8)
_PYMALLOC: Final = AddressParameters(4, 1, 0)
_RUNTIME: Final = AddressParameters(3, 1, 0)
"""Objects behind each other."""

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]
Bytes = NDArray[np.uint8]


class _Loops(NamedTuple):
    """Functions of the library."""

    drain_new: Callable[..., int]
    drain_free: Callable[..., None]
    drain_poll: Callable[..., int]
    drain_merge: Callable[..., int]
    drain_definitions: Callable[..., None]
    drain_frames: Callable[..., None]
    drain_payload: Callable[..., int]
    drain_encode: Callable[..., int]
    drain_live: Callable[..., int]
    drain_facts: Callable[..., int]
    drain_owners: Callable[..., int]
    drain_forked: Callable[..., int]
    drain_inherit: Callable[..., None]
    drain_stop: Callable[..., None]


class EncodedEvents(NamedTuple):
    """Events of all threads of a process in one order, as the payload of a block.

    Attributes:
        payload: Columns; objects/FORMAT.md, section 4.
        events: How many.
        thread: Number of the thread that has them all; `ANY_THREAD`: several do.
        first_stamp: Lower bound of their stamps: nanoseconds since the start.
        last_stamp: Upper bound.
    """

    payload: bytes
    events: int
    thread: int
    first_stamp: int
    last_stamp: int


class LiveBlocks(NamedTuple):
    """Blocks that live, in the order of their births; (n,) each, with the numbers of their sites and types, and of the events that allocated them."""

    address: Longs
    size: Longs
    site: Ints
    type: Ints
    birth: Longs


class ForkedBlocks(NamedTuple):
    """Blocks that lived when a process forked, in the order of their births; (n,) each.

    Attributes:
        address: Of each.
        size: Bytes of each.
        event: Number of the parent's event before which it forked.
    """

    address: Longs
    size: Longs
    event: int


class ForkOrigin(NamedTuple):
    """Fork that made a process.

    Attributes:
        parent: Process that forked.
        number: Of the fork in the parent's trace; 0: the process was not forked while traced.
        began: When the trace of the child began; nanoseconds of the monotonic clock.
    """

    parent: int
    number: int
    began: int


class DrainCounts(NamedTuple):
    """Counts of a process; in the order of ``enum counter`` in drain.c.

    Attributes:
        events: In all.
        allocations: ALLOCATEs.
        frees: FREEs.
        lost: Events that were shed, or for which there was no memory.
        unknown_frees: Frees of blocks whose allocation was not seen; they are not in the trace.
        inferred_frees: FREEs that were not seen, at addresses that were handed out again.
        live_blocks: Alive now.
        live_bytes: Of these.
        pending_bytes: Copied and not yet in order.
        damaged: Records that are none.
        definition_bytes: Of the last batch.
        cached_objects: Objects that free lists hold now.
        cached_bytes: Of these.
        reused_objects: Objects that came from a free list.
        unknown_objects: Births and deaths of objects in blocks that were not seen.
        collections: Of the program's collector.
        rows: Events and stamps that `SegmentDrain.encode` would take.
        defined_bytes: Of the definitions of sites in the last batch.
        frames: Distinct ones, of all sites.
        sites: That were defined.
        last_stamp: Of the last event: nanoseconds since the start.
    """

    events: int = 0
    allocations: int = 0
    frees: int = 0
    lost: int = 0
    unknown_frees: int = 0
    inferred_frees: int = 0
    live_blocks: int = 0
    live_bytes: int = 0
    pending_bytes: int = 0
    damaged: int = 0
    definition_bytes: int = 0
    cached_objects: int = 0
    cached_bytes: int = 0
    reused_objects: int = 0
    unknown_objects: int = 0
    collections: int = 0
    rows: int = 0
    defined_bytes: int = 0
    frames: int = 0
    sites: int = 0
    last_stamp: int = 0


class DefinedBatch(NamedTuple):
    """Definitions of a program, since the last batch.

    Attributes:
        records: As the segment has it.
        sites: Definitions of sites, and of frames without names, as a trace has them.
        more: There are more events, for which there was no room: `SegmentDrain.encode`, and merge again.
    """

    records: bytes
    sites: bytes
    more: bool


class SegmentFacts(NamedTuple):
    """Numbers that a process keeps in its segment; in the order of `drain_facts` in drain.c."""

    magic: int
    pid: int
    parent: int
    started_monotonic: int
    started_real: int
    flags: int
    parent_fork: int
    blocks: int
    lost: int
    waited_nanos: int
    full_sites: int
    cut_stacks: int
    threads: int
    forks: int


def _loops() -> _Loops:
    loops = _LIBRARY.loops(_Loops, _SIGNATURES)
    if loops is None:
        raise CommandError(
            "programs cannot be traced: gcspy's libraries in C are not built, or GCSPY_C_CODE=no; apt-get install gcc libc6-dev, and install gcspy again",
            exit_code=ExitCode.MISSING_PART,
        )
    return loops


class SegmentDrain:
    """The segment of one process, mapped.

    Args:
        path: Of the segment. It must be whole: see `is_ready`.

    Raises:
        CommandError: The library in C is not there, or there is no memory.
        OSError: The segment cannot be mapped.
    """

    def __init__(self, path: Path) -> None:
        self._loops = _loops()
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _BYTES)
        self._view: Any = (ctypes.c_char * _BYTES).from_buffer(self._map)
        self._at = ctypes.addressof(self._view)
        self._started = self.facts.started_monotonic
        flags = self.facts.flags
        _, least, overhead = rounding_of(flags)
        self._handle = self._loops.drain_new(self._started, flags & OBJECTS_FLAG, least, overhead)
        if not self._handle:
            raise CommandError("no memory for the events of a program", exit_code=ExitCode.FAILED)
        self._payload = np.empty(self._loops.drain_payload(), np.uint8)
        self._meta = np.empty(_META_BYTES, np.uint8)
        self._counters = np.zeros(len(DrainCounts._fields), np.int64)
        self._counts = DrainCounts()
        self._first_stamp = 0

    @staticmethod
    def is_ready(path: Path) -> bool:
        """Return whether the process has finished making a segment."""
        try:
            with path.open("rb") as file:
                if os.fstat(file.fileno()).st_size != _BYTES:
                    return False
                return int.from_bytes(file.read(8), "little") == _MAGIC
        except OSError:
            return False

    @staticmethod
    def fork_of(path: Path) -> ForkOrigin:
        """Return which fork made a process; zeros: its segment cannot be read."""
        try:
            with path.open("rb") as file:
                head = file.read(_FORK_AT + 4)
        except OSError:
            head = b""
        head = head.ljust(_FORK_AT + 4, b"\0")
        return ForkOrigin(
            parent=int.from_bytes(head[_PARENT_AT : _PARENT_AT + 4], "little"),
            number=int.from_bytes(head[_FORK_AT:], "little"),
            began=int.from_bytes(head[_BEGAN_AT : _BEGAN_AT + 8], "little"),
        )

    def poll(self, ended_threads: Sequence[int] = ()) -> int:
        """Copy what is new, and give the process its full blocks back; return how many bytes were new.

        Args:
            ended_threads: Threads by the system's numbers that are no more: their blocks are given back, too.

        Raises:
            CommandError: There is no memory.
        """
        ended = np.array(ended_threads, np.int64)
        copied = self._loops.drain_poll(self._handle, self._at, ended)
        if copied < 0:
            raise CommandError("no memory for the events of a program", exit_code=ExitCode.FAILED)
        return int(copied)

    def merge(self, *, last: bool = False) -> DefinedBatch:
        """Put what was copied in order, behind the events that are there, and return what the program defined meanwhile.

        Args:
            last: Nothing follows, and events wait for no others.
        """
        more = self._loops.drain_merge(self._handle, self._meta, self._counters, int(last))
        self._counts = DrainCounts(*self._counters.tolist())
        sites = np.empty(self._counts.defined_bytes, np.uint8)
        if len(sites):
            self._loops.drain_definitions(self._handle, sites)
        records = self._meta[: self._counts.definition_bytes].tobytes()
        return DefinedBatch(records, sites.tobytes(), bool(more))

    @property
    def rows(self) -> int:
        """Events and stamps that `encode` would take."""
        return self._counts.rows

    @property
    def last_stamp(self) -> int:
        """Stamp of the last event: nanoseconds since the start."""
        return self._counts.last_stamp

    def encode(self) -> EncodedEvents | None:
        """Take the events that are in order; None: there are none."""
        if not self.rows:
            return None
        self._counts = self._counts._replace(rows=0)
        facts = np.zeros(2, np.int64)
        size = self._loops.drain_encode(self._handle, self._payload, facts)
        first, self._first_stamp = self._first_stamp, self.last_stamp
        payload = self._payload[:size].tobytes()
        return EncodedEvents(payload, int(facts[0]), int(facts[1]), first, self.last_stamp)

    def frames(self) -> list[int]:
        """Return the address of each frame of the code, by its number - 1; 0: a frame that the program named itself."""
        places = np.zeros(self.counts.frames, np.int64)
        self._loops.drain_frames(self._handle, places)
        return [int(one) for one in places.view(np.uint64)]

    @property
    def counts(self) -> DrainCounts:
        """Counts as of the last `merge`."""
        return self._counts

    @property
    def facts(self) -> SegmentFacts:
        """Numbers that the process keeps."""
        facts = np.zeros(len(SegmentFacts._fields), np.int64)
        self._loops.drain_facts(self._at, facts)
        return SegmentFacts(*facts.tolist())

    def live(self) -> LiveBlocks:
        """Return the blocks that live after the last event of the last `merge`."""
        room = self.counts.live_blocks
        address, size, birth = (np.empty(room, np.int64) for _ in range(3))
        site, of_type = (np.empty(room, np.int32) for _ in range(2))
        self._loops.drain_live(self._handle, address, size, site, of_type, birth)
        order = np.argsort(birth)
        return LiveBlocks(address[order], size[order], site[order], of_type[order], birth[order])

    def forked(self, number: int) -> ForkedBlocks | None:
        """Take the blocks that lived at a fork, once; None: not known, or that event is not in order yet."""
        event, nothing = np.zeros(1, np.int64), np.zeros(0, np.int64)
        count = self._loops.drain_forked(self._handle, number, nothing, nothing, nothing, event)
        if count < 0:
            return None
        address, size, birth = (np.zeros(count, np.int64) for _ in range(3))
        self._loops.drain_forked(self._handle, number, address, size, birth, event)
        order = np.argsort(birth)
        return ForkedBlocks(address[order], size[order], int(event[0]))

    def untaken_forks(self) -> Iterator[tuple[int, ForkedBlocks]]:
        """Take the blocks of all forks that no child has taken, each with its number."""
        last = self.facts.forks
        for number in range(max(1, last - _MOST_FORKS + 1), last + 1):
            blocks = self.forked(number)
            if blocks is not None:
                yield number, blocks

    def inherit(self, blocks: ForkedBlocks) -> None:
        """Have blocks of the parent, which are the first events of this trace; before the first `poll`."""
        self._loops.drain_inherit(self._handle, blocks.address, blocks.size)

    def texts(self) -> tuple[str, list[str], str]:
        """Return the program's path, its arguments and its runtime."""
        start = _PROGRAM_AT
        program = _text(self._map[start : start + _PROGRAM_BYTES])
        start += _PROGRAM_BYTES
        length = min(int.from_bytes(self._map[start : start + 4], "little"), _ARGUMENTS_BYTES)
        start += 4
        arguments = self._map[start : start + length].rstrip(b"\0").split(b"\0")
        start += _ARGUMENTS_BYTES
        runtime = _text(self._map[start : start + _RUNTIME_BYTES])
        return program, [one.decode("utf-8", "replace") for one in arguments], runtime

    def owners(self) -> list[int]:
        """Return the threads that have a block, by the system's numbers."""
        found = np.zeros(_BLOCKS, np.int64)
        count = self._loops.drain_owners(self._at, found)
        return [int(one) for one in found[:count]]

    def stop(self) -> None:
        """Tell the process to write no more; it goes on without."""
        self._loops.drain_stop(self._at)

    def close(self) -> None:
        """Let the segment go."""
        if self._handle:
            self._loops.drain_free(self._handle)
            self._handle = 0
            del self._view
            self._map.close()


def rounding_of(flags: int) -> AddressParameters:
    """Return how a process's allocator rounds sizes, by `SegmentFacts.flags`."""
    if flags & RUNTIME_FLAG:
        return _RUNTIME
    return _PYMALLOC if flags & PYTHON_FLAG else _GLIBC


def _text(data: bytes) -> str:
    return data.split(b"\0", 1)[0].decode("utf-8", "replace")
