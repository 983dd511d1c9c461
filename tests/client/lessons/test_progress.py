"""Leading through a lesson in a window: live, and in the recording that was saved from it, which goes to the same events with the same contents."""

from __future__ import annotations

import csv
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from gcspy_protocol.errors import CommandError
from gcspy_protocol.model import ControlState
from gcspy_replay.file import Recording
from gcspy_replay.player import PlaybackStart, serve_recording
from pytestqt.qtbot import QtBot

from gcspy.hosts.simulation_host import SimulatingOptions, fields_of_lesson, simulate
from gcspy.recorder.lesson_recorder import record_lesson
from gcspy_client.lessons import Lesson
from gcspy_client.lessons.lesson import BEGINS
from gcspy_client.lessons.report import digest_of, read_report
from gcspy_client.lessons.text import parse_lesson
from gcspy_client.model.shell.link_status import LinkPhase
from gcspy_client.view.lessons import part
from gcspy_client.view.window import MainWindow
from tests.waiting import PATIENCE_MILLIS

SOURCE = """\
+++
title = "T"
goal = "G"
[simulation]
collector = "marksweep"
program = "binarytrees"
heap = "16KiB"
tile = "256"
pace = 0
steps = 60
+++
## One
```step
view = { space = "Heap", stream = "Used space" }
```
## Two
```step
until = "event == 'Full collection starts'"
view = { space = "Free lists", stream = "Length" }
```
```question
ask = "?"
choices = ["a", "b"]
answer = 2
because = "so it is"
```
## Three
```step
until = "event == 'Full collection ends'"
set = { "Fit" = "best" }
view = { space = "Heap", stream = "Live", panels = ["settings"] }
```
## Four
```step
until = "event == 'no such event'"
```
"""

Contents = dict[str, bytes]


def contents(window: MainWindow) -> Contents:
    found = {}
    for space in window.session.interpreter.spaces.values():
        for stream in space.streams.values():
            found[f"{space.space.name}: {stream.schema.name}"] = stream.values.tobytes()
    return found


def stands_at(window: MainWindow, step: int) -> bool:
    progress = window.lessons.progress
    return (
        progress.at == step and progress.arrived and window.session.number == progress.reached[step]
    )


def lead(window: MainWindow, lesson: Lesson, qtbot: QtBot) -> tuple[dict[int, int], list[Contents]]:
    """Take the first three steps, as a student does."""
    progress, panel = window.lessons.progress, window.lessons.panel
    seen: list[Contents] = []
    window.lessons.open(lesson)
    for step in range(3):
        qtbot.waitUntil(partial(stands_at, window, step), timeout=PATIENCE_MILLIS)
        qtbot.waitUntil(
            lambda: window.session.live.state is ControlState.PAUSED, timeout=PATIENCE_MILLIS
        )
        assert not progress.problem
        seen.append(contents(window))
        if progress.asks:
            before = dict(progress.reached)
            progress.next()
            assert (progress.at, progress.reached) == (step, before), (
                "nothing goes on before the answer"
            )
            assert not panel.next.isEnabled()
            next(one for one in panel.choices if one.words == "a").click()
            assert progress.tries == {step: (0,)}
            assert panel.told.text() == "Not correct. so it is", "of two choices none is left"
            assert str(progress.score) == "0 of 1 right at the first try"
        if step < 2:
            progress.next()
    return dict(progress.reached), seen


@pytest.fixture
def live(socket_directory: Path) -> Iterator[tuple[Lesson, str]]:
    stop, ready = threading.Event(), threading.Event()
    lesson = parse_lesson(SOURCE, name="test", path="test.md")
    address = f"unix:{socket_directory}/live.sock"
    options = SimulatingOptions(
        simulation=fields_of_lesson(lesson), listen=(address,), pause_at=BEGINS
    )
    thread = threading.Thread(
        target=simulate, args=(options,), kwargs={"stop": stop, "on_ready": lambda *_: ready.set()}
    )
    thread.start()
    assert ready.wait(30)
    yield lesson, address
    stop.set()
    thread.join(30)
    assert not thread.is_alive()


