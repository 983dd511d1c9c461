"""Lets a window live while a picture is prepared, for a time or until something is so."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEventLoop, QTimer

__all__ = ["let_live", "wait_until"]

_LOOK_MILLIS = 20


def let_live(secs: float) -> None:
    """Let the window live for a time."""
    loop = QEventLoop()
    QTimer.singleShot(round(1000 * secs), loop.quit)
    loop.exec()


def wait_until(condition: Callable[[], bool], what: str = "", *, secs: float = 20.0) -> None:
    """Let the window live until something is so.

    Args:
        condition: Whether it is.
        what: Its name, for the error.
        secs: How long to wait for it.

    Raises:
        RuntimeError: It is not so after that time.
    """
    loop, look, patience = QEventLoop(), QTimer(), QTimer()
    look.timeout.connect(lambda: loop.quit() if condition() else None)
    look.start(_LOOK_MILLIS)
    patience.setSingleShot(True)
    patience.timeout.connect(loop.quit)
    patience.start(round(1000 * secs))
    loop.exec()
    look.stop()
    patience.stop()
    if not condition():
        raise RuntimeError(f"what the picture is to show did not come about: {what or condition}")
