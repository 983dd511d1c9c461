"""`TraceWriter`: writes an object trace in the order of the file: for the simulator, for conversions, and for tests.

Source: objects/FORMAT.md. Programs that are traced write theirs in C (gcspy_compiled/object_trace.h).

Knows blocks and definitions; does not know where events come from.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import IO, Final

import numpy as np

from gcspy_objects.gctrace.accesses import encode_access
from gcspy_objects.gctrace.address_model import AddressParameters
from gcspy_objects.gctrace.blocks import NORMAL_LEVEL, make_block, make_prefix
from gcspy_objects.gctrace.definitions import write_pairs
from gcspy_objects.gctrace.events import EventColumns, encode_events
from gcspy_objects.gctrace.layout import ANY_THREAD, BlockKind
from gcspy_objects.records import Access

__all__ = ["TraceWriter"]

_NO_FACTS: Final[Mapping[str, str]] = {}


class TraceWriter:
    """Writes blocks.

    Args:
        file: Where to; it is not closed.
        header: Keys and values of the HEADER beside `run`, `part` and `order`; they may have these, too.
        parameters: To predict addresses; None: addresses are stored as differences.
        level: Of zstd.

    Attributes:
        bytes: How many were written.
        events: How many events.
    """

    def __init__(
        self,
        file: IO[bytes],
        header: Mapping[str, str],
        parameters: AddressParameters | None = None,
        *,
        level: int = NORMAL_LEVEL,
    ) -> None:
        self._file = file
        self._parameters = parameters
        self._level = level
        self.bytes = self.events = 0
        self._write(make_prefix())
        facts = {
            "run": secrets.token_hex(16),
            "part": "0",
            "order": "file",
            "began": "start",
            **header,
        }
        self._write(make_block(BlockKind.HEADER, write_pairs(facts.items()), compress=False))

    def define(self, definitions: Iterable[bytes]) -> None:
        """Write definitions that `gctrace.definitions` packed."""
        payload = b"".join(definitions)
        if payload:
            self._write(make_block(BlockKind.DEFINITIONS, payload, level=self._level))

    def write(
        self, events: EventColumns, *, thread: int = ANY_THREAD, first_stamp: int = 0
    ) -> None:
        """Write events as a block.

        Args:
            events: Their numbers are those of definitions.
            thread: Number of the thread that has them all; `ANY_THREAD`: their column says it.
            first_stamp: To which their stamps are added.
        """
        if not len(events):
            return
        payload = encode_events(events, self._parameters)
        last = first_stamp + int(events.stamp[-1])
        self.write_encoded(payload, len(events), thread, first_stamp, last)

    def write_encoded(
        self, payload: bytes, events: int, thread: int, first_stamp: int, last_stamp: int
    ) -> None:
        """Write events that were encoded before, as for `write`."""
        self._write(
            make_block(
                BlockKind.EVENTS,
                payload,
                level=self._level,
                thread=thread,
                events=events,
                first_stamp=first_stamp,
                last_stamp=last_stamp,
            )
        )
        self.events += events

    def write_access(self, access: Access, *, stamp: int = 0) -> None:
        """Write what was accessed."""
        self._write(
            make_block(
                BlockKind.ACCESSED,
                encode_access(access),
                events=1,
                first_stamp=stamp,
                last_stamp=stamp,
            )
        )
        self.events += 1

    def watermark(self, stamp: int, earliest: int | None = None) -> None:
        """Write a WATERMARK.

        Args:
            stamp: All events up to it were written.
            earliest: Offset of the earliest block with a later event; None: there is none.
        """
        numbers = np.array(
            [stamp, self.bytes if earliest is None else earliest, self.events], "<u8"
        )
        self._write(make_block(BlockKind.WATERMARK, numbers.tobytes(), compress=False))

    def end(self, facts: Mapping[str, str] = _NO_FACTS) -> None:
        """Write the END."""
        pairs = {"events": str(self.events), "lost": "0", **facts}
        self._write(make_block(BlockKind.END, write_pairs(pairs.items()), compress=False))

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        self.bytes += len(data)
