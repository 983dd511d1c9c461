"""What is asked about the contents of a tile, and what was told: one question under way at a time, of the requests made meanwhile only the latest is kept.

Answers are kept for a while, by the event that they are of: so an event that is visited again has the answers that it had then.

Knows questions and answers; does not know sockets or widgets.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from gcspy_protocol.details import Answer, AnswerState, Query

from gcspy_client.model.panels.chart import CHART_KINDS

__all__ = ["MOST_ROWS_ASKED", "SOUGHT", "TileQuestions", "QuestionSubject", "kinds_of"]

MOST_ROWS_ASKED = 200
_MOST_KEPT = 64

SOUGHT = ("objects", "life", "neighbours")
"""Kinds of questions that seek something: what is sought is asked for, and they are no answer to what is in a tile."""


def kinds_of(details: tuple[str, ...]) -> tuple[str, ...]:
    """The kinds of questions that tell what is in a tile: those about a whole session are no answer to it either."""
    return tuple(kind for kind in details if kind not in SOUGHT and kind not in CHART_KINDS)


@dataclass(frozen=True, slots=True)
class QuestionSubject:
    """What is asked about.

    Attributes:
        session: Identity of the session.
        space: Id of the space.
        kind: What is asked for.
        key: Stable key of the tile; None: the whole space.
        text: What is sought, in the words of the kind.
    """

    session: str
    space: int
    kind: str
    key: int | None
    text: str = ""


class TileQuestions:
    """Asks about one subject at a time.

    Args:
        send: Sends a question.
        first: Of the numbers of its questions: who else asks over the same connection has others.

    Attributes:
        subject: What to ask about; None: nothing.
    """

    def __init__(self, send: Callable[[Query], None], *, first: int = 0) -> None:
        self._send = send
        self.subject: QuestionSubject | None = None
        self._under_way: tuple[int, QuestionSubject] | None = None
        self._number = first
        self._asked: tuple[QuestionSubject, int] | None = None
        self._latest: Answer | None = None
        self._latest_of: QuestionSubject | None = None
        self._kept: OrderedDict[tuple[QuestionSubject, int], Answer] = OrderedDict()

    @property
    def waits(self) -> bool:
        """Whether a question about the subject is under way, and none was answered yet."""
        return self._under_way is not None and self._latest_of != self.subject

    def request(self, subject: QuestionSubject | None, newest: int, *, exact: bool = False) -> None:
        """Say what to ask about.

        Args:
            subject: The latest request; None: nothing.
            newest: Sequence of the latest event: an answer about an earlier one is asked for again.
            exact: Also ask again for an answer about a later one: events may go backwards, as those of a playback do.
        """
        self.subject = subject
        if subject is None or self._under_way is not None:
            return
        told = self._latest if self._latest_of == subject else None
        if told is not None and told.state is AnswerState.NOT_RECORDED:
            return
        if exact and ((subject, newest) in self._kept or self._asked == (subject, newest)):
            return
        if not exact and told is not None and told.sequence >= newest:
            return
        self._asked = subject, newest
        self._number += 1
        self._under_way = self._number, subject
        self._send(
            Query(
                number=self._number,
                space=subject.space,
                kind=subject.kind,
                key=subject.key,
                most=MOST_ROWS_ASKED,
                text=subject.text,
            )
        )

    def take(self, answer: Answer) -> None:
        """Take what was told."""
        if self._under_way is None or answer.number != self._under_way[0]:
            return
        _, subject = self._under_way
        self._under_way = None
        if answer.sequence:
            self._kept[subject, answer.sequence] = answer
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        self._latest, self._latest_of = answer, subject

    def forget(self) -> None:
        """Another connection: nothing is under way there."""
        self._under_way = self._latest = self._latest_of = self._asked = None

    def answer(self, sequence: int, *, live: bool) -> Answer | None:
        """The answer about the subject.

        Args:
            sequence: Of the event that is shown.
            live: Whether the latest will do, where there is no answer about this very event.
        """
        if self.subject is None:
            return None
        exact = self._kept.get((self.subject, sequence))
        if exact is not None or not live:
            return exact
        return self._latest if self._latest_of == self.subject else None
