"""`age_bins`: at which ages lives ended, counted in one pass over the lives.

The engine makes six rows of each life for that, one for each generation and kind of age, and groups them: 0.7 µs a life. A loop in C
takes 0.1 µs. Where there is none, the engine does it (`survival.product_limit`); a test compares the two.

Knows columns of lives; does not know the estimate.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gcspy_compiled.machine_code import Loop
from gcspy_objects.analysis.store import LifeStore
from gcspy_objects.heap.kernels import LIBRARY

__all__ = ["COLUMNS", "COUNT_AGES", "SLOTS", "age_bins"]

SLOTS: Final = tuple(
    (generation, how) for generation in ("all", "young", "old") for how in ("held", "seen")
)
"""Generation and kind of age of each of the six parts of the sums."""

COLUMNS: Final = (
    "size",
    "birth_bytes",
    "born_after",
    "born_old",
    "promoted_in",
    "died_in",
    "freed_bytes",
    "freed_after",
)
"""The columns of a life that ages follow from."""

_FINE, _PER_OCTAVE = 4096, 64
_BYTE_BINS: Final = _FINE + 63 * _PER_OCTAVE + 1


def _count_ages(
    size: NDArray[Any],
    birth_bytes: NDArray[Any],
    born_after: NDArray[Any],
    born_old: NDArray[Any],
    promoted_in: NDArray[Any],
    died_in: NDArray[Any],
    freed_bytes: NDArray[Any],
    freed_after: NDArray[Any],
    collection_bytes: NDArray[Any],
    last_full: NDArray[Any],
    total_bytes: int,
    clock: int,
    objects: NDArray[Any],
    bytes_: NDArray[Any],
    dead_objects: NDArray[Any],
    dead_bytes: NDArray[Any],
    greatest: NDArray[Any],
) -> int:
    """Count the ages of some lives.

    Args:
        size: (n,) as the other columns of lives, see `LIFE_COLUMNS`.
        birth_bytes: (n,)
        born_after: (n,)
        born_old: (n,)
        promoted_in: (n,)
        died_in: (n,)
        freed_bytes: (n,)
        freed_after: (n,)
        collection_bytes: (c + 1,) bytes that the program had allocated when a collection began; of number 0: 0.
        last_full: (c + 1,) number of the last full collection up to each; 0: none.
        total_bytes: Bytes that it had allocated when the trace ended.
        clock: 0: ages in bytes, 1: in collections.
        objects: (6 * bins,) sums over lives that ended or were last observed at an age of a bin, by `SLOTS`; added to.
        bytes_: (6 * bins,) their bytes.
        dead_objects: (6 * bins,) those of them that died.
        dead_bytes: (6 * bins,) their bytes.
        greatest: (6 * bins,) the greatest age in each bin.

    Returns:
        n; less: the row of a life that refers to a collection that there is not.
    """
    bins = len(objects) // 6
    last = len(collection_bytes) - 1
    for row in range(len(size)):
        birth, born = int(birth_bytes[row]), int(born_after[row])
        died, promoted = int(died_in[row]), int(promoted_in[row])
        freed = int(freed_bytes[row])
        dead = died > 0 or freed >= 0
        is_born_old = born_old[row] != 0
        became_old = is_born_old or promoted > 0
        young_ends = dead and promoted <= 0
        if freed >= 0:
            until = int(freed_after[row])
        elif died > 0:
            until = died - 1
        else:
            until = last
        old_since = max(born, 0) if is_born_old else promoted
        if until < 0 or until > last or died < 0 or died > last or old_since < 0 or old_since > last:  # fmt: skip
            return row
        seen_in = max(int(last_full[until]), old_since) if became_old else until
        if seen_in < 0 or seen_in > last:
            return row
        old_bytes = int(collection_bytes[old_since])
        if clock == 1:
            since, held, seen = born, until + (1 if died > 0 else 0), seen_in
            grown, promoted_at = old_since, promoted
        else:
            since = birth
            if freed >= 0:
                held, seen = freed, max(freed - 1, birth)
            else:
                held = int(collection_bytes[died]) if dead else total_bytes
                seen = max(int(collection_bytes[seen_in]), birth)
            grown = birth if is_born_old else old_bytes
            promoted_at = old_bytes
        for slot in range(6):
            ends, begins, until_age = dead, since, held
            if slot in (2, 3):
                if is_born_old:
                    continue
                ends = young_ends
                if promoted > 0:
                    until_age = promoted_at
            elif slot in (4, 5):
                if not became_old:
                    continue
                begins = grown
            if slot % 2 == 1 and ends:
                until_age = seen + 1
            age = max(until_age - begins, 0)
            at = age
            if clock == 0 and age >= 4096:
                at = 4096 + math.floor(64 * math.log2(age))
            if at >= bins:
                return row
            at += slot * bins
            objects[at] += 1
            bytes_[at] += size[row]
            if ends:
                dead_objects[at] += 1
                dead_bytes[at] += size[row]
            greatest[at] = max(greatest[at], age)
    return len(size)


COUNT_AGES: Final = Loop(
    _count_ages,
    "int64(int64[::1], int64[::1], int32[::1], uint8[::1], int32[::1], int32[::1], int64[::1], int32[::1], int64[::1], int64[::1],"
    " int64, int64, int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])",
    LIBRARY,
)


def age_bins(
    store: LifeStore, *, collections: bool, selection: str = "true"
) -> dict[str, NDArray[Any]] | None:
    """Count the ages at which lives ended, by generation and kind of age.

    Args:
        store: The lives.
        collections: Whether ages are in collections; otherwise in bytes.
        selection: SQL: which lives, by their own columns.

    Returns:
        Columns, a row for each generation, kind of age and bin that has lives: `generation`, `how`, `bin`, `age`,
        `ending_objects`, `ending_bytes`, `objects`, `bytes`. None: there is no machine code, a life refers to a collection that there is not, or there are no lives.
    """
    machine = COUNT_AGES.machine
    if machine is None:
        return None
    found = store.collections
    numbers = np.arange(len(found) + 1)
    full = np.concatenate(([False], found.full))
    collection_bytes = np.concatenate(([0], found.bytes)).astype(np.int64)
    last_full = np.maximum.accumulate(np.where(full, numbers, 0)).astype(np.int64)
    bins = len(numbers) + 1 if collections else _BYTE_BINS
    sums = np.zeros((5, len(SLOTS) * bins), np.int64)
    for lives in store.columns(COLUMNS, f"born_after >= 0 AND NOT filler AND {selection}"):
        arrays = [
            one.view(np.uint8) if one.dtype == np.bool_ else one
            for one in (np.ascontiguousarray(lives[name]) for name in COLUMNS)
        ]
        if machine(
            *arrays, collection_bytes, last_full, found.total_bytes, int(collections), *sums
        ) < len(arrays[0]):
            return None
        del lives, arrays  # before the next ones are read
    places = np.flatnonzero(sums[0])
    if not len(places):
        return None
    slots = places // bins
    table: dict[str, NDArray[Any]] = {
        "generation": np.array([one[0] for one in SLOTS], object)[slots],
        "how": np.array([one[1] for one in SLOTS], object)[slots],
        "bin": places % bins,
        "age": sums[4, places],
    }
    for name, row in zip(
        ("ending_objects", "ending_bytes", "objects", "bytes"), sums, strict=False
    ):
        table[name] = row[places]
    return table
