"""The toolbar of one space: its view, and the options of that view.

No higher than the name beside it, so that tiles have the room. Both menus are filled when they open.

Knows two buttons; does not know views.
"""

from __future__ import annotations

from PySide6.QtCore import QPointF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QWidget

from gcspy_client.model.palette import Theme
from gcspy_client.view.plain.text import draw_text, set_tip
from gcspy_client.view.plain.widgets import PlainLabel, PlainMenu, PlainToolButton
from gcspy_client.view.theme import small_font, tokens

__all__ = ["SpaceToolbar"]

_HEIGHT = 20
_ARROW_HALF = 3.0


class _MenuButton(PlainToolButton):
    """Opens a menu; drawn with an arrow, which a style sheet would take away."""

    def __init__(self, text: str, tip: str, *, arrow: bool) -> None:
        super().__init__()
        self._arrow = arrow
        self.setProperty("menu-button", "true")
        self.setFont(small_font(self.font()))
        set_tip(self, tip)
        self.setText(text)
        self.setFixedHeight(_HEIGHT)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # the keyboard has the menu bar
        self.setPopupMode(PlainToolButton.ToolButtonPopupMode.InstantPopup)
        self.setMenu(PlainMenu(self))

    def sizeHint(self) -> QSize:
        wide = self.fontMetrics().horizontalAdvance(self.text()) + 14 + (12 if self._arrow else 0)
        return QSize(wide, _HEIGHT)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            colour = self.palette().color(self.foregroundRole())
            if self.underMouse() or self.isDown():
                ground = QColor(colour)
                ground.setAlpha(28)
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(ground)
                painter.drawRoundedRect(self.rect(), 5, 5)
            painter.setPen(colour)
            right = 14 if self._arrow else 0
            words = self.rect().adjusted(7, 0, -7 - right + 2, 0)
            if self._arrow:
                draw_text(
                    painter,
                    words,
                    int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter),
                    self.text(),
                )
                x, y = self.width() - 11.0, self.height() / 2
                painter.setPen(QPen(colour, 1.4, c=Qt.PenCapStyle.RoundCap))
                painter.drawPolyline(
                    [
                        QPointF(x - _ARROW_HALF, y - 1.5),
                        QPointF(x, y + 1.5),
                        QPointF(x + _ARROW_HALF, y - 1.5),
                    ]
                )
            else:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(colour)
                for i in (-1, 0, 1):
                    painter.drawEllipse(
                        QPointF(self.width() / 2 + 5 * i, self.height() / 2), 1.5, 1.5
                    )


class SpaceToolbar(QWidget):
    """The buttons of a space.

    Signals:
        views_asked: The menu of views opens, and is to be filled.
        options_asked: The menu of the view's options opens, and is to be filled.
    """

    views_asked = Signal(object)
    options_asked = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.order = PlainLabel()
        self.order.setProperty("chip", "true")
        self.order.setProperty("tone", "warning")
        self.order.setFont(small_font(self.order.font()))
        self.order.setFixedHeight(_HEIGHT - 3)
        self.order.hide()
        self.views = _MenuButton("Tiles", "View of this space (1 to 8)", arrow=True)
        self.options = _MenuButton(
            "", "Order, formulas, markers and other options of this space", arrow=False
        )
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        row.addWidget(self.order)
        row.addWidget(self.views)
        row.addWidget(self.options)
        self.setFixedHeight(_HEIGHT)
        for button, signal in ((self.views, self.views_asked), (self.options, self.options_asked)):
            menu = button.menu()
            assert menu is not None
            menu.setToolTipsVisible(True)
            menu.aboutToShow.connect(lambda menu=menu, signal=signal: signal.emit(menu))

    def say(self, view: str, order: str, tip: str = "") -> None:
        """Name the view, and the order of the tiles where it is not that of their addresses."""
        self.views.setText(view)
        self.views.updateGeometry()
        self.views.update()
        self.order.setText(order)
        set_tip(self.order, tip)
        self.order.setVisible(bool(order))

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        t = tokens(theme)
        for button in (self.views, self.options):
            palette = button.palette()
            palette.setColor(button.foregroundRole(), QColor(t.dim))
            button.setPalette(palette)
            button.update()