def test_a_recorded_lesson_is_the_live_one_again(
    live: tuple[Lesson, str],
    make_window: Callable[..., MainWindow],
    qtbot: QtBot,
    tmp_path: Path,
    socket_directory: Path,
) -> None:
    lesson, address = live
    window = make_window(address)
    reached, seen = lead(window, lesson, qtbot)
    assert len(set(reached.values())) == 3
    fit = next(one for one in window.session.live.settings.settings if one.name == "Fit")
    assert fit.choices[fit.value] == "best"
    qtbot.waitUntil(lambda: bool(window.setting_part.panel.rows), timeout=PATIENCE_MILLIS)
    assert fit.id in window.setting_part.panel.rows

    progress = window.lessons.progress
    progress.back()
    qtbot.waitUntil(lambda: window.session.number == reached[1], timeout=PATIENCE_MILLIS)
    assert contents(window) == seen[1]
    progress.next()
    qtbot.waitUntil(lambda: window.session.number == reached[2], timeout=PATIENCE_MILLIS)

    progress.next()
    qtbot.waitUntil(lambda: bool(progress.problem), timeout=PATIENCE_MILLIS)
    assert "ended before" in progress.problem

    path = tmp_path / "lesson.gcspy"
    window.shift.save(path)
    played = f"unix:{socket_directory}/played.sock"
    with serve_recording(Recording.open(path), played, beginning=PlaybackStart(running=False)):
        again = make_window(played)
        assert lead(again, lesson, qtbot) == (reached, seen)


def test_what_comes_later_is_behind_a_curtain_until_the_question_is_answered(
    live: tuple[Lesson, str], make_window: Callable[..., MainWindow], qtbot: QtBot
) -> None:
    lesson, address = live
    window = make_window(address)
    progress = window.lessons.progress
    window.lessons.open(lesson)
    qtbot.waitUntil(lambda: progress.arrived, timeout=PATIENCE_MILLIS)
    progress.next()
    qtbot.waitUntil(
        lambda: progress.asks and window.session.live.state is ControlState.PAUSED,
        timeout=PATIENCE_MILLIS,
    )
    curtains = window.lessons.curtains
    assert not any(one.isVisibleTo(window) for one in curtains)
    qtbot.waitUntil(window.session_part.footer.step.isEnabled, timeout=PATIENCE_MILLIS)
    window.session_part.step()  # a student who does not try
    qtbot.waitUntil(lambda: window.session.number > progress.reached[1], timeout=PATIENCE_MILLIS)
    qtbot.waitUntil(window.lessons.curtains[0].isVisible, timeout=PATIENCE_MILLIS)
    assert window.lessons.curtains[0].size() == window.sides.size()
    hidden = {one.parent() for one in curtains if not one.isHidden()}
    assert {window.time_panel, window.ranges.panel} <= hidden, "statistics tell what comes later"
    progress.answer(1)
    assert not any(one.isVisibleTo(window) for one in curtains)


EXERCISE = (
    SOURCE.split("## Two")[0]
    + """\
## Try
```exercise
task = "Make the fit best"
check = "event == 'Full collection ends'"
hint = "Look at the settings."
solution = { "Fit" = "best" }
```
"""
)


