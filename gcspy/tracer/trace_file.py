"""`TraceFile`: an object trace that is written while a program runs.

Source: objects/FORMAT.md.

Knows when blocks of the format are due, and disks that are full; does not know where events come from.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from gcspy_objects.gctrace.address_model import AddressParameters
from gcspy_objects.gctrace.events import EventColumns
from gcspy_objects.gctrace.layout import ANY_THREAD
from gcspy_objects.gctrace.writer import TraceWriter
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

    batches: list[MergedEvents] = field(default_factory=list)
    events: int = 0
    since: float = 0.0


class TraceFile:
    """An object trace of one process.

    Args:
        path: Of the file. What was there is replaced.
        header: Keys and values of the HEADER; see objects/FORMAT.md, section 6.
        parameters: How the program's allocator rounds sizes.
        started: Time at stamp 0, nanoseconds of CLOCK_MONOTONIC.

    Raises:
        TraceError: The file cannot be written; all methods raise it, and write nothing after that.
    """

    def __init__(
        self,
        path: Path,
        header: Mapping[str, str],
        parameters: AddressParameters,
        started: int,
    ) -> None:
        self.path = path
        self.error: TraceError | None = None
        self._started = started
        self._stamp = 0
        self._waiting = _Waiting()
        try:
            self._file = path.open("wb")
            self._writer = TraceWriter(self._file, header, parameters)
            self._file.flush()
        except OSError as error:
            raise self._failed(error) from error

    @property
    def file_bytes(self) -> int:
        """Bytes of the file."""
        return self._writer.bytes

    def define(self, definitions: bytes) -> None:
        """Write definitions, before the events that need them."""
        if definitions:
            self._write(lambda: self._writer.define([definitions]))

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
        for start in range(0, len(live.address), _BLOCK_EVENTS):
            end = start + _BLOCK_EVENTS
            rows = len(live.address[start:end])
            self._write_events(
                EventColumns(
                    kind=np.full(rows, RecordKind.ALLOCATE, np.uint8),
                    detail=np.full(rows, _LIVED_BEFORE, np.uint8),
                    flags=np.zeros(rows, np.uint8),
                    thread=np.zeros(rows, np.int32),
                    address=live.address[start:end],
                    to=np.zeros(rows, np.int64),
                    size=live.size[start:end],
                    type=live.type[start:end],
                    site=live.site[start:end],
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

        def joined(name: str) -> NDArray[Any]:
            parts = [getattr(one, name) for one in batches]
            found: NDArray[Any] = parts[0] if len(parts) == 1 else np.concatenate(parts)
            return found

        moment = joined("time")
        rows = len(moment)
        first = self._stamp_of(int(moment[0]))
        self._write_events(
            EventColumns(
                kind=joined("kind"),
                detail=joined("detail"),
                flags=np.zeros(rows, np.uint8),
                thread=joined("thread"),
                address=joined("address"),
                to=np.zeros(rows, np.int64),
                size=joined("size"),
                type=joined("type"),
                site=joined("site"),
                length=np.zeros(rows, np.int32),
                stamp=np.maximum(moment - self._started - first, 0),
            ),
            first,
        )

    def finish(self, facts: Mapping[str, str]) -> None:
        """Write what is left, and the END."""
        self.flush()
        self._write(lambda: self._writer.end(facts))
        self.close()

    def close(self) -> None:
        """Close the file as it is."""
        with suppress(OSError):  # what could not be written is known
            self._file.close()

    def _stamp_of(self, moment: int) -> int:
        """Return the stamp of a time; never less than the one before."""
        self._stamp = max(self._stamp, moment - self._started, 0)
        return self._stamp

    def _write_events(self, events: EventColumns, first: int) -> None:
        thread = ANY_THREAD
        if events.thread is not None and not np.ptp(events.thread):
            thread, events.thread = int(events.thread[0]), None
        self._stamp = max(self._stamp, first + int(events.stamp[-1]))

        def write() -> None:
            self._writer.write(events, thread=thread, first_stamp=first)
            self._writer.watermark(self._stamp)

        self._write(write)

    def _write(self, write: Callable[[], None]) -> None:
        if self.error is not None:
            raise self.error
        try:
            write()
            self._file.flush()
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> TraceError:
        self.error = TraceError(
            f"{self.path}: cannot be written: {error.strerror}", file=str(self.path)
        )
        return self.error
