"""The cost budget as pure arithmetic: what may be gathered when, and never more than the share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcspy_server.interpreter.budget import ALL, PART, BudgetKeeper

MS = 1_000_000
SEC = 1_000_000_000


@dataclass
class Gathering:
    """One gathering."""

    at: int
    kind: int
    level: int
    cost: int


class Run:
    """A target that has events, and costs what it costs."""

    def __init__(
        self,
        thousandths: int,
        *,
        kinds: int = 1,
        asked: int = 0,
        pairs: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.keeper = BudgetKeeper(kinds, thousandths, pairs=pairs)
        self.keeper.ask(asked)
        self.now = SEC
        self.done: list[Gathering] = []

    def event(self, kind: int, cost_of_level: dict[int, int]) -> Gathering | None:
        level = self.keeper.level_for(kind, self.now)
        if level is None:
            return None
        found = Gathering(self.now, kind, level, cost_of_level[level])
        self.now += found.cost  # the target stands still meanwhile
        self.keeper.spend(kind, level, found.cost, found.at)
        self.done.append(found)
        return found

    def go(
        self, span: int, every: int, costs: dict[int, int], *, kinds: int = 1
    ) -> list[Gathering]:
        """Let an event of each kind happen at regular intervals."""
        end, before = self.now + span, len(self.done)
        while self.now < end:
            for kind in range(kinds):
                self.event(kind, costs)
            self.now += every
        return self.done[before:]

    def share(self, gathered: list[Gathering]) -> float:
        return sum(one.cost for one in gathered) / (self.now - gathered[0].at)


def worst_excess(done: list[Gathering], share: float) -> float:
    """By how much any span from the begin of one gathering to the end of another has more cost than its share."""
    worst = 0.0
    for first in range(len(done)):
        spent = 0
        for last in range(first, len(done)):
            spent += done[last].cost
            worst = max(worst, spent - share * (done[last].at + done[last].cost - done[first].at))
    return worst


def most(done: list[Gathering], level: int | None = None) -> int:
    return max((one.cost for one in done if level is None or one.level == level), default=0)


@given(
    thousandths=st.integers(1, 500),
    steps=st.lists(
        st.tuples(st.integers(0, 3 * SEC), st.integers(1, 300 * MS)), min_size=2, max_size=60
    ),
)
def test_no_span_has_more_than_the_share_and_one_gathering(
    thousandths: int, steps: list[tuple[int, int]]
) -> None:
    run = Run(thousandths)
    for wait, cost in steps:
        run.now += wait
        run.event(0, {0: cost})
    assert worst_excess(run.done, thousandths / ALL) <= most(run.done) + 1


@given(
    thousandths=st.integers(1, 500),
    steps=st.lists(
        st.tuples(
            st.integers(0, 3 * SEC),
            st.integers(0, 1),
            st.integers(1, 300 * MS),
            st.integers(1, 30 * MS),
        ),
        min_size=2,
        max_size=60,
    ),
)
def test_with_levels_no_span_has_more_than_the_share_and_one_gathering_of_either_sort(
    thousandths: int, steps: list[tuple[int, int, int, int]]
) -> None:
    run = Run(thousandths, kinds=2, asked=3)
    for wait, kind, full, light in steps:
        run.now += wait
        run.event(kind, {3: full, 2: light, 1: light})
    light_most = max(most(run.done, 1), most(run.done, 2))
    assert worst_excess(run.done, thousandths / ALL) <= most(run.done, 3) + light_most + 1


@given(
    thousandths=st.integers(1, 500),
    steps=st.lists(
        st.tuples(st.integers(0, 3 * SEC), st.integers(0, 3), st.integers(1, 300 * MS)),
        min_size=2,
        max_size=60,
    ),
)
def test_with_changes_of_the_level_no_span_has_more_than_the_share_one_gathering_of_each_and_a_lighter_one(
    thousandths: int, steps: list[tuple[int, int, int]]
) -> None:
    run = Run(thousandths, asked=3)
    for wait, asked, cost in steps:
        run.now += wait
        if asked:
            run.keeper.ask(asked)
        run.event(0, {level: cost >> 2 * (3 - level) for level in (1, 2, 3)})
    of_each = sum(most(run.done, level) for level in (1, 2, 3))
    lighter = max(most(run.done, level) for level in (1, 2))
    assert worst_excess(run.done, thousandths / ALL) <= of_each + lighter + 1


def test_a_lower_level_is_gathered_at_once_and_half_as_often_until_the_higher_one_is_paid() -> None:
    costs = {3: 400 * MS, 2: 10 * MS, 1: 10 * MS}
    run = Run(50, asked=3)
    run.event(0, costs)
    run.keeper.ask(1)
    assert run.keeper.not_before(0, run.now) == run.now
    owing = run.go(15 * SEC, MS, costs)
    assert {one.level for one in owing} == {1}
    assert 35 <= len(owing) <= 38
    run.go(2 * SEC, MS, costs)
    assert 72 <= len(run.go(15 * SEC, MS, costs)) <= 76


def test_a_level_that_is_raised_again_has_its_debt_again() -> None:
    costs = {3: 400 * MS, 2: 10 * MS, 1: MS}
    run = Run(50, asked=3)
    run.event(0, costs)
    run.keeper.ask(1)
    run.event(0, costs)
    run.keeper.ask(3)
    assert all(one.level < 3 for one in run.go(7 * SEC, MS, costs))


@given(owed=st.integers(1, 400 * MS), cost=st.integers(1, 100 * MS))
def test_the_time_of_the_next_event_is_known_while_an_earlier_level_is_paid(
    owed: int, cost: int
) -> None:
    run = Run(50, asked=3)
    run.event(0, {3: owed})
    run.keeper.ask(1)
    run.event(0, {1: cost})
    soonest = run.keeper.not_before(0, run.now)
    assert soonest > run.now
    assert run.keeper.level_for(0, soonest - 2) is None
    assert run.keeper.level_for(0, soonest + 1) is not None


@given(
    thousandths=st.integers(1, 500),
    steps=st.lists(
        st.tuples(
            st.integers(0, SEC),
            st.integers(0, SEC),
            st.booleans(),
            st.integers(1, 300 * MS),
            st.integers(1, 30 * MS),
        ),
        min_size=2,
        max_size=40,
    ),
)
def test_start_and_end_of_the_same_are_gathered_both_or_neither_and_at_one_level(
    thousandths: int, steps: list[tuple[int, int, bool, int, int]]
) -> None:
    clock, start, end = range(3)
    run = Run(thousandths, kinds=3, asked=3, pairs=[(start, end)])
    pairs = []
    for wait, within, ticks, full, light in steps:
        costs = {3: full, 2: light, 1: light}
        run.now += wait
        first = run.event(start, costs)
        assert run.keeper.awaits(end) is (first is not None)
        run.now += within
        if ticks:
            run.event(clock, costs)  # in the middle of the collection
        second = run.event(end, costs)
        assert (first is None) == (second is None)
        if first is not None and second is not None:
            assert first.level == second.level
            pairs.append((first.level, first.cost + second.cost))
    assert run.keeper.gathered[start] == run.keeper.gathered[end] == len(pairs)
    assert run.keeper.left_out[start] == run.keeper.left_out[end] == len(steps) - len(pairs)
    of_each_sort = [
        max((cost for level, cost in pairs if (level == 3) == is_full), default=0)
        for is_full in (True, False)
    ]
    others = [one.cost for one in run.done if one.kind == clock]
    assert (
        worst_excess(run.done, thousandths / ALL)
        <= sum(of_each_sort) + 2 * max(others, default=0) + 1
    )


def test_an_end_whose_start_nobody_was_told_of_is_left_out() -> None:
    run = Run(50, kinds=2, pairs=[(0, 1)])
    assert run.event(0, {0: MS}) is not None
    run.keeper.passed(1)  # its end, and the next start
    run.keeper.passed(0)
    run.now += 10 * SEC
    assert run.event(1, {0: MS}) is None
    assert run.event(0, {0: MS}) is not None
    assert run.event(1, {0: MS}) is not None
    assert run.event(1, {0: MS}) is None, "one end for each start"


def test_an_end_whose_start_somebody_asked_for_is_left_to_the_budget() -> None:
    run = Run(50, kinds=2, pairs=[(0, 1)])
    run.event(0, {0: 100 * MS})
    run.event(1, {0: 100 * MS})
    run.keeper.spend(0, 0, 100 * MS, run.now, explicit=True)
    assert run.event(1, {0: MS}) is None, "of what is owed"
    run.now += 10 * SEC
    run.keeper.spend(0, 0, 100 * MS, run.now, explicit=True)
    assert run.event(1, {0: MS}) is not None


def test_nothing_is_left_out_where_everything_may_be_spent_or_nothing_costs_much() -> None:
    run = Run(ALL)
    assert len(run.go(SEC, MS, {0: 50 * MS})) == 20
    run = Run(50)
    assert len(run.go(SEC, 100 * MS, {0: MS})) == 10
    assert run.keeper.left_out == (0,)


def test_the_share_is_used_up_where_events_are_many() -> None:
    run = Run(50)
    gathered = run.go(20 * SEC, MS // 10, {0: 2 * MS})
    assert 0.045 < run.share(gathered) <= 0.0501
    assert abs(run.keeper.spent(run.now) - 0.05) < 0.005
    assert run.keeper.left_out[0] + len(gathered) > 100_000
    assert run.keeper.pace(run.now).every_nanos == 40 * MS


def test_a_level_that_takes_long_is_gathered_now_and_then_with_lighter_ones_between() -> None:
    run = Run(50, asked=3)
    costs = {3: 80 * MS, 2: MS, 1: MS // 10}
    gathered = run.go(40 * SEC, 10 * MS, costs)
    full = [one for one in gathered if one.level == 3]
    light = [one for one in gathered if one.level == 2]
    assert 10 <= len(full) <= 14  # half of 5 % is 80 ms in 3.2 s
    assert len(light) > 500
    # They have two fifths of the budget, and one of them may be on credit.
    assert sum(one.cost for one in light) <= 0.4 * 0.05 * 40 * SEC + 2 * MS
    assert not [one for one in gathered if one.level == 1]
    pace = run.keeper.pace(run.now)
    assert (pace.level, pace.full_nanos) == (2, 3200 * MS)
    assert not pace.starves
    times = [one.at for one in gathered]
    assert max(after - before for before, after in pairwise(times)) < SEC // 4


def test_lighter_levels_that_do_not_help_are_left_alone() -> None:
    run = Run(50, asked=3)
    gathered = run.go(60 * SEC, 10 * MS, {3: 80 * MS, 2: 70 * MS, 1: 60 * MS})
    assert [one.level for one in gathered].count(3) > 30
    assert run.keeper.pace(run.now).level == 3


def test_it_recovers_when_gathering_becomes_cheap() -> None:
    run = Run(50, asked=3)
    run.go(20 * SEC, 10 * MS, {3: 200 * MS, 2: MS, 1: MS})
    assert run.keeper.pace(run.now).level == 2
    later = run.go(60 * SEC, 10 * MS, {3: MS, 2: MS, 1: MS})[-100:]
    assert {one.level for one in later} == {3}
    assert run.keeper.pace(run.now).every_nanos < 30 * MS


def test_what_alone_breaks_the_budget_comes_rarely_and_is_said_to() -> None:
    run = Run(10, asked=1)
    gathered = run.go(100 * SEC, 100 * MS, {1: 200 * MS})
    assert 4 <= len(gathered) <= 6
    assert run.keeper.pace(run.now).starves


def test_kinds_of_event_take_turns() -> None:
    """Without that the end of a collection, which comes right after its start, would never be gathered."""
    run = Run(50, kinds=2)
    for _ in range(20_000):
        run.event(0, {0: MS})
        run.now += MS // 50
        run.event(1, {0: MS})
        run.now += MS
    starts, ends = run.keeper.gathered
    assert starts > 300
    assert abs(starts - ends) <= 1


def test_a_kind_that_does_not_happen_any_more_is_not_waited_for() -> None:
    run = Run(50, kinds=2)
    run.go(2 * SEC, MS, {0: MS}, kinds=2)
    run.now += 3 * SEC
    assert 45 <= len(run.go(SEC, MS // 10, {0: MS})) <= 51


def test_after_a_hold_a_kind_that_does_not_happen_any_more_is_not_waited_for() -> None:
    run = Run(50, kinds=2)
    run.keeper.pass_over(60 * SEC)
    run.now += 60 * SEC
    run.go(2 * SEC, MS, {0: MS}, kinds=2)
    run.now += 3 * SEC
    assert 45 <= len(run.go(SEC, MS // 10, {0: MS})) <= 51


@pytest.mark.parametrize("kind", [0, 1])
def test_before_it_says_an_event_may_come_none_is_taken_and_then_one_is(kind: int) -> None:
    run = Run(50, kinds=2)
    run.go(2 * SEC, MS, {0: 3 * MS}, kinds=2)
    run.event(0, {0: 3 * MS})
    soonest = run.keeper.not_before(kind, run.now)
    if soonest > run.now:
        assert run.keeper.level_for(kind, soonest - MS) is None
    assert run.keeper.level_for(kind, soonest + MS) is not None


def test_what_somebody_asks_for_is_spent_and_not_owed() -> None:
    run = Run(50)
    for _ in range(20):
        run.keeper.spend(0, 0, 80 * MS, run.now, explicit=True)
        run.now += 80 * MS
        run.keeper.pass_over(10 * SEC)  # and then it was held
        run.now += 10 * SEC
    assert run.keeper.spent(run.now) > 0.9
    assert run.keeper.level_for(0, run.now) == 0


def test_time_in_which_the_target_was_held_pays_nothing_off() -> None:
    run = Run(50)
    run.event(0, {0: 10 * MS})
    run.keeper.pass_over(60 * SEC)
    run.now += 60 * SEC
    assert run.keeper.level_for(0, run.now) is None
    assert run.keeper.not_before(0, run.now) == run.now + 190 * MS


def test_nothing_is_free_at_the_beginning() -> None:
    run = Run(50)
    run.keeper = BudgetKeeper(1, 50, most_saved_nanos=250 * MS)
    gathered = run.go(2 * SEC, MS, {0: 10 * MS})
    assert sum(one.cost for one in gathered) <= 0.05 * (run.now - SEC) + 10 * MS
    assert len(gathered) >= 10


def test_what_was_not_spent_is_saved_up_to_a_bound() -> None:
    run = Run(50)
    run.keeper = BudgetKeeper(1, 50, most_saved_nanos=30 * MS)
    run.event(0, {0: 10 * MS})
    run.now += 60 * SEC
    assert len(run.go(50 * MS, MS, {0: 10 * MS})) == 4
    assert len(run.go(50 * MS, MS, {0: 10 * MS})) == 0


@given(
    st.lists(st.tuples(st.integers(0, 5 * SEC), st.integers(1, 300 * MS)), min_size=1, max_size=60),
    st.integers(1, 500),
)
def test_since_the_beginning_no_more_is_spent_than_the_share_and_one_gathering(
    events: list[tuple[int, int]], thousandths: int
) -> None:
    run = Run(thousandths)
    run.keeper = BudgetKeeper(1, thousandths, most_saved_nanos=250 * MS)
    begin, spent, largest = run.now, 0, 0
    run.keeper.level_for(0, run.now)
    for pause, cost in events:
        run.now += pause
        found = run.event(0, {0: cost})
        if found is not None:
            spent, largest = spent + found.cost, max(largest, found.cost)
            assert spent <= thousandths / 1000 * (run.now - begin) + largest + 1


def test_where_levels_do_not_help_spaces_take_turns() -> None:
    run = Run(50)
    run.keeper.ask(0, parts=True)
    gathered = run.go(60 * SEC, 10 * MS, {0: 400 * MS, PART: 4 * MS})
    assert 3 <= [one.level for one in gathered].count(0) <= 5
    assert [one.level for one in gathered].count(PART) > 200
    # and where they do not help either, or a lighter level does, they are left alone
    run = Run(50)
    run.keeper.ask(0, parts=True)
    assert [one.level for one in run.go(60 * SEC, 10 * MS, {0: 400 * MS, PART: 390 * MS})].count(
        PART
    ) <= 2
    run = Run(50, asked=2)
    run.keeper.ask(2, parts=True)
    assert PART not in {
        one.level for one in run.go(60 * SEC, 10 * MS, {2: 400 * MS, 1: MS, PART: MS})
    }


def test_a_rest_is_the_time_that_pays_off_a_pair_and_none_is_needed_for_what_was_saved() -> None:
    keeper = BudgetKeeper(2, 50, most_saved_nanos=100 * MS, pairs=[(0, 1)])
    keeper.ask(2)
    assert BudgetKeeper(2).rest(SEC) == (0, 0), "without a budget there is none"
    unknown, _ = keeper.rest(SEC)
    assert unknown > 0, "the cost is not known yet"
    for kind in (0, 1):
        assert keeper.level_for(kind, SEC) == 2
        keeper.spend(kind, 2, 2 * MS, SEC)
    assert keeper.rest(SEC) == (80 * MS, 0), "twice 2 ms are 5 % of 80 ms"
    assert keeper.rest(2 * SEC) == (80 * MS, 11), "of 50 ms, 4 pay the debt; a pair costs 4"
