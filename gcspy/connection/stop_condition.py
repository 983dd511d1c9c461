"""A condition at which a command stops: an expression that is looked at after each event that came.

Knows expressions and the client interpreter; does not know commands. A client looks at the events that it was sent: one that
must not miss any, or that is to hold the target at the very event, sets a trigger.
"""

from __future__ import annotations

from gcspy_protocol.errors import UnknownName
from gcspy_protocol.expression import Evaluator, bind, parse_condition
from gcspy_protocol.expression.client import ClientSource
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.model import Space

__all__ = ["Until"]


class Until:
    """Whether a condition holds, from event to event.

    Args:
        condition: Its text.

    Raises:
        ExpressionError: It is no condition.

    Attributes:
        why_not: Why it could not be looked at so far; empty once it was.
    """

    def __init__(self, condition: str) -> None:
        self._condition = parse_condition(condition)
        self.why_not = "no event has arrived"
        self._spaces: tuple[Space, ...] | None = None
        self._evaluator: Evaluator | None = None

    def holds(self, session: ClientInterpreter) -> bool:
        """Look at it right after an event."""
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
        except UnknownName as error:  # it may come with a later event
            self._evaluator = None
            self.why_not = str(error)
        else:
            self.why_not = "the values it uses were not gathered at any event"

    def never(self) -> str:
        """What to say when it never held."""
        return f"{self._condition.text!r} was never true" + (
            f": {self.why_not}" if self.why_not else ""
        )
