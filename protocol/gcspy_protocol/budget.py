"""The cost budget as clients see it: what watching may take of the target's time, and what it did (SPEC.md section 8.10).

Knows what the numbers mean; does not know how a server keeps a budget.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["WHOLE_BUDGET", "Budget"]

WHOLE_BUDGET = 1_000_000
"""All of the target's time, in millionths: nothing is left out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """Server: what may be spent of the target's time, what was, and what came of it.

    Attributes:
        setting: Id of the setting that it is set with, in thousandths.
        allowed: What may be spent, in millionths of the target's time; `WHOLE_BUDGET`: anything.
        spent: What was spent lately, in millionths.
        sequence: Of the latest snapshot that is counted in; 0: none yet.
        level_setting: Id of the setting that says how much is gathered; 0: there are no levels.
        asked: The level that was chosen; 0: there are no levels.
        given: The level of most gatherings as costs are now; 0: there are no levels.
        spaces: How many spaces are wanted by anybody; 0: not known yet.
        covered: How many of them most gatherings cover as costs are now; they take turns.
        every_nanos: Time between two gatherings, as costs are now; 0: as often as events come.
        full_nanos: Time between two at the level that was chosen; 0: as often as any.
        gathered: How many events were gathered, by kind, since the server began.
        left_out: How many were left out for the budget, by kind; filters and clients had let them through.
        reason: Why it is not kept at the moment, or why so little is gathered; for people, may be empty.
    """

    setting: int
    allowed: int
    spent: int = 0
    sequence: int = 0
    level_setting: int = 0
    asked: int = 0
    given: int = 0
    spaces: int = 0
    covered: int = 0
    every_nanos: int = 0
    full_nanos: int = 0
    gathered: tuple[int, ...] = ()
    left_out: tuple[int, ...] = ()
    reason: str = ""

    @property
    def limits(self) -> bool:
        """Whether there is a limit at all."""
        return self.allowed < WHOLE_BUDGET

    @property
    def events(self) -> tuple[int, int]:
        """How many events were gathered, and of how many that somebody wanted."""
        gathered = sum(self.gathered)
        return gathered, gathered + sum(self.left_out)

    @property
    def parts(self) -> tuple[str, ...]:
        """What there is to say, a phrase each: ``level 2 of 3``, ``4.8 % of 5 %``, ``210 of 1,204 events gathered``."""
        found = []
        if self.asked:
            found.append(
                f"level {self.asked}"
                if self.given in (0, self.asked)
                else f"level {self.given} of {self.asked}"
            )
        if self.covered < self.spaces:
            found.append(f"{self.covered} of {self.spaces} spaces in turn")
        spent = f"{self.spent / 10_000:.1f} %"
        found.append(
            f"{spent} of {self.allowed / 10_000:g} %" if self.limits else f"{spent}, no limit"
        )
        gathered, wanted = self.events
        found.append(f"{gathered:,} of {wanted:,} events gathered")
        return tuple(found)

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain JSON values, and in words."""
        plain = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }
        return plain | {
            "words": ", ".join(self.parts) + (f"; {self.reason}" if self.reason else "")
        }
