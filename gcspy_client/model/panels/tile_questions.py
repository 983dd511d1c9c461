"""Questions about the content of a tile, and their answers: one question at a time, of the requests made meanwhile only the latest is kept.

Answers are stored for a while, by their event: so an event that is visited again has its earlier
answers.

Knows questions and answers; does not know sockets or widgets.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from gcspy_protocol.details import Answer, AnswerState, Query

from gcspy_client.model.panels.chart import CHART_KINDS
from gcspy_client.model.panels.flame_graph import FLAME_KIND

__all__ = ["MOST_ROWS_ASKED", "SOUGHT", "TileQuestions", "QuestionSubject", "kinds_of"]

MOST_ROWS_ASKED = 200
_MOST_KEPT = 64

SOUGHT = ("objects", "life", "neighbours")
"""Kinds of questions that search for something; they do not describe the content of a tile."""


def kinds_of(details: tuple[str, ...]) -> tuple[str, ...]:
    """The kinds of questions about the content of a tile; those about a whole session, or drawn as a graph, are excluded as well."""
    others = (*SOUGHT, *CHART_KINDS, FLAME_KIND)
    return tuple(kind for kind in details if kind not in others)


@dataclass(frozen=True, slots=True)
class QuestionSubject:
    """The subject of a question.

    Attributes:
        session: Identity of the session.
        space: Id of the space.
        kind: Its kind.
        key: Stable key of the tile; None: the whole space.
        text: Search text, in the syntax of the kind.
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
        first: First number of its questions: other users of the same connection have others.
        most: Rows of an answer.

    Attributes:
        subject: The current subject; None: none.
    """

    def __init__(
        self, send: Callable[[Query], None], *, first: int = 0, most: int = MOST_ROWS_ASKED
    ) -> None:
        self._send, self._most = send, most
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
        """Set the subject.

        Args:
            subject: The latest request; None: nothing.
            newest: Sequence of the latest event: if the answer is about an earlier one, it is
                requested again.
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
                most=self._most,
                text=subject.text,
            )
        )

    def take(self, answer: Answer) -> None:
        """Handle an answer."""
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
            sequence: Sequence of the displayed event.
            live: Whether the latest will do, where there is no answer about this very event.
        """
        if self.subject is None:
            return None
        exact = self._kept.get((self.subject, sequence))
        if exact is not None or not live:
            return exact
        return self._latest if self._latest_of == self.subject else None
