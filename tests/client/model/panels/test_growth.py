"""Growth between two events: sorted by amount, with new types, and with lines over the events between."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.model import Naming, Space, Stream

from gcspy_client.model.panels.growth import (
    GrowthLog,
    TypeSample,
    bytes_measure,
    growing_space,
    growth,
    total_growth,
)
from tests.client.feeding import Feed, space_state

STREAM = Stream(id=0, name="Bytes", maximum=1000)


def sample(sequence: int, *values: int) -> TypeSample:
    found = np.array([values], dtype=np.int64)
    return TypeSample(sequence, sequence, 1, found, np.ones(found.shape, dtype=np.bool_))


def test_what_grew_most_is_first_and_only_tiles_that_were_not_there_are_new() -> None:
    space = space_state(STREAM, np.zeros(4, dtype=np.int32))
    before, between, now = sample(1, 10, 20, 30), sample(2, 10, 25, 29), sample(3, 10, 26, 28, 5)
    rows = growth(before, now, space, [before, between, now])
    assert [row.tile for row in rows] == [1, 3, 2], "the first tile is as it was"
    assert [row.new for row in rows] == [False, True, False]
    assert [row.line for row in rows] == [(20, 25, 26), (None, None, 5), (30, 29, 28)]


def test_the_first_of_the_tiles_that_came_is_new() -> None:
    space = space_state(STREAM, np.zeros(2, dtype=np.int32))
    (row,) = growth(sample(1, 4), sample(2, 4, 9), space)
    assert (row.tile, row.new) == (1, True)


def test_what_was_among_all_others_is_not_new_and_counts_from_where_it_was_counted() -> None:
    space = space_state(STREAM, np.zeros(4, dtype=np.int32))
    before = replace(sample(1, 4), complete=False)
    between, now = sample(2, 4, 700, 30), sample(3, 4, 720, 30, 9)
    rows = growth(before, now, space, [before, between, now])
    assert [(row.tile, row.new, row.changes[0].grew) for row in rows] == [(1, False, 20)]
    (unseen,) = growth(before, sample(3, 4, 9), space)
    assert (unseen.new, unseen.changes[0].grew) == (False, None), "nobody counted it before"


def test_what_can_grow_are_the_named_tiles_that_another_stream_names_its_values_after() -> None:
    bytes_of = Stream(id=1, name="Bytes", maximum=9)
    top = Stream(id=2, name="Top type", dtype="u2", maximum=9, names_from=3)
    heap = Space(id=1, name="Heap", streams=(bytes_of, top))
    types = Space(id=3, name="Types", naming=Naming.STRINGS, streams=(bytes_of,))
    others = [
        Space(id=4, name="Pools", naming=Naming.STRINGS, streams=(bytes_of,)),
        Space(id=5, name="Pages", streams=(bytes_of,)),
    ]

    def found(*spaces: Space) -> int | None:
        session = ClientInterpreter()
        for message in Feed(spaces, {}).bootstrap():
            session.apply(message)
        space = growing_space(session)
        return None if space is None else space.space.id

    assert found(*others, types, heap) == 3
    assert found(heap, types) == 3
    assert found(*others, types) is None, "nothing is named after them"
    assert found(*others, heap) is None
    assert found(heap, replace(types, streams=())) is None, "there is nothing to count"
    assert found(heap, replace(types, naming=Naming.UNIFORM)) is None, "their tiles have no names"


def test_all_types_together_grew_by_the_sum_of_their_growth() -> None:
    space = space_state(STREAM, np.zeros(4, dtype=np.int32))
    before = replace(sample(1, 10, 20), complete=False)
    between, now = sample(2, 10, 25, 29), sample(3, 4, 26, 40, 5)
    samples = [before, between, now]
    rows = growth(before, now, space, samples)
    assert total_growth(before, now, samples) == (sum(row.changes[0].grew or 0 for row in rows),)
    assert total_growth(before, now, samples) == (4 - 10 + 26 - 20 + 40 - 29,), (
        "the last one nobody counted before"
    )


def test_bytes_are_found_among_the_numbers() -> None:
    assert bytes_measure(["Objects", "Bytes"]) == 1
    assert bytes_measure(["Objects"]) is None


def test_the_latest_answer_is_kept() -> None:
    log = GrowthLog()
    for sequence in (2, 5):
        log.add(sample(sequence, 1))
    found = [log.latest(1, number) for number in (1, 4, 9)]
    assert [one and one.sequence for one in found] == [None, 2, 5]
    assert log.latest(2, 9) is None
