"""`ReportThread`: a thread that fetches a report of a target's counters each time that one is asked for. Knows no runtime and no line."""

from __future__ import annotations

import threading

from gcspy_protocol.errors import GCspyError

from gcspy_drivers.kit.counted_sites.site_report import CountReport

__all__ = ["ReportThread"]


class ReportThread:
    """A thread that lives until `close`, or until the target can no longer report.

    A subclass calls `start` when it is complete. Its methods with a leading underscore run in the thread, but for `_interrupt`.

    Attributes:
        problem: Why there are no more reports; empty: there is no problem.
    """

    def __init__(self) -> None:
        self._latest: CountReport | None = None
        self._asked = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._live, name="gcspy-site-counts", daemon=True)
        self.problem = ""

    @property
    def latest(self) -> CountReport | None:
        """The latest report; None: there is none yet."""
        return self._latest

    def start(self) -> None:
        """Begin, and ask for the first report."""
        self._thread.start()
        self.ask()

    def ask(self) -> None:
        """Ask for a report; it is there when it is there. Of several requests meanwhile one counts."""
        self._asked.set()

    def close(self) -> None:
        """End the thread; returns when the target has been told, or cannot be."""
        self._closed = True
        self._interrupt()
        self._asked.set()
        self._thread.join()

    def _live(self) -> None:
        try:
            self._begin()
            try:
                while True:
                    self._asked.wait()
                    self._asked.clear()
                    if self._closed:
                        break
                    self._latest = self._next_report()
            finally:
                self._end()
        except (OSError, GCspyError) as error:
            self.problem = self._problem_of(error)
        if self._closed:
            self.problem = ""

    def _next_report(self) -> CountReport:
        """Fetch a report.

        Raises:
            OSError: The target can no longer report.
            GCspyError: The same, with the reason.
        """
        raise NotImplementedError

    def _begin(self) -> None:
        """Prepare the target, before the first report; may raise as `_next_report`."""

    def _end(self) -> None:
        """Give back what `_begin` prepared; may raise as `_next_report`."""

    def _interrupt(self) -> None:
        """Have a report that is being fetched fail."""

    def _problem_of(self, error: OSError | GCspyError) -> str:
        """Return what `problem` says."""
        return str(error)
