"""The cost budget: decides which events are gathered, and at which level, so that the cost stays within its share of the target's time.

The cost of a gathering is *owed*, and paid off by the target's time as it passes, at the allowed
share. While a debt exists nothing is gathered. A share that was not spent can be saved, up to a
bound. So since the beginning no more is spent than the share of the time, and one gathering; and over
any span no more than that and what was saved before it.

If the requested level is so expensive that it could be gathered less than twice a second, the share
is divided: half of it goes to gatherings at that level, two fifths to lighter ones between them (a
tenth is kept in reserve), each with a debt of its own. Then no more is spent than the share and one
gathering of either sort.

If a lower level is requested while a debt of the higher one exists, half of the share pays off that
debt, and the other half goes to gatherings at the lower level.

Kinds of event can be *pairs*: the start and the end of something, where one without the other is of
little use. The end is gathered if its start was, and at the same level. Then no more is spent than
the share, one pair, and one other gathering.

If levels do not help, or there are none, the spaces take turns: a gathering of *part* of them ranks
below the lightest level.

Deterministic: all times and costs are arguments. Knows kinds of event and levels as numbers; does
not know clocks, clients or spaces.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["ALL", "PART", "BudgetKeeper", "GatheringPace"]

ALL = 1000
"""All of the target's time, in thousandths: no limit."""

PART = -1
"""The level below all others: part of the spaces at the lightest level."""

_NANOS = 1_000_000_000

_SLOW_NANOS = _NANOS // 2
_QUICK_NANOS = _NANOS * 3 // 10
"""When gatherings at the requested level are further apart than the first, lighter ones are inserted, until they are closer than the second."""

_LIGHT_SLOW_NANOS = _NANOS
"""A lighter level that could be gathered less often than this is replaced by one that is lighter still."""

_FULL_PART, _LIGHT_PART = 0.5, 0.4

_EARLIER_PART = 0.5
"""The fraction of the share that pays off the debt of a higher level that was requested before."""

_HELPS = 0.5
"""A lighter level costs no more than this fraction of the requested one; otherwise it is not used."""

_FORGOTTEN_NANOS = 60 * _NANOS
"""The cost of a lighter level is measured again after this time."""

_STARVING_NANOS = 3 * _NANOS
"""Gatherings further apart than this are reported."""

_LATELY_NANOS = 10 * _NANOS
"""The reported cost is a mean over about this time."""

_UNKNOWN_REST_NANOS = _NANOS // 50
"""Least time between two gatherings whose cost is not known yet."""

_TURN_NANOS = _NANOS // 4
_RECENT_NANOS = _NANOS


@dataclass(frozen=True, slots=True)
class GatheringPace:
    """The expected gatherings at the current costs.

    Attributes:
        level: The level of most gatherings.
        every_nanos: Least time between two gatherings; 0: no bound.
        full_nanos: Least time between two at the requested level, if others are inserted; 0: all
            are at that level.
    """

    level: int
    every_nanos: int = 0
    full_nanos: int = 0

    @property
    def starves(self) -> bool:
        """Whether gatherings are so rare that it should be reported."""
        return self.every_nanos > _STARVING_NANOS


@dataclass(slots=True)
class _Kind:
    """One kind of event: when it was last gathered and left out, in the target's time."""

    gathered: int = 0
    left_out: int = 0
    gathered_at: float = -math.inf
    left_out_at: float = -math.inf


@dataclass(slots=True)
class _Cost:
    """Cost of a level, and when it was measured."""

    nanos: float
    at: float


