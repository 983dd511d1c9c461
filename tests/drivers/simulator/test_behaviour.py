"""The duties of every collector, checked by `verify`, which knows none of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from gcspy_drivers.simulator.heap import FREE, WORD_BYTES, Heap
from gcspy_drivers.simulator.mutator import Mutator
from gcspy_drivers.simulator.plan import FULL, WHOLE, Choice, OutOfHeap
from gcspy_drivers.simulator.plans import PLANS, make_plan
from gcspy_drivers.simulator.plans.generational import Generational
from gcspy_protocol.errors import LocalProtocolError

from tests.drivers.simulator.variants import (
    COLLECTING,
    HEAP_BYTES,
    VARIANTS,
    Variant,
    make,
    run_at_random,
    wrong_of,
)


def grow_for_ever(mutator: Mutator) -> None:
    while True:
        mutator.new(1, 2, 4)
        mutator.store(1, 0, 0)
        mutator.copy(0, 1)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_a_random_program_finds_its_objects_after_every_collection(variant: Variant) -> None:
    mutator, watch = make(variant)
    done = run_at_random(mutator, 2500)
    assert watch.wrong == []
    assert wrong_of(mutator) == []
    if mutator.plan.kinds:
        # Cells that are never merged get ever smaller.
        assert done == 2500 or not variant.options.get("coalesce", True), "what is live fits in"
        assert mutator.heap.allocated_words * WORD_BYTES > HEAP_BYTES
        assert mutator.plan.collections >= 2 or variant.plan == "refcount", (
            "counting frees most without a collection"
        )


@pytest.mark.parametrize("variant", COLLECTING, ids=str)
def test_a_full_collection_leaves_nothing_unreachable(variant: Variant) -> None:
    mutator, watch = make(variant, watched=False)
    run_at_random(mutator, 600)
    mutator.plan.collect()
    assert wrong_of(mutator, collected=True) == []
    for slot in range(len(mutator.heap.roots)):
        mutator.clear(slot)
    mutator.plan.collect()
    assert wrong_of(mutator, collected=True) == []
    if mutator.plan.exact:
        assert len(mutator.plan.objects()) == 0
        assert mutator.plan.used_words() == 0 or not variant.options.get("coalesce", True), (
            "slivers are lost"
        )
    assert watch.wrong == []


@pytest.mark.parametrize("variant", COLLECTING, ids=str)
def test_phases_are_those_that_the_plan_says_in_their_order(variant: Variant) -> None:
    mutator, watch = make(variant)
    run_at_random(mutator, 300)
    for kind in mutator.plan.kinds:
        mutator.plan.collect(kind)
    assert watch.phases
    for kind, phases in watch.phases:
        assert tuple(phases) == mutator.plan.kinds[kind]


@pytest.mark.parametrize(
    "variant", [one for one in COLLECTING if not PLANS[one.plan].incremental], ids=str
)
@pytest.mark.parametrize("stride", [1, 7])
def test_a_collection_in_steps_does_what_a_whole_one_does_and_the_heap_can_be_walked_at_each(
    variant: Variant, stride: int
) -> None:
    whole, _ = make(variant, watched=False)
    steps, watch = make(variant, heap_bytes=HEAP_BYTES)
    whole.plan.stride, steps.plan.stride = WHOLE, stride
    for mutator in (whole, steps):
        run_at_random(mutator, 250)
        mutator.plan.collect()
        mutator.plan.collect()
    assert watch.wrong == []
    np.testing.assert_array_equal(whole.heap.words, steps.heap.words)
    np.testing.assert_array_equal(whole.heap.roots, steps.heap.roots)


@pytest.mark.parametrize("variant", COLLECTING, ids=str)
def test_garbage_alone_never_fills_a_heap(variant: Variant) -> None:
    mutator, watch = make(variant)
    for turn in range(1500):
        mutator.new(turn % 3, 2, 6)
        mutator.store(turn % 3, 0, (turn + 1) % 3)
        mutator.store(turn % 3, 1, turn % 3)
        if turn % 5 == 0:
            mutator.clear((turn + 1) % 3)
            mutator.store(turn % 3, 0, None)
    assert mutator.heap.allocated_words * WORD_BYTES > 3 * HEAP_BYTES
    assert watch.wrong == []


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_what_does_not_fit_is_refused_with_the_numbers_and_nothing_is_lost(
    variant: Variant,
) -> None:
    mutator, watch = make(variant)
    mutator.new(0, 2, 0)
    with pytest.raises(OutOfHeap, match=r"use a larger heap"):
        grow_for_ever(mutator)
    assert watch.wrong == []
    assert wrong_of(mutator) == []


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_the_same_seed_makes_the_same_heap(variant: Variant) -> None:
    one, _ = make(variant, seed=7, watched=False)
    two, _ = make(variant, seed=7, watched=False)
    other, _ = make(variant, seed=8, watched=False)
    for mutator in (one, two, other):
        run_at_random(mutator, 400)
    np.testing.assert_array_equal(one.heap.words, two.heap.words)
    assert not np.array_equal(one.heap.words, other.heap.words)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_bytes_of_objects_and_free_cells_are_those_of_the_extents(variant: Variant) -> None:
    mutator, _ = make(variant, watched=False)
    run_at_random(mutator, 500)
    plan = mutator.plan
    cells = plan.cells()
    assert int(cells.sizes.sum()) == sum(end - start for start, end in plan.extents())
    assert (np.diff(cells.cells) > 0).all()
    assert len(plan.objects()) == int((~cells.having(FREE)).sum())
    assert int(plan.objects().sizes.sum()) <= plan.used_words()
    assert {space.name for space in plan.spaces()} == {space.name for space in plan.spaces()}


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_every_knob_can_be_turned_while_a_program_runs_and_refuses_what_it_cannot_be(
    variant: Variant,
) -> None:
    mutator, watch = make(variant)
    plan = mutator.plan
    for knob in plan.knobs():
        values: tuple[int | str, ...] = (
            knob.values.names if isinstance(knob.values, Choice) else knob.values
        )
        for value in (*values, knob.value):
            run_at_random(mutator, 60)
            plan.turn(knob.name, value)
        assert next(one.value for one in plan.knobs() if one.name == knob.name) == knob.value
        with pytest.raises(LocalProtocolError, match=knob.name):
            plan.turn(knob.name, "no such value")
    with pytest.raises(LocalProtocolError, match="no knob"):
        plan.turn("no such knob", 1)
    run_at_random(mutator, 300)
    plan.collect()
    assert watch.wrong == []
    assert wrong_of(mutator) == []


# An ambiguous word may hold what lies behind the new end for ever.
@pytest.mark.parametrize(
    "variant", [one for one in VARIANTS if one.plan != "conservative"], ids=str
)
def test_a_heap_that_is_made_smaller_holds_less_and_grows_again(variant: Variant) -> None:
    mutator, watch = make(variant)
    plan = mutator.plan
    quarter = HEAP_BYTES // 4
    plan.turn("heap", quarter)
    with pytest.raises(OutOfHeap):
        grow_for_ever(mutator)
    held = int(plan.objects().sizes.sum()) * WORD_BYTES
    assert held <= quarter
    plan.turn("heap", HEAP_BYTES)
    with pytest.raises(OutOfHeap):
        grow_for_ever(mutator)
    assert int(plan.objects().sizes.sum()) * WORD_BYTES > 3 * held
    if plan.kinds:
        # A heap that was too full to shrink shrinks when the next collection has made room.
        plan.turn("heap", quarter)
        for slot in range(len(mutator.heap.roots)):
            mutator.clear(slot)
        for _ in range(1 if plan.exact else 4):
            plan.collect()
        with pytest.raises(OutOfHeap):
            grow_for_ever(mutator)
        assert int(plan.objects().sizes.sum()) * WORD_BYTES <= quarter
    assert [*watch.wrong, *wrong_of(mutator)] == []


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_objects_begin_where_the_heap_is_aligned(variant: Variant) -> None:
    heap = Heap(HEAP_BYTES, roots=8, align_words=2)
    mutator = Mutator(make_plan(variant.plan, heap, **variant.options), shadow=True)
    for turn in range(700):
        try:
            mutator.new(turn % 8, turn % 3, turn % 4)
        except OutOfHeap:
            break
    objects = mutator.plan.objects()
    assert len(objects) >= 8
    assert not ((objects.cells | objects.sizes) & 1).any()
    assert wrong_of(mutator) == []


def test_a_step_without_a_collection_is_over_and_a_second_collection_is_refused() -> None:
    mutator, _ = make(COLLECTING[0])
    plan = mutator.plan
    assert plan.step()
    plan.begin(FULL)
    assert not plan.step(1)
    with pytest.raises(LocalProtocolError, match="under way"):
        plan.begin(FULL)
    with pytest.raises(LocalProtocolError, match="at least 1"):
        plan.step(0)
    assert plan.phases_left()
    plan.finish()
    assert plan.collection is None
    with pytest.raises(LocalProtocolError, match="'none'"):
        plan.begin("none")
    with pytest.raises(LocalProtocolError, match="no collector 'none'"):
        make_plan("none", mutator.heap)


def test_a_heap_that_would_not_go_into_one_free_cell_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match="below 128 MiB"):
        Heap(128 << 20)
    plan = make_plan("marksweep", Heap((128 << 20) - 64))
    assert plan.alloc(0, 4, 1, 0)
    plan.collect()
    assert plan.used_words() == 0


@pytest.mark.parametrize(
    ("young", "young_bytes", "words"),
    [("semispace", 8192, [512, 512]), ("bump", 8192, [1024]), ("bump", 8200, [1024]),
     ("semispace", 0, [1024, 1024]), ("bump", 0, [2048])],
)  # fmt: skip
def test_the_young_generation_is_as_large_as_was_asked_for_or_a_quarter_of_the_heap(
    young: str, young_bytes: int, words: list[int]
) -> None:
    heap = Heap(1 << 16, roots=8, align_words=2)
    plan = make_plan("generational", heap, young=young, young_bytes=young_bytes)
    assert isinstance(plan, Generational)
    assert plan._parts[0].start == heap.start
    assert [part.end - part.start for part in plan._parts] == words
    for one, following in itertools.pairwise(plan._parts):
        assert one.end == following.start
