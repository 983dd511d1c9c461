"""Shares the rewriting of assertions between the workers of a run.

pytest rewrites each test module when it is first imported, and caches the result: for all of them
that is two thirds of a worker's start. Workers that import in the same order at the same time find
nothing in the cache, and each does all the work. Here each begins at another module, so that it
finds what others have done.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from pathlib import Path

import pytest

__all__ = ["RewritingPlugin"]


class RewritingPlugin:
    """A plug-in of one worker: imports the test modules, in an order of its own, before they are collected.

    Args:
        worker: Its number.
        workers: How many there are.
    """

    def __init__(self, worker: int, workers: int) -> None:
        self._worker, self._workers = worker, workers

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> None:
        """Import what will be collected."""
        root = session.config.rootpath
        modules = _modules(root, session.config.args)
        begin = len(modules) * self._worker // self._workers
        for module in modules[begin:] + modules[:begin]:
            # Collecting it says what is wrong with it.
            with contextlib.suppress(Exception, pytest.skip.Exception):
                importlib.import_module(module)


def _modules(root: Path, arguments: list[str]) -> list[str]:
    """Name the test modules below some files and folders, and those alone that tests are chosen of."""
    paths: set[Path] = set()
    for argument in arguments:
        place = Path(os.path.abspath(argument.split("::")[0]))
        paths.update([place] if place.is_file() else place.rglob("test_*.py"))
    return [
        ".".join(path.relative_to(root).with_suffix("").parts)
        for path in sorted(paths)
        if path.is_relative_to(root)
    ]