def test_an_exercise_is_solved_by_what_the_program_does_and_reported(
    socket_directory: Path,
    make_window: Callable[..., MainWindow],
    qtbot: QtBot,
    tmp_path: Path,
) -> None:
    stop, ready = threading.Event(), threading.Event()
    lesson = parse_lesson(EXERCISE, name="test", path="test.md")
    address = f"unix:{socket_directory}/live.sock"
    options = SimulatingOptions(
        simulation=fields_of_lesson(lesson), listen=(address,), pause_at=BEGINS
    )
    thread = threading.Thread(
        target=simulate, args=(options,), kwargs={"stop": stop, "on_ready": lambda *_: ready.set()}
    )
    thread.start()
    assert ready.wait(30)
    try:
        window = make_window(address)
        progress, panel = window.lessons.progress, window.lessons.panel
        window.lessons.open(lesson)
        qtbot.waitUntil(lambda: stands_at(window, 0), timeout=PATIENCE_MILLIS)
        progress.next()
        qtbot.waitUntil(lambda: stands_at(window, 1), timeout=PATIENCE_MILLIS)
        assert panel.asked.text() == "Exercise: Make the fit best"
        assert panel.told.text() == "Hint: Look at the settings."
        qtbot.waitUntil(
            lambda: window.session.live.state is ControlState.PAUSED, timeout=PATIENCE_MILLIS
        )
        window.session_part.toggle_pause()
        qtbot.waitUntil(lambda: progress.solved == {1}, timeout=PATIENCE_MILLIS)
        assert panel.told.text() == "Solved."
        qtbot.waitUntil(
            lambda: window.session.live.state is ControlState.PAUSED, timeout=PATIENCE_MILLIS
        )
        path = tmp_path / "report.json"
        window.lessons.save_report(path)
    finally:
        stop.set()
        thread.join(30)
    report = read_report(path)
    assert (report.lesson, report.digest) == ("test", digest_of(lesson))
    (result,) = report.questions
    assert (result.step, result.right, result.tries) == (2, 1, ())
    recorded = tmp_path / "lesson.gcspy"
    assert len(record_lesson(lesson, recorded)) == 2
    unsolvable = parse_lesson(
        EXERCISE.replace("'Full collection ends'", "'never'"), name="test", path="test.md"
    )
    with pytest.raises(CommandError, match="step 2, 'Try': the program ended before the exercise"):
        record_lesson(unsolvable, tmp_path / "unsolvable.gcspy")


def test_an_event_that_could_never_come_is_told_with_the_words_to_use(tmp_path: Path) -> None:
    source = SOURCE.split("## Two")[0].replace("marksweep", "generational")
    source += "## Two\n```step\nuntil = 'sum(\"Used space\") > 1'\n```\n"
    source = source.replace('view = { space = "Heap", stream = "Used space" }\n', "")
    lesson = parse_lesson(source, name="unclear", path="unclear.md")
    with pytest.raises(
        CommandError, match=r"step 2, 'Two': until: several streams .* write "
    ) as told:
        record_lesson(lesson, tmp_path / "lesson.gcspy")
    assert '"Used space"' in str(told.value)


def connected(window: MainWindow) -> bool:
    return window.link.status.phase is LinkPhase.LIVE


