"""Questions about a whole session, whose answers do not change: each is asked once, and the answer is stored.

Knows questions and answers; does not know sockets or widgets.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from gcspy_protocol.details import MOST_ROWS, Answer, AnswerState, Query

__all__ = ["AskingOnce", "SessionQuestion"]

_FIRST_NUMBER = 1 << 30
"""Questions about tiles, asked over the same connection, have lower numbers."""
_MOST_KEPT = 32


@dataclass(frozen=True, slots=True)
class SessionQuestion:
    """A question.

    Attributes:
        space: Id of its space.
        kind: Its kind.
        text: Search text, in the syntax of the kind.
    """

    space: int
    kind: str
    text: str = ""


class AskingOnce:
    """Asks one question at a time; of the requests made meanwhile only the latest is kept.

    Args:
        send: Sends a question.
    """

    def __init__(self, send: Callable[[Query], None]) -> None:
        self._send = send
        self._number = _FIRST_NUMBER
        self._under_way: SessionQuestion | None = None
        self._requested: SessionQuestion | None = None
        self._told: OrderedDict[SessionQuestion, Answer] = OrderedDict()

    def request(self, question: SessionQuestion) -> Answer | None:
        """Return the answer; ask if there is none."""
        told = self._told.get(question)
        if told is None:
            self._requested = question
            self._ask()
        return told

    def _ask(self) -> None:
        if self._under_way is not None or self._requested is None:
            return
        self._under_way, self._requested = self._requested, None
        self._number += 1
        one = self._under_way
        self._send(
            Query(
                number=self._number, space=one.space, kind=one.kind, most=MOST_ROWS, text=one.text
            )
        )

    def take(self, answer: Answer) -> bool:
        """Handle an answer; return whether it belongs here."""
        question = self._under_way
        if question is None or answer.number != self._number:
            return False
        self._under_way = None
        self._told[question] = answer
        while len(self._told) > _MOST_KEPT:
            self._told.popitem(last=False)
        if self._requested in self._told:
            self._requested = None
        self._ask()
        return True

    def forget(self) -> None:
        """Another connection: there are no questions in progress, and no answers."""
        self._under_way = self._requested = None
        self._told.clear()

    def forgive(self) -> None:
        """Forget unanswered questions, so that they are asked again."""
        for question in [
            one for one, answer in self._told.items() if answer.state is not AnswerState.ANSWERED
        ]:
            del self._told[question]
