"""Copies equal the memory, piece by piece, and a buffer holds the requested number of records."""

from __future__ import annotations

import os

import numpy as np
from gcspy_drivers.kit.copier import CHUNK_BYTES, Copier, RecordBuffers
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.process import Process


def test_pieces_are_copied_while_there_is_room_and_what_cannot_be_read_is_none() -> None:
    words = np.arange(1000, dtype=np.int64)
    low = words.ctypes.data
    with Process(os.getpid()) as process:
        copier = Copier(Memory(process))
        assert copier.copy([(0, low, low + 8)]) == [], "no room yet"
        copier.warm(8000)
        assert copier.room == CHUNK_BYTES
        found = copier.copy(
            [(4, low + 8, low + 32), (5, 8, 16), (6, low, low + 8000), (7, low, low + CHUNK_BYTES)]
        )
    assert [(one.span, one.address) for one in found] == [(4, low + 8), (5, 8), (6, low)]
    assert [None if one.words is None else one.words.tolist() for one in found] == [
        [1, 2, 3],
        None,
        list(range(1000)),
    ]


def test_a_record_buffer_is_taken_once_until_all_are_taken_back() -> None:
    buffers = RecordBuffers(record_bytes=24, buffer_bytes=100)
    assert buffers.take(2).shape == (2, 24), "though none is warm"
    buffers.begin(7)
    taken = [buffers.take(records) for records in (4, 3, 2)]
    assert [one.shape for one in taken] == [(4, 24), (3, 24), (2, 24)]
    for number, one in enumerate(taken):
        one[:] = number
    assert [set(one.ravel().tolist()) for one in taken] == [{0}, {1}, {2}]
    buffers.begin(1)
    again = buffers.take(1)
    assert np.shares_memory(again, taken[0])
