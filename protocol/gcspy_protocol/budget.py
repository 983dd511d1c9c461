"""The cost budget as clients are told of it: what watching may take of the target's time, and what it did (SPEC.md section 8.10).

Knows what the numbers mean; does not know how a server keeps a budget.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    every_nanos: int = 0
    full_nanos: int = 0
    gathered: tuple[int, ...] = ()
    left_out: tuple[int, ...] = ()
    reason: str = ""

    @property
    def limits(self) -> bool:
        """Whether there is a limit at all."""
        return self.allowed < WHOLE_BUDGET
