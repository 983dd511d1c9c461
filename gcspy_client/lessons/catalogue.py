"""The lessons that come with GCspy, and finding one by its name or its file.

The number in front of a file's name is their order, and no part of the lesson's name.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from gcspy_protocol.errors import CommandError

from gcspy_client.lessons.lesson import Lesson
from gcspy_client.lessons.text import parse_lesson, read_lesson

__all__ = ["find_lesson", "lesson_names", "shipped_lessons"]


def shipped_lessons() -> tuple[Lesson, ...]:
    """All lessons that come with GCspy, in their order."""
    folder = files("gcspy_client.lessons").joinpath("texts")
    found = []
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".md"):
            name = file.name.removesuffix(".md").partition("-")[2]
            found.append(parse_lesson(file.read_text(encoding="utf-8"), name=name, path=file.name))
    return tuple(found)


def lesson_names() -> tuple[str, ...]:
    """Names of the lessons that come with GCspy; reads none."""
    folder = files("gcspy_client.lessons").joinpath("texts")
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".md"))
    return tuple(name.removesuffix(".md").partition("-")[2] for name in names)


def find_lesson(name: str) -> Lesson:
    """Find a lesson: one that comes with GCspy, or the file of that path.

    Raises:
        CommandError: There is none, or it is not a lesson.
    """
    if name in lesson_names():
        return next(lesson for lesson in shipped_lessons() if lesson.name == name)
    if name.endswith(".md"):
        return read_lesson(Path(name))
    raise CommandError(
        f"there is no lesson {name!r}: `gcspy demo --list` lists them; to use your own lesson, give its file, which ends in .md"
    )
