"""Reports of errors that a window did not expect: in words above its tiles, and whole on standard error.

An error in a slot or in a method that Qt calls (`gcspy_client.view.override_guard`) ends no window.
Users who started it from a menu see no standard error, so the window says that something went wrong.

Knows ``sys.excepthook``; does not know windows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

__all__ = ["errors_reported"]


@contextmanager
def errors_reported(say: Callable[[str], object]) -> Iterator[None]:
    """Report every unexpected error of the window's thread, and each place in the source once.

    Args:
        say: Shows a sentence to the user.
    """
    before = sys.excepthook
    known: set[tuple[type[BaseException], str, int]] = set()

    def report(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        place = kind, *_place(trace)
        if place in known:  # at each paint, say
            return
        known.add(place)
        before(kind, error, trace)
        if isinstance(error, Exception):
            say(
                f"An error in GCspy: {kind.__name__}: {error}. "
                "The window continues; standard error has the details."
            )

    sys.excepthook = report
    try:
        yield
    finally:
        sys.excepthook = before


def _place(trace: TracebackType | None) -> tuple[str, int]:
    """File and line where an error was raised."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return ("", 0) if trace is None else (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
