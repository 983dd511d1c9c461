"""A lint of lessons as pieces of teaching: answers that can be guessed, and texts that nothing checks.

Knows texts; does not know the values that a lesson shows (`claims` checks those).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from gcspy_client.lessons.lesson import Lesson, LessonQuestion, LessonStep
from gcspy_client.lessons.lesson_translation import translated_lesson

__all__ = ["lint_lesson", "lint_lessons", "lint_translation"]

_LONGER: Final = 1.6
"""A right choice this many times as long as the longest other one is guessed by its length."""
_MOST_CHOICE, _MOST_ASK, _MOST_TEXT = 120, 260, 900
"""Characters that can be read at 1280×720 beside the tiles."""
_MOST_SHARE: Final = 0.6
"""Largest share of questions in which the right choice may stand at one place, or be the longest."""
_FEWEST: Final = 6
"""Fewer questions have no pattern to see."""
_WORD: Final = re.compile(r"[a-z]{4,}")
_COMMON: Final = re.compile(
    r"about|after|again|also|been|before|does|each|every|from|have|into|much|only|more|most|nothing|over|some|than|that|them|then|there|"
    r"they|this|what|when|where|which|while|will|with|your"
)
"""Words that any question and any choice may have."""


def lint_lesson(lesson: Lesson) -> list[str]:
    """Say what is wrong with one lesson, each with file and line; empty: nothing."""
    found: list[str] = []
    for place, step in enumerate(lesson.steps):
        problems = [*_text_problems(step), *_claim_problems(lesson, step)]
        if step.question is not None:
            problems += _question_problems(step.question, f"{step.title} {step.text}")
        found += [
            f"{lesson.path}:{step.line}: step {place + 1}, {step.title!r}: {problem}"
            for problem in problems
        ]
    return found


def lint_lessons(lessons: Sequence[Lesson], seed: str = "") -> list[str]:
    """Say what is wrong with several lessons: each one's problems, and patterns over all their questions.

    Args:
        lessons: The lessons.
        seed: The seed of the order in which choices are shown.
    """
    found = [problem for lesson in lessons for problem in lint_lesson(lesson)]
    places: Counter[int] = Counter()
    longest = asked = 0
    for lesson in lessons:
        for place, step in enumerate(lesson.steps):
            if step.question is None:
                continue
            asked += 1
            places[lesson.order(place, seed).index(step.question.answer)] += 1
            lengths = [len(choice) for choice in step.question.choices]
            longest += lengths[step.question.answer] == max(lengths)
    if asked >= _FEWEST:
        place, often = places.most_common(1)[0]
        if often > _MOST_SHARE * asked:
            found.append(
                f"the right choice is number {place + 1} in {often} of {asked} questions: use another seed"
            )
        if longest > _MOST_SHARE * asked:
            found.append(
                f"the right choice is the longest in {longest} of {asked} questions: shorten right ones, lengthen others"
            )
    return found


def lint_translation(lesson: Lesson, language: str) -> list[str]:
    """Say what cannot be seen on a small screen, or gives an answer away by its length, in a translation.

    Args:
        lesson: The lesson.
        language: The language; of another no problem is found.
    """
    translated = translated_lesson(lesson, language)
    found: list[str] = []
    for place, step in enumerate(translated.steps if translated.original else ()):
        problems = list(_text_problems(step))
        if step.question is not None:
            problems += _length_problems(step.question)
        found += [f"step {place + 1}, {step.title!r}: {problem}" for problem in problems]
    return found


def _text_problems(step: LessonStep) -> Iterable[str]:
    if len(step.text) > _MOST_TEXT:
        yield f"its text has {len(step.text)} characters: at most {_MOST_TEXT} can be seen beside the tiles"


def _claim_problems(lesson: Lesson, step: LessonStep) -> Iterable[str]:
    if not step.claims:
        yield "nothing of its text is checked: add a block claims"
    question = step.question
    parts = [step.title, step.text]
    if step.exercise is not None:
        parts += [step.exercise.task, step.exercise.hint]
    if question is not None:
        parts += [question.ask, *question.choices, question.because, *question.feedback]
    said = [_plain(part) for part in parts]
    for claim in step.claims:
        if not any(_plain(claim.text) in part for part in said):
            yield f"the claim {claim.text!r} is not in its texts: quote them"
        for number in (claim.at, claim.since):
            if number is not None and number >= len(lesson.steps):
                yield f"the claim {claim.text!r} is about step {number + 1} of {len(lesson.steps)}"


def _plain(text: str) -> str:
    """A text without emphasis, on one line."""
    return " ".join(re.sub(r"[*`_]", "", text).split())


def _question_problems(question: LessonQuestion, before: str) -> Iterable[str]:
    choices, right = question.choices, question.choices[question.answer]
    others = [choice for choice in choices if choice != right]
    if len(choices) < 3:
        yield f"its question has {len(choices)} choices: half of a guess is right; give three"
    if len({_plain(choice).lower() for choice in choices}) < len(choices):
        yield "two choices of its question are the same"
    yield from _length_problems(question)
    if not question.because:
        yield "its question has no explanation: add because"
    for place, choice in enumerate(choices):
        if place != question.answer and not question.feedback_on(place):
            yield f"the wrong choice {choice!r} is not explained: add feedback"
    if len(right) > 8 and _plain(right).lower() in _plain(before).lower():
        yield f"the right choice, {right!r}, stands in the text above the question"
    told = _words(question.ask)
    shared = sorted(word for word in _words(right) if any(_related(word, one) for one in told))
    if shared and not any(
        _related(word, one) for other in others for word in _words(other) for one in told
    ):
        yield f"only the right choice repeats a word of the question: {shared[0]!r}"


def _length_problems(question: LessonQuestion) -> Iterable[str]:
    choices, right = question.choices, question.choices[question.answer]
    others = [len(choice) for choice in choices if choice != right]
    if len(right) > _LONGER * max(others, default=len(right)):
        yield f"the right choice has {len(right)} characters, the others at most {max(others)}: its length gives it away"
    for choice in choices:
        if len(choice) > _MOST_CHOICE:
            yield f"a choice has {len(choice)} characters: at most {_MOST_CHOICE} can be seen"
    if len(question.ask) > _MOST_ASK:
        yield f"its question has {len(question.ask)} characters: at most {_MOST_ASK} can be seen"


def _words(text: str) -> set[str]:
    return {word for word in _WORD.findall(text.lower()) if not _COMMON.fullmatch(word)}


def _related(word: str, other: str) -> bool:
    """Whether one word is in the other: live, alive."""
    return word in other or other in word
