"""The answers of a class, counted and kept."""

from __future__ import annotations

import csv
import io

from gcspy_protocol.messages import Client

from gcspy_client.lessons import find_lesson
from gcspy_client.model.class_answers import ClassAnswers, Tally


def student(number: int, step: int | None, *tries: int, name: str = "") -> Client:
    return Client(
        id=number, name="w", person=name or f"s{number}", following=True, step=step, tries=tries
    )


CLASS = [
    *(student(number, 4, 1) for number in range(10, 22)),
    *(student(number, 4, 2) for number in range(22, 33)),
    *(student(number, 4) for number in range(33, 39)),
    student(39, 2, 0),
    Client(id=1, name="w", person="teacher", step=4, tries=(3,)),
]


def test_answers_are_counted_among_those_who_follow() -> None:
    tally = Tally.of(CLASS, 4, 1)
    assert (tally.followers, tally.answered, tally.elsewhere) == (30, 23, 1)
    order = (2, 0, 1, 3)
    assert tally.sentence(order) == "23 of 30 answered, 52 % chose 3, 1 is at another step"
    assert tally.share(1) == "12 · 52 %"
    assert Tally.of(CLASS, 4, 2).answered == 0, "nobody has tried twice"
    assert Tally.of([], 4, 1).sentence(order) == "0 of 0 answered"
    assert Tally().share(0) == ""


def test_answers_are_kept_with_their_times_and_exported() -> None:
    lesson = find_lesson("tiles")
    question = lesson.steps[4].question
    assert question is not None
    answers = ClassAnswers()
    answers.ask(4, 100.0)
    answers.take([student(7, 4, 0, name="=cmd"), student(8, 4, name="none")], 103.0)
    answers.take([student(7, 4, 0, question.answer, name="=cmd")], 109.5)
    answers.take([student(7, 4, 0, question.answer, name="=cmd")], 200.0)
    answers.take([student(7, 900, 200)], 200.0)
    (row,) = answers.rows(lesson)
    assert (row["student"], row["step"], row["right at try"], row["seconds"]) == ("=cmd", 5, 2, 9.5)
    (read,) = csv.DictReader(io.StringIO(answers.as_csv(lesson)))
    assert read["student"] == "'=cmd"
    assert read["answers"] == f"{question.choices[0]}; {question.choices[question.answer]}"
