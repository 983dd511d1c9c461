"""The latest event of a client interpreter, as the source of an evaluation.

Views, playbacks, and commands that stop at a condition use it. Knows the client interpreter; does
not know the expression.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gcspy_protocol.errors import LocalProtocolError
from gcspy_protocol.expression.evaluation import EventFacts
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.messages import Event
from gcspy_protocol.model import Control

__all__ = ["ClientSource", "used_tiles"]


class ClientSource:
    """The data of a client right after an event.

    Args:
        session: The client interpreter.

    Raises:
        LocalProtocolError: No event has come yet.
    """

    def __init__(self, session: ClientInterpreter) -> None:
        if session.last_event is None:
            raise LocalProtocolError(
                "an expression is evaluated at an event, but no event has arrived"
            )
        self._session = session
        self._event: Event = session.last_event

    @property
    def facts(self) -> EventFacts:
        """Facts of the event."""
        event = self._event
        return EventFacts(
            event=self._session.event_name(event.event),
            occurrence=event.occurrence,
            gather_nanos=event.gather_nanos,
            held_nanos=event.held_nanos,
            cause=event.cause,
        )

    def is_fresh(self, space: int, stream: int) -> bool:
        """Whether a stream was gathered at this event."""
        return self._session.spaces[space].stream(stream).is_fresh(self._event)

    def stream(self, space: int, stream: int) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        """Values, shape (tiles,), and where they are known; these are the interpreter's own arrays."""
        state = self._session.spaces[space].stream(stream)
        return state.values, state.known

    def used(self, space: int) -> NDArray[np.bool_] | None:
        """Shape (tiles,), which tiles are used; None: all."""
        return used_tiles(self._session.spaces[space].control.values)

    def summary(self, space: int, stream: int) -> tuple[tuple[int, ...], int]:
        """The driver's summary, and how many tiles it covers; 0: it is unknown."""
        found = self._session.spaces[space].stream(stream).summary
        if found is None or found.sequence != self._event.sequence:
            return (), 0
        return found.values, found.covered


def used_tiles(control: NDArray[np.uint8]) -> NDArray[np.bool_] | None:
    """Return which tiles are used, by their flags; None: all."""
    # One pass without an array covers the usual case.
    if not len(control) or int(np.bitwise_and.reduce(control)) & Control.USED:
        return None
    used: NDArray[np.bool_] = (control & np.uint8(Control.USED)) != 0
    return used
