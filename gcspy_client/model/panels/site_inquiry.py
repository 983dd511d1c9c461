"""The question where the objects that grew were allocated: its progress, and the latest answer, with its age.

The server compares two samples of all memory; the report of the first comes while the second is awaited. So it is asked on request only.

Knows questions, answers and a clock that it is given; does not know sockets or widgets.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from posixpath import commonpath, dirname
from typing import Final

from gcspy_protocol.details import MEMORY_KIND, Answer, AnswerState, DetailTable, Query

__all__ = ["OVER_SECS", "KnownSites", "SiteInquiry", "with_short_paths"]

OVER_SECS = 10
"""Time between the two samples."""

_LIBRARY: Final = re.compile(r"^/.*/(?:(?:site|dist)-packages|lib/python\d+\.\d+)/")
_FILE: Final = re.compile(r"(/[^:]+):\d+\b")

_MOST_ROWS_ASKED = 50
_FIRST_NUMBER = 3 << 28
"""Other questions, asked over the same connection, have other numbers."""


@dataclass(frozen=True, slots=True)
class KnownSites:
    """The sites of one report.

    Attributes:
        table: The sites, or in its note why they are not known.
        over_secs: Time between the samples; 0: there is only the first, and the sites are those of all objects.
        at_secs: When it came, by the clock.
        note: How exact the copy of the memory is that they are read from.
    """

    table: DetailTable
    over_secs: float
    at_secs: float
    note: str


class SiteInquiry:
    """Asks one question at a time; the server cancels the previous one.

    Args:
        send: Sends a question.
        time_secs: Monotonic clock.

    Attributes:
        known: The latest sites; None: nobody asked yet.
        waits: Whether a question is in progress.
        step: The server's current step, its progress, and its total (0: not known); None: none was reported.
        failure: Why the latest question was not answered; empty: it was. The earlier answer stays.
    """

    def __init__(self, send: Callable[[Query], None], time_secs: Callable[[], float]) -> None:
        self._send, self._time_secs = send, time_secs
        self._number = _FIRST_NUMBER
        self.known: KnownSites | None = None
        self.waits = False
        self.step: tuple[str, int, int] | None = None
        self.failure = ""

    @property
    def age_secs(self) -> float | None:
        """Age of the sites; None: there are none."""
        return None if self.known is None else self._time_secs() - self.known.at_secs

    def ask(self, *, held: bool) -> None:
        """Ask.

        Args:
            held: Whether the process is to be held while its memory is copied.
        """
        self.waits, self.step, self.failure = True, None, ""
        self._number += 1
        self._send(
            Query(
                number=self._number,
                space=0,
                kind=MEMORY_KIND,
                most=_MOST_ROWS_ASKED,
                held=held,
                over_millis=1000 * OVER_SECS,
            )
        )

    def take(self, answer: Answer) -> bool:
        """Handle an answer; return whether it belongs here."""
        if not self.waits or answer.number != self._number:
            return False
        report = answer.report
        if report is not None and not (report.grew is None and self._knows_growth()):
            self.known = KnownSites(report.sites, report.secs, self._time_secs(), report.note)
        if answer.state is AnswerState.UNDER_WAY:
            if report is None:
                self.step = (answer.reason, answer.done, answer.total)
            return True
        self.failure = "" if answer.state is AnswerState.ANSWERED else answer.reason
        self.waits, self.step = False, None
        return True

    def _knows_growth(self) -> bool:
        """Whether the sites of new objects are known: those of all objects do not replace them."""
        return self.known is not None and self.known.over_secs > 0 and bool(self.known.table.rows)

    def forget(self) -> None:
        """Another connection: nothing is under way there."""
        if self.waits:
            self.failure = "the connection was lost before the answer came"
        self.waits, self.step = False, None

    def clear(self) -> None:
        """Another session: answers are about another process."""
        self.forget()
        self.known, self.failure = None, ""


def with_short_paths(table: DetailTable, *, own: bool = False) -> DetailTable:
    """Return a table of sites in which files of libraries are named from the library's folder on.

    Args:
        table: The sites.
        own: Whether the program's own files are named from their common folder on, too.
    """
    rows = [
        tuple(_LIBRARY.sub("", cell) if isinstance(cell, str) else cell for cell in row)
        for row in table.rows
    ]
    if own:
        files = {
            found[1]
            for row in rows
            for cell in row
            if isinstance(cell, str) and (found := _FILE.match(cell))
        }
        folder = commonpath({dirname(file) for file in files}).rstrip("/") + "/" if files else ""
        rows = [
            tuple(cell.removeprefix(folder) if isinstance(cell, str) else cell for cell in row)
            for row in rows
        ]
    return replace(table, rows=tuple(rows))
