"""Ctrl-C and SIGTERM while Qt works: noted at once, followed where that is safe.

Python runs a signal's handler between any two of its instructions, also in those that Qt or its bindings have called: in the
constructor of a widget, in a paint event, while the bindings make a class. An exception that is raised there crashes the
process now and then, or is swallowed and leaves the bindings half made; a window that is closed there is closed under the hands
of who works on it. So the handler only notes the signal.

Knows signals; does not know Qt, so that it can be used before Qt is imported.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Interruption", "interruption_held_back"]

_NUMBERS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """The signal that was noted while interruptions were held back; made by `interruption_held_back`.

    Attributes:
        number: The signal; 0 where none came.
    """

    def __init__(self) -> None:
        self.number = 0

    def follow(self) -> None:
        """Raise the interruption here, if one was requested; called where nothing of Qt is active.

        Raises:
            KeyboardInterrupt: It was.
        """
        if self.number:
            self.number = 0
            raise KeyboardInterrupt


@contextmanager
def interruption_held_back(*, default_too: bool = False) -> Iterator[Interruption]:
    """Note Ctrl-C and SIGTERM for the body of the `with`; what was noted and not followed comes again at its end.

    Signals that are ignored stay so.

    Args:
        default_too: Note also a signal at which the system would end this process; it does no harm to Qt.
    """
    noted = Interruption()

    def note(number: int, _frame: FrameType | None) -> None:
        noted.number = number

    before = {
        number: signal.signal(number, note)
        for number in _NUMBERS
        if (default_too and signal.getsignal(number) is signal.SIG_DFL)
        or callable(signal.getsignal(number))
    }
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if noted.number:
        signal.raise_signal(noted.number)
