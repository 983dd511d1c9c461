"""A condition at which a command stops: an expression that is evaluated after each received event.

Knows expressions and the client interpreter; does not know commands. A client evaluates the events
that it received. If it must not miss any, or is to hold the target at the very event, it has to set
a trigger.
"""

from __future__ import annotations

from collections.abc import Callable

from gcspy_protocol.errors import AmbiguousName, CommandError, UnknownName
from gcspy_protocol.expression import Evaluator, bind, parse_condition
from gcspy_protocol.expression.client import ClientSource
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.model import Space

__all__ = ["Until"]


class Until:
    """Whether a condition is true, from event to event.

    Args:
        condition: Its text.
        say: Called with a sentence when it cannot be evaluated yet, each time the reason changes.

    Raises:
        ExpressionError: It is not a condition.

    Attributes:
        why_not: Why it could not be evaluated so far; empty once it was.
    """

    def __init__(self, condition: str, say: Callable[[str], None] = lambda _text: None) -> None:
        self._condition = parse_condition(condition)
        self._say = say
        self.why_not = "no event has arrived"
        self._was_clear = False
        self._spaces: tuple[Space, ...] | None = None
        self._evaluator: Evaluator | None = None

    def follow(self, session: ClientInterpreter) -> None:
        """Look its names up, if the spaces are others than before.

        Raises:
            CommandError: A name may mean several streams; the message has the words to use.
        """
        spaces = tuple(state.space for state in session.spaces.values())
        if spaces != self._spaces:
            self._spaces = spaces
            self._bind(spaces)

    def holds(self, session: ClientInterpreter) -> bool:
        """Evaluate it right after an event.

        Raises:
            CommandError: A name may mean several streams; the message has the words to use.
        """
        self.follow(session)
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
        except (AmbiguousName, UnknownName) as error:
            if isinstance(error, AmbiguousName) and not self._was_clear:
                raise CommandError(f"--until: {error}") from error
            # It may appear with a later event, or become clear again.
            self._evaluator = None
            if spaces and self.why_not != str(error):
                self.why_not = str(error)
                self._say(f"{self._condition.text!r} waits: {error}")
        else:
            self._was_clear = True
            self.why_not = "the values it uses were not gathered at any event"

    def never(self) -> str:
        """The message if it was never true."""
        return f"{self._condition.text!r} was never true" + (
            f": {self.why_not}" if self.why_not else ""
        )
