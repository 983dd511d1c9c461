"""The result of a student in a lesson.

Knows numbers, and their words.
"""

from __future__ import annotations

from dataclasses import dataclass

from gcspy_client.translation import translate

__all__ = ["Score"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """The result of a student in a lesson so far.

    Attributes:
        first: Questions answered right at the first try.
        later: Questions answered right at a later one.
        answered: Questions that are over, right or wrong.
        questions: Questions of the lesson.
    """

    first: int = 0
    later: int = 0
    answered: int = 0
    questions: int = 0

    def __str__(self) -> str:
        """The result as a sentence."""
        if not self.answered:
            return ""
        if not self.later:
            return translate(
                "{first} of {answered} right at the first try",
                first=self.first,
                answered=self.answered,
            )
        return translate(
            "{first} of {answered} right at the first try, {later} at the second",
            first=self.first,
            answered=self.answered,
            later=self.later,
        )
