"""`SiteCounts`: counts of allocation sites, received from the counters in a program by a thread of its own.

The program is not trusted: each length is checked before anything is allocated, and a line that
says anything impossible is closed, with the reason. Knows the line; does not know spaces.
"""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from gcspy_counting.live.count_answer import HEADER, MAGIC, REQUEST
from gcspy_protocol.errors import GCspyError, TargetError

from gcspy_drivers.kit.counted_sites.report_thread import ReportThread
from gcspy_drivers.kit.counted_sites.site_report import CountedSite, CountReport

__all__ = ["SiteCounts"]

_MOST_SITES: Final = 1 << 20
_LARGEST_TEXT: Final = 64 << 20
_MOST_SOURCE: Final = 256 << 20
"""Characters of source that are kept in all."""
_LONGEST_NAME: Final = 4096
_LARGEST_NUMBER: Final = 1 << 62
_PIECE: Final = 1 << 20
_ANSWER_SECS: Final = 60.0


class _ImpossibleAnswerError(TargetError):
    """The program said what cannot be."""


@dataclass
class _Received:
    sites: list[CountedSite] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    sources: list[str | None] = field(default_factory=list)
    source_size: int = 0
    reports: int = 0


class SiteCounts(ReportThread):
    """The sidecar's end of the line.

    Args:
        fd: The line; this takes ownership.
    """

    def __init__(self, fd: int) -> None:
        super().__init__()
        self._connection = socket.socket(fileno=os.dup(fd))
        os.close(fd)
        self._connection.settimeout(_ANSWER_SECS)
        self._received = _Received()
        self.start()

    @property
    def sites(self) -> list[CountedSite]:
        """The sites of the latest report; the list only grows."""
        return self._received.sites

    def file_of(self, site: CountedSite) -> str:
        """Return the name of a site's file."""
        return self._received.files[site.file]

    def source_of(self, site: CountedSite) -> str | None:
        """Return the source of a site's file; None: it is not known."""
        return self._received.sources[site.file]

    def close(self) -> None:
        """Close the line: the program gets its code back."""
        super().close()
        self._connection.close()

    def _interrupt(self) -> None:
        try:
            self._connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the program has ended

    def _problem_of(self, error: OSError | GCspyError) -> str:
        if isinstance(error, _ImpossibleAnswerError):
            return f"the counters in the program gave an impossible answer: {error}"
        return "the program no longer counts"

    def _bytes(self, size: int) -> bytes:
        pieces = []
        while size:
            piece = self._connection.recv(min(size, _PIECE))
            if not piece:
                raise OSError("the line ended")
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def _next_report(self) -> CountReport:
        self._connection.sendall(REQUEST)
        magic, text_size, sites, time_nanos, took_nanos = HEADER.unpack(self._bytes(HEADER.size))
        if magic != MAGIC:
            raise _ImpossibleAnswerError("it is none")
        if text_size > _LARGEST_TEXT or sites > _MOST_SITES:
            raise _ImpossibleAnswerError(f"{text_size} bytes of text, {sites} sites")
        if max(time_nanos, took_nanos) > _LARGEST_NUMBER:
            raise _ImpossibleAnswerError(f"a time of {max(time_nanos, took_nanos)} ns")
        try:
            told = json.loads(self._bytes(text_size))
            totals = self._take(told)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise _ImpossibleAnswerError(f"a text with {type(error).__name__}") from error
        if len(self.sites) != sites:
            raise _ImpossibleAnswerError(f"{sites} sites, and places of {len(self.sites)}")
        counts = np.frombuffer(self._bytes(8 * sites), dtype="<i8").astype(np.int64)
        carriers = np.frombuffer(self._bytes(2 * sites), dtype="<u2").astype(np.int64)
        known = counts >= 0
        self._received.reports += 1
        return CountReport(
            self._received.reports,
            np.where(known, counts, 0),
            known,
            carriers,
            time_nanos,
            took_nanos,
            totals,
        )

    def _take(self, told: Any) -> dict[str, float]:
        """Note new sites and files; return the sums.

        Raises:
            ValueError: The text is of another form.
            KeyError: The same.
            TypeError: The same.
        """
        kept = self._received
        for name, source in told.pop("files"):
            kept.files.append(_text(name))
            if source is not None:
                kept.source_size += len(_of(source, str))
            kept.sources.append(source if kept.source_size <= _MOST_SOURCE else None)
        for file, line, column, function, what, always, size in told.pop("sites"):
            if not 0 <= _of(file, int) < len(kept.files):
                raise ValueError("an unknown file")
            site = CountedSite(
                file,
                _number(line),
                _number(column),
                _text(function),
                _text(what),
                bool(always),
                max(-1, min(_of(size, int), _LARGEST_NUMBER)),
            )
            kept.sites.append(site)
        return {_text(name): float(value) for name, value in told.items()}


def _of(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise ValueError(f"a {type(value).__name__} instead of a {kind.__name__}")
    return value


def _text(value: Any) -> str:
    return str(_of(value, str))[:_LONGEST_NAME]


def _number(value: Any) -> int:
    return max(0, min(int(_of(value, int)), 1 << 31))
