"""Loads the plotting library without its side effects on the process.

Knows how a process reports errors; does not know what is plotted.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["hooks_kept"]


@contextmanager
def hooks_kept() -> Iterator[None]:
    """Let errors be reported as before: the library puts itself in their way when it is loaded, and prints a headline."""
    hooks = sys.excepthook, threading.excepthook
    try:
        yield
    finally:
        sys.excepthook, threading.excepthook = hooks
