"""The panels around the tiles: each can be moved, closed, put behind another, or floated, and stands there again next time.

The owner of a panel adds it by name; the menu of panels, the restored and the default layout come
from here. A panel that is added after the layout was restored is placed correctly, too.

Knows names, titles and places; does not know what panels show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QByteArray, QEvent, QObject, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QMouseEvent, QResizeEvent
from PySide6.QtWidgets import (
    QDockWidget,
    QFrame,
    QHBoxLayout,
    QMainWindow,
    QScrollArea,
    QTabWidget,
    QWidget,
)

from gcspy_client.model.palette import Theme
from gcspy_client.settings import UserSettings
from gcspy_client.view.actions import Action
from gcspy_client.view.icons import icon
from gcspy_client.view.plain.text import set_tip
from gcspy_client.view.plain.widgets import PlainToolButton
from gcspy_client.view.shell.view_undo import ViewUndo
from gcspy_client.view.theme import small_font, tokens
from gcspy_client.view.widgets.elided_label import ElidedLabel
from gcspy_client.view.widgets.limits import NO_LIMIT

__all__ = ["Dock", "Docks"]

_VERSION = 1
"""Version of the stored layout; one of another version is not restored."""

SIDE_WIDTH = 384
"""Width of the panels beside the tiles, unless the user drags their border."""

_WIDE_SIDE_WIDTH = 432
_WIDE_WIDTH = 1500
"""Their width in windows that are so wide."""

_ROOMY_HEIGHT = 900
"""From this height of the window on, all panels at the side stand one above the other."""

_STACKED = 3
"""Number of them in a lower window; the others are behind the last."""

_SEPARATOR = 7
"""Between two panels, as the style sheet has it."""

_LOWEST = 88
"""Least height of a panel's content."""

_LEFT_TO_CENTRE = 76
"""Height that the centre gets in addition to half of the window: gaps, the tabs of panels, and the line of another space."""

_BOTTOM_SHARE = 0.3
"""Share of the height that a panel below the centre opens with, at least."""


_MENU = "&View/&Panels"


class _Title(QWidget):
    """A small title bar: what it is, float, close. Dragging it moves the panel, as Qt's own would."""

    def __init__(self, dock: QDockWidget, title: str) -> None:
        super().__init__(dock)
        self.label = ElidedLabel(title)
        self.label.setProperty("caption", "true")
        self.label.setFont(small_font(self.label.font()))
        self.float = self._button(
            "float", "Detach the panel, or dock it again (double click on the title)"
        )
        self.close_button = self._button("cross", f"Close; View ▸ Panels ▸ {title} opens it again")
        self.float.clicked.connect(lambda: dock.setFloating(not dock.isFloating()))
        self.close_button.clicked.connect(dock.close)
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 1, 3, 1)
        row.setSpacing(2)
        row.addWidget(self.label, 1)
        row.addWidget(self.float)
        row.addWidget(self.close_button)

    def _button(self, shape: str, tip: str) -> PlainToolButton:
        button = PlainToolButton()
        button.setObjectName(shape)
        set_tip(button, tip)
        button.setFixedSize(18, 18)
        button.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # the keyboard has the menu of panels
        return button

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        t = tokens(theme)
        for button in (self.float, self.close_button):
            button.setIcon(icon(button.objectName(), t.dim, t.border))


class Dock(QDockWidget):
    """One panel. It gets its title bar and its content when it first opens: most panels of a window never do.

    Until then the content is in no window, so that Qt looks up no style for it.

    Signals:
        seen: Whether it can be seen changed: one behind another cannot, though Qt calls it visible.
    """

    seen = Signal(bool)

    def __init__(
        self, name: str, title: str, widget: QWidget, theme: Theme, parent: QWidget
    ) -> None:
        super().__init__(title, parent)
        self._bar: _Title | None = None
        self._theme = theme
        self.setObjectName(name)
        self._content = widget
        self.destroyed.connect(widget.deleteLater)  # in no window it would outlast this one
        self.in_sight = False
        self.visibilityChanged.connect(self._seen)

    def bar(self) -> _Title:
        """Return its title bar, made now if it was not open yet."""
        if self._bar is None:
            self._bar = _Title(self, self.windowTitle())
            self._bar.set_theme(self._theme)
            self.setTitleBarWidget(self._bar)
        return self._bar

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self._theme = theme
        if self._bar is not None:
            self._bar.set_theme(theme)

    def setVisible(self, visible: bool) -> None:
        """Open, with title bar and content, or close."""
        if visible:
            self.bar()
            if self.widget() is None:
                self.setWidget(self._content)
        super().setVisible(visible)

    def wanted_height(self) -> int:
        """Height in which all that stands in it now can be seen; what Qt remembers may be older."""
        inside = self._content
        content = inside.widget() if isinstance(inside, QScrollArea) else inside
        if content is None:
            wanted = 0
        elif content.hasHeightForWidth():  # lines of chips, as wide as they are
            wanted = content.heightForWidth(max(content.width(), content.minimumSizeHint().width()))
        else:
            wanted = content.sizeHint().height()
        return self.bar().sizeHint().height() + wanted + 2

    def _seen(self, seen: bool) -> None:
        if seen != self.in_sight:
            self.in_sight = seen
            self.seen.emit(seen)


