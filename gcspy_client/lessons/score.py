"""The result of a student in a lesson.

Knows numbers only.
"""

from __future__ import annotations

from dataclasses import dataclass

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
        said = f"{self.first} of {self.answered} right at the first try"
        return f"{said}, {self.later} at the second" if self.later else said
