"""What users do, with real processes and a real window, by keyboard alone and by mouse alone.

The tasks, and what is true of them, are those of `benchmarks/window/tasks.py`, which prints their actions.
"""

from __future__ import annotations

from itertools import cycle, product

import pytest

from benchmarks.window.tasks import TASKS, WALK, Task, Way, scene
from tests.matrix import matrix

MOST_ACTIONS = 7
"""Of a task with the keyboard, without what is typed to find a process."""


@pytest.mark.parametrize(
    ("task", "way"),
    matrix(
        product(TASKS, Way), usual=zip(TASKS, cycle(Way), strict=False)
    ),  # in turns with the keyboard and the mouse
    ids=lambda one: one.value if isinstance(one, Way) else one.name.replace(" ", "-"),
)
def test_a_task_is_done_in_a_few_actions(task: Task, way: Way) -> None:
    with scene() as one:
        one.watch()
        actions, _seconds = task.run(one, way)
        typed = len(str(one.second.pid)) if "attach" in task.name and way is Way.KEYS else 0
    assert actions - typed <= MOST_ACTIONS


@pytest.mark.parametrize("way", matrix(Way, usual=[Way.KEYS]), ids=lambda way: way.value)
def test_one_walk_leads_from_the_start_page_to_a_saved_session(way: Way) -> None:
    with scene() as one:
        actions, _seconds = WALK.run(one, way)
    assert actions <= 14
