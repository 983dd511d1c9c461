"""The cost budget as clients see it: the limit on the cost of monitoring, and its effect (SPEC.md section 8.10).

Knows what the numbers mean; does not know how a server keeps a budget.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["WHOLE_BUDGET", "Budget"]

WHOLE_BUDGET = 1_000_000
"""All of the target's time, in millionths: no event is left out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """Server: the limit on the cost of monitoring, the actual cost, and the effect.

    Attributes:
        setting: Id of the setting for the limit, in thousandths.
        allowed: The limit, in millionths of the target's time; `WHOLE_BUDGET`: no limit.
        spent: The recent cost, in millionths.
        sequence: Sequence of the latest snapshot that is included; 0: none yet.
        level_setting: Id of the setting for the level; 0: there are no levels.
        asked: The level that was chosen; 0: there are no levels.
        given: The level of most gatherings at the current costs; 0: there are no levels.
        spaces: How many spaces have subscribers; 0: not known yet.
        covered: How many of them most gatherings cover at the current costs; they take turns.
        every_nanos: Time between two gatherings at the current costs; 0: at every event.
        full_nanos: Time between two at the chosen level; 0: the same as `every_nanos`.
        gathered: How many events were gathered, by kind, since the server began.
        left_out: How many events were left out for the budget, by kind; filters and clients' rates
            passed them.
        reason: Why it is exceeded at the moment, or why so little is gathered; for people, may be
            empty.
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
        """Return how many events were gathered, and how many were requested."""
        gathered = sum(self.gathered)
        return gathered, gathered + sum(self.left_out)

    @property
    def parts(self) -> tuple[str, ...]:
        """Phrases that describe the budget: ``level 2 of 3``, ``4.8 % of 5 %``, ``210 of 1,204 events gathered``."""
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
        """All fields as plain JSON values, and as text."""
        plain = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }
        return plain | {
            "words": ", ".join(self.parts) + (f"; {self.reason}" if self.reason else "")
        }