@dataclass(frozen=True, slots=True)
class _Added:
    """A panel, and where it stands by default."""

    dock: Dock
    area: Qt.DockWidgetArea
    shown: bool
    keys: tuple[str, ...]
    about: str


class _Area(QMainWindow):
    """A window inside the window, so that what stands above and below the panels keeps its whole width."""

    resized = Signal()

    def __init__(self, centre: QWidget) -> None:
        super().__init__()
        self.dragged = False  # whether the user has moved a border
        self.setWindowFlags(Qt.WindowType.Widget)
        self.setCentralWidget(centre)
        self.setDockNestingEnabled(True)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        for side in (Qt.DockWidgetArea.LeftDockWidgetArea, Qt.DockWidgetArea.RightDockWidgetArea):
            self.setTabPosition(side, QTabWidget.TabPosition.North)
        left, right = Qt.DockWidgetArea.LeftDockWidgetArea, Qt.DockWidgetArea.RightDockWidgetArea
        for corner, side in (
            (Qt.Corner.BottomLeftCorner, left),
            (Qt.Corner.TopLeftCorner, left),
            (Qt.Corner.BottomRightCorner, right),
            (Qt.Corner.TopRightCorner, right),
        ):
            self.setCorner(corner, side)  # the bottom is below the tiles only
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Say that there is another height."""
        super().resizeEvent(event)
        self.resized.emit()

    def event(self, event: QEvent) -> bool:
        """Notice that a border is taken hold of."""
        if isinstance(event, QMouseEvent) and event.type() is QEvent.Type.MouseButtonPress:
            self.dragged |= self.isSeparator(event.position().toPoint())
        return super().event(event)


class _Scroll(QScrollArea):
    """A panel that may become lower than what stands in it."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__()
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidget(widget)
        self.viewport().setAutoFillBackground(False)
        widget.setAutoFillBackground(False)

    def sizeHint(self) -> QSize:
        widget = self.widget()
        return QSize(
            SIDE_WIDTH,
            super().sizeHint().height() if widget is None else widget.sizeHint().height(),
        )

    def minimumSizeHint(self) -> QSize:
        widget = self.widget()
        if widget is None:
            return QSize(0, _LOWEST)
        bar = self.verticalScrollBar().sizeHint().width()
        return QSize(
            widget.minimumSizeHint().width() + bar, min(_LOWEST, widget.minimumSizeHint().height())
        )


