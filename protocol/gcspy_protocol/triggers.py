"""Messages about triggers between a controller and a server (SPEC.md section 8.8).

The classes are messages like those of `gcspy_protocol.messages`, which exports them too. The module
knows their meaning; it does not know their bytes, nor when a condition is evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gcspy_protocol.expression.evaluation import Operand

__all__ = [
    "MOST_NOTE_CHARS",
    "MOST_TRIGGERS",
    "Fired",
    "Trigger",
    "TriggerAction",
    "TriggerState",
    "TriggerStatus",
    "Triggers",
]

MOST_TRIGGERS = 64
"""Triggers of a session: each is evaluated before an event is handed over."""

MOST_NOTE_CHARS = 1000


class TriggerAction(StrEnum):
    """The action when the condition becomes true; FIRED informs every client in each case."""

    PAUSE = "pause"
    """The target stands at the very event."""
    BOOKMARK = "bookmark"
    """Clients that keep bookmarks make one."""
    NOTE = "note"
    """The clients are informed; nothing else happens."""


class TriggerState(StrEnum):
    """State of a trigger."""

    ARMED = "armed"
    """It fires when its condition becomes true."""
    HOLDS = "holds"
    """It has fired, and the condition has not been false since then."""
    WAITING = "waiting"
    """Its condition names a space or stream that does not exist, or not yet."""
    FAILED = "failed"
    """Its evaluation failed; it is not evaluated again before it is set again."""
    OFF = "off"
    """It is not enabled, or was to fire only once and has fired."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trigger:
    """Client, controller: pause, or report, when a condition becomes true; replaces the trigger of the same id.

    Attributes:
        id: Number, the controller's choice.
        expression: The condition; empty: the trigger of this id is removed.
        space: Name of the space whose streams stand in it without a space; empty: each has to be the only one of its name.
        action: The action when it fires.
        once: Fires only once.
        enabled: Whether it is evaluated.
        note: For people: why it was set.
    """

    id: int
    expression: str = ""
    space: str = ""
    action: TriggerAction = TriggerAction.PAUSE
    once: bool = False
    enabled: bool = True
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class TriggerStatus:
    """A trigger and its state.

    Attributes:
        trigger: The trigger as it was set.
        state: Its state.
        fired: How often it has fired.
        sequence: Snapshot at which it fired last; 0: it has not.
        event: Kind of that event.
        occurrence: Its occurrence number.
        operands: The operands of its last evaluation before this message.
        why: Reason why it waits or has failed.
    """

    trigger: Trigger
    state: TriggerState
    fired: int = 0
    sequence: int = 0
    event: int = 0
    occurrence: int = 0
    operands: tuple[Operand, ...] = ()
    why: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Triggers:
    """Server: all triggers, when any of them is set, fires or changes.

    Attributes:
        triggers: In order of their ids.
        fired: How often any has fired in this session, removed ones too.
    """

    triggers: tuple[TriggerStatus, ...]
    fired: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Fired:
    """Server, behind an EVENT: a condition became true at that event.

    Attributes:
        trigger: The trigger as it was set.
        sequence: The snapshot.
        time_nanos: Its time.
        event: Kind of the event.
        occurrence: Its occurrence number.
        pauses: Whether it has paused the session's activity at this event; a pause without a controller does not hold.
        operands: Operands of the condition, with their values.
    """

    trigger: Trigger
    sequence: int
    time_nanos: int
    event: int
    occurrence: int
    pauses: bool = False
    operands: tuple[Operand, ...] = ()
