"""A heap's index as a folder: `write_index` and `read_index`.

| file | content |
|---|---|
| `index` | magic, u32 version, SHA-256 of the rest, the rest: MessagePack in one zstd frame |
| `checkpoints` | columns of all checkpoints, as `checkpoints` stores them |

It is read again by the same version of gcspy only, and where anything is wrong it counts as absent: the trace has all of it.

Knows bytes; does not know traces.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgpack
import numpy as np
import zstandard
from gcspy_protocol.errors import TraceError
from numpy.typing import NDArray

from gcspy_objects.heap.findings import Finding, Findings, Rule
from gcspy_objects.heap.index.checkpoints import Checkpoint, Checkpoints, Keep, StoredColumn
from gcspy_objects.heap.index.heap_index import HeapIndex
from gcspy_objects.heap.spaces import SpaceTable
from gcspy_objects.heap.state import HeapFacts
from gcspy_objects.heap.views import Spaces, TraceCollection, TraceCollections, TraceSpace
from gcspy_objects.names import Thread, ThreadKind, Threads
from gcspy_objects.records import EventPlace, ReadPosition

__all__ = ["INDEX_VERSION", "read_index", "write_index"]

INDEX_VERSION: Final = 1
_MAGIC: Final = b"\x89GCspyIx"
_HEAD: Final = len(_MAGIC) + 4 + 32
_MAX_PLAIN: Final = 1 << 31
_SPACES: Final = ("spaces_before", "spaces_after")


def write_index(index: HeapIndex, folder: Path) -> None:
    """Write an index into a folder, which exists.

    Raises:
        OSError: It cannot be written.
    """
    with (folder / "checkpoints").open("wb") as file:
        index.checkpoints.copy_to(file)
    plain: bytes = msgpack.packb(_facts_of(index))
    packed = zstandard.ZstdCompressor(3, write_content_size=True).compress(plain)
    head = _MAGIC + INDEX_VERSION.to_bytes(4, "little") + hashlib.sha256(packed).digest()
    (folder / "index").write_bytes(head + packed)


def read_index(folder: Path) -> HeapIndex | None:
    """Read what `write_index` wrote; None: it is not there, of another version, or damaged. Its file of checkpoints stays open."""
    try:
        data = (folder / "index").read_bytes()
        version = data[len(_MAGIC) : len(_MAGIC) + 4]
        if data[: len(_MAGIC)] != _MAGIC or version != INDEX_VERSION.to_bytes(4, "little"):
            return None
        packed = data[_HEAD:]
        if hashlib.sha256(packed).digest() != data[_HEAD - 32 : _HEAD]:
            return None
        if not 0 <= zstandard.frame_content_size(packed) <= _MAX_PLAIN:
            return None
        facts = msgpack.unpackb(zstandard.ZstdDecompressor().decompress(packed))
        return _index_of(facts, folder / "checkpoints")
    except (OSError, ValueError, KeyError, TypeError, IndexError, zstandard.ZstdError):
        return None


# To plain values


def _facts_of(index: HeapIndex) -> dict[str, Any]:
    tables = _SpaceLists()
    return {
        "events": index.events,
        "collections": [_collection(one, tables) for one in index.collections],
        "findings": [_finding(one) for one in index.findings.kept],
        "counts": {str(rule): count for rule, count in index.findings.counts.items()},
        "ended": None if index.ended is None else _error(index.ended),
        "frees": index.frees,
        "contiguous": index.contiguous,
        "clock": index.clock.astype("<i8").tobytes(),
        "touched": index.touched.astype("<i8").tobytes(),
        "threads": [
            (address, [(one.name, int(one.kind)) for one in began])
            for address, began in zip(index.threads.addresses, index.threads.began, strict=True)
        ],
        "checkpoints": [_checkpoint(one, tables) for one in index.checkpoints.rows()],
        "spaces": tables.rows,
    }


class _SpaceLists:
    """Lists of spaces, each stored once: most collections leave the spaces as they are."""

    def __init__(self) -> None:
        self.rows: list[list[tuple[int, int, int, int, int]]] = []
        self._known: dict[Spaces, int] = {}

    def row(self, spaces: Spaces) -> int:
        known = self._known.get(spaces)
        if known is None:
            known = self._known[spaces] = len(self.rows)
            self.rows.append(
                [(one.index, one.kind, one.mode, one.start, one.end) for one in spaces]
            )
        return known


def _collection(one: TraceCollection, spaces: _SpaceLists) -> list[Any]:
    values: tuple[Any, ...] = tuple(one)
    return [
        spaces.row(value) if name in _SPACES else value
        for name, value in zip(TraceCollection._fields, values, strict=True)
    ]


def _finding(one: Finding) -> list[Any]:
    where = None if one.where is None else list(one.where)
    return [str(one.rule), where, one.collection, one.expected, one.found]


def _error(error: TraceError) -> list[Any]:
    return [str(error), error.file, error.offset, error.buffer, error.event]


def _checkpoint(one: Checkpoint, spaces: _SpaceLists) -> list[Any]:
    facts: HeapFacts = one.facts
    return [
        one.event,
        list(one.place),
        [spaces.row(facts.spaces.all_spaces()), facts.begun, facts.ended, facts.allocated_bytes, facts.whole, facts.phase_event],
        one.offset,
        [[each.table, each.name, each.dtype, each.count, each.nbytes] for each in one.stored],
    ]  # fmt: skip


# From plain values


def _index_of(facts: dict[str, Any], path: Path) -> HeapIndex | None:
    spaces = [tuple(TraceSpace(*one) for one in rows) for rows in facts["spaces"]]
    ended = facts["ended"]
    file = path.open("rb")
    checkpoints = Checkpoints(Keep(), file, [_read_checkpoint(one, spaces) for one in facts["checkpoints"]])  # fmt: skip
    if os.fstat(file.fileno()).st_size < checkpoints.nbytes:
        checkpoints.close()
        return None
    return HeapIndex(
        events=facts["events"],
        collections=TraceCollections(
            tuple(_read_collection(one, spaces) for one in facts["collections"])
        ),
        findings=_read_findings(facts),
        ended=None
        if ended is None
        else TraceError(ended[0], file=ended[1], offset=ended[2], buffer=ended[3], event=ended[4]),
        frees=facts["frees"],
        contiguous=facts["contiguous"],
        clock=_longs(facts["clock"], 3),
        touched=_longs(facts["touched"], 2),
        threads=_read_threads(facts["threads"]),
        checkpoints=checkpoints,
    )


def _longs(data: bytes, columns: int) -> NDArray[np.int64]:
    return np.frombuffer(data, "<i8").astype(np.int64).reshape(-1, columns)


def _read_collection(values: Sequence[Any], spaces: list[Spaces]) -> TraceCollection:
    named = dict(zip(TraceCollection._fields, values, strict=True))
    for name, value in named.items():
        if name in _SPACES:
            named[name] = spaces[value]
        elif isinstance(value, list):
            named[name] = tuple(value)
    return TraceCollection(**named)


def _read_findings(facts: dict[str, Any]) -> Findings:
    kept = [
        Finding(Rule(rule), None if where is None else EventPlace(*where), collection, *texts)
        for rule, where, collection, *texts in facts["findings"]
    ]
    counts = Counter({Rule(rule): count for rule, count in facts["counts"].items()})
    return Findings(kept=kept, counts=counts)


def _read_threads(rows: Sequence[Any]) -> Threads:
    threads = Threads()
    for address, began in rows:
        row = threads.row_of(address)
        for name, kind in began:
            threads.begin(row, Thread(name, ThreadKind(kind)))
    return threads


def _read_checkpoint(values: Sequence[Any], spaces: list[Spaces]) -> Checkpoint:
    event, place, facts, offset, stored = values
    return Checkpoint(
        event,
        ReadPosition(*place),
        HeapFacts(SpaceTable.of(spaces[facts[0]]), *facts[1:]),
        offset,
        tuple(StoredColumn(*one) for one in stored),
    )
