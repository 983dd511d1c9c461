"""The event that is being finished, as the source for triggers: the driver's own arrays, before they change again.

Knows spaces and their encoded data; does not know expressions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gcspy_protocol.expression import EventFacts
from gcspy_protocol.expression.client import used_tiles
from gcspy_protocol.messages import Event
from gcspy_protocol.streams.values import Stamp
from numpy.typing import NDArray

from gcspy_server.interpreter.transmission import SpaceSender

__all__ = ["TriggerSource"]


class TriggerSource:
    """The data gathered at an event.

    Args:
        event: The event.
        name: Name of its kind.
        senders: The spaces by id.
    """

    def __init__(self, event: Event, name: str, senders: Mapping[int, SpaceSender]) -> None:
        self._event = event
        self._name = name
        self._senders = senders

    @property
    def facts(self) -> EventFacts:
        """Facts of the event; the cost of evaluating triggers is not included yet."""
        event = self._event
        return EventFacts(
            event=self._name,
            occurrence=event.occurrence,
            gather_nanos=event.gather_nanos,
            held_nanos=event.held_nanos,
            cause=event.cause,
        )

    def is_fresh(self, space: int, stream: int) -> bool:
        """Whether a stream was gathered at this event."""
        # A trigger that was set while this event was gathered may name a space that has just been removed.
        sender = self._senders.get(space)
        return (
            sender is not None
            and not sender.space.withheld
            and sender.space.streams[stream].gathered
        )

    def stream(self, space: int, stream: int) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        """Values, shape (tiles,), and where they are known; the driver's own arrays."""
        found = self._senders[space].space.streams[stream]
        return found._values, found._known

    def used(self, space: int) -> NDArray[np.bool_] | None:
        """Shape (tiles,), which tiles are used; None: all."""
        return used_tiles(self._senders[space].space._control)

    def summary(self, space: int, stream: int) -> tuple[tuple[int, ...], int]:
        """The summary, and how many tiles it covers; 0: it is unknown."""
        event = self._event
        stamp = Stamp(
            sequence=event.sequence,
            time_nanos=event.time_nanos,
            event=event.event,
            occurrence=event.occurrence,
        )
        found = self._senders[space].summary(stream, stamp)
        return found.values, found.covered
