"""`TraceFile`: an object trace that is written while a program runs.

Source: objects/FORMAT.md.

Knows blocks of the format, and disks that are full; does not know where events come from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from io import BufferedWriter
from pathlib import Path
from typing import Final

import numpy as np
from gcspy_objects.gctrace.address_model import AddressParameters
from gcspy_objects.gctrace.blocks import FASTEST_LEVEL
from gcspy_objects.gctrace.events import EventColumns
from gcspy_objects.gctrace.writer import TraceWriter
from gcspy_objects.records import RecordKind
from gcspy_protocol.errors import TraceError

from gcspy.tracer.drain import EncodedEvents, LiveBlocks

__all__ = ["TraceFile"]

_BLOCK_EVENTS: Final = 1 << 18
"""Events of a block."""
_LIVED_BEFORE: Final = 1
"""Detail of an ALLOCATE: the object lived before the trace began."""


class TraceFile:
    """An object trace of one process.

    Args:
        path: Of the file. What was there is replaced.
        header: Keys and values of the HEADER; see objects/FORMAT.md, section 6.
        parameters: How the program's allocator rounds sizes.

    Raises:
        TraceError: Never here: methods raise it if the file cannot be written, and write nothing after that.
    """

    def __init__(
        self,
        path: Path,
        header: Mapping[str, str],
        parameters: AddressParameters,
    ) -> None:
        self.path = path
        self.error: TraceError | None = None
        self._file: BufferedWriter | None = None
        self._writer: TraceWriter | None = None
        try:
            self._file = path.open("wb")
            self._writer = TraceWriter(self._file, header, parameters, level=FASTEST_LEVEL)
            self._file.flush()
        except OSError as error:
            self._failed(error)

    @property
    def file_bytes(self) -> int:
        """Bytes of the file."""
        return self._writer.bytes if self._writer is not None else 0

    def define(self, definitions: bytes) -> None:
        """Write definitions, before the events that need them."""
        if definitions:
            self._write(lambda writer: writer.define([definitions]))

    def add(self, events: EncodedEvents) -> None:
        """Write events, and that all up to them are there."""

        def write(writer: TraceWriter) -> None:
            writer.write_encoded(*events)
            writer.watermark(events.last_stamp)

        self._write(write)

    def add_live(self, live: LiveBlocks, stamp: int) -> None:
        """Write blocks that lived when this trace began, at a stamp."""
        for start in range(0, len(live.address), _BLOCK_EVENTS):
            part = slice(start, start + _BLOCK_EVENTS)
            rows = len(live.address[part])
            events = EventColumns(
                kind=np.full(rows, RecordKind.ALLOCATE, np.uint8),
                detail=np.full(rows, _LIVED_BEFORE, np.uint8),
                flags=np.zeros(rows, np.uint8),
                thread=np.zeros(rows, np.int32),
                address=live.address[part],
                to=np.zeros(rows, np.int64),
                size=live.size[part],
                type=live.type[part],
                site=live.site[part],
                length=np.zeros(rows, np.int32),
                stamp=np.zeros(rows, np.int64),
            )
            self._write(partial(_write_columns, events, stamp))

    def finish(self, facts: Mapping[str, str]) -> None:
        """Write the END."""
        self._write(lambda writer: writer.end(facts))
        self.close()

    def close(self) -> None:
        """Close the file as it is."""
        if self._file is not None:
            with suppress(OSError):  # what could not be written is known
                self._file.close()

    def _write(self, write: Callable[[TraceWriter], None]) -> None:
        if self.error is not None:
            raise self.error
        assert self._writer is not None
        assert self._file is not None
        try:
            write(self._writer)
            self._file.flush()
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> TraceError:
        self.error = TraceError(
            f"{self.path}: cannot be written: {error.strerror}", file=str(self.path)
        )
        return self.error


def _write_columns(events: EventColumns, stamp: int, writer: TraceWriter) -> None:
    writer.write(events, first_stamp=stamp)
