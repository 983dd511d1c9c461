"""The report of a student: answers of a lesson and results of own code, as a JSON file that a teacher collects.

A report comes from a student: each value is checked when it is read. Knows lessons; knows neither windows nor collectors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from gcspy_protocol.errors import CommandError

from gcspy_client.lessons.lesson import Lesson

__all__ = [
    "MOST_REPORT_BYTES",
    "CodeResult",
    "QuestionResult",
    "StudentReport",
    "digest_of",
    "read_report",
    "write_report",
]

MOST_REPORT_BYTES: Final = 4 << 20
_VERSION: Final = 1
_MOST_ENTRIES, _MOST_CHARS = 1_000, 200_000


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionResult:
    """The answers of a student to a question, or the result of an exercise.

    Attributes:
        step: Place of the step, from 1.
        ask: The question or task.
        tries: The choices that were taken, in their order; of an exercise: none.
        right: Number of the try that was right, from 1; 0: none was. Of an exercise 1 if it was solved.
        secs: Seconds from the question to the last answer.
    """

    step: int
    ask: str
    tries: tuple[str, ...] = ()
    right: int = 0
    secs: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeResult:
    """A file of the student's code and how it ran.

    Attributes:
        name: Its name, without folders.
        source: Its text.
        runs: How often it was run; right: how many of these were right.
        problem: The first problem; empty: none.
    """

    name: str
    source: str
    runs: int = 0
    right: int = 0
    problem: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class StudentReport:
    """A report.

    Attributes:
        student: The name that the student gave.
        lesson: Name of the lesson; empty: none.
        digest: Digest of the lesson's texts, so that a report of another version is noticed.
        questions: Answers.
        code: Files of the student.
    """

    student: str
    lesson: str = ""
    digest: str = ""
    questions: tuple[QuestionResult, ...] = ()
    code: tuple[CodeResult, ...] = field(default=())

    @property
    def first(self) -> int:
        """Questions that were answered right at the first try, and exercises that were solved."""
        return sum(one.right == 1 for one in self.questions)

    @property
    def later(self) -> int:
        """Questions that were answered right at a later try."""
        return sum(one.right > 1 for one in self.questions)

    def with_code(self, code: CodeResult) -> StudentReport:
        """A report that has this file as well, instead of one of the same name."""
        others = tuple(one for one in self.code if one.name != code.name)
        return replace(self, code=(*others, code))


def digest_of(lesson: Lesson) -> str:
    """A digest of what a lesson asks; the same in every language."""
    asked = [
        [step.title, step.question and [step.question.ask, step.question.choices]]
        for step in (lesson.original or lesson).steps
    ]
    return sha256(json.dumps(asked).encode()).hexdigest()[:16]


def write_report(report: StudentReport, path: Path) -> None:
    """Write a report.

    Raises:
        CommandError: The file cannot be written.
    """
    try:
        path.write_text(
            json.dumps({"gcspy report": _VERSION, **asdict(report)}, indent=1, ensure_ascii=False)
            + "\n",
            encoding="utf-8",
        )
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from None


def read_report(path: Path) -> StudentReport:
    """Read a report that may come from anybody.

    Raises:
        CommandError: It cannot be read, or it is none.
    """
    try:
        if path.stat().st_size > MOST_REPORT_BYTES:
            raise CommandError(
                f"{path} has more than {MOST_REPORT_BYTES:,} bytes: it is not a report"
            )
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise CommandError(f"{path} is not a report: it is not JSON") from None
    if not isinstance(values, dict) or values.get("gcspy report") != _VERSION:
        raise CommandError(f"{path} is not a report of a lesson, or one of another version")
    reader = _Reader(path)
    return StudentReport(
        student=reader.text(values, "student"),
        lesson=reader.text(values, "lesson"),
        digest=reader.text(values, "digest"),
        questions=tuple(
            QuestionResult(
                step=reader.number(one, "step"),
                ask=reader.text(one, "ask"),
                tries=tuple(reader.texts(one, "tries")),
                right=reader.number(one, "right"),
                secs=float(reader.number(one, "secs")),
            )
            for one in reader.entries(values, "questions")
        ),
        code=tuple(
            CodeResult(
                name=reader.text(one, "name"),
                source=reader.text(one, "source"),
                runs=reader.number(one, "runs"),
                right=reader.number(one, "right"),
                problem=reader.text(one, "problem"),
            )
            for one in reader.entries(values, "code")
        ),
    )


class _Reader:
    """Takes values out of a stranger's JSON."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def _wrong(self, key: str, what: str) -> CommandError:
        return CommandError(f"{self._path} is not a report: {key} is not {what}")

    def text(self, values: Mapping[str, Any], key: str) -> str:
        """A text; empty if it is missing."""
        found = values.get(key, "")
        if not isinstance(found, str) or len(found) > _MOST_CHARS:
            raise self._wrong(key, f"a text of at most {_MOST_CHARS:,} characters")
        return found

    def number(self, values: Mapping[str, Any], key: str) -> int:
        """A number from 0, cut to a whole one; 0 if it is missing."""
        found = values.get(key, 0)
        if isinstance(found, bool) or not isinstance(found, (int, float)) or not 0 <= found < 1e9:
            raise self._wrong(key, "a number from 0 to 1,000,000,000")
        return int(found)

    def texts(self, values: Mapping[str, Any], key: str) -> list[str]:
        """A list of texts; empty if it is missing."""
        found = values.get(key, [])
        if (
            not isinstance(found, list)
            or len(found) > _MOST_ENTRIES
            or not all(isinstance(one, str) and len(one) <= _MOST_CHARS for one in found)
        ):
            raise self._wrong(key, f"a list of at most {_MOST_ENTRIES:,} texts")
        return found

    def entries(self, values: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
        """A list of tables; empty if it is missing."""
        found = values.get(key, [])
        if (
            not isinstance(found, list)
            or len(found) > _MOST_ENTRIES
            or not all(isinstance(one, dict) for one in found)
        ):
            raise self._wrong(key, f"a list of at most {_MOST_ENTRIES:,} tables")
        return found
