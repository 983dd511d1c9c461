"""Requests that no event be dropped, and measures the cost for the target (SPEC.md 8.6).

Knows messages and a link; does not know the client, or its use of the events.
"""

from __future__ import annotations

from dataclasses import dataclass

from gcspy_protocol.errors import LinkError, Refused
from gcspy_protocol.messages import (
    Error,
    ErrorCode,
    Event,
    Lossless,
    Message,
    Ping,
    Pong,
    TakeControl,
    Welcome,
)
from gcspy_protocol.model import PauseActsOn

from gcspy.connection.reconnecting_link import ReconnectingLink

__all__ = ["Cost", "LosslessMode"]

_ANSWER_SECS = 10.0
_NUMBER = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """Cost of the mode so far, by the target's clock.

    Attributes:
        deadline_secs: How long the server waits for us at one event.
        acts_on: The program that is held.
        held_nanos: How long it was held for us, and for other lossless clients if there are any.
        span_nanos: From the first event to the latest.
        ended: Why the mode ended; empty: it has not.
    """

    deadline_secs: float
    acts_on: PauseActsOn
    held_nanos: int
    span_nanos: int
    ended: str

    @property
    def percent(self) -> float:
        """Share of the time for which the target was held."""
        return 100 * self.held_nanos / self.span_nanos if self.span_nanos > 0 else 0.0

    def __str__(self) -> str:
        held = f"waits for recorders held the {self.acts_on.value} for {self.held_nanos / 1e9:,.1f} s ({self.percent:.1f} %)"
        return f"{held}; no longer lossless: {self.ended}" if self.ended else held


class LosslessMode:
    """The mode of one client, over one connection or several.

    Args:
        deadline_secs: Maximum wait at one event.
    """

    def __init__(self, deadline_secs: float) -> None:
        self._deadline_secs = deadline_secs
        self._acts_on = PauseActsOn.PROGRAM
        self._first: Event | None = None
        self._last: Event | None = None
        self._before = (0, 0)  # nanoseconds held and in all, over the previous connections
        self._ended = ""

    @property
    def cost(self) -> Cost:
        """Cost so far."""
        held, span = self._before
        if self._first is not None and self._last is not None:
            held += self._last.waited_nanos - self._first.waited_nanos
            span += self._last.time_nanos - self._first.time_nanos
        return Cost(
            deadline_secs=self._deadline_secs,
            acts_on=self._acts_on,
            held_nanos=held,
            span_nanos=span,
            ended=self._ended,
        )

    def ask(self, link: ReconnectingLink) -> None:
        """Request it, on a new connection; if a program would be held, request control first."""
        self._ended = ""
        if link.welcome.pause_acts_on is PauseActsOn.PROGRAM and not link.welcome.controller:
            link.send(TakeControl())
        link.send(Lossless(deadline_millis=round(1000 * self._deadline_secs)))

    def begin(self, link: ReconnectingLink) -> list[Message]:
        """Request it, and wait for the answer.

        Returns:
            Messages that arrived meanwhile, not applied yet.

        Raises:
            Refused: The server said no.
            LinkError: It does not answer.
        """
        self.ask(link)
        link.send(Ping(number=_NUMBER))
        came: list[Message] = []
        while (message := link.receive(_ANSWER_SECS)) is not None:
            match message:
                case Error(code=ErrorCode.NOT_CONTROLLER):
                    raise Refused(
                        f"a lossless recording was refused: {message.message}",
                        code=message.code.name.lower(),
                        remedy=message.remedy,
                    )
                case Pong(number=number) if number == _NUMBER:
                    return came
                case _:
                    came.append(message)
        raise LinkError(
            f"the server at {link.address} did not answer the request for a lossless recording"
        )

    def follow(self, message: Message) -> None:
        """Take information about the mode from a message."""
        match message:
            case Welcome():
                cost = self.cost
                self._before = cost.held_nanos, cost.span_nanos
                self._first = self._last = None
                self._acts_on = message.pause_acts_on
            case Event():
                self._first = self._first or message
                self._last = message
            case Error(code=ErrorCode.NOT_CONTROLLER | ErrorCode.TOO_SLOW):
                self._ended = message.message
            case _:
                pass  # has no information about it