class Docks(QObject):
    """The panels around a widget.

    Signals:
        height_changed: Height that the centre and the panels below it have together.

    Args:
        centre: The central widget.
        theme: The theme of its colours.
        undo: Undoes the actions' changes of the layout.

    Attributes:
        area: Widget with the centre and the panels, to be placed in a layout.
    """

    height_changed = Signal(int)

    def __init__(self, centre: QWidget, theme: Theme, undo: ViewUndo, parent: QWidget) -> None:
        super().__init__(parent)
        self.area = _Area(centre)
        self.area.resized.connect(self._limit)
        self._theme = theme
        self._undo = undo
        self._added: dict[str, _Added] = {}
        self._restored: bytes | None = None
        self._default = False
        self._before: list[tuple[object, ...]] = []  # the place of each panel before any change

    def __getitem__(self, name: str) -> Dock:
        return self._added[name].dock

    def __iter__(self) -> Iterator[str]:
        return iter(self._added)

    def add(
        self,
        name: str,
        title: str,
        widget: QWidget,
        area: Qt.DockWidgetArea,
        shown: bool = False,
        *,
        keys: tuple[str, ...] = (),
        about: str = "",
    ) -> Dock:
        """Make a panel.

        Args:
            name: For programs; the layout is kept under it, and its action is ``panel.NAME``.
            title: Its words.
            widget: Its contents; it scrolls when it is given less height than it wants.
            area: Its default place.
            shown: Whether it is open by default.
            keys: The keys that open and close it.
            about: Its description in the sheet of shortcuts; by default its title.
        """
        assert name not in self._added, f"two panels {name!r}"
        dock = Dock(name, title, _Scroll(widget), self._theme, self.area)
        dock.dockLocationChanged.connect(self._limit)
        dock.topLevelChanged.connect(self._limit)
        dock.seen.connect(partial(self._give_room, dock))
        self._added[name] = _Added(dock, area, shown, keys, about)
        if self._restored is None or not self.area.restoreDockWidget(dock):
            self._place(self._added[name], self._group(area, name), roomy=self._roomy())
        return dock

    # --------------------------------------------------------------------- actions of users

    def show(self, name: str) -> None:
        """Open a panel, and have it before all others in its place."""
        dock = self[name]
        dock.show()
        dock.raise_()

    def toggle(self, name: str) -> None:
        """Open a panel or bring it before the others; one that can be seen is closed."""
        dock = self[name]
        if dock.isHidden() or not dock.in_sight:
            self.show(name)
        else:
            dock.close()

    def open_only(self, names: Iterable[str]) -> None:
        """Open these panels at their default places, and close all others; unknown names are left out."""
        wanted = [name for name in names if name in self._added]
        self.reset()
        for name, one in self._added.items():
            if name not in wanted:
                one.dock.close()
        for name in wanted:
            self.show(name)

    @property
    def open_names(self) -> tuple[str, ...]:
        """Names of the open panels."""
        return tuple(filter(self.is_open, self._added))

    def is_open(self, name: str) -> bool:
        """Whether a panel is open, be it behind another."""
        return not self[name].isHidden()

    def give_height(self, name: str, pixels: int) -> None:
        """Make a panel so high, as if its border were dragged."""
        self.area.resizeDocks([self[name]], [pixels], Qt.Orientation.Vertical)

    def give_width(self, name: str, pixels: int) -> None:
        """Make a panel so wide, and those above and below it."""
        self.area.resizeDocks([self[name]], [pixels], Qt.Orientation.Horizontal)

    def actions(self) -> tuple[Action, ...]:
        """The menu of panels."""
        panels = tuple(
            Action(
                name=f"panel.{name}",
                menu=_MENU,
                text=one.dock.windowTitle(),
                run=partial(
                    self._change, f"panel {one.dock.windowTitle()}", partial(self.toggle, name)
                ),
                keys=one.keys,
                about=one.about,
                checked=partial(self.is_open, name),
            )
            for name, one in self._added.items()
        )
        reset = Action(
            name="panels.reset",
            menu=_MENU,
            text="&Reset layout",
            about="restore the default panels and their places",
            run=partial(self._change, "layout reset", self.reset),
            begins_group=True,
        )
        return (*panels, reset)

    def _change(self, what: str, change: Callable[[], None]) -> None:
        """Do something to the layout, so that it can be taken back."""
        before = self.state()
        change()
        self._undo.done(
            what, partial(self.use_state, self.state()), partial(self.use_state, before)
        )

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self._theme = theme
        for one in self._added.values():
            one.dock.set_theme(theme)

    def hide_floating(self) -> None:
        """Hide the panels that float: they are windows of their own, and would outlast the closed one."""
        for one in self._added.values():
            if one.dock.isFloating():
                one.dock.hide()

    # ------------------------------------------------------------------------- layout

    def restore(self, settings: UserSettings) -> None:
        """Put everything where it was when the layout was stored, or where it stands by default.

        Call it once all panels are there and the size of the window is known.
        """
        stored = settings.data("layout.panels") if settings.flag("layout.restore", True) else b""
        if stored and self.area.restoreState(QByteArray(stored), _VERSION):
            self._restored = stored
            self._default = False
        else:
            self.reset()

    def store(self, settings: UserSettings) -> None:
        """Remember where everything is, if that was changed.

        An unchanged layout is not stored, so that the default adapts to the size of the window.
        """
        if self._default and self._places() == self._before and not self.area.dragged:
            settings.forget("layout.panels")
        else:
            settings.store_data("layout.panels", self.state())

    def _places(self) -> list[tuple[object, ...]]:
        """The place of each panel, without its size: that changes with the window's."""
        return [
            (
                one.dock.isHidden(),
                one.dock.isFloating(),
                self.area.dockWidgetArea(one.dock),
                sorted(other.objectName() for other in self.area.tabifiedDockWidgets(one.dock)),
            )
            for one in self._added.values()
        ]

    def state(self) -> bytes:
        """The places of all panels, for `use_state`."""
        return bytes(self.area.saveState(_VERSION).data())

    def use_state(self, state: bytes) -> None:
        """Put everything where it was."""
        self.area.restoreState(QByteArray(state), _VERSION)

    def reset(self) -> None:
        """Put everything where it stands by default."""
        self._restored = None
        self._default = True
        roomy = self._roomy()
        for one in self._added.values():
            one.dock.setFloating(False)
            self.area.removeDockWidget(one.dock)
        for name, one in self._added.items():
            self._place(one, self._group(one.area, name), roomy=roomy)
        for one in reversed(self._added.values()):
            if one.shown:
                one.dock.raise_()
        self.area.dragged = False
        self._before = self._places()
        self.fit()

    def _limit(self, _place: object = None) -> None:
        """Let panels above and below the centre leave it half of the height, and a line more."""
        height = self.area.height()
        most = max(_LOWEST, height // 2 - _LEFT_TO_CENTRE)
        for one in self._added.values():
            there = self.area.dockWidgetArea(one.dock) in (
                Qt.DockWidgetArea.BottomDockWidgetArea,
                Qt.DockWidgetArea.TopDockWidgetArea,
            )
            limited = there and not one.dock.isFloating()
            one.dock.setMaximumHeight(most if limited else NO_LIMIT)
        self.height_changed.emit(height)

    def _give_room(self, dock: Dock, seen: bool) -> None:
        """Give a panel below the centre a useful height when it opens, unless the user moved borders."""
        below = self.area.dockWidgetArea(dock) is Qt.DockWidgetArea.BottomDockWidgetArea
        if seen and below and not dock.isFloating() and not self.area.dragged:
            wanted = max(dock.wanted_height(), round(self.area.height() * _BOTTOM_SHARE))
            QTimer.singleShot(0, dock, partial(self.give_height, dock.objectName(), wanted))

    def _roomy(self) -> bool:
        return self.area.window().height() >= _ROOMY_HEIGHT

    def _group(self, area: Qt.DockWidgetArea, name: str) -> list[_Added]:
        """The panels that were placed in an area before this one."""
        before: list[_Added] = []
        for other, one in self._added.items():
            if other == name:
                break
            if one.area is area and not one.dock.isFloating():
                before.append(one)
        return before

    def _place(self, one: _Added, before: list[_Added], *, roomy: bool) -> None:
        """Put a panel below those before it in its area, or behind the last of them."""
        self.area.addDockWidget(one.area, one.dock)
        bottom = one.area is Qt.DockWidgetArea.BottomDockWidgetArea
        stacked = len([other for other in before if other.shown])
        if before and (bottom or not one.shown or (stacked >= _STACKED and not roomy)):
            shown = [other for other in before if other.shown]
            self.area.tabifyDockWidget((shown or before)[-1].dock, one.dock)
        one.dock.setVisible(one.shown)

    def fit(self) -> None:
        """In the default layout, give each panel the height that suits what stands in it now."""
        if not self._default or self.area.dragged:
            return
        side = [
            one.dock
            for one in self._added.values()
            if one.area is Qt.DockWidgetArea.RightDockWidgetArea and one.shown
        ]
        if not side:
            return
        self.area.resizeDocks(
            side[:1],
            [_WIDE_SIDE_WIDTH if self.area.window().width() >= _WIDE_WIDTH else SIDE_WIDTH],
            Qt.Orientation.Horizontal,
        )
        wanted = [dock.wanted_height() for dock in side]
        if (
            not self._roomy()
        ):  # the last ones share a place, and get the rest: Qt would divide it among all
            above = sum(wanted[: _STACKED - 1])
            rest = self.area.height() - above - _SEPARATOR * (_STACKED - 1)
            wanted = [
                high if number < _STACKED - 1 else max(1, rest)
                for number, high in enumerate(wanted)
            ]
        self.area.resizeDocks(side, wanted, Qt.Orientation.Vertical)
