"""Takes a picture of each lesson's key moment, and of the paper's figure 7: ``python screenshots/lessons.py [LESSON…]``.

``python screenshots/lessons.py --steps FOLDER [LESSON…]`` takes one of each step, at 1280×720, with the question before and after its answer.

A lesson is led to a step as a student would: answers are given, what a step sets is set. It takes a minute or so a lesson.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import event_loop

from gcspy.hosts.sidecar import start_sidecar
from gcspy.hosts.simulation_host import SimulatingOptions, fields_of_lesson
from gcspy_client.app import take_screenshot
from gcspy_client.lessons import find_lesson
from gcspy_client.lessons.lesson import BEGINS
from gcspy_client.view.window import MainWindow

HERE = Path(__file__).parent
PATIENCE_SECS = 240.0
SIZE = (1600, 1000)

MOMENTS = {
    # lesson: step of its key moment, from 1
    "tiles": 6,
    "marksweep": 6,
    "freelists": 2,
    "diagonals": 5,
    "copying": 5,
    "generations": 5,
    "barrier": 4,
    "train": 2,
    "fragmentation": 3,
    "counting": 3,
    "tricolour": 2,
    "markcompact": 3,
    "immix": 4,
    "stacks": 3,
    "regions": 3,
    "relocation": 2,
    "ambiguous": 2,
    "costs": 3,
    "popular": 2,
    "cpython": 4,
    "increments": 3,
    "finalisers": 3,
    "paths": 5,
}

wait_until = partial(event_loop.wait_until, secs=PATIENCE_SECS)


def lead(window: MainWindow, name: str, step: int) -> None:
    """Take the lesson up to a step."""
    lesson = find_lesson(name)
    window.lessons.open(lesson)
    leading = window.lessons.progress
    for at in range(step):
        wait_until(lambda: bool(leading.arrived or leading.problem), f"{name}, step {at + 1}")
        if leading.problem:
            raise RuntimeError(leading.problem)
        question = lesson.steps[at].question
        if question is not None:
            leading.answer(question.answer)
        if at + 1 < step:
            leading.next()
    if window.docks.is_open("history"):
        last = leading.reached[leading.at]
        wait_until(lambda: is_read(window, last), f"{name}, history graph")
    if (
        not window.link.status.phase.connected
    ):  # the machine is too busy: the picture would show that
        raise RuntimeError(f"{name}: the connection was lost: {window.link.status}")


def take_steps(name: str, folder: Path, theme: str) -> None:
    """Take a picture of each step of a lesson as a student at 1280×720 sees it: before the answer, and after it."""

    def lead_and_grab(window: MainWindow) -> None:
        lesson = find_lesson(name)
        window.lessons.open(lesson)
        leading = window.lessons.progress
        for at, step in enumerate(lesson.steps):
            wait_until(lambda: bool(leading.arrived or leading.problem), f"{name}, step {at + 1}")
            if leading.problem:
                raise RuntimeError(leading.problem)
            event_loop.let_live(0.6)
            picture = f"{name}-{at + 1}"
            if step.question is not None:
                window.grab().save(str(folder / f"{picture}-asked.png"))
                leading.answer(step.question.answer)
                event_loop.let_live(0.4)
            window.grab().save(str(folder / f"{picture}.png"))
            if at + 1 < len(lesson.steps):
                leading.next()

    with_lesson(name, folder / f"{name}.png", (1280, 720), theme, lead_and_grab)
    (folder / f"{name}.png").unlink()


def is_read(window: MainWindow, last: int) -> bool:
    """Whether the history graph shows all up to this event."""
    drawn = window.history.panel.first.canvas.drawn
    return (
        drawn is not None
        and len(drawn.events) > 0
        and not drawn.preview.any()
        and window.session.number >= last
    )


def with_lesson(
    name: str,
    path: Path,
    size: tuple[int, int],
    theme: str,
    arrange: Callable[[MainWindow], None],
) -> None:
    """Run a lesson, arrange its window, and take a picture."""
    with tempfile.TemporaryDirectory(prefix="gcspy-") as folder:
        fields = {**fields_of_lesson(find_lesson(name)), "pace_millis": 10}
        options = SimulatingOptions(
            simulation=fields, listen=(f"unix:{folder}/session.sock",), pause_at=BEGINS
        )
        with start_sidecar(options) as sidecar:
            take_screenshot(
                sidecar.addresses[0],
                path,
                size=size,
                theme=theme,
                settle_secs=0.5,
                arrange=arrange,
                control=True,
            )


def take(name: str, step: int, theme: str) -> None:
    """Take one picture."""
    path = HERE / f"lesson-{name}.png"
    with_lesson(name, path, SIZE, theme, lambda window: lead(window, name, step))


def main(names: list[str]) -> int:
    """Take the pictures of these lessons, each in a process of its own."""
    if names[:1] == ["--one"]:
        take(names[1], MOMENTS[names[1]], "dark")
        return 0
    if names[:1] == ["--one-by-step"]:
        take_steps(names[2], Path(names[1]), "dark")
        return 0
    if names[:1] == ["--steps"]:
        folder = Path(names[1])
        folder.mkdir(parents=True, exist_ok=True)
        for name in names[2:] or MOMENTS:
            subprocess.run(
                [sys.executable, __file__, "--one-by-step", str(folder), name], check=True
            )
        return 0
    for name in names or MOMENTS:
        subprocess.run([sys.executable, __file__, "--one", name], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
