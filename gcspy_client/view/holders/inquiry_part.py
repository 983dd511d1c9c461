"""The base class of parts that send one question to the server, and show its progress, its answer and the answer's age.

Connects an inquiry to the link and to a clock; does not know what is asked.
"""

from __future__ import annotations

from typing import Protocol

from gcspy_protocol.details import Answer
from gcspy_protocol.messages import Message, Welcome
from PySide6.QtCore import QTimer

from gcspy_client.view.desk import Desk
from gcspy_client.view.part import Part

__all__ = ["Inquiry", "InquiryPart", "as_sentence"]

_AGE_MILLIS = 1000


class Inquiry(Protocol):
    """A question to the server.

    Attributes:
        step: The server's current step, its progress, and its total (0: not known); None: none was reported.
    """

    step: tuple[str, int, int] | None

    def take(self, answer: Answer) -> bool:
        """Handle an answer; return whether it belongs here."""

    def forget(self) -> None:
        """Another connection: nothing is under way there."""

    def clear(self) -> None:
        """Another session: answers are about another process."""


class InquiryPart(Part):
    """A part with an inquiry. Subclasses start and stop `_age`, which updates the age of what is shown.

    Args:
        desk: The window's desk.
        inquiry: The question and the answer.
    """

    def __init__(self, desk: Desk, inquiry: Inquiry) -> None:
        super().__init__(desk)
        self._inquiry = inquiry
        self._identity = ""
        self._stopped = False
        self._age = QTimer(self)
        self._age.setInterval(_AGE_MILLIS)
        self._age.timeout.connect(self.refresh)
        desk.link.welcomed.connect(self._begin)
        desk.link.received.connect(self._take)

    def stop(self) -> None:
        """Ask nothing any more; no timer is left."""
        self._stopped = True
        self._age.stop()

    def _begin(self) -> None:
        self._inquiry.forget()
        self.refresh()

    def _take(self, messages: list[Message]) -> None:
        for welcome in (one for one in messages if isinstance(one, Welcome)):
            if welcome.session != self._identity:
                self._identity = welcome.session
                self._inquiry.clear()
        taken = [self._inquiry.take(one) for one in messages if isinstance(one, Answer)]
        if any(taken):
            self.refresh()

    def _progress(self) -> str:
        if self._inquiry.step is None:
            return "Asking…"
        what, done, total = self._inquiry.step
        if total > 0:
            return f"Asking: {what}, {min(1.0, done / total):.0%}"
        return f"Asking: {what}, {done:,}" if done else f"Asking: {what}"


def as_sentence(words: str, *, first: bool = True) -> str:
    """Return words with a full stop, and with a capital if they are the first of a text."""
    begin = words[:1].upper() if first else words[:1]
    return f"{begin}{words[1:]}{'' if words.endswith('.') else '.'}"
