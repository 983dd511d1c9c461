"""Messages above the tiles for some seconds: a refusal, or the outcome of a user's action.

Knows texts and how long they stay; does not know where they are shown.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal

__all__ = ["Announcer"]

_MILLIS = 8_000


class Announcer(QObject):
    """The text of the moment.

    Signals:
        changed: There is another text, or none any more.

    Attributes:
        text: The text; empty: nothing is said.
    """

    changed = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.text = ""
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._end)

    def say(self, text: str) -> None:
        """Show a text for some seconds, in place of the text before."""
        self.text = text
        self._timer.start(_MILLIS)
        self.changed.emit()

    def forget(self) -> None:
        """Say nothing from the next refresh on."""
        self.text = ""

    def _end(self) -> None:
        self.forget()
        self.changed.emit()

    def stop(self) -> None:
        """The window closes: no timer is left."""
        self._timer.stop()
