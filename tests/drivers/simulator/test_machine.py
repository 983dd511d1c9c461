"""A machine that does with each collector whatever hypothesis thinks of, and shows the shortest way to a defect."""

from __future__ import annotations

from typing import ClassVar

import pytest
from gcspy_drivers.simulator.plan import OutOfHeap
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.drivers.simulator.variants import VARIANTS, Variant, make, wrong_of

SLOTS = st.integers(0, 5)
FIELDS = st.integers(0, 3)


class Machine(RuleBasedStateMachine):
    """A program, and a collector that is driven in steps."""

    variant: ClassVar[Variant]

    @initialize()
    def start(self) -> None:
        self.mutator, self.watch = make(self.variant, heap_bytes=4096)

    @rule(
        slot=SLOTS, fields=FIELDS, data=st.sampled_from([0, 1, 2, 5, 30]), thread=st.integers(0, 1)
    )
    def new(self, slot: int, fields: int, data: int, thread: int) -> None:
        try:
            self.mutator.new(slot, fields, data, thread=thread)
        except OutOfHeap:
            self.mutator.clear(slot)

    @rule(slot=SLOTS, length=st.integers(1, 30))
    def grow_a_list(self, slot: int, length: int) -> None:
        for _ in range(length):
            try:
                self.mutator.new(6, 2, 3)
            except OutOfHeap:
                self.mutator.clear(slot)
                return
            self.mutator.store(6, 0, slot)
            self.mutator.copy(slot, 6)

    @rule(slot=SLOTS, field=FIELDS, value=st.none() | SLOTS)
    def store(self, slot: int, field: int, value: int | None) -> None:
        if field < self.mutator.fields(slot):
            self.mutator.store(slot, field, value)

    @rule(to=SLOTS, slot=SLOTS, field=FIELDS)
    def load(self, to: int, slot: int, field: int) -> None:
        if field < self.mutator.fields(slot):
            self.mutator.load(to, slot, field)

    @rule(to=SLOTS, slot=SLOTS)
    def copy(self, to: int, slot: int) -> None:
        self.mutator.copy(to, slot)

    @rule(slot=SLOTS)
    def clear(self, slot: int) -> None:
        self.mutator.clear(slot)

    @rule(data=st.data())
    def collect(self, data: st.DataObject) -> None:
        if self.mutator.plan.kinds:
            self.mutator.plan.collect(data.draw(st.sampled_from(sorted(self.mutator.plan.kinds))))

    @precondition(lambda self: self.mutator.plan.kinds and self.mutator.plan.collection is None)
    @rule(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        self.mutator.plan.begin(data.draw(st.sampled_from(sorted(self.mutator.plan.kinds))))

    @precondition(lambda self: self.mutator.plan.collection is not None)
    @rule(limit=st.sampled_from([1, 2, 5, 50]), times=st.integers(1, 6))
    def step(self, limit: int, times: int) -> None:
        for _ in range(times):
            self.mutator.plan.step(limit)

    @invariant()
    def nothing_is_wrong(self) -> None:
        assert self.watch.wrong == []
        assert wrong_of(self.mutator) == []


def drive(given: Variant, *, examples: int, steps: int, derandomize: bool) -> None:
    class OfVariant(Machine):
        variant = given

    run_state_machine_as_test(
        OfVariant,
        settings=settings(
            max_examples=examples, stateful_step_count=steps, deadline=None, derandomize=derandomize, database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )  # fmt: skip


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_whatever_a_program_and_a_collector_do_in_turns_nothing_is_lost(variant: Variant) -> None:
    drive(variant, examples=6, steps=25, derandomize=True)


@pytest.mark.soak
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_however_long_a_program_and_a_collector_take_turns_nothing_is_lost(
    variant: Variant,
) -> None:
    drive(variant, examples=300, steps=60, derandomize=False)
