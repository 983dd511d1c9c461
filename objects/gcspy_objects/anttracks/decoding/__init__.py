"""Events to columns of records: `decode`, by whichever of two ways is there. `kernel` and `vectors` do the same, to the bit."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from gcspy_compiled.machine_code import Loop
from gcspy_objects.anttracks.buffers import LIBRARY, Chunk
from gcspy_objects.anttracks.decoding import kernel, vectors
from gcspy_objects.anttracks.decoding.problem import Problem
from gcspy_objects.anttracks.decoding.tables import (
    FIXED_WORDS,
    SPARE_BITS,
    Columns,
    SymbolTables,
    columns_for,
)
from gcspy_objects.names import Threads

__all__ = ["Decoded", "decode"]

_DECODE: Final = Loop(kernel.decode, kernel.SIGNATURE, LIBRARY)


class Decoded(NamedTuple):
    """The content of a chunk.

    Attributes:
        columns: Columns of its events up to the first that is invalid.
        base: Base of relative addresses after them.
        problem: The error in that event; NONE: all are valid.
        word: The word of the chunk at which it begins.
        buffer: The buffer of the chunk that contains it.
    """

    columns: Columns
    base: int
    problem: Problem
    word: int
    buffer: int


def decode(chunk: Chunk, base: int, anchor: int, tables: SymbolTables, threads: Threads) -> Decoded:
    """Decode a chunk, with machine code if there is some.

    Args:
        chunk: The buffers.
        base: Base of relative addresses before it.
        anchor: 1 if a word follows each event, else 0.
        tables: The symbols.
        threads: Assigns rows to the owners of buffers; new ones are added.
    """
    owners = np.array([threads.row_of(owner) for owner in chunk.owners], np.int32)
    if _DECODE.machine is None or not len(chunk.words):
        columns, base, problem, word, buffer = vectors.decode(
            chunk.words, chunk.bounds, owners, base, anchor, tables
        )
        return Decoded(columns, base, Problem(problem), word, buffer)
    columns = columns_for(len(chunk.words))
    state = np.array([base, 0, 0, 0, 0], np.int64)
    count = _DECODE.machine(
        chunk.words, chunk.bounds, owners, state, anchor, FIXED_WORDS, SPARE_BITS, *tables, *columns
    )
    base, problem, word, buffer, pointers = (int(one) for one in state)
    used = {name: pointers if name.startswith("pointer") else count for name in columns._fields}
    # Room of which less than half was used goes back.
    found = {
        name: one[: used[name]] if 2 * used[name] >= len(one) else one[: used[name]].copy()
        for name, one in columns._asdict().items()
    }
    return Decoded(Columns(**found), base, Problem(problem), word, buffer)
