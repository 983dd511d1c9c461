"""`ProcessTrace`: the trace of one process, from its segment to its file.

Knows when a process has ended and which of its threads have; does not know who started it.
"""

from __future__ import annotations

import os
import platform
import select
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from gcspy_protocol.errors import TraceError

from gcspy.tracer.drain import (
    OBJECTS_FLAG,
    OWN_ALLOCATOR_FLAG,
    PYTHON_FLAG,
    RUNTIME_FLAG,
    DrainCounts,
    ForkedBlocks,
    LiveBlocks,
    SegmentDrain,
    SegmentFacts,
    rounding_of,
)
from gcspy.tracer.ended_forks import EndedForks
from gcspy.tracer.rotated_trace import RotatedTrace
from gcspy.tracer.segment_definitions import MALLOC_TYPE, SegmentDefinitions
from gcspy.tracer.trace_file import TraceFile

__all__ = ["ProcessTrace", "TraceSummary"]

_LOOK_SECS: Final = 0.5
_BLOCK_SECS: Final = 1.0
"""No event is longer in memory only."""


class TraceSummary(NamedTuple):
    """Summary of the trace of a process.

    Attributes:
        path: Of its file.
        pid: Of the process.
        counts: Counts of its events.
        facts: What the process said of itself.
        bytes: Of the file.
        sites: Distinct sites.
        threads: Threads that allocated.
        nanos: From the start of the trace to the last event.
        error: Why the file ends early; None: it does not.
    """

    path: Path
    pid: int
    counts: DrainCounts
    facts: SegmentFacts
    bytes: int
    sites: int
    threads: int
    nanos: int
    error: TraceError | None

    @property
    def own_allocator(self) -> bool:
        """Whether the program has a malloc of its own, which was not traced."""
        return bool(self.facts.flags & OWN_ALLOCATOR_FLAG)


