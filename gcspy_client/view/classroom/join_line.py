"""The line to join with, large enough for the last bench, and ready to be copied.

Knows addresses; a token is never part of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from gcspy_protocol.text.visible import Lines
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QDialog, QHBoxLayout, QVBoxLayout, QWidget

from gcspy_client.view.plain.text import copy_text, set_accessible_name, set_window_title
from gcspy_client.view.plain.widgets import PlainLabel, PlainPushButton
from gcspy_client.view.theme import numbers_font

__all__ = ["JoinSheet", "join_line"]

_LARGEST = 34.0
_SMALLEST = 10.0

_NOBODY = Lines(
    "Nobody can join from another computer: this session listens only on this one.",
    "Start it with --listen tls:0.0.0.0:0 to get a join line here.",
)
_TOKEN = "Participants are asked for the session's token, which is not in this line: tell it to them, or give them the token file."


def join_line(address: str) -> str:
    """The line that students type to join."""
    return (
        f"gcspy view --follow '{address}'" if "#" in address else f"gcspy view --follow {address}"
    )


class JoinSheet(QDialog):
    """The lines.

    Args:
        addresses: The addresses for students; none: they cannot join.
    """

    def __init__(self, addresses: Sequence[str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_window_title(self, "Join this session")
        self.lines = tuple(join_line(one) for one in addresses)
        self.labels: list[PlainLabel] = []
        column = QVBoxLayout(self)
        column.setContentsMargins(28, 24, 28, 20)
        column.setSpacing(16)
        title = PlainLabel("Join this session" if self.lines else _NOBODY)
        font = title.font()
        font.setPointSizeF(font.pointSizeF() * (1.8 if self.lines else 1.2))
        title.setFont(font)
        title.setWordWrap(True)
        column.addWidget(title)
        for line in self.lines:
            label = PlainLabel(line)
            set_accessible_name(label, line)
            label.setWordWrap(True)
            self.labels.append(label)
            column.addWidget(label, 1)
        note = PlainLabel(_TOKEN)
        note.setWordWrap(True)
        note.setVisible(any(not address.startswith("unix:") for address in addresses))
        column.addWidget(note)
        buttons = QHBoxLayout()
        self.copy = PlainPushButton("Copy")
        self.copy.setProperty("primary", "true")
        self.copy.clicked.connect(self.copy_line)
        self.copy.setEnabled(bool(self.lines))
        close = PlainPushButton("Close")
        close.clicked.connect(self.close)
        buttons.addStretch(1)
        buttons.addWidget(self.copy)
        buttons.addWidget(close)
        column.addLayout(buttons)
        if parent is not None:
            self.resize(
                round(parent.width() * 0.8), round(parent.height() * (0.6 if self.lines else 0.3))
            )
        self._fit()

    def copy_line(self) -> None:
        """Copy the first line."""
        if self.lines:
            copy_text(self.lines[0])
            self.copy.setText("Copied")

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Use a font as large as there is room for."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """The longest line in two rows, or three where that would be too small."""
        longest = max((len(line) for line in self.lines), default=1)
        for label in self.labels:
            font = numbers_font(label.font())
            size = _LARGEST
            while size > _SMALLEST:
                font.setPointSizeF(size)
                label.setFont(font)
                if label.fontMetrics().averageCharWidth() * longest <= 3 * max(
                    200, self.width() - 80
                ):
                    break
                size -= 1.0
