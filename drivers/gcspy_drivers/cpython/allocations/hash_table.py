"""`read_table`: the entries of a ``_Py_hashtable_t``, from a copy of memory that may be torn.

Of a damaged table some entries are missing, and none are invented: an entry must be in the bucket
that its hash belongs to. A chain that leads in a circle ends, and a table whose sizes are impossible
is refused before any room is allocated for it.

Source: CPython 3.9 to 3.14 Include/internal/pycore_hashtable.h (struct _Py_hashtable_t, _Py_hashtable_entry_t),
Python/hashtable.c (HASHTABLE_HIGH, HASHTABLE_LOW, _Py_hashtable_hash_ptr).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gcspy_drivers.cpython.graph.memory_copy import MemoryCopy

__all__ = ["HEAD_WORDS", "Entries", "hash_of_pointers", "plausible_heads", "read_table"]

HEAD_WORDS: Final = 10
"""Number of entries, number of buckets, buckets, five functions of the table, and two of its allocator."""

_ENTRY_WORDS: Final = 4
"""Next entry of the bucket, hash, key, value."""

_LEAST_BUCKETS: Final = 16
_BUCKETS_PER_ENTRY: Final = 64
"""A table has at most ten for each entry when it grows or shrinks, rounded up to a power of two."""

_LONGEST_CHAIN: Final = 1000
"""Entries of one bucket. A table grows when it has half as many entries as buckets."""

_RUN: Final = 16
"""Neighbouring buckets of a sample: 256 bytes of addresses, in which a block of that size begins."""

_NEW_MEANWHILE: Final = 1024


class Entries(NamedTuple):
    """The entries of a table.

    Attributes:
        key: (k,) their keys, ascending, each once.
        value: (k,) their values.
        hash: (k,) their hashes.
        missing: Number of entries that the table should have and that were not found.
        buckets: Number of buckets.
    """

    key: NDArray[np.int64]
    value: NDArray[np.int64]
    hash: NDArray[np.int64]
    missing: int
    buckets: int


def plausible_heads(heads: NDArray[np.int64], most_entries: int) -> NDArray[np.bool_]:
    """Return (n,) which of (n, 3 or more) words can be the head of a table.

    Args:
        heads: The words.
        most_entries: Maximum number of entries that there is memory for.
    """
    entries, buckets, first = heads[:, 0], heads[:, 1], heads[:, 2]
    return np.asarray(
        (entries >= 0)
        & (entries <= most_entries)
        & (buckets >= _LEAST_BUCKETS)
        & (buckets & (buckets - 1) == 0)
        & (buckets // _BUCKETS_PER_ENTRY <= np.maximum(entries, 1))
        & (first > 0)
        & (first % 8 == 0)
    )


def read_table(
    copy: MemoryCopy, address: int, *, most_buckets: int | None = None
) -> Entries | None:
    """Read a table.

    Args:
        copy: The memory.
        address: Address of the table.
        most_buckets: Only the entries of this many buckets are read, in runs that are spread over
            the table: a bucket stands for an address, and neighbours may all be of freed memory. None: of all.

    Returns:
        Its entries; None: there is no table.
    """
    head, found = copy.many(np.array([address], dtype=np.int64), 3)
    if not found[0] or not plausible_heads(head, len(copy.words) // _ENTRY_WORDS)[0]:
        return None
    count, buckets, first = head[0].tolist()
    here = _spread(buckets, most_buckets or buckets)
    words, ok = copy.many(first + 8 * here, 1)  # pages without any entry are not in the copy
    ok &= words[:, 0] != 0
    entry, here = words[ok, 0], here[ok]
    parts: list[NDArray[np.int64]] = []
    left = count + count // 4 + _NEW_MEANWHILE
    for _ in range(_LONGEST_CHAIN):
        entry, here = entry[:left], here[:left]
        if not len(entry):
            break
        left -= len(entry)
        words, ok = copy.many(entry, _ENTRY_WORDS)
        ok &= words[:, 1] & (buckets - 1) == here
        words, here = words[ok], here[ok]
        parts.append(words[:, 1:])
        more = words[:, 0] != 0
        entry, here = words[more, 0], here[more]
    table = np.concatenate(parts) if parts else np.zeros((0, 3), dtype=np.int64)
    key, row = np.unique(table[:, 1], return_index=True)
    return Entries(key, table[row, 2], table[row, 0], max(0, count - len(key)), buckets)


def _spread(buckets: int, most: int) -> NDArray[np.int64]:
    """Return at most this many numbers of buckets, ascending, in runs of `_RUN`."""
    if buckets <= most:
        return np.arange(buckets, dtype=np.int64)
    runs = most // _RUN
    begin = np.arange(runs, dtype=np.int64) * (buckets // runs)
    return (begin[:, None] + np.arange(_RUN, dtype=np.int64)).ravel()


def hash_of_pointers(key: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the hash that CPython gives to pointers."""
    bits = key.view(np.uint64)
    return ((bits >> np.uint64(4)) | (bits << np.uint64(60))).view(np.int64)
