"""A condition at which a command stops: an expression that is evaluated after each received event.

Knows expressions and the client interpreter; does not know commands. A client evaluates the events
that it received. If it must not miss any, or is to hold the target at the very event, it has to set
a trigger.
"""

from __future__ import annotations

from gcspy_protocol.errors import UnknownName
from gcspy_protocol.expression import Evaluator, bind, parse_condition
from gcspy_protocol.expression.client import ClientSource
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.model import Space

__all__ = ["Until"]


class Until:
    """Whether a condition is true, from event to event.

    Args:
        condition: Its text.

    Raises:
        ExpressionError: It is not a condition.

    Attributes:
        why_not: Why it could not be evaluated so far; empty once it was.
    """

    def __init__(self, condition: str) -> None:
        self._condition = parse_condition(condition)
        self.why_not = "no event has arrived"
        self._spaces: tuple[Space, ...] | None = None
        self._evaluator: Evaluator | None = None

    def holds(self, session: ClientInterpreter) -> bool:
        """Evaluate it right after an event."""
        spaces = tuple(state.space for state in session.spaces.values())
        if spaces != self._spaces:
            self._spaces = spaces
            self._bind(spaces)
        if self._evaluator is None:
            return False
        source = ClientSource(session)
        if not self._evaluator.is_due(source):
            return False
        self.why_not = ""
        return self._evaluator.evaluate(source).holds

    def _bind(self, spaces: tuple[Space, ...]) -> None:
        try:
            self._evaluator = Evaluator(bind(self._condition, spaces))
        except UnknownName as error:  # it may appear with a later event
            self._evaluator = None
            self.why_not = str(error)
        else:
            self.why_not = "the values it uses were not gathered at any event"

    def never(self) -> str:
        """The message if it was never true."""
        return f"{self._condition.text!r} was never true" + (
            f": {self.why_not}" if self.why_not else ""
        )
