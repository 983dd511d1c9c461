"""The bottom of the window: transport and timeline, one above the other.

Knows where they stand; does not know who obeys.
"""

from __future__ import annotations

from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from gcspy_client.model.palette import Theme
from gcspy_client.view.time.timeline import TimelineStrip
from gcspy_client.view.time.transport import PlaybackBar

__all__ = ["TimePanel"]


class TimePanel(QFrame):
    """Transport and timeline.

    Args:
        theme: The theme of its colours.
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("card", "true")
        self.transport = PlaybackBar(theme)
        self.strip = TimelineStrip(theme)
        column = QVBoxLayout(self)
        column.setContentsMargins(9, 5, 9, 2)
        column.setSpacing(2)
        column.addWidget(self.transport)
        column.addWidget(self.strip)
        self.transport.axis_chosen.connect(self.strip.set_by_time)

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self.transport.set_theme(theme)
        self.strip.set_theme(theme)
