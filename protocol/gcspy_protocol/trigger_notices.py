"""Notices of triggers that wait or have failed: one per state, with its reason.

Knows the server's messages about triggers; does not know who prints them.
"""

from __future__ import annotations

from gcspy_protocol.triggers import Triggers, TriggerState

__all__ = ["TriggerNotices"]

_SAID = {TriggerState.WAITING: "waits", TriggerState.FAILED: "failed"}


class TriggerNotices:
    """The lines about the triggers of a session, from message to message."""

    def __init__(self) -> None:
        self._told: dict[int, tuple[TriggerState, str]] = {}

    def lines(self, message: Triggers) -> list[str]:
        """The lines to print for a message: of triggers that wait or failed, and were not told so yet."""
        found, told = [], {}
        for status in message.triggers:
            ident, state = status.trigger.id, status.state
            if state in _SAID:
                told[ident] = (state, status.why)
                if self._told.get(ident) != told[ident]:
                    found.append(
                        f"trigger {ident} {_SAID[state]}, {status.trigger.expression!r}: {status.why}"
                    )
        self._told = told
        return found
