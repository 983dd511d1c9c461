"""Ages counted in C, in the same loop in Python, and by the engine: the same curves, and nothing outside of an array."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gcspy_objects.analysis.age_bins import COLUMNS, COUNT_AGES, SLOTS, age_bins
from gcspy_objects.analysis.kinds import EVERYTHING, ObjectFilter
from gcspy_objects.analysis.store import CollectionTable, LifeStore, Names
from gcspy_objects.analysis.survival import AgeClock, survival
from gcspy_objects.heap.kernels import LIBRARY

from gcspy_compiled import machine_code
from tests.c_loops import check_accesses, need_c, without_c
from tests.objects.analysis.made_up import SITES, TYPES

LAST = 12


@contextmanager
def store_of(lives: int, *, wrong: int | None = None) -> Iterator[LifeStore]:
    """A store of lives of all kinds, with ages from 0 to 2^44 bytes; `wrong`: the collection that one of them refers to."""
    dice = np.random.default_rng(lives)
    at = np.sort((2.0 ** dice.uniform(0, 44, LAST)).astype(np.int64))
    born = dice.integers(-1, LAST, lives)
    birth = np.where(born > 0, at[born - 1], 0) + dice.integers(0, 50, lives)
    born_old = dice.random(lives) < 0.2
    later = np.minimum(born + dice.integers(1, 4, lives), LAST)
    promoted = np.where(~born_old & (dice.random(lives) < 0.3), np.maximum(later, 1), 0)
    died = np.where(
        dice.random(lives) < 0.6, np.minimum(np.maximum(later, 1) + dice.integers(0, 5, lives), LAST), 0
    )  # fmt: skip
    freed = (dice.random(lives) < 0.2) & (born >= 0)
    died[freed] = 0
    if wrong is not None:
        died[0], born[0], freed[0] = wrong, 0, False
    columns: dict[str, Any] = {
        "type": dice.integers(1, len(TYPES), lives).astype(np.int32),
        "site": dice.integers(1, len(SITES), lives).astype(np.int32),
        "thread": np.zeros(lives, np.int32),
        "size": dice.integers(16, 5000, lives),
        "birth_bytes": birth,
        "born_after": born.astype(np.int32),
        "born_old": born_old,
        "promoted_in": promoted.astype(np.int32),
        "died_in": died.astype(np.int32),
        "freed_bytes": np.where(freed, birth + dice.integers(0, 9000, lives), -1),
        "freed_after": np.where(freed, np.maximum(born, promoted), 0).astype(np.int32),
        "moves": np.zeros(lives, np.int32),
        "age": np.zeros(lives, np.int32),
        "filler": dice.random(lives) < 0.1,
    }
    with LifeStore() as store:
        store.add({name: one[: lives // 2] for name, one in columns.items()})
        store.flush()
        store.add({name: one[lives // 2 :] for name, one in columns.items()})
        collections = CollectionTable(
            dice.random(LAST) < 0.3, ["minor"] * LAST, [""] * LAST, at, int(at[-1]) + 1000
        )
        store.finish(collections, Names(TYPES, SITES, SITES))
        yield store


@pytest.fixture(params=["written", "c"], name="loop")
def fixture_loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "c":
        need_c(LIBRARY, monkeypatch)
        monkeypatch.setattr(COUNT_AGES, "_compiled", None)
    else:
        monkeypatch.setattr(COUNT_AGES, "_compiled", COUNT_AGES.written)
    yield request.param
    machine_code.forget()


@pytest.mark.parametrize("clock", AgeClock)
@pytest.mark.parametrize(
    "only", [EVERYTHING, ObjectFilter(type=TYPES[1]), ObjectFilter(site="List*")]
)
def test_a_loop_over_lives_gives_the_curves_that_the_engine_gives(
    loop: str, clock: AgeClock, only: ObjectFilter, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store_of(700) as store:
        counted = age_bins(store, collections=clock is AgeClock.COLLECTIONS)
        assert counted is not None, loop
        assert set(zip(counted["generation"], counted["how"], strict=True)) == set(SLOTS)
        found = survival(store, clock, only)
        without_c(monkeypatch)
        machine_code.forget()
        assert age_bins(store, collections=False) is None
        assert survival(store, clock, only).rows == found.rows


@pytest.mark.parametrize("wrong", [LAST + 1, 1 << 30])
def test_a_life_that_refers_to_no_collection_is_left_to_the_engine(loop: str, wrong: int) -> None:
    with store_of(40, wrong=wrong) as store:
        assert age_bins(store, collections=False) is None, loop
        assert survival(store).rows


def test_no_number_of_a_life_leads_outside_of_the_sums(loop: str) -> None:
    machine: Callable[..., int] | None = COUNT_AGES.machine
    assert machine is not None
    dice = np.random.default_rng(5)
    extremes = {size: [-(1 << size - 1), -1, 0, 1, 3, (1 << size - 1) - 1] for size in (32, 64)}
    types = dict(zip(COLUMNS, (64, 64, 32, 8, 32, 32, 64, 32), strict=True))
    with np.errstate(over="ignore"):
        for clock in (0, 1):
            for _ in range(60 if loop == "c" else 20):
                lives = [
                    dice.choice(extremes[size], 3).astype(f"i{size // 8}")
                    if size > 8
                    else dice.integers(0, 2, 3, np.uint8)
                    for size in types.values()
                ]
                sums = np.zeros((5, 6 * 9), np.int64)
                done = machine(
                    *lives, np.arange(4), np.zeros(4, np.int64), 1 << 40, clock, *sums
                )  # fmt: skip
                assert 0 <= done <= 3


@pytest.mark.soak
def test_no_access_in_c_is_outside_of_an_array(tmp_path: Path) -> None:
    check_accesses(LIBRARY, tmp_path, Path(__file__))
