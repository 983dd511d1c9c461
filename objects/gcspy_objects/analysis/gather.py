"""Builds a store of all lives from a rebuilt heap.

Knows heap and store; does not know what will be asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from gcspy_objects.analysis.store import LIFE_COLUMNS, CollectionTable, LifeStore, Names
from gcspy_objects.heap.heap import Progress, RebuiltHeap
from gcspy_objects.heap.views import Lives
from gcspy_objects.records import CollectionKind

__all__ = ["add_lives", "finish_store", "gather"]

_KINDS = {
    CollectionKind.MINOR: "minor",
    CollectionKind.FULL: "full",
    CollectionKind.FULL_SNAPSHOT: "full, with snapshot",
    CollectionKind.MINOR_SNAPSHOT: "minor, with snapshot",
    CollectionKind.MINOR_TOLD: "minor",
    CollectionKind.FULL_TOLD: "full",
}


def gather(
    heap: RebuiltHeap,
    folder: Path | None = None,
    *,
    kept: Path | None = None,
    progress: Progress | None = None,
) -> LifeStore:
    """Write the lives of all objects of a trace to a store.

    Args:
        heap: The heap of the trace; `RebuiltHeap.ended` says whether it could be rebuilt to the end.
        folder: Folder for the store's files; None: the system's for temporary files.
        kept: Folder for its files instead, which stays.
        progress: Called with the progress of reading the trace.

    Returns:
        The store, which the caller closes.
    """
    store = LifeStore(folder, kept=kept)
    try:
        total = add_lives(store, heap.lives(progress))
        finish_store(store, heap, total)
    except BaseException:
        store.close()
        raise
    return store


def add_lives(store: LifeStore, lives: Iterable[Lives]) -> int:
    """Add lives to a store, as it has them; return bytes that the program had allocated when the last of them was born."""
    total = 0
    for each in lives:
        own = ~each.filler
        total = max(total, int((each.birth_bytes[own] + each.size[own]).max(initial=0)))
        columns = {name: getattr(each, name) for name in LIFE_COLUMNS}
        store.add({**columns, "born_after": _born_after(each)})
    return total


def finish_store(store: LifeStore, heap: RebuiltHeap, total: int, lives: int | None = None) -> None:
    """Give a store that has all lives what they refer to."""
    store.finish(_collections(heap, total), _names(heap), lives)


def _born_after(lives: Lives) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
    """When each was born; -1 where the trace begins after that."""
    return np.where(lives.snapshot, np.int32(-1), lives.born_after)


def _collections(heap: RebuiltHeap, total_bytes: int) -> CollectionTable:
    found = heap.collections
    sizes = np.array([one.bytes for one in found], np.int64)
    return CollectionTable(
        full=np.array([one.full for one in found], bool),
        kind=[
            _KINDS.get(CollectionKind(one.kind), "unknown") + (", failed" if one.failed else "")
            for one in found
        ],
        cause=[one.cause for one in found],
        bytes=sizes,
        total_bytes=max(total_bytes, int(sizes.max(initial=0))),
    )


def _names(heap: RebuiltHeap) -> Names:
    types, sites = heap.trace.types, heap.trace.sites
    rows = range(len(sites))
    stacks = ["\n".join(map(str, sites.frames(row))) or sites.labels[row] for row in rows]
    return Names(types.names, [sites.name(row) for row in rows], stacks)
