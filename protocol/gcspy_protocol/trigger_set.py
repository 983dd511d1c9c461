"""The triggers of a session: the condition of each, its evaluation at an event, and the report about all.

One thread sets and reports them, another may evaluate them: their shared data is only replaced as a whole. Used by the server and
by the player. Knows schemas, expressions and one event at a time; knows neither clients nor the meaning of a pause.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gcspy_protocol.errors import (
    AmbiguousName,
    ExpressionError,
    GCspyError,
    LocalProtocolError,
    UnknownName,
)
from gcspy_protocol.expression import (
    Bound,
    EvaluationSource,
    Evaluator,
    Expression,
    bind,
    parse_condition,
)
from gcspy_protocol.messages import Event
from gcspy_protocol.model import Space
from gcspy_protocol.triggers import (
    MOST_NOTE_CHARS,
    MOST_TRIGGERS,
    Fired,
    Trigger,
    TriggerAction,
    Triggers,
    TriggerState,
    TriggerStatus,
)

__all__ = ["TriggerSet", "pause_reason"]

_WHY_CHARS = 1000
_DONE = (TriggerState.OFF, TriggerState.FAILED)


class _Entry:
    """A trigger, its condition, and how it stands."""

    def __init__(self, trigger: Trigger, condition: Expression) -> None:
        self.trigger = trigger
        self.condition = condition
        self.spaces: tuple[Space, ...] | None = None
        self.evaluator: Evaluator | None = None
        state = TriggerState.ARMED if trigger.enabled else TriggerState.OFF
        self.status = TriggerStatus(trigger=trigger, state=state)

    @property
    def done(self) -> bool:
        """Whether it is no longer evaluated."""
        return self.status.state in _DONE

    def bind(self, spaces: tuple[Space, ...], *, strict: bool = False) -> bool:
        """Look its names up among these spaces; whether that changes how it stands.

        Raises:
            AmbiguousName: A name may mean several streams, and `strict` is set; else it waits.
        """
        if self.spaces == spaces or self.done:
            return False
        self.spaces = spaces
        before = self.status
        try:
            bound = bind(self.condition, spaces, self._scope(spaces))
        except ExpressionError as error:
            if strict and isinstance(error, AmbiguousName):
                raise
            self.evaluator = None
            self.status = replace(before, state=TriggerState.WAITING, why=str(error)[:_WHY_CHARS])
        else:
            if self.evaluator is None or not _same(self.evaluator.bound, bound):
                self.evaluator = Evaluator(bound)
            if before.state is TriggerState.WAITING:
                self.status = replace(before, state=TriggerState.ARMED, why="")
        return self.status != before

    def _scope(self, spaces: tuple[Space, ...]) -> int | None:
        name = self.trigger.space
        if not name:
            return None
        found = [one.id for one in spaces if one.name == name]
        found = found or [one.id for one in spaces if one.name.casefold() == name.casefold()]
        if len(found) == 1:
            return found[0]
        text = self.condition.text
        if not found:
            raise UnknownName(f"there is no space {name!r}", text=text, offset=0)
        raise AmbiguousName(f"there are {len(found)} spaces {name!r}", text=text, offset=0)

    def look(
        self, source: EvaluationSource, event: Event, check: Callable[[], None]
    ) -> Fired | None:
        """Evaluate it, and say whether it fires."""
        if self.done or self.evaluator is None or not self.evaluator.is_due(source):
            return None
        result = self.evaluator.evaluate(source, check)
        armed = self.status.state is TriggerState.ARMED
        if result.value is False:
            self.status = replace(self.status, state=TriggerState.ARMED, operands=result.operands)
        elif result.holds and armed:
            self.status = replace(
                self.status,
                state=TriggerState.OFF if self.trigger.once else TriggerState.HOLDS,
                fired=self.status.fired + 1,
                sequence=event.sequence,
                event=event.event,
                occurrence=event.occurrence,
                operands=result.operands,
            )
            return Fired(
                trigger=self.trigger,
                sequence=event.sequence,
                time_nanos=event.time_nanos,
                event=event.event,
                occurrence=event.occurrence,
                operands=result.operands,
            )
        else:
            self.status = replace(self.status, operands=result.operands)
        return None

    def fail(self, why: str) -> None:
        """Stop evaluating it, and record the reason."""
        self.status = replace(self.status, state=TriggerState.FAILED, why=why[:_WHY_CHARS])

    def reset(self) -> None:
        """Restore the state before its first evaluation, except the number of firings."""
        if self.evaluator is not None:
            self.evaluator.reset()
        if self.status.state is TriggerState.HOLDS:
            self.status = replace(self.status, state=TriggerState.ARMED)


class TriggerSet:
    """All triggers of a session.

    Args:
        time_nanos: A clock, for what looking at them takes, of the thread that looks; without one that is not bounded.
        most_nanos: All of them together may take so long at an event; the one that took longest fails then.

    Attributes:
        changes: How often there was something new to tell.
    """

    def __init__(
        self, *, time_nanos: Callable[[], int] = int, most_nanos: int = 500_000_000
    ) -> None:
        self._time_nanos = time_nanos
        self._most_nanos = most_nanos
        self.changes = 0
        self._entries: tuple[_Entry, ...] = ()
        self._fired = 0

    @property
    def active(self) -> bool:
        """Whether any trigger is evaluated, that is, neither done nor waiting."""
        return any(entry.evaluator is not None and not entry.done for entry in self._entries)

    # --------------------------------------------------- by whom the controller talks to

    def set(self, trigger: Trigger, spaces: tuple[Space, ...]) -> None:
        """Set, replace or remove a trigger.

        Args:
            trigger: The trigger; it replaces the one of the same id. Without an expression, that one is removed.
            spaces: The present spaces.

        Raises:
            ExpressionError: Its expression is no condition.
            AmbiguousName: It uses a name that several streams have; nothing was changed.
            LocalProtocolError: There are too many, or its note is too long.
        """
        others = [entry for entry in self._entries if entry.trigger.id != trigger.id]
        if trigger.expression:
            if len(others) >= MOST_TRIGGERS:
                raise LocalProtocolError(
                    f"trigger {trigger.id}: there are {len(others)}, the maximum"
                )
            if len(trigger.note) > MOST_NOTE_CHARS:
                what = (
                    f"a note of {len(trigger.note)} characters; at most {MOST_NOTE_CHARS} are taken"
                )
                raise LocalProtocolError(f"trigger {trigger.id}: {what}")
            entry = _Entry(trigger, parse_condition(trigger.expression))
            entry.bind(spaces, strict=True)
            others.append(entry)
        self._entries = tuple(sorted(others, key=lambda entry: entry.trigger.id))
        self.changes += 1

    def announcement(self) -> Triggers:
        """Return the message that reports the state of all triggers."""
        return Triggers(triggers=tuple(entry.status for entry in self._entries), fired=self._fired)

    # ------------------------------------------------------------ at each event

    def bind(self, spaces: tuple[Space, ...]) -> bool:
        """Look names up among these spaces, if they are others than before.

        Returns:
            Whether that changes how a trigger stands.
        """
        changed = False
        for entry in self._entries:
            changed |= entry.bind(spaces)
        self.changes += changed
        return changed

    def needs(self) -> frozenset[tuple[int, int]]:
        """Space and stream, by id, of all streams that the evaluation needs."""
        found: frozenset[tuple[int, int]] = frozenset()
        for entry in self._entries:
            if entry.evaluator is not None and not entry.done:
                found |= entry.evaluator.bound.wants
        return found

    def look(self, source: EvaluationSource, event: Event) -> tuple[list[Fired], bool]:
        """Evaluate all triggers at an event.

        Args:
            source: The values gathered at the event.
            event: The event.

        Returns:
            The triggers that fire, in order of their ids; and whether the state of any changed.
        """
        start = self._time_nanos()
        fired: list[Fired] = []
        changed = False
        took: list[tuple[int, _Entry]] = []
        for entry in self._entries:
            before, began = entry.status, self._time_nanos()
            try:
                one = entry.look(source, event, lambda: self._check(start))
            except _TooLong:
                took.append((self._time_nanos() - began, entry))
                self._fail_slowest(took)
                changed = True
                break
            except Exception as error:  # noqa: BLE001 - whatever it was, the target goes on
                entry.fail(
                    str(error)
                    if isinstance(error, GCspyError)
                    else f"{type(error).__name__}: {error}"
                )
                changed = True
                continue
            took.append((self._time_nanos() - began, entry))
            if one is not None:
                self._fired += 1
                fired.append(one)
            changed |= entry.status.state is not before.state or one is not None
        self.changes += changed
        return fired, changed

    def _check(self, start: int) -> None:
        if self._time_nanos() - start > self._most_nanos:
            raise _TooLong("all triggers together")

    def _fail_slowest(self, took: list[tuple[int, _Entry]]) -> None:
        nanos, entry = max(took, key=lambda one: one[0])
        limit = f"all triggers of an event may take {self._most_nanos / 1e6:,.0f} ms"
        entry.fail(
            f"it took {nanos / 1e6:,.0f} ms and more, and {limit}: make it simpler, or set it again"
        )

    def reset(self) -> None:
        """Forget the event before, and arm what holds: another place of a recording, say."""
        for entry in self._entries:
            before = entry.status
            entry.reset()
            self.changes += entry.status is not before


class _TooLong(GCspyError):
    """The time of an event's triggers is over."""


def _same(one: Bound, other: Bound) -> bool:
    return one.streams == other.streams and one.enums == other.enums


def pause_reason(fired: Sequence[Fired]) -> str:
    """Why a pause holds at an event; empty when none of what fired asks for one."""
    pausing = [one.trigger for one in fired if one.trigger.action is TriggerAction.PAUSE]
    if not pausing:
        return ""
    first = pausing[0]
    more = f" and {len(pausing) - 1} more" if len(pausing) > 1 else ""
    return f"trigger {first.id}: {first.note or first.expression}{more}"