class ProcessTrace:
    """A process that is traced.

    Args:
        segment: Path of its segment, which is ready.
        path: Of the trace.
        stacks: ``none``, ``caller`` or ``full``.
        run: 32 hexadecimal digits, the same for all files of a run.
        keep_nanos: How much of the trace is kept at least; None: all.
        inherited: What the process has from the one that forked it.
        sample_bytes: Of a runtime whose objects are sampled: one object for about so many bytes; 0: each.

    Raises:
        CommandError: There is no memory.
    """

    def __init__(
        self,
        segment: Path,
        path: Path,
        stacks: str,
        run: str,
        keep_nanos: int | None = None,
        *,
        inherited: ForkedBlocks | None = None,
        sample_bytes: int = 0,
    ) -> None:
        self.segment, self.path = segment, path
        self._sample_bytes, self._inherited = sample_bytes, inherited
        self.drain = SegmentDrain(segment)
        self.facts = self.drain.facts
        self.definitions = SegmentDefinitions()
        is_python = bool(self.facts.flags & PYTHON_FLAG)
        self._parameters = rounding_of(self.facts.flags)
        self.error: TraceError | None = None
        self._written = time.monotonic()
        self._looked = time.monotonic()
        self._threads: set[int] = set()
        self._header = self._header_facts(stacks, run)
        self._pidfd: int | None = None
        with suppress(OSError):
            self._pidfd = os.pidfd_open(self.facts.pid)
        self.file: TraceFile | RotatedTrace
        if keep_nanos is None:
            self.file = self._begin(path)
        else:
            self.file = RotatedTrace(path, keep_nanos, self._begin, self._live)
        beginning = self.definitions.beginning(is_python=is_python)
        self._guarded(partial(self.file.define, beginning))
        if inherited is not None and len(inherited.address):
            self.drain.inherit(inherited)
            self._guarded(partial(self.file.add_live, self._blocks_of(inherited), 0))

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self.facts.pid

    def has_ended(self) -> bool:
        """Whether the process has: what it wrote is all there."""
        if self._pidfd is None:
            return True
        return bool(select.select([self._pidfd], [], [], 0)[0])

    def poll(self, *, last: bool = False) -> int:
        """Take what is new into the file; return how many bytes of records were new."""
        copied = self.drain.poll(self._ended_threads())
        more = True
        while more:
            defined, sites, more = self.drain.merge(last=last)
            definitions = (self.definitions.convert(defined) if defined else b"") + sites
            self._guarded(partial(self.file.define, definitions))
            if more:
                self._write_block()
        if self.drain.rows and (last or time.monotonic() - self._written >= _BLOCK_SECS):
            self._write_block()
        return copied

    def finish(
        self, resolve: Callable[[SegmentDefinitions], bytes], forks: EndedForks
    ) -> TraceSummary:
        """Take the rest, name the frames, and close the file.

        Args:
            resolve: Returns definitions of frames as far as their places in the source are known.
            forks: Gets the blocks of forks whose children were not found yet.
        """
        while self.poll(last=True):
            pass
        for number, blocks in self.drain.untaken_forks():
            forks.keep(self.pid, number, self.facts.started_monotonic, blocks)
        self.facts = self.drain.facts
        counts, stamp = self.drain.counts, self.drain.last_stamp
        lost = max(counts.lost, self.facts.lost)
        self.definitions.pcs = self.drain.frames()
        self._guarded(lambda: self.file.define(resolve(self.definitions)))
        ended = {
            "lost": lost,
            "unknown_frees": counts.unknown_frees,
            "inferred_frees": counts.inferred_frees,
            "live_blocks": counts.live_blocks,
            "live_bytes": counts.live_bytes,
            "cut_stacks": self.facts.cut_stacks,
            "reused_objects": counts.reused_objects,
            "cached_objects": counts.cached_objects,
            "cached_bytes": counts.cached_bytes,
            "collections": counts.collections,
        }
        self._guarded(lambda: self.file.finish({key: str(value) for key, value in ended.items()}))
        self.file.close()
        self.drain.close()
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None
        self.segment.unlink(missing_ok=True)
        return TraceSummary(
            self.path,
            self.pid,
            counts,
            self.facts,
            self.file.file_bytes,
            counts.sites,
            self.facts.threads,
            stamp,
            self.error,
        )

    def _write_block(self) -> None:
        events = self.drain.encode()
        self._written = time.monotonic()
        if events is not None:
            self._guarded(partial(self.file.add, events))

    def _guarded(self, write: Callable[[], None]) -> None:
        """Write; when that is no longer possible, let the program go on alone."""
        if self.error is not None:
            return
        try:
            write()
        except TraceError as error:
            self.error = error
            self.drain.stop()

    def _ended_threads(self) -> list[int]:
        """Return threads that are no more, as far as it is time to look: not each says that it ends."""
        now = time.monotonic()
        if now - self._looked < _LOOK_SECS:
            return []
        self._looked = now
        try:
            alive = {int(one) for one in os.listdir(f"/proc/{self.pid}/task")}
        except OSError:
            return []
        gone = [one for one in self._threads if one not in alive]
        self._threads = self._threads & alive | set(self.drain.owners())
        return gone

    def _begin(self, path: Path, with_live: bool = False) -> TraceFile:
        began = {"began": "live" if with_live else "start"}
        return TraceFile(path, self._header | began, self._parameters)

    def _blocks_of(self, inherited: ForkedBlocks) -> LiveBlocks:
        """Return what was inherited, as blocks of malloc without a site: sites have other numbers in the parent's trace."""
        count = len(inherited.address)
        kind = np.full(count, 0 if self.facts.flags & PYTHON_FLAG else MALLOC_TYPE, np.int32)
        none = np.zeros(count, np.int32)
        return LiveBlocks(inherited.address, inherited.size, none, kind, np.arange(count))

    def _live(self) -> tuple[LiveBlocks, int]:
        return self.drain.live(), self.drain.last_stamp

    def _header_facts(self, stacks: str, run: str) -> dict[str, str]:
        program, arguments, runtime = self.drain.texts()
        system = platform.uname()
        return {
            "run": run,
            "name": program.rpartition("/")[2],
            "program": program,
            "arguments": "".join(f"{one}\0" for one in arguments),
            "pid": str(self.facts.pid),
            "parent": str(self.facts.parent),
            "host": system.node,
            "system": f"{system.system} {system.release} {system.machine}",
            "runtime": runtime,
            "writer": "gcspy",
            "started": str(self.facts.started_real),
            "word_bytes": "8",
            **self._kind(),
            "deaths": "told",
            "moves": "exact" if self.facts.flags & RUNTIME_FLAG else "none",
            "stacks": stacks,
            **self._inheritance(),
        }

    def _inheritance(self) -> dict[str, str]:
        """Return what the HEADER says of the blocks that a forked process has from its parent."""
        number, blocks = self.facts.parent_fork, self._inherited
        if not number:
            return {}
        if blocks is None:
            return {"inherits": f"fork {number} of process {self.facts.parent}: not known"}
        said = f"{len(blocks.address)} blocks, which lived before event {blocks.event} of its trace"
        return {"inherits": f"fork {number} of process {self.facts.parent}: {said}"}

    def _kind(self) -> dict[str, str]:
        """Return what the HEADER says of the events."""
        if self.facts.flags & RUNTIME_FLAG:
            births = "all that code of Java makes"
            if self._sample_bytes:
                births = (
                    f"sampled: one for about {self._sample_bytes} bytes that a thread allocates"
                )
            return {"unit": "objects", "births": births, "types": "all"}
        if self.facts.flags & OBJECTS_FLAG:
            return {"unit": "objects", "births": "all", "types": "all"}
        if self.facts.flags & PYTHON_FLAG:
            hidden = "some: objects that free lists hand out again are not seen"
            return {"unit": "blocks", "births": hidden, "types": "none"}
        return {"unit": "blocks", "births": "all", "types": "none"}
