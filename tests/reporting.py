"""Reports tests that take long, and of those that are run again, when it happens.

A run that is ended from outside prints no summary: its output until then is all there is.
"""

from __future__ import annotations

import pytest

__all__ = ["ProgressReport"]

LONG_SECS = 20.0
"""A test that takes longer is named at once."""


MOST_TOLD = 10_000
"""How many characters of a failure are printed, from its end, where the test is run again."""


class ProgressReport:
    """A plug-in that writes such lines between the dots.

    Args:
        terminal: Where the dots go.
    """

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write a line for a report that a reader may search for."""
        words = self.words(report)
        if words is not None:
            self._terminal.ensure_newline()
            self._terminal.write_line(words)
        if (
            str(report.outcome) == "rerun"
        ):  # else nothing but a crash's first line is left once it passes
            self._terminal.write_line(report.longreprtext[-MOST_TOLD:])

    @staticmethod
    def words(report: pytest.TestReport) -> str | None:
        """Return the line for a report; None: it needs none."""
        again = str(report.outcome) == "rerun"  # of pytest-rerunfailures
        if not again and not report.failed and report.duration < LONG_SECS:
            return None
        outcome = "run again after a failure" if again else report.outcome
        line = f"{report.nodeid}: {report.when} took {report.duration:.0f} s, {outcome}"
        crash = getattr(report.longrepr, "reprcrash", None)
        if crash is not None:
            line += f": {crash.path}:{crash.lineno}: {crash.message.splitlines()[0][:200]}"
        return line
