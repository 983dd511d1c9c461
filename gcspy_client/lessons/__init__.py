"""Lessons: a text in steps, with its simulation, the events at which it pauses, and questions; `docs/lessons.md` explains how to write one.

`text` reads a file and says in which line it is wrong, `shipped` are those that come with GCspy. Knows files and conditions; does not know windows,
drivers or collectors.
"""

from __future__ import annotations

from gcspy_client.lessons.catalogue import find_lesson, lesson_names, shipped_lessons
from gcspy_client.lessons.lesson import Lesson, LessonQuestion, LessonStep, View
from gcspy_client.lessons.text import read_lesson

__all__ = [
    "Lesson",
    "LessonQuestion",
    "LessonStep",
    "View",
    "find_lesson",
    "lesson_names",
    "read_lesson",
    "shipped_lessons",
]
