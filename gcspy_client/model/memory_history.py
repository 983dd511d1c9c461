"""`resident_set`: the bytes of a process's resident set at the latest event, from the space "Memory over time".

Knows the session's model; knows neither widgets nor drivers.
"""

from __future__ import annotations

from typing import Final

from gcspy_protocol.interpreter import ClientInterpreter

__all__ = ["MEMORY_HISTORY", "RESIDENT_SET", "resident_set"]

MEMORY_HISTORY: Final = "Memory over time"
"""Name of the space that a session of a process has for it."""

RESIDENT_SET: Final = "Resident set"
"""Name of its stream."""


def resident_set(session: ClientInterpreter) -> int | None:
    """Return its bytes; None: there is no such space, or it was not gathered at the latest event, or is unknown."""
    event = session.last_event
    if event is None:
        return None
    for space in session.spaces.values():
        if space.space.name != MEMORY_HISTORY:
            continue
        for state in space.streams.values():
            if state.schema.name == RESIDENT_SET and state.is_fresh(event) and state.is_known(0):
                return int(state.values[0])
    return None
