"""The panel of a lesson in a small window: the question, each choice and the buttons are in sight, whatever else is open."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from gcspy_replay.file import Recording
from gcspy_replay.player import PlaybackStart, serve_recording
from gcspy_replay.samples import lesson_recording
from PySide6.QtCore import QPoint, QRect
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from gcspy_client.lessons import find_lesson, shipped_lessons
from gcspy_client.lessons.lesson import LessonQuestion
from gcspy_client.view.window import MainWindow
from tests.waiting import PATIENCE_MILLIS

SMALL = (1280, 720)


def in_sight(widget: QWidget, window: QWidget) -> bool:
    """Whether nothing of a widget is cut off, by the window or by what it scrolls in."""
    place = QRect(widget.mapTo(window, QPoint(0, 0)), widget.size())
    return (
        widget.isVisibleTo(window)
        and window.rect().contains(place)
        and widget.visibleRegion().boundingRect() == widget.rect()
    )


def hidden_parts(window: MainWindow) -> list[str]:
    """What a student would have to look for."""
    panel = window.lessons.panel
    parts: dict[str, QWidget] = {"Back": panel.back, "Next": panel.next}
    if not panel.question.isHidden():
        parts["the question"] = panel.asked
        parts |= {button.words: button for button in panel.choices}
        assert all(one.height() >= one.heightForWidth(one.width()) for one in panel.choices)
        if panel.told.isVisibleTo(window):
            parts["the feedback"] = panel.told
    return [name for name, part in parts.items() if not in_sight(part, window)]


def settle() -> None:
    for _ in range(3):
        QApplication.processEvents()


@pytest.fixture
def window(
    make_window: Callable[..., MainWindow], qtbot: QtBot, socket_directory: Path
) -> Iterator[MainWindow]:
    """A window that stands at the first step of a recorded lesson, with the history open."""
    path = lesson_recording("tiles")
    assert path is not None
    played = f"unix:{socket_directory}/played.sock"
    with serve_recording(Recording.open(path), played, beginning=PlaybackStart(running=False)):
        made = make_window(played)
        qtbot.waitUntil(lambda: made.lessons.progress.arrived, timeout=PATIENCE_MILLIS)
        made.docks.show("history")
        yield made


def test_question_choices_and_buttons_are_in_sight_at_1280_by_720(window: MainWindow) -> None:
    progress, panel = window.lessons.progress, window.lessons.panel
    told = {"the feedback"}
    lost: list[str] = []
    for lesson in shipped_lessons():
        progress.lesson = lesson
        progress.reached, progress.tries = {}, {}
        for place, step in enumerate(lesson.steps):
            progress.at, progress.reached[place] = place, place + 1
            panel.refresh()
            settle()
            assert (window.width(), window.height()) == SMALL, "the window grew"
            where = f"{lesson.name} {place + 1}"
            lost += [f"{where}: {part}" for part in hidden_parts(window)]
            while progress.asks:
                tried = progress.tries.get(place, ())
                wrong = [
                    one
                    for one in progress.order
                    if step.question is not None
                    and one != step.question.answer
                    and one not in tried
                ]
                progress.tries[place] = (*tried, wrong[0])
                panel.refresh()
                settle()
                lost += [
                    f"{where}, tried: {part}" for part in hidden_parts(window) if part not in told
                ]
                assert panel.told.text().startswith("Not correct.")
    assert not lost, "\n".join(lost)


def test_a_choice_that_is_longer_than_the_panel_is_wide_is_drawn_on_several_lines(
    window: MainWindow,
) -> None:
    lesson = shipped_lessons()[0]
    question = LessonQuestion(ask="?", choices=("a word " * 25, "b", "c"), answer=1)
    progress, panel = window.lessons.progress, window.lessons.panel
    step = replace(lesson.steps[0], question=question)
    progress.lesson = replace(lesson, steps=(step, *lesson.steps[1:]))
    progress.at = 0
    panel.refresh()
    settle()
    long, short = (
        next(one for one in panel.choices if one.words == words) for words in question.choices[:2]
    )
    assert long.height() > 2 * short.height()
    assert long.height() >= long.heightForWidth(long.width())
    assert in_sight(panel.next, window)


def test_the_right_choice_is_told_only_when_no_try_is_left(window: MainWindow) -> None:
    progress, panel = window.lessons.progress, window.lessons.panel
    lesson = find_lesson("tiles")
    question = lesson.steps[4].question
    assert question is not None
    progress.lesson, progress.at = lesson, 4
    progress.reached[4] = 5
    spoken: list[str] = []
    panel.spoken.connect(spoken.append)
    progress.answer(0)
    assert progress.asks
    assert [one.mark for one in panel.choices if one.mark] == ["✗"]
    assert question.feedback[0] in spoken[-1]
    assert question.because not in spoken[-1]
    assert progress.why_not_next == "answer the question first"
    progress.answer(0)
    assert progress.tries[4] == (0,), "the same choice is no other try"
    progress.answer(1)
    assert progress.is_answered(4)
    assert sorted(one.mark for one in panel.choices if one.mark) == ["✓", "✗", "✗"]
    assert question.because in spoken[-1]
    assert str(progress.score) == "0 of 1 right at the first try"
