"""A plugin of pytest that notes which test function runs which lines, and how long it takes.

Loaded by ``tests.mutation`` alone, under coverage. It writes what it saw where ``GCSPY_TEST_TIMES``
says: a JSON object from test function to seconds, of those that passed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest
from hypothesis import settings

_EXAMPLES = 10
"""Of each property while it is measured: which lines it runs shows in a few, and coverage makes each dear."""

_seconds: dict[str, float] = {}
_failed: set[str] = set()


def function(nodeid: str) -> str:
    """Return the test function of a test, without its parameters."""
    return nodeid.partition("[")[0]


def pytest_configure() -> None:
    """Try few examples of each property."""
    settings.register_profile("measured", settings(), max_examples=_EXAMPLES)
    settings.load_profile("measured")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Name what runs from now on after this test."""
    running = coverage.Coverage.current()
    if running is not None:
        running.switch_context(function(item.nodeid))
    yield
    if running is not None:
        running.switch_context("")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note how long a test took, and whether it passed."""
    name = function(report.nodeid)
    _seconds[name] = _seconds.get(name, 0.0) + report.duration
    if report.failed:
        _failed.add(name)


def pytest_sessionfinish() -> None:
    """Write the times of those that passed."""
    passed = {name: seconds for name, seconds in _seconds.items() if name not in _failed}
    Path(os.environ["GCSPY_TEST_TIMES"]).write_text(json.dumps(passed))
