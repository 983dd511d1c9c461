"""Measures the cost of each gathering in the target's time, and applies the budget.

If the target of a pause stands still for a gathering, the cost is that time. If the target keeps
running, it is the processor time of the process that reads, encodes and sends, as far as the target
waited for a processor (`contention`, which examines that once a second), divided by the processors
that it may use. Time for which a driver reports that it held the target counts in full.

For the driver's thread, except `message`. Knows settings and clocks; does not know spaces or
clients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gcspy_protocol.messages import Budget
from gcspy_protocol.settings import Setting, SettingKind

from gcspy_server.interpreter.budget import ALL, PART, BudgetKeeper
from gcspy_server.interpreter.setting_table import SettingTable

__all__ = ["ANY_LEVEL", "BUDGET", "LEVEL", "PART", "CostAccounting"]

LEVEL = 1
"""Number of the setting "Level" of a driver that has levels."""

BUDGET = 2
"""Number of the setting "Budget"."""

ANY_LEVEL = 1 << 30
"""Above every level: no bound."""

_TOLD_AGAIN_NANOS = 500_000_000
_MOST_SAVED_NANOS = 250_000_000
"""How much of the budget can be saved for later; a session begins with nothing saved."""

_MILLIONTHS = 1_000_000


class CostAccounting:
    """Decides and counts for one server.

    Args:
        kinds: Number of kinds of event.
        settings: The settings for budget and level.
        thousandths: The initial budget; None: there is none, and none can be set.
        holds: Whether the target of a pause stands still at events, by default.
        processors: How many the target may use.
        processor_nanos: Processor time of this process.
        pairs: Kinds of event of which both or neither is gathered, start and end.

    Attributes:
        paired: Whether that is requested now.
    """

    def __init__(
        self,
        kinds: int,
        settings: SettingTable,
        *,
        thousandths: int | None,
        holds: bool,
        processors: int,
        processor_nanos: Callable[[], int],
        pairs: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.paired = True
        self._settings = settings
        self._keeper = BudgetKeeper(
            kinds,
            ALL if thousandths is None else thousandths,
            most_saved_nanos=_MOST_SAVED_NANOS,
            pairs=pairs,
        )
        self._exists = thousandths is not None
        self._holds = holds
        self._processors = max(1, processors)
        self._processor_nanos = processor_nanos
        self._said = 0
        self._marked = 0
        self._begun: int | None = None
        self._asked = 0
        self._sequence = 0
        self._reason = ""
        self._spaces = 0
        self._message: Budget | None = None
        self._told_nanos: int | None = None
        if thousandths is not None:
            settings.add(
                Setting(
                    id=BUDGET,
                    name="Budget",
                    about="Maximum share of the target's time spent on monitoring, in thousandths; 1000: no limit",
                    kind=SettingKind.RANGE,
                    value=thousandths,
                    minimum=1,
                    maximum=ALL,
                )
            )
            self._compose(0)

    @property
    def limits(self) -> bool:
        """Whether events may have to be left out."""
        if self._exists:
            self._keeper.thousandths = self._settings.take(BUDGET)
        return self._keeper.limits

    @property
    def message(self) -> Budget | None:
        """The message sent last; None: there is no budget. May be called in any thread."""
        return self._message

    # -------------------------------------------------------------------- deciding

    def level_for(self, event: int, now: int, spaces: int = 1) -> int | None:
        """The greatest level at which an event may be gathered now; `PART`: one space at the lightest; None: not at all.

        Args:
            event: Its kind.
            now: The time.
            spaces: Number of requested spaces.
        """
        self._spaces = spaces
        self._ask()
        level = self._keeper.level_for(event, now)
        return ANY_LEVEL if level == 0 else level

    def not_before(self, event: int, now: int) -> int:
        """The earliest time at which an event of this kind may be gathered."""
        self._ask()
        return self._keeper.not_before(event, now)

    def rest(self, now: int) -> tuple[int, int]:
        """The least time between two gatherings that begin before anything is decided again; see `BudgetKeeper.rest`."""
        self._ask()
        return self._keeper.rest(now)

    def awaits(self, event: int) -> bool | None:
        """Whether an event of this kind is gathered because its start was; None: it is like any other."""
        self._ask()
        return self._keeper.awaits(event)

    def passed(self, event: int) -> None:
        """Note that an event of this kind was only counted."""
        self._keeper.passed(event)

    def leave_out(self, event: int, times: int, now: int, *, waits: bool = True) -> None:
        """Count unreported events for which the budget had no room; for `waits` see `BudgetKeeper.leave_out`."""
        self._keeper.leave_out(event, times, now, waits=waits)

    def pass_over(self, nanos: int) -> None:
        """Note that the target was held on request."""
        self._keeper.pass_over(nanos)

    def _ask(self) -> None:
        self._asked = self._settings.value(LEVEL) or 0
        self._keeper.ask(self._asked, parts=self._spaces > 1, paired=self.paired)

    # --------------------------------------------------------------------- counting

    def begin(self) -> None:
        """Note the beginning of a gathering."""
        self._begun = self._processor_nanos()
        self._said = 0

    def say_held(self, nanos: int, now: int) -> None:
        """Note that the driver held the target, for the event that is being gathered or otherwise."""
        if self._begun is None:
            self._keeper.spend_beside(nanos, now)
        else:
            self._said += nanos

    def stopped(self, gather_nanos: int, *, holds: bool) -> int:
        """How long the target was stopped for an event that took this long."""
        return self._said + (gather_nanos if holds and self._holds else 0)

    def finish(
        self,
        event: int,
        level: int,
        begun: int,
        now: int,
        *,
        holds: bool,
        explicit: str,
        in_vain: bool = False,
    ) -> None:
        """Note the cost of gathering an event.

        Args:
            event: Its kind.
            level: The greatest level at which it was gathered.
            begun: When it was requested.
            now: When the target could continue.
            holds: Whether it stood still until then.
            explicit: Why it was gathered at any cost; empty: the budget had room for it.
            in_vain: Whether none of its data is shown.
        """
        used = self._processor_nanos()
        cost = float(self._said)
        if holds and self._holds:
            cost += now - begun
        elif self._begun is not None:
            cost += max(0, used - self._begun - self._said) / self._processors
            if not self._holds and self._marked:
                # Work between events, such as checking for one, and sending.
                self._keeper.spend_beside((self._begun - self._marked) / self._processors, begun)
        self._ask()
        self._keeper.spend(
            event, min(level, self._asked), cost, begun, explicit=bool(explicit), in_vain=in_vain
        )
        self._marked, self._begun, self._said = used, None, 0
        self._reason = explicit

    # ---------------------------------------------------------------------- reporting

    def tell(self, now: int, sequence: int) -> Budget | None:
        """The message to send to clients now, if any.

        Args:
            now: The time.
            sequence: Sequence of the latest snapshot.
        """
        if not self._exists:
            return None
        self._sequence = sequence
        before = self._message
        due = self._told_nanos is None or now - self._told_nanos >= _TOLD_AGAIN_NANOS
        if (
            not due
            and before is not None
            and before.allowed == self._allowed()
            and before.asked == self._asked
        ):
            return None
        self._told_nanos = now
        self._compose(now)
        return self._message

    def _allowed(self) -> int:
        return self._keeper.thousandths * (_MILLIONTHS // ALL)

    def _compose(self, now: int) -> None:
        keeper = self._keeper
        pace = keeper.pace(now) if now else None
        reason = self._reason if keeper.limits else ""
        if pace is not None and pace.starves and not reason:
            level = (
                "one space alone"
                if pace.level == PART
                else f"level {pace.level} alone"
                if self._asked
                else "one event"
            )
            reason = f"{level} costs so much of the target's time that it is gathered only once in {pace.every_nanos / 1e9:.1f} s"
        self._message = Budget(
            setting=BUDGET,
            allowed=self._allowed(),
            spent=int(keeper.spent(now) * _MILLIONTHS) if now else 0,
            sequence=self._sequence,
            level_setting=LEVEL if self._asked else 0,
            asked=self._asked,
            given=0 if pace is None else max(pace.level, min(1, self._asked)),
            spaces=self._spaces,
            covered=1 if pace is not None and pace.level == PART else self._spaces,
            every_nanos=0 if pace is None else pace.every_nanos,
            full_nanos=0 if pace is None else pace.full_nanos,
            gathered=keeper.gathered,
            left_out=keeper.left_out,
            reason=reason,
        )
