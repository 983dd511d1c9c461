"""Ranges of a trace, each worked through by itself from its checkpoint: together they give the lives that one pass gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from gcspy_objects.analysis.kinds import GroupBy, totals
from gcspy_objects.analysis.range_gather import gather_ranges, write_range
from gcspy_objects.analysis.store import LifeStore
from gcspy_objects.analysis.survival import survival
from gcspy_objects.gctrace import reader
from gcspy_objects.heap import Keep, Lives, RebuiltHeap
from gcspy_objects.heap.index.index_file import read_index, write_index
from gcspy_objects.ranges.range_lives import range_lives
from gcspy_objects.ranges.trace_range import plan_ranges
from gcspy_objects.trace import open_trace

from benchmarks.targets.anttracks_synthetic import SMALL, Synthetic
from gcspy.fleet.engine import LocalEngine
from tests.objects.heap.test_frees import opened, program
from tests.objects.samples import path_of


@pytest.fixture(params=["generations", "rotated", "told", "real"])
def path(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trace: of AntTracks in one file or several, of our own with frees, of a real program."""
    kind = request.param
    if kind == "real":
        return path_of("threads")
    if kind == "told":
        monkeypatch.setattr(reader, "_BATCH_EVENTS", 1500)
        opened(program(12_000, 5, collections=True), tmp_path / "t.gctrace").close()
        return tmp_path / "t.gctrace"
    Synthetic(sizes=SMALL).write(tmp_path / "t", 24_000, rotated=kind == "rotated")
    return tmp_path / "t"


def column(lives: Sequence[Lives], name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    return np.concatenate([getattr(one, name) for one in lives])


def test_ranges_one_after_another_yield_what_one_pass_yields(path: Path, tmp_path: Path) -> None:
    with open_trace(path) as trace, RebuiltHeap(trace, keep=Keep(events=500, near=500)) as heap:
        serial = list(heap.lives())
        write_index(heap.to_index(), tmp_path)
        # Another process knows the index and nothing else; the last range is the first that it is asked.
        index = read_index(tmp_path)
        assert index is not None
        with open_trace(path) as again:
            assert again.threads.extend(index.threads)
            plan = plan_ranges(index, 5)
            assert len(plan) > 2
            assert [one.last for one in plan[:-1]] == [one.first for one in plan[1:]]
            assert plan[0].first == 0
            assert plan[-1].last == heap.events
            assert [one.final for one in plan] == [False] * (len(plan) - 1) + [True]
            parts = [list(range_lives(again, index, one)) for one in reversed(plan)]
            found = [one for part in reversed(parts) for one in part]
        index.checkpoints.close()
    for field in fields(Lives):
        np.testing.assert_array_equal(
            column(found, field.name), column(serial, field.name), err_msg=field.name
        )


def test_an_object_is_born_after_the_collections_that_ended_before_where_deaths_are_told(
    tmp_path: Path,
) -> None:
    with opened(program(6_000, 7, collections=True), tmp_path / "t.gctrace") as trace:
        heap = RebuiltHeap(trace)
        lives = list(heap.lives())
        ends = [one.end_event for one in heap.collections]
        assert len(ends) > 50
        np.testing.assert_array_equal(
            column(lives, "born_after"), np.searchsorted(ends, column(lives, "birth"))
        )


def test_questions_have_the_same_answers_however_lives_were_gathered(
    tmp_path: Path,
) -> None:
    Synthetic(sizes=SMALL).write(tmp_path / "t", 24_000)
    answers = []
    with open_trace(tmp_path / "t") as trace, RebuiltHeap(trace, keep=Keep(events=500)) as heap:
        for most in (1, 4):
            kept = tmp_path / f"kept-{most}"
            kept.mkdir()
            write_index(heap.to_index(), kept)
            # Lost and called again: the file of a range is written a second time.
            first = plan_ranges(heap.to_index(), most)[0]
            write_range(str(tmp_path / "t"), str(kept), str(kept), tuple(map(int, first)))
            gather_ranges(
                heap,
                path=tmp_path / "t",
                index=kept,
                kept=kept,
                call=lambda function, tasks: (
                    one for _, one in LocalEngine(1).call(function, tasks)
                ),
                most=most,
            ).close()
            with LifeStore.opened(kept) as store:
                answers.append(
                    (
                        store.lives,
                        totals(store, GroupBy.SITE).rows,
                        survival(store).rows,
                    )
                )
    assert answers[0] == answers[1]
    assert answers[0][0] > 10_000
