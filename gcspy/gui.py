"""Checks whether a window can be shown here, with a clear message if not.

Imports no Qt: it only checks whether it is installed.
"""

from __future__ import annotations

import builtins
import gc
import importlib
import os
import sys
from importlib.util import find_spec

from gcspy_protocol.errors import CommandError

from gcspy.exit_codes import ExitCode
from gcspy_client.system_check import missing, remedy

__all__ = ["has_display", "has_window", "load_window", "require_gui", "require_window"]


def has_display() -> bool:
    """Whether a window would be visible."""
    if os.environ.get("QT_QPA_PLATFORM") in ("offscreen", "minimal", "vnc"):
        return False
    return sys.platform != "linux" or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )


def has_window() -> bool:
    """Whether a window can be shown here."""
    return (
        has_display()
        and find_spec("PySide6") is not None
        and find_spec("pyqtgraph") is not None
        and not missing()
    )


def require_gui() -> None:
    """Refuse, with the remedy, where Qt or one of its system libraries is not installed.

    Raises:
        CommandError: Something is missing.
    """
    if find_spec("PySide6") is None or find_spec("pyqtgraph") is None:
        raise CommandError(
            "the window needs Qt, which is not installed; in a clone of gcspy: pip install '.[gui]' "
            "(`gcspy tail` and `gcspy attach --no-window` work without)",
            exit_code=ExitCode.MISSING_PART,
        )
    absent = missing()
    if absent:
        raise CommandError(remedy(absent), exit_code=ExitCode.MISSING_PART)


def load_window() -> None:
    """Import the window, Qt and numpy: what a window needs before its first picture.

    The collector is off meanwhile, as it is later in a window: it would visit all modules again and
    again, and free nothing. PySide's own function for imports, which serves its ``__feature__``
    modules only, is removed: it would run at each of the some thousand imports. Each of the two took
    a twelfth of the time.
    """
    plain_import = builtins.__import__
    collects = gc.isenabled()
    gc.disable()
    try:
        importlib.import_module("PySide6.QtCore")
        builtins.__import__ = plain_import
        importlib.import_module("gcspy_client.app")
    finally:
        if collects:
            gc.enable()


def require_window() -> None:
    """Refuse if no window can be shown.

    Raises:
        CommandError: Qt is missing, or there is no display.
    """
    require_gui()
    if not has_display():
        raise CommandError(
            "there is no display: use `gcspy tail`, `gcspy screenshot`, or `gcspy attach PID --no-window "
            "--listen HOST:PORT` here and `gcspy view HOST:PORT` on your desktop",
            exit_code=ExitCode.MISSING_PART,
        )