def test_a_class_is_asked_answers_and_is_shown_the_answer(
    live: tuple[Lesson, str],
    make_window: Callable[..., MainWindow],
    qtbot: QtBot,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lesson, address = live
    monkeypatch.setattr(part, "lesson_names", lambda: ("test",))
    monkeypatch.setattr(part, "find_lesson", lambda _name: lesson)
    student = make_window(address, control=False)
    qtbot.waitUntil(lambda: connected(student), timeout=PATIENCE_MILLIS)
    student.classroom.follow(True)
    teacher = make_window(address)
    leading, led = teacher.lessons.progress, student.lessons.progress
    qtbot.waitUntil(lambda: teacher.classroom.teaches, timeout=PATIENCE_MILLIS)
    qtbot.waitUntil(lambda: stands_at(teacher, 0), timeout=PATIENCE_MILLIS)
    assert student.session.live.state is ControlState.PAUSED, "it waits for whoever leads"
    qtbot.waitUntil(lambda: led.led is not None, timeout=PATIENCE_MILLIS)
    leading.next()
    qtbot.waitUntil(lambda: led.at == 1 and led.asks, timeout=PATIENCE_MILLIS)
    assert not teacher.lessons.panel.choices[0].isEnabled(), "the class answers"
    assert leading.why_not_next == "reveal the answer first"
    assert led.why_not_next == "the leader of the class goes to the next step"
    led.answer(0)
    led.answer(1)
    assert led.tries[1] == (0,), "one answer in each try"
    panel = student.lessons.panel
    assert panel.told.text() == "Your answer is with the teacher."
    told = teacher.lessons.panel.tally
    qtbot.waitUntil(
        lambda: told.text().startswith("1 of 1 answered, 100 % chose"), timeout=PATIENCE_MILLIS
    )
    leading.ask_again()
    qtbot.waitUntil(lambda: led.may_try, timeout=PATIENCE_MILLIS)
    assert panel.told.text() == "Your answer is with the teacher. Answer once more."
    assert told.text().startswith("0 of 1 answered")
    led.answer(1)
    late = make_window(address, control=False)
    qtbot.waitUntil(lambda: connected(late), timeout=PATIENCE_MILLIS)
    late.classroom.follow(True)
    qtbot.waitUntil(lambda: late.lessons.progress.at == 1, timeout=PATIENCE_MILLIS)
    qtbot.waitUntil(lambda: told.text().startswith("1 of 2 answered"), timeout=PATIENCE_MILLIS)
    leading.reveal()
    qtbot.waitUntil(lambda: led.is_answered(1), timeout=PATIENCE_MILLIS)
    assert panel.told.text() == "Correct. so it is"
    assert {one.beside for one in teacher.lessons.panel.choices} == {"0 · 0 %", "1 · 100 %"}
    late.classroom.follow(False)
    assert late.lessons.progress.led is None, "who roams is led by nobody"
    leading.next()
    qtbot.waitUntil(lambda: led.at == 2 and led.arrived, timeout=PATIENCE_MILLIS)
    assert late.lessons.progress.at == 1
    late.classroom.follow(True)
    qtbot.waitUntil(lambda: late.lessons.progress.at == 2, timeout=PATIENCE_MILLIS)
    path = tmp_path / "answers.csv"
    teacher.lessons.save_answers(path)
    (row,) = csv.DictReader(path.read_text().splitlines())
    assert (row["step"], row["answers"], row["right at try"]) == ("2", "a; b", "2")
    teacher.close()
    qtbot.waitUntil(
        lambda: student.session.live.clients.controller is None, timeout=PATIENCE_MILLIS
    )
    assert student.session.live.state is ControlState.PAUSED, "no teacher: the lesson waits"


def test_a_window_whose_connection_broke_asks_for_the_event_of_the_step_again(
    live: tuple[Lesson, str], make_window: Callable[..., MainWindow], qtbot: QtBot
) -> None:
    lesson, address = live
    window = make_window(address)
    progress = window.lessons.progress
    window.lessons.open(lesson)
    qtbot.waitUntil(partial(stands_at, window, 0), timeout=PATIENCE_MILLIS)
    before = window.session.live.welcome
    assert before is not None
    socket = window.link._socket
    assert socket is not None
    socket.abort()
    progress.waiting = True  # Next was chosen before the window learned of it
    progress.at = 1

    def welcomed_again() -> bool:
        now = window.session.live.welcome
        return now is not None and now.client_id != before.client_id

    qtbot.waitUntil(welcomed_again, timeout=PATIENCE_MILLIS)
    qtbot.waitUntil(partial(stands_at, window, 1), timeout=PATIENCE_MILLIS)


@pytest.mark.soak
@pytest.mark.parametrize("when", ["before the lesson", "before Next", "after Next"])
def test_a_window_that_was_silent_for_seven_seconds_goes_on(
    live: tuple[Lesson, str], make_window: Callable[..., MainWindow], qtbot: QtBot, when: str
) -> None:
    lesson, address = live
    window = make_window(address)

    def be_silent(at: str) -> None:
        if at == when:
            time.sleep(7)

    qtbot.waitUntil(lambda: window.session.live.welcome is not None, timeout=PATIENCE_MILLIS)
    be_silent("before the lesson")
    window.lessons.open(lesson)
    qtbot.waitUntil(partial(stands_at, window, 0), timeout=PATIENCE_MILLIS)
    be_silent("before Next")
    window.lessons.progress.next()
    be_silent("after Next")
    qtbot.waitUntil(partial(stands_at, window, 1), timeout=PATIENCE_MILLIS)
