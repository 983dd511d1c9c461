"""Records of a made heap, which knows its own truth, rebuild the same heap."""

from __future__ import annotations

import random

import numpy as np
import pytest
from gcspy_objects.heap import HeapSnapshot, Keep, ObjectFlag, RebuiltHeap

from tests.objects.heap.copying_world import Heap as Truth
from tests.objects.heap.copying_world import Told, World

WORLDS = {
    "plain": World(1),
    "failing": World(2, failing=(3, 6), full=(4,)),
    "full twice": World(3, full=(3, 4, 8)),
    "snapshots": World(4, snapshots=(2, 5)),
}


@pytest.fixture(params=WORLDS, name="world")
def _world(request: pytest.FixtureRequest) -> World:
    return WORLDS[request.param]


def as_truth(snapshot: HeapSnapshot) -> dict[int, tuple[int, ...]]:
    names = (
        "address",
        "birth",
        "size",
        "type",
        "thread",
        "length",
        "moves",
        "age",
        "promoted_in",
        "flags",
    )
    columns = [getattr(snapshot, name).tolist() for name in names]
    return {
        one[0]: (*one[1:-1], bool(one[-1] & ObjectFlag.FILLER), bool(one[-1] & ObjectFlag.REMNANT))
        for one in zip(*columns, strict=True)
    }


def told_truth(truth: Truth) -> dict[int, tuple[int, ...]]:
    return {
        address: (
            one.birth,
            one.size,
            one.type,
            one.thread,
            one.length,
            one.moves,
            one.age,
            one.promoted_in,
            one.filler,
            one.remnant,
        )
        for address, one in truth.items()
    }


def test_the_heap_at_any_event_is_the_one_that_was(world: World) -> None:
    heap = RebuiltHeap(Told(world.rows), keep=Keep(count=4, events=100))
    assert heap.ended is None
    assert not heap.findings, heap.findings.first
    assert heap.events == len(world.rows)
    numbers = random.Random(5)
    some = [0, heap.events, *(numbers.randrange(heap.events) for _ in range(60))]
    for event in some:
        assert as_truth(heap.at(event)) == told_truth(world.truth(event)), event


def test_every_object_has_one_life_that_ends_when_it_did(world: World) -> None:
    heap = RebuiltHeap(Told(world.rows))
    lives = list(heap.lives())
    births = np.concatenate([one.birth for one in lives])
    died_in = np.concatenate([one.died_in for one in lives])
    assert len(births) == len(set(births.tolist()))
    alive = {one.birth for one in world.heap.values()}
    assert dict(
        zip(births.tolist(), died_in.tolist(), strict=True)
    ) == world.deaths | dict.fromkeys(alive, 0)
    assert [one.objects_died for one in heap.collections] == [
        sum(
            number == one.number and not filler
            for number, filler in zip(
                died_in.tolist(),
                np.concatenate([each.filler for each in lives]).tolist(),
                strict=True,
            )
        )
        for one in heap.collections
    ]
