"""Lessons in other languages: whole where a catalog is, the same in what they do, and English word by word elsewhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polib
import pytest

from gcspy_client.lessons import Lesson, find_lesson, read_lesson, shipped_lessons
from gcspy_client.lessons.lesson_translation import (
    lesson_catalog_path,
    lesson_messages,
    translated_lesson,
)
from gcspy_client.lessons.lint import lint_translation
from gcspy_client.lessons.report import digest_of
from gcspy_client.page.document import page_of_session
from gcspy_client.translation import read_catalog

GERMAN = [one for one in shipped_lessons() if lesson_catalog_path(one, "de").exists()]


def test_three_lessons_are_german() -> None:
    assert len(GERMAN) >= 3


@pytest.mark.parametrize("lesson", GERMAN, ids=lambda lesson: lesson.name)
def test_a_translation_is_whole_and_does_what_the_lesson_does(lesson: Lesson) -> None:
    catalog = read_catalog(lesson_catalog_path(lesson, "de"), "de")
    assert catalog.problems(lesson_messages(lesson)) == []
    assert lint_translation(lesson, "de") == []
    there = translated_lesson(lesson, "de_AT")
    assert there.title != lesson.title
    assert digest_of(there) == digest_of(lesson)
    for place, (one, other) in enumerate(zip(lesson.steps, there.steps, strict=True)):
        assert there.order(place, "s") == lesson.order(place, "s")
        same = replace(
            other, title=one.title, text=one.text, question=one.question, exercise=one.exercise
        )
        assert same == one
        if one.question is not None and other.question is not None:
            assert other.question.answer == one.question.answer
    assert translated_lesson(there, "en") == lesson


def test_a_text_without_translation_stays_english(tmp_path: Path) -> None:
    path = tmp_path / "mine.md"
    path.write_text(
        '+++\ntitle = "T"\ngoal = "G"\n[simulation]\ncollector = "nogc"\n+++\n'
        "## One\n\nFirst\nparagraph.\n\n* a list\n* of two\n\n## Two\n\nOther.\n"
    )
    catalog = polib.POFile()
    catalog.append(polib.POEntry(msgid="First paragraph.", msgstr="Premier."))
    catalog.append(polib.POEntry(msgid="Two", msgstr="Deux"))
    catalog.save(str(tmp_path / "mine.fr.po"))
    there = translated_lesson(read_lesson(path), "fr")
    assert there.steps[0].text == "Premier.\n\n* a list\n* of two"
    assert [step.title for step in there.steps] == ["One", "Deux"]
    assert there.title == "T"


def test_a_live_page_has_the_words_of_each_language_and_a_fixed_one_its_own() -> None:
    page = page_of_session("t", [find_lesson("counting")], asks_token=False).decode()
    assert "Niemals, durch Zählen allein" in page
    assert "Never, by counting alone" in page
    fixed = page_of_session("t", [], asks_token=False, language="de").decode()
    assert '"language":"de"' in fixed
