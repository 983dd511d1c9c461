"""Under a budget that is too small, events are left out and counted."""

from __future__ import annotations

import time

import pytest

from tests.drivers.behaviour.conftest import Classes, Join
from tests.drivers.behaviour.subjects import AttachedSubject, Behaviour, having

MOST_TICKS = 200_000
LEFT_OUT = 20


@pytest.mark.parametrize("subject", having(Behaviour.BUDGET))
def test_what_the_budget_leaves_out_is_counted(
    subject: AttachedSubject, classes: Classes, join: Join
) -> None:
    with subject.target(classes) as target:
        target.hold()  # so that the clock is the only event
        with subject.watch(target, budget=1) as case:
            viewer = join(case.server)
            core = case.server._core
            keeper = core.spending._keeper
            ticks = 0
            while sum(keeper.left_out) < LEFT_OUT:
                assert ticks < MOST_TICKS
                case.happen()
                ticks += 1
                while (
                    len(core.handoff_queue) > 4
                ):  # a session that is behind loses events, which is not meant here
                    time.sleep(0.001)
            gathered = sum(keeper.gathered)
            assert gathered + sum(keeper.left_out) == ticks
            assert core.lost == 0
            assert case.server.counts()[0] == ticks, "what is left out happened all the same"
            viewer.until(lambda: viewer.state.budget is not None)
            assert viewer.state.budget is not None
            assert viewer.state.budget.allowed == 1000, "millionths"