class BudgetKeeper:
    """Keeps one budget. For the driver's thread only.

    Args:
        kinds: Number of kinds of event.
        thousandths: The allowed share of the target's time; `ALL`: no limit.
        most_saved_nanos: How much of the share is kept for later if it was not spent: so that what
            happens in bursts is monitored too. It begins with nothing.
        pairs: Kinds of event that are start and end of the same thing.
    """

    def __init__(
        self,
        kinds: int,
        thousandths: int = ALL,
        *,
        most_saved_nanos: int = 0,
        pairs: Sequence[tuple[int, int]] = (),
    ) -> None:
        self._kinds = [_Kind() for _ in range(kinds)]
        self._start_of = {end: start for start, end in pairs}
        self._paired = True
        # By start: the level at which its end is gathered; None: its end is like any other event.
        self._open: dict[int, int | None] = {}
        self._costs: dict[int, _Cost] = {}
        self._asked = 0
        self._parts = False
        self._mixes = False
        # By level that was requested at the time: what is owed for gatherings at it.
        self._owed: dict[int, float] = {}
        self._light_owed = 0.0
        self._as_of: float | None = None
        self._ready_at = -math.inf
        self._begun = 0.0
        self._lately = 0.0
        self._not_ours = 0
        self._most_saved = float(most_saved_nanos)
        self._saved = 0.0
        self.thousandths = thousandths

    # ------------------------------------------------------------------ the budget

    @property
    def limits(self) -> bool:
        """Whether there is a limit."""
        return self.thousandths < ALL

    @property
    def gathered(self) -> tuple[int, ...]:
        """Number of gathered events, by kind."""
        return tuple(kind.gathered for kind in self._kinds)

    @property
    def left_out(self) -> tuple[int, ...]:
        """Number of events left out, by kind."""
        return tuple(kind.left_out for kind in self._kinds)

    def pass_over(self, nanos: int) -> None:
        """Account for time in which the target was held on request: it is not the target's time."""
        self._not_ours += nanos

    def spent(self, now_nanos: int) -> float:
        """Recent cost as a share of the target's time."""
        at = self._advance(now_nanos)
        span = _LATELY_NANOS * -math.expm1(-max(0.0, at - self._begun) / _LATELY_NANOS)
        return self._lately / max(span, 1.0)

    # -------------------------------------------------------------------- deciding

    def ask(self, asked: int, *, parts: bool = False, paired: bool = True) -> None:
        """Set the request.

        Args:
            asked: The level; 0: there are no levels.
            parts: Whether part of the spaces can be gathered.
            paired: Whether both or neither of each pair is requested; if not, they are ordinary
                kinds.
        """
        self._parts = parts
        self._paired = paired
        if asked == self._asked:
            return
        self._asked = asked
        self._mixes = False

    def level_for(self, kind: int, now_nanos: int) -> int | None:
        """The level at which an event that happens now is gathered; None: it is left out, and was counted so."""
        if not self.limits:
            self._open[kind] = self._asked
            return self._asked
        at = self._advance(now_nanos)
        if self._is_end(kind):
            start = self._start_of[kind]
            if start not in self._open:
                self.leave_out(kind, 1, now_nanos)
                return None
            given = self._open.pop(start)
            if given is not None:
                return given
        level = self._open_level(at)
        if level is None or self._gives_way(kind, at, self._ready_at):
            self.leave_out(kind, 1, now_nanos)
            return None
        self._open[kind] = level
        return level

    def awaits(self, kind: int) -> bool | None:
        """Whether an event of this kind will be gathered because its start was; None: it is not the end of a pair, or is like any other event."""
        if not self.limits or not self._is_end(kind):
            return None
        start = self._start_of[kind]
        return None if start in self._open and self._open[start] is None else start in self._open

    def passed(self, kind: int) -> None:
        """Note events of this kind that were not reported to any client: pairs that they began, or would have ended, are over."""
        self._open.pop(self._start_of.get(kind, kind), None)

    def not_before(self, kind: int, now_nanos: int) -> int:
        """The earliest time at which an event of this kind may be gathered, with the current debts."""
        if not self.limits:
            return 0
        if self.awaits(kind):
            return now_nanos
        at = self._advance(now_nanos)
        light = self._lighter(at)
        if light is None:
            wait = (self._full_owed + self._light_owed) / self._share
        else:
            wait = min(
                self._full_owed / (_FULL_PART * self._share),
                self._light_owed / (_LIGHT_PART * self._share),
            )
        if self._earlier_owed > 0:
            halved = self._earlier_owed / (_EARLIER_PART * self._whole_share)
            if wait > halved:
                wait = halved + (wait - halved) * (1 - _EARLIER_PART)
        if self._gives_way(kind, at + wait, at + wait if wait > 0 else self._ready_at):
            wait += self._turn()
        return now_nanos + math.ceil(wait) if wait > 0 else now_nanos

    def rest(self, now_nanos: int) -> tuple[int, int]:
        """The least time between two gatherings, or pairs of them, that begin before anything is decided again.

        A target that does not wait for a decision copies its memory in vain for each that is then
        left out.

        Returns:
            The time, 0: no bound; and the number of gatherings, or pairs, before which there need
            be no such time, since enough was saved for them.
        """
        if not self.limits:
            return 0, 0
        pace = self.pace(now_nanos)
        found = self._costs.get(pace.level)
        if found is None or not pace.every_nanos:
            return _UNKNOWN_REST_NANOS, 0
        each = 2 if self._paired and self._start_of else 1
        return pace.every_nanos * each, int(self._saved / (found.nanos * each))

    def leave_out(self, kind: int, times: int, now_nanos: int, *, waits: bool = True) -> None:
        """Count events that were requested, and left out for the budget.

        Args:
            kind: Their kind.
            times: Their number.
            now_nanos: The time.
            waits: Whether the kind waits for its turn, and others give way to it.
        """
        self.passed(kind)
        found = self._kinds[kind]
        found.left_out += times
        if waits:
            found.left_out_at = now_nanos - self._not_ours

    def pace(self, now_nanos: int) -> GatheringPace:
        """The expected gatherings at the current costs."""
        at = self._advance(now_nanos)
        full = self._costs.get(self._asked)
        if not self.limits or full is None:
            return GatheringPace(self._asked)
        light = self._lighter(at)
        if light is None:
            return GatheringPace(self._asked, every_nanos=int(full.nanos / self._share))
        found = self._costs.get(light)
        every = 0 if found is None else int(found.nanos / (_LIGHT_PART * self._share))
        return GatheringPace(
            light, every_nanos=every, full_nanos=int(full.nanos / (_FULL_PART * self._share))
        )

    # ------------------------------------------------------------------- actual cost

    def spend(
        self,
        kind: int,
        level: int,
        cost_nanos: float,
        begun_nanos: int,
        *,
        explicit: bool = False,
        in_vain: bool = False,
    ) -> None:
        """Note the cost of gathering an event.

        Args:
            kind: Its kind.
            level: The level at which it was gathered.
            cost_nanos: The cost in the target's time.
            begun_nanos: When it began.
            explicit: This very event was requested: its cost counts as spent, but is not owed.
            in_vain: None of its data is shown: it counts as left out.
        """
        at = self._advance(begun_nanos)
        found = self._kinds[kind]
        if in_vain:
            found.left_out += 1
            self.passed(kind)
        else:
            found.gathered += 1
        found.gathered_at = at
        self._lately += cost_nanos
        if explicit:
            self.passed(kind)
            if not in_vain:
                self._open[kind] = None
            return
        self._learn(level, cost_nanos, at)
        if level == self._asked:
            self._owed[level] = self._owed.get(level, 0.0) + self._not_saved(cost_nanos)
        else:
            self._light_owed += self._not_saved(cost_nanos)

    def spend_beside(self, cost_nanos: float, now_nanos: int) -> None:
        """Note cost other than that of gatherings."""
        self._advance(now_nanos)
        self._lately += cost_nanos
        self._light_owed += self._not_saved(cost_nanos)

    # --------------------------------------------------------------------- inside

    @property
    def _full_owed(self) -> float:
        """Seconds owed for gatherings at the requested level, and at lower ones that were requested before."""
        return sum(owed for level, owed in self._owed.items() if level <= self._asked)

    @property
    def _earlier_owed(self) -> float:
        """Seconds owed for gatherings at higher levels that were requested before."""
        return sum(owed for level, owed in self._owed.items() if level > self._asked)

    @property
    def _share(self) -> float:
        """The share for gatherings: what pays off the debt of an earlier level is not in it."""
        share = self._whole_share
        return share * (1 - _EARLIER_PART) if self._earlier_owed > 0 else share

    @property
    def _whole_share(self) -> float:
        return max(1, self.thousandths) / ALL

    def _not_saved(self, cost_nanos: float) -> float:
        saved = min(self._saved, cost_nanos)
        self._saved -= saved
        return cost_nanos - saved

    def _learn(self, level: int, cost_nanos: float, at: float) -> None:
        """Learn a cost: an increase is adopted at once, a decrease gradually."""
        known = self._costs.get(level)
        if known is not None and cost_nanos < known.nanos:
            cost_nanos = known.nanos + (cost_nanos - known.nanos) / 4
        self._costs[level] = _Cost(cost_nanos, at)

    def _advance(self, now_nanos: int) -> float:
        """Pay off debts until now; return now in the target's time."""
        at = float(now_nanos - self._not_ours)
        if self._as_of is None:
            self._as_of = self._begun = at
        passed = at - self._as_of
        if passed <= 0:
            return self._as_of
        earlier = self._earlier_owed
        if earlier > 0:
            rate = _EARLIER_PART * self._whole_share
            until = min(passed, earlier / rate)
            self._pay(self._as_of, until)
            self._reduce(earlier if until < passed else until * rate, earlier=True)
            self._as_of += until
        self._pay(self._as_of, at - self._as_of)
        self._lately *= math.exp(-passed / _LATELY_NANOS)
        self._as_of = at
        return at

    def _pay(self, since: float, passed: float) -> None:
        """Pay off the debts of the requested level and of lighter ones with the share for gatherings."""
        share = self._share
        owed = self._full_owed + self._light_owed
        if self._lighter(since) is None:
            paid = passed * share
            beside = min(paid, self._light_owed)
            self._light_owed -= beside
            self._reduce(paid - beside)
            if owed > 0 and not self._full_owed + self._light_owed:
                self._ready_at = since + owed / share
        else:
            self._reduce(passed * _FULL_PART * share)
            light = self._light_owed
            self._light_owed = max(0.0, light - passed * _LIGHT_PART * share)
            if light > 0 and not self._light_owed:
                self._ready_at = since + light / (_LIGHT_PART * share)
        unspent = passed * share - (owed - self._full_owed - self._light_owed)
        self._saved = min(self._most_saved, self._saved + max(0.0, unspent))

    def _reduce(self, paid: float, *, earlier: bool = False) -> None:
        """Pay off what is owed for gatherings at the requested and lower levels, or at earlier, higher ones."""
        for level in sorted(self._owed):
            if (level > self._asked) == earlier:
                part = min(paid, self._owed[level])
                self._owed[level] -= part
                paid -= part

    def _open_level(self, at: float) -> int | None:
        light = self._lighter(at)
        if light is None:
            return self._asked if self._full_owed + self._light_owed <= 0 else None
        if self._full_owed <= 0:
            return self._asked
        return light if self._light_owed <= 0 else None

    def _lighter(self, at: float) -> int | None:
        """The level of gatherings inserted between those at the requested level; None: there are none."""
        full = self._costs.get(self._asked)
        if full is None or (self._asked <= 1 and not self._parts):
            return None
        apart = full.nanos / self._share
        self._mixes = apart > (_QUICK_NANOS if self._mixes else _SLOW_NANOS)
        if not self._mixes:
            return None
        levels = list(range(self._asked - 1, 0, -1))
        if self._parts:
            levels.append(PART)
        for level in levels:
            found = self._costs.get(level)
            if found is None or at - found.at > _FORGOTTEN_NANOS:
                return level
            helps = found.nanos <= _HELPS * full.nanos
            if helps and (
                level == levels[-1]
                or found.nanos / (_LIGHT_PART * self._share) <= _LIGHT_SLOW_NANOS
            ):
                return level
        return None

    def _gives_way(self, kind: int, at: float, ready_at: float) -> bool:
        """Whether another kind of event, which was gathered less recently and does happen, has its turn first."""
        mine = self._kinds[kind].gathered_at
        if at >= ready_at + self._turn():
            return False
        recent = at - max(_RECENT_NANOS, 4 * self._turn())
        return any(
            other.gathered_at < mine and other.left_out_at > max(recent, other.gathered_at)
            for number, other in enumerate(self._kinds)
            if not self._is_end(number)
        )

    def _is_end(self, kind: int) -> bool:
        return self._paired and kind in self._start_of

    def _turn(self) -> float:
        """How long a kind waits for others that have their turn."""
        found = self._costs.get(self._asked)
        return 0.0 if found is None else min(_TURN_NANOS, found.nanos / self._share)
