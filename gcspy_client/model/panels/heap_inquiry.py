"""The query for holders: its text, its progress, and the latest answer, with its age.

Knows questions, answers and a clock that it is given; does not know sockets or widgets.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from gcspy_protocol.details import HEAP_KINDS, Answer, AnswerState, DetailTable, Query

__all__ = ["DOMINATORS", "HOLDERS", "HeapInquiry", "HeapSubject", "Told"]

HOLDERS, DOMINATORS = HEAP_KINDS

MOST_ROWS_ASKED = 200
_MOST_KEPT = 16
_FIRST_NUMBER = 1 << 29
"""Other questions, asked over the same connection, have other numbers."""


@dataclass(frozen=True, slots=True)
class HeapSubject:
    """The subject of a question.

    Attributes:
        kind: `HOLDERS` or `DOMINATORS`.
        title: Its text.
        space: Id of the tile's space; 0: it is not about a tile.
        key: Stable key of the tile; None: it is not about a tile.
        type_name: The type; empty: all types.
    """

    kind: str
    title: str
    space: int = 0
    key: int | None = None
    type_name: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """An answer.

    Attributes:
        table: The answer.
        sequence: Sequence of the latest event at that time.
        at_secs: When it came, by the clock.
    """

    table: DetailTable
    sequence: int
    at_secs: float


class HeapInquiry:
    """Asks one question at a time; the server cancels the previous one.

    Args:
        send: Sends a question.
        time_secs: Monotonic clock.

    Attributes:
        subject: The latest subject; None: none yet.
        step: The server's current step, its progress, and its total (0: not known); None: no
            question is in progress.
        failure: Why the latest question was not answered; empty: it was. The earlier answer stays.
    """

    def __init__(self, send: Callable[[Query], None], time_secs: Callable[[], float]) -> None:
        self._send, self._time_secs = send, time_secs
        self._number = _FIRST_NUMBER
        self._told: OrderedDict[HeapSubject, Told] = OrderedDict()
        self.subject: HeapSubject | None = None
        self._under_way: HeapSubject | None = None
        self.step: tuple[str, int, int] | None = None
        self.failure = ""

    @property
    def waits(self) -> bool:
        """Whether the answer about the subject is under way."""
        return self._under_way is not None

    @property
    def told(self) -> Told | None:
        """The latest answer about the subject; None: there is none."""
        return None if self.subject is None else self._told.get(self.subject)

    @property
    def age_secs(self) -> float | None:
        """Its age; None: there is none."""
        told = self.told
        return None if told is None else self._time_secs() - told.at_secs

    def turn_to(self, subject: HeapSubject) -> bool:
        """Be about something; returns whether an answer about it is known."""
        if subject != self.subject:
            self.subject, self.failure = subject, ""
        return self.told is not None

    def ask(self, subject: HeapSubject, *, held: bool) -> None:
        """Ask.

        Args:
            subject: About what.
            held: Whether the process is to be held while its memory is copied.
        """
        self.subject = self._under_way = subject
        self.step, self.failure = None, ""
        self._number += 1
        self._send(
            Query(
                number=self._number,
                space=subject.space,
                kind=subject.kind,
                key=subject.key,
                most=MOST_ROWS_ASKED,
                text=subject.type_name,
                held=held,
            )
        )

    def take(self, answer: Answer) -> bool:
        """Handle an answer; return whether it belongs here."""
        if self._under_way is None or answer.number != self._number:
            return False
        if answer.state is AnswerState.UNDER_WAY:
            self.step = (answer.reason, answer.done, answer.total)
            return True
        if answer.state is AnswerState.ANSWERED:
            self._told[self._under_way] = Told(answer.table, answer.sequence, self._time_secs())
            self._told.move_to_end(self._under_way)
            while len(self._told) > _MOST_KEPT:
                self._told.popitem(last=False)
        else:
            self.failure = answer.reason
        self._under_way = self.step = None
        return True

    def forget(self) -> None:
        """Another connection: nothing is under way there."""
        if self._under_way is not None:
            self.failure = "the connection was lost before the answer came"
        self._under_way = self.step = None

    def clear(self) -> None:
        """Another session: answers are about another process."""
        self.forget()
        self._told.clear()
        self.subject, self.failure = None, ""
