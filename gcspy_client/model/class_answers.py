"""The answers of a class: counted while a question is open, and kept for a table at the end.

Names and answers come from strangers through a server. Knows messages and lessons; does not know widgets.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from gcspy_protocol.attendance import person_name
from gcspy_protocol.messages import Client

from gcspy_client.lessons.lesson import Lesson
from gcspy_client.translation import translate

__all__ = ["AnswerRecord", "ClassAnswers", "Tally"]

_FORMULA = ("=", "+", "-", "@")
"""Beginnings of a text that a spreadsheet takes for a formula."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """The answers to one question in one try.

    Attributes:
        followers: Students who follow.
        answered: How many of them answered in this try.
        choices: How often each choice was taken last, by its place in the question.
        elsewhere: How many are at another step.
    """

    followers: int = 0
    answered: int = 0
    choices: Counter[int] = field(default_factory=Counter)
    elsewhere: int = 0

    @classmethod
    def of(cls, clients: Iterable[Client], step: int, attempt: int) -> Tally:
        """Count the answers of the clients that follow.

        Args:
            clients: As told to the leader.
            step: Place of the step.
            attempt: The open try, from 1.
        """
        followers = [one for one in clients if one.following]
        here = [one for one in followers if one.step == step]
        done = [one for one in here if len(one.tries) >= attempt]
        return cls(
            followers=len(followers),
            answered=len(done),
            choices=Counter(one.tries[-1] for one in here if one.tries),
            elsewhere=len(followers) - len(here),
        )

    def share(self, choice: int) -> str:
        """How many took a choice, as ``12 · 40 %``; empty: nobody answered."""
        total = self.choices.total()
        number = self.choices[choice]
        return f"{number} · {round(100 * number / total)} %" if total else ""

    def sentence(self, order: tuple[int, ...]) -> str:
        """The state of the class in a sentence.

        Args:
            order: Places of the choices in the order in which they are shown.
        """
        words = translate(
            "{answered} of {followers} answered", answered=self.answered, followers=self.followers
        )
        total = self.choices.total()
        if total:
            place, often = max(self.choices.items(), key=lambda item: (item[1], -item[0]))
            shown = order.index(place) + 1 if place in order else place + 1
            words += translate(
                ", {share} % chose {choice}", share=round(100 * often / total), choice=shown
            )
        if self.elsewhere == 1:
            words += translate(", 1 is at another step")
        elif self.elsewhere:
            words += translate(", {number} are at another step", number=self.elsewhere)
        return words


@dataclass(slots=True)
class AnswerRecord:
    """The answers of one student to one question.

    Attributes:
        student: The name that the student gave.
        step: Place of the step.
        tries: Choices in the order of the tries, by their places in the question.
        secs: Seconds from the question to the last of them.
    """

    student: str
    step: int
    tries: tuple[int, ...]
    secs: float


class ClassAnswers:
    """All answers of a class to the questions of a lesson.

    Attributes:
        records: By number of the client and place of the step.
    """

    def __init__(self) -> None:
        self.records: dict[tuple[int, int], AnswerRecord] = {}
        self._asked: dict[int, float] = {}

    def ask(self, step: int, now: float) -> None:
        """Note when a question was first asked, in seconds."""
        self._asked.setdefault(step, now)

    def take(self, clients: Iterable[Client], now: float) -> None:
        """Note answers that the server told the leader."""
        for one in clients:
            if one.step is None or not one.tries:
                continue
            key = one.id, one.step
            there = self.records.get(key)
            if there is None or len(one.tries) > len(there.tries):
                secs = round(now - self._asked.get(one.step, now), 1)
                name = person_name(one.person) or f"student {one.id}"
                self.records[key] = AnswerRecord(name, one.step, one.tries, secs)

    def rows(self, lesson: Lesson) -> list[dict[str, str | int | float]]:
        """A row for each student and question, in the order of names and steps."""
        found: list[dict[str, str | int | float]] = []
        for record in sorted(
            self.records.values(), key=lambda one: (one.student.lower(), one.step)
        ):
            question = (
                lesson.steps[record.step].question if record.step < len(lesson.steps) else None
            )
            if question is None:
                continue
            known = [one for one in record.tries if one < len(question.choices)]
            right = known.index(question.answer) + 1 if question.answer in known else 0
            found.append(
                {
                    "student": record.student,
                    "lesson": lesson.name,
                    "step": record.step + 1,
                    "question": question.ask,
                    "answers": "; ".join(question.choices[one] for one in known),
                    "right at try": right,
                    "seconds": record.secs,
                }
            )
        return found

    def as_csv(self, lesson: Lesson) -> str:
        """The rows as CSV, without a text that a spreadsheet takes for a formula."""
        text = io.StringIO()
        columns = ("student", "lesson", "step", "question", "answers", "right at try", "seconds")
        writer = csv.DictWriter(text, columns, lineterminator="\n")
        writer.writeheader()
        for row in self.rows(lesson):
            writer.writerow(
                {
                    key: f"'{value}"
                    if isinstance(value, str) and value.startswith(_FORMULA)
                    else value
                    for key, value in row.items()
                }
            )
        return text.getvalue()
