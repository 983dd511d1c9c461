"""Lessons in other languages: the texts of a lesson that can be translated, and a lesson with its texts translated.

The catalog of a lesson stands beside it: `counting.md` and `counting.de.po`. A text that it does not have stays English. What a lesson does, and the
order of choices, are those of the original, so that a class of several languages sees and answers the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path

from gcspy_client.lessons.lesson import Lesson, LessonExercise, LessonQuestion, LessonStep
from gcspy_client.translation import Catalog, current_language, read_catalog

__all__ = ["lesson_catalog_path", "lesson_messages", "translated_lesson"]

_STARTS = ("* ", "- ", "> ", "| ", "#", "    ")
"""Beginnings of a line that is not the continuation of the one before it."""


def lesson_messages(lesson: Lesson) -> dict[str, str]:
    """The texts of a lesson: what each is, by the text."""
    found: dict[str, str] = {}

    def note(text: str, what: str) -> None:
        if text:
            found.setdefault(text, what)

    note(lesson.title, "title of the lesson")
    note(lesson.goal, "goal of the lesson")
    for place, step in enumerate(lesson.steps):
        where = f"step {place + 1}"
        note(step.title, f"{where}: title")
        for paragraph in _paragraphs(step.text):
            note(paragraph, f"{where}: text")
        if step.question is not None:
            note(step.question.ask, f"{where}: question")
            for choice, words in enumerate(step.question.choices):
                right = ", the right one" if choice == step.question.answer else ""
                note(words, f"{where}: choice {choice + 1}{right}")
            note(step.question.because, f"{where}: explanation of the right choice")
            for choice, words in enumerate(step.question.feedback):
                note(words, f"{where}: feedback on choice {choice + 1}")
        if step.exercise is not None:
            note(step.exercise.task, f"{where}: exercise")
            note(step.exercise.hint, f"{where}: hint")
    return found


def _paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of Markdown, each on as few lines as it can have, so that another line break is not another text."""
    fenced: list[str] = []
    for block in text.split("\n\n"):
        if fenced or block.startswith("```"):
            fenced.append(block)
            if "\n\n".join(fenced).count("```") % 2 == 0:
                yield "\n\n".join(fenced)
                fenced = []
            continue
        lines: list[str] = []
        for line in block.splitlines():
            if lines and not line.startswith(_STARTS):
                lines[-1] += " " + line.strip()
            else:
                lines.append(line.rstrip())
        if lines:
            yield "\n".join(lines)
    if fenced:
        yield "\n\n".join(fenced)


def lesson_catalog_path(lesson: Lesson, language: str) -> Path:
    """The file with the translations of a lesson into a language, whether it exists or not."""
    path = Path(lesson.path)
    if not path.is_absolute() and path.name == lesson.path:  # one that comes with GCspy
        shipped = Path(str(files("gcspy_client.lessons"))) / "texts" / lesson.path
        path = shipped if shipped.exists() and not path.exists() else path
    return path.with_name(f"{path.stem}.{language}.po")


@cache
def _catalog(path: Path, language: str) -> Catalog:
    return read_catalog(path, language)


def translated_lesson(lesson: Lesson, language: str | None = None) -> Lesson:
    """A lesson in a language.

    Args:
        lesson: The lesson, in any language.
        language: The language; None: the reader's.

    Returns:
        The lesson with each text that its catalog has; itself if there is no catalog.

    Raises:
        CommandError: The catalog is damaged.
    """
    original = lesson.original or lesson
    wanted = current_language() if language is None else language
    if not original.path:
        return original
    for name in dict.fromkeys((wanted, wanted.partition("_")[0])):
        path = lesson_catalog_path(original, name)
        if path.exists():
            return _translated(original, _catalog(path, name).text, name)
    return original


def _translated(lesson: Lesson, text: Callable[[str], str], language: str) -> Lesson:
    return replace(
        lesson,
        title=text(lesson.title),
        goal=text(lesson.goal),
        steps=tuple(_step(step, text) for step in lesson.steps),
        language=language,
        original=lesson,
    )


def _step(step: LessonStep, text: Callable[[str], str]) -> LessonStep:
    question, exercise = step.question, step.exercise
    return replace(
        step,
        title=text(step.title),
        text="\n\n".join(map(text, _paragraphs(step.text))),
        question=None if question is None else _question(question, text),
        exercise=None if exercise is None else _exercise(exercise, text),
    )


def _question(question: LessonQuestion, text: Callable[[str], str]) -> LessonQuestion:
    return replace(
        question,
        ask=text(question.ask),
        choices=tuple(map(text, question.choices)),
        because=text(question.because),
        feedback=tuple(map(text, question.feedback)),
    )


def _exercise(exercise: LessonExercise, text: Callable[[str], str]) -> LessonExercise:
    return replace(exercise, task=text(exercise.task), hint=text(exercise.hint))
