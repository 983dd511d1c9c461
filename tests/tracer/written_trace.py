"""A trace as it was written: all events and definitions of a file, decoded; and what a program's own log says of the same."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gcspy_objects.archive import FileSpan
from gcspy_objects.gctrace.blocks import read_blocks, read_payload, read_prefix
from gcspy_objects.gctrace.definitions import Definitions, read_pairs
from gcspy_objects.gctrace.events import decode_events
from gcspy_objects.gctrace.layout import ANY_THREAD, BlockKind
from gcspy_objects.records import RecordKind
from numpy.typing import NDArray

__all__ = ["OwnLog", "WrittenTrace", "lives_by_address"]

Lives = dict[int, list[tuple[int, bool]]]
"""By address: size of each block there in order, and whether it was freed."""


@dataclass(frozen=True, slots=True, eq=False)
class WrittenTrace:
    """All of a trace.

    Attributes:
        header: Pairs of the HEADER.
        end: Pairs of the END; empty: there is none.
        definitions: Definitions.
        kind: (n,)
        detail: (n,)
        thread: (n,)
        address: (n,)
        size: (n,)
        type: (n,)
        site: (n,)
        stamp: (n,)
    """

    header: dict[str, str]
    end: dict[str, str]
    definitions: Definitions
    kind: NDArray[np.uint8]
    detail: NDArray[np.uint8]
    thread: NDArray[np.int32]
    address: NDArray[np.int64]
    size: NDArray[np.int64]
    type: NDArray[np.int32]
    site: NDArray[np.int32]
    stamp: NDArray[np.int64]

    @classmethod
    def read(cls, path: Path) -> WrittenTrace:
        """Read a file; one that ends within a block is read as far as it goes."""
        header: dict[str, str] = {}
        end: dict[str, str] = {}
        definitions = Definitions()
        parts: list[tuple[NDArray[np.generic], ...]] = []
        file = path.open("rb")
        span = FileSpan(file, 0, path.stat().st_size, path.name)
        for block in read_blocks(span, read_prefix(span)):
            payload = read_payload(span, block)
            if block.kind == BlockKind.HEADER:
                header = read_pairs(payload)
            elif block.kind == BlockKind.END:
                end = read_pairs(payload)
            elif block.kind == BlockKind.DEFINITIONS:
                definitions.read(payload)
            elif block.kind == BlockKind.EVENTS:
                one = block.thread != ANY_THREAD
                events = decode_events(payload, block.events, one_thread=one)
                thread = np.full(len(events), block.thread, np.int32) if one else events.thread
                assert thread is not None
                parts.append(
                    (events.kind, events.detail, thread, events.address, events.size, events.type, events.site, events.stamp + block.first_stamp)
                )  # fmt: skip
        file.close()
        dtypes = ["u1", "u1", "i4", "i8", "i8", "i4", "i4", "i8"]
        columns = [
            np.concatenate([np.zeros(0, dtype), *(part[row] for part in parts)]).astype(dtype)
            for row, dtype in enumerate(dtypes)
        ]
        return cls(header, end, definitions, *columns)

    def sites_of(self, module: str) -> set[int]:
        """Return the sites whose innermost frame is in a file of code, by the end of its path."""
        ranges = [
            (one.start, one.end)
            for one in self.definitions.modules.values()
            if one.path.endswith(module)
        ]
        return {
            number
            for number, site in self.definitions.sites.items()
            if site.frames
            and any(
                start <= self.definitions.frames[site.frames[0]].pc < end for start, end in ranges
            )
        }

    def lives(self, sites: set[int]) -> Lives:
        """Return the lives of the blocks that were allocated at some sites."""
        chosen = np.isin(self.site, list(sites))
        found: Lives = {}
        own: set[int] = set()
        for row in np.flatnonzero(
            (self.kind == RecordKind.ALLOCATE) | (self.kind == RecordKind.FREE)
        ).tolist():
            address = int(self.address[row])
            if self.kind[row] == RecordKind.ALLOCATE:
                if chosen[row]:
                    found.setdefault(address, []).append((int(self.size[row]), False))
                    own.add(address)
                else:
                    own.discard(address)
            elif address in own:
                found[address][-1] = (found[address][-1][0], True)
                own.discard(address)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class OwnLog:
    """A program's log: (n,) each, in an order that was possible."""

    kind: NDArray[np.uint64]
    address: NDArray[np.uint64]
    size: NDArray[np.uint64]
    thread: NDArray[np.uint64]

    @classmethod
    def read(cls, path: Path) -> OwnLog:
        """Read a log."""
        table = np.fromfile(path, np.uint64).reshape(-1, 4)
        return cls(*table[table[:, 0] != 0].T)

    def __len__(self) -> int:
        return len(self.kind)


def lives_by_address(log: OwnLog) -> Lives:
    """Return the lives of the blocks of a log."""
    found: Lives = {}
    for kind, address, size in zip(
        log.kind.tolist(), log.address.tolist(), log.size.tolist(), strict=True
    ):
        if kind == 1:
            found.setdefault(address, []).append((size, False))
        else:
            found[address][-1] = (found[address][-1][0], True)
    return found
