"""A lesson as the page shows it: texts, questions with the order of their choices, and the place of each step's event.

The order of choices is that of the window, so that a class sees the same one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gcspy_client.lessons.lesson import Lesson, LessonStep, View
from gcspy_client.page.prose import html_of_markdown, words_of_markdown

__all__ = ["texts_of_lesson"]


def texts_of_lesson(lesson: Lesson, events: Sequence[int] = ()) -> dict[str, Any]:
    """A lesson as texts, numbers, lists and maps.

    Args:
        lesson: The lesson.
        events: For each step the place of its event among those of the page; empty: a leader says where it is.
    """
    return {
        "name": lesson.name,
        "title": lesson.title,
        "steps": [
            _step(lesson, place, step, events[place] if events else None)
            for place, step in enumerate(lesson.steps)
        ],
    }


def _step(lesson: Lesson, place: int, step: LessonStep, event: int | None) -> dict[str, Any]:
    goal = f"*{lesson.goal}*\n\n" if place == 0 else ""
    return {
        "title": step.title,
        "html": html_of_markdown(f"### {step.title}\n\n{goal}{step.text}"),
        "event": event,
        "view": None if step.view is None else _view(step.view),
        "question": _question(lesson, place, step),
        "exercise": None
        if step.exercise is None
        else {
            "task": words_of_markdown(step.exercise.task),
            "hint": words_of_markdown(step.exercise.hint),
        },
    }


def _question(lesson: Lesson, place: int, step: LessonStep) -> dict[str, Any] | None:
    question = step.question
    if question is None:
        return None
    return {
        "ask": words_of_markdown(question.ask),
        "choices": [words_of_markdown(one) for one in question.choices],
        "answer": question.answer,
        "because": words_of_markdown(question.because),
        "feedback": [
            words_of_markdown(question.feedback_on(choice))
            for choice in range(len(question.choices))
        ],
        "order": list(lesson.order(place)),
        "tries": question.tries,
    }


def _view(view: View) -> dict[str, Any]:
    return {"space": view.space, "stream": view.stream, "tile": view.tile}
