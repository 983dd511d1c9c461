"""`TraceFile`: an object trace that is written while a program runs.

Source: objects/FORMAT.md.

Knows blocks of the format and when they are due; does not know where events come from.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from gcspy_objects.gctrace.address_model import AddressParameters
from gcspy_objects.gctrace.blocks import make_block, make_prefix
from gcspy_objects.gctrace.definitions import write_pairs
from gcspy_objects.gctrace.events import EventColumns, encode_events
from gcspy_objects.gctrace.layout import BlockKind
from gcspy_objects.records import RecordKind
from gcspy_protocol.errors import TraceError
from numpy.typing import NDArray

from gcspy.tracer.drain import LiveBlocks, MergedEvents

__all__ = ["TraceFile"]

_BLOCK_EVENTS: Final = 1 << 18
"""Events of a block: enough for the model of addresses, and a second of a busy program."""
_BLOCK_SECS: Final = 1.0
"""No event is longer in memory only."""
_LIVED_BEFORE: Final = 1
"""Detail of an ALLOCATE: the object lived before the trace began."""


@dataclass(slots=True)
class _Waiting:
    """Events that are not in the file yet."""

    batches: list[MergedEvents]
    events: int
    since: float


class TraceFile:
    """An object trace of one process.

    Args:
        path: Of the file. What was there is replaced.
        header: Pairs of the HEADER; see objects/FORMAT.md, section 6.
        parameters: How the program's allocator rounds sizes.
        started: Time at stamp 0, nanoseconds of CLOCK_MONOTONIC.

    Raises:
        TraceError: The file cannot be written; so do the other methods, once. Nothing is written after that.

    Attributes:
        events: Events in the file.
        bytes: Of the file.
        error: Why the file cannot be written; None: it can.
    """

    def __init__(
        self,
        path: Path,
        header: Iterable[tuple[str, str]],
        parameters: AddressParameters,
        started: int,
    ) -> None:
        self.path = path
        self.events = 0
        self.bytes = 0
        self.error: TraceError | None = None
        self._parameters = parameters
        self._started = started
        self._stamp = 0
        self._waiting = _Waiting([], 0, time.monotonic())
        try:
            self._file = path.open("wb", buffering=0)
        except OSError as error:
            raise self._failed(error) from error
        self._write(make_prefix() + make_block(BlockKind.HEADER, write_pairs(header)))

    def define(self, definitions: bytes) -> None:
        """Write definitions, before the events that need them."""
        if definitions:
            self._write(make_block(BlockKind.DEFINITIONS, definitions))

    def add(self, batch: MergedEvents) -> None:
        """Take events; they are in the file after a second at most, if `tick` is called."""
        if not len(batch):
            return
        if not self._waiting.batches:
            self._waiting.since = time.monotonic()
        self._waiting.batches.append(batch)
        self._waiting.events += len(batch)
        if self._waiting.events >= _BLOCK_EVENTS:
            self.flush()

    def add_live(self, live: LiveBlocks, now: int) -> None:
        """Write blocks that lived when this trace began."""
        count = len(live.address)
        for start in range(0, count, _BLOCK_EVENTS):
            part = LiveBlocks(*(column[start : start + _BLOCK_EVENTS] for column in live))
            rows = len(part.address)
            none = np.zeros(rows, np.uint8)
            self._write_events(
                EventColumns(
                    kind=np.full(rows, RecordKind.ALLOCATE, np.uint8),
                    detail=np.full(rows, _LIVED_BEFORE, np.uint8),
                    flags=none,
                    thread=np.zeros(rows, np.int32),
                    address=part.address,
                    to=np.zeros(rows, np.int64),
                    size=part.size,
                    type=part.type,
                    site=part.site,
                    length=np.zeros(rows, np.int32),
                    stamp=np.zeros(rows, np.int64),
                ),
                self._stamp_of(now),
            )

    def tick(self) -> None:
        """Write what has waited for a second."""
        if self._waiting.events and time.monotonic() - self._waiting.since >= _BLOCK_SECS:
            self.flush()

    def flush(self) -> None:
        """Write all events that were taken."""
        batches = self._waiting.batches
        if not batches:
            return
        self._waiting.batches, self._waiting.events = [], 0

        def joined(name: str) -> NDArray[np.int64]:
            parts: Sequence[NDArray[np.int64]] = [getattr(one, name) for one in batches]
            return parts[0] if len(parts) == 1 else np.concatenate(parts)

        thread, moment = joined("thread"), joined("time")
        rows = len(thread)
        first = self._stamp_of(int(moment[0]))
        stamp = np.maximum(moment - self._started - first, 0)
        self._write_events(
            EventColumns(
                kind=joined("kind").astype(np.uint8, copy=False),
                detail=joined("detail").astype(np.uint8, copy=False),
                flags=np.zeros(rows, np.uint8),
                thread=thread.astype(np.int32, copy=False),
                address=joined("address"),
                to=np.zeros(rows, np.int64),
                size=joined("size"),
                type=joined("type").astype(np.int32, copy=False),
                site=joined("site").astype(np.int32, copy=False),
                length=np.zeros(rows, np.int32),
                stamp=stamp,
            ),
            first,
        )

    def finish(self, facts: Iterable[tuple[str, str]]) -> None:
        """Write what is left, and the END."""
        self.flush()
        self._write(
            make_block(BlockKind.END, write_pairs([("events", str(self.events)), *facts]))
        )
        self.close()

    def close(self) -> None:
        """Close the file as it is."""
        if not self._file.closed:
            self._file.close()

    def _stamp_of(self, moment: int) -> int:
        """Return the stamp of a time; never less than the one before."""
        self._stamp = max(self._stamp, moment - self._started, 0)
        return self._stamp

    def _write_events(self, events: EventColumns, first: int) -> None:
        one_thread = int(events.thread[0]) if events.thread is not None and not np.ptp(events.thread) else None
        if one_thread is not None:
            events.thread = None
        last = first + int(events.stamp[-1])
        self._stamp = max(self._stamp, last)
        payload = encode_events(events, self._parameters, by_site=False)
        rows = len(events)
        thread = {} if one_thread is None else {"thread": one_thread}
        self._write(
            make_block(
                BlockKind.EVENTS, payload, events=rows, first_stamp=first, last_stamp=last, **thread
            )
        )
        self.events += rows

    def _write(self, data: bytes) -> None:
        if self.error is not None:
            raise self.error
        view = memoryview(data)
        try:
            while view:
                written = self._file.write(view)
                view = view[written:]
        except OSError as error:
            raise self._failed(error) from error
        self.bytes += len(data)

    def _failed(self, error: OSError) -> TraceError:
        self.error = TraceError(
            f"{self.path}: cannot be written: {error.strerror}", file=str(self.path)
        )
        return self.error
