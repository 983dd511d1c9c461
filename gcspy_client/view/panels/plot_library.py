"""Loads the plotting library without its side effects on the process.

The library is loaded in a thread. It looks at each class of Qt's bindings, which make a class when it is first looked at. Two threads
that do so at the same time crash the process: so the thread of the windows makes them first (`made_bindings`).

Knows how a process reports errors; does not know what is plotted.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["hooks_kept", "made_bindings"]

_BINDINGS: Final = (
    "QtCore",
    "QtGui",
    "QtWidgets",
    "QtSvg",
    "QtTest",
    "QtOpenGL",
    "QtOpenGLWidgets",
)
"""Modules that the library looks at or loads, as far as they are installed."""


def made_bindings() -> Iterator[None]:
    """Make all classes of the bindings that the library needs, one at each step; all take some 80 ms."""
    for name in _BINDINGS:
        try:
            module = importlib.import_module(f"PySide6.{name}")
        except ImportError:
            continue
        for attribute in dir(module):
            getattr(module, attribute)
            yield


@contextmanager
def hooks_kept() -> Iterator[None]:
    """Let errors be reported as before: the library puts itself in their way when it is loaded, and prints a headline."""
    hooks = sys.excepthook, threading.excepthook
    try:
        yield
    finally:
        sys.excepthook, threading.excepthook = hooks
