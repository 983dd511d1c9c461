"""The main window: puts the parts together and lets the link's news and the user's wishes through.

Tiles are painted as events come, once however many came together; texts and
tables follow ten times a second, as nobody reads faster.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gcspy_protocol.errors import RemoteProtocolError
from gcspy_protocol.messages import Error, Message, Pause, Resume, Step, TakeControl
from gcspy_protocol.model import ControlState
from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QAction, QActionGroup, QCloseEvent, QKeySequence
from PySide6.QtWidgets import (
    QApplication,
    QHBoxLayout,
    QMainWindow,
    QMenu,
    QMessageBox,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from gcspy_client.link import Link
from gcspy_client.model.palette import Theme
from gcspy_client.model.picture import Picture
from gcspy_client.model.session import Session, ordered_streams
from gcspy_client.model.status import LinkPhase, LinkStatus
from gcspy_client.view.canvas import PaintProbe
from gcspy_client.view.connect_dialog import ConnectDialog
from gcspy_client.view.details import Details
from gcspy_client.view.event_bar import EventBar
from gcspy_client.view.footer import Footer
from gcspy_client.view.notices import Banner, StatePage, banner_words
from gcspy_client.view.spaces import Spaces
from gcspy_client.view.theme import apply_theme, system_theme

__all__ = ["MainWindow"]

_DETAILS_MILLIS = 100
_REFUSAL_MILLIS = 8_000
_GRAPH_MILLIS = 250
"""Between the first event and the loading of the graph, which holds the window up for a moment."""

_KEYS = """
<table cellspacing="6">
<tr><td><b>Space</b></td><td>pause / resume</td></tr>
<tr><td><b>.</b></td><td>step one event</td></tr>
<tr><td><b>N / P</b></td><td>next / previous space</td></tr>
<tr><td><b>] / [</b></td><td>next / previous stream of the active space</td></tr>
<tr><td><b>Arrows, Home, End, Page up / down</b></td><td>move the selected tile</td></tr>
<tr><td><b>Esc</b></td><td>select no tile</td></tr>
<tr><td><b>+ / − / 0</b></td><td>larger tiles / smaller tiles / all in view (also Ctrl + wheel)</td></tr>
<tr><td><b>Ctrl+O, Ctrl+R, Ctrl+D</b></td><td>connect, reconnect, disconnect</td></tr>
<tr><td><b>Ctrl+T</b></td><td>take control</td></tr>
<tr><td><b>Ctrl+Q</b></td><td>quit; the target goes on</td></tr>
</table>
"""


class MainWindow(QMainWindow):
    """One window on one session.

    Signals:
        event_shown: An event was applied; its `Event`.

    Args:
        theme: Dark or light; None follows the system.
    """

    event_shown = Signal(object)

    def __init__(self, theme: Theme | None = None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("GCspy")
        self.resize(1280, 800)
        self.session = Session()
        self.link = Link(self)
        self._follow_system = theme is None
        self.theme = theme if theme is not None else system_theme()
        self._under_mouse: tuple[int, int] | None = None
        self._refusal = ""
        self._rebuild = True
        self._closed = False
        self.event_bar = EventBar(self.session)
        self.banner = Banner()
        self.spaces = Spaces(self.session, self.theme)
        self.page = StatePage()
        self.details = Details(self.session, self.theme)
        self.footer = Footer(self.session)
        self._stack = QStackedWidget()
        self._details_timer = self._single_timer(self._refresh_details)
        self._refusal_timer = self._single_timer(self._forget_refusal)
        self._graph_timer = self._single_timer(self._load_graph)
        self._build()
        self._wire()
        self._make_menus()
        self.set_theme(self.theme)
        self._refresh_status()

    def _single_timer(self, slot: Callable[[], None]) -> QTimer:
        timer = QTimer(self)
        timer.setSingleShot(True)
        timer.timeout.connect(slot)
        return timer

    def _build(self) -> None:
        body = QWidget()
        row = QHBoxLayout(body)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(10)
        row.addWidget(self.spaces, 1)
        row.addWidget(self.details)
        self._stack.addWidget(self.page)
        self._stack.addWidget(body)
        centre = QWidget()
        column = QVBoxLayout(centre)
        column.setContentsMargins(10, 6, 10, 9)
        column.setSpacing(8)
        column.addWidget(self.event_bar)
        column.addWidget(self.banner)
        column.addWidget(self._stack, 1)
        column.addWidget(self.footer)
        self.setCentralWidget(centre)

    def _wire(self) -> None:
        self.link.status_changed.connect(self._status_changed)
        self.link.welcomed.connect(self._welcomed)
        self.link.received.connect(self.take)
        self.link.refused.connect(self._command_refused)
        self.spaces.activated.connect(self.activate)
        self.spaces.hovered.connect(self._hovered)
        self.spaces.picked.connect(self.select)
        self.details.stream_chosen.connect(self.choose_stream)
        self.footer.pause_toggled.connect(self.toggle_pause)
        self.footer.stepped.connect(self.step)
        self.footer.disconnect_asked.connect(self.link.close)
        for part in (self.footer, self.page):
            part.connect_asked.connect(self.ask_where)
            part.reconnect_asked.connect(self.link.reconnect)
        QApplication.styleHints().colorSchemeChanged.connect(self._system_changed)

    def _make_menus(self) -> None:
        session = self.menuBar().addMenu("&Session")
        self._action(session, "&Connect…", self.ask_where, "Ctrl+O")
        self._action(session, "&Reconnect", self.link.reconnect, "Ctrl+R")
        self._action(session, "&Disconnect", self.link.close, "Ctrl+D")
        session.addSeparator()
        self._action(session, "&Pause or resume", self.toggle_pause, "Space")
        self._action(session, "&Step", self.step, ".")
        self._action(session, "&Take control", lambda: self.link.send(TakeControl()), "Ctrl+T")
        session.addSeparator()
        self._action(session, "&Quit", self.close, "Ctrl+Q")
        view = self.menuBar().addMenu("&View")
        self._action(view, "&Next space", lambda: self._next_space(1), "N")
        self._action(view, "&Previous space", lambda: self._next_space(-1), "P")
        self._action(view, "Next &stream", lambda: self._next_stream(1), "]")
        self._action(view, "Previous s&tream", lambda: self._next_stream(-1), "[")
        self._action(view, "Select no tile", self._deselect, "Esc")
        view.addSeparator()
        self._action(view, "&Larger tiles", lambda: self._zoom(1), "+")
        self._action(view, "S&maller tiles", lambda: self._zoom(-1), "-")
        self._action(view, "&All tiles in view", lambda: self._zoom(0), "0")
        view.addSeparator()
        themes = QActionGroup(self)
        choices: tuple[tuple[str, Theme | None], ...] = (
            ("&Follow the system", None),
            ("Da&rk", Theme.DARK),
            ("L&ight", Theme.LIGHT),
        )
        for text, theme in choices:
            action = self._action(view, text, partial(self._choose_theme, theme))
            action.setCheckable(True)
            action.setChecked(theme is None if self._follow_system else theme is self.theme)
            themes.addAction(action)
        help_menu = self.menuBar().addMenu("&Help")
        keys = self._action(help_menu, "&Keys", self._show_keys)
        keys.setShortcuts([QKeySequence("F1"), QKeySequence("?")])

    def _action(self, menu: QMenu, text: str, slot: Callable[[], object], keys: str = "") -> QAction:
        action = QAction(text, self)
        if keys:
            action.setShortcut(QKeySequence(keys))
        action.triggered.connect(lambda _checked=False: slot())
        menu.addAction(action)
        return action

    # -------------------------------------------------------------------------- messages

    def take(self, messages: list[Message]) -> None:
        """Follow messages; all are applied, what they changed is painted once."""
        if self._closed:
            return
        session = self.session
        for message in messages:
            try:
                change = session.apply(message)
            except RemoteProtocolError as error:
                self.link.fail(error)
                return
            if change is None:
                continue
            if self._rebuild:
                self._rebuild = False
                self.spaces.rebuild()
                self._focus_active()
            else:
                self.spaces.sync()
                self.spaces.follow(change)
            self.event_shown.emit(change.event)
        if session.interpreter.last_event is not None and self._stack.currentIndex() == 0:
            self._stack.setCurrentIndex(1)
            self._refresh_details()
        if self.details.graph.plot is None and not self._graph_timer.isActive():
            self._graph_timer.start(_GRAPH_MILLIS)
        if not self._details_timer.isActive():
            self._details_timer.start(_DETAILS_MILLIS)

    def _welcomed(self) -> None:
        self.session.restart()
        self._rebuild = True

    def _status_changed(self, status: LinkStatus) -> None:
        if status.phase is LinkPhase.IDLE:
            self._refusal = ""
        self._refresh_status()

    def _command_refused(self, error: Error) -> None:
        remedy = f": {error.remedy}" if error.remedy else ""
        self._refusal = f"Refused: {error.message}{remedy}"
        self._refusal_timer.start(_REFUSAL_MILLIS)
        self._refresh_status()

    def _forget_refusal(self) -> None:
        self._refusal = ""
        self._refresh_status()

    # ------------------------------------------------------------------------ refreshing

    def _refresh_status(self) -> None:
        status = self.link.status
        has_tiles = self.session.interpreter.last_event is not None or bool(self.spaces.panels)
        self._stack.setCurrentIndex(1 if has_tiles else 0)
        self.page.refresh(status, self.session)
        text, kind = banner_words(status, self.session) if has_tiles else ("", "")
        self.banner.say(text or self._refusal, kind if text else "warning")
        self.event_bar.refresh()
        self.footer.refresh(status)
        name = self.session.interpreter.welcome
        self.setWindowTitle(f"{name.server} – GCspy" if name is not None else "GCspy")

    def _refresh_details(self) -> None:
        """Say anew everything that is said in words."""
        if self._rebuild and self.spaces.panels:
            self._refresh_status()  # the tiles are those of the connection before, until the first event of this one
            return
        self._fetch_names()
        self.spaces.mark_active()
        self.spaces.refresh()
        picture = self.active_picture()
        under_mouse = None
        if (
            picture is not None
            and self._under_mouse is not None
            and self._under_mouse[0] == picture.space.space.id
        ):
            under_mouse = self._under_mouse[1]
            if under_mouse >= picture.space.count:
                under_mouse = None
        self.details.refresh(picture, under_mouse)
        self._refresh_status()

    def _fetch_names(self) -> None:
        """Ask for the names of tiles that are shown by name."""
        for space_id, panel in self.spaces.panels.items():
            if space_id not in self.session.interpreter.spaces:
                continue  # removed; its panel goes with the next event
            layout = panel.canvas.picture.layout
            ranges = [(layout.first, layout.last)] if layout.labelled else []
            ranges += [
                (tile, tile + 1)
                for tile in (panel.canvas.under_mouse, panel.canvas.selected)
                if tile is not None
            ]
            for first, last in ranges:
                for request in self.session.missing_names(space_id, first, last):
                    self.link.send(request)

    def active_picture(self) -> Picture | None:
        """The picture of the active space."""
        space = self.session.active_space()
        panel = None if space is None else self.spaces.panels.get(space.space.id)
        return None if panel is None else panel.canvas.picture

    def _load_graph(self) -> None:
        """Make the graph, once there are tiles to see: loading what draws it may not delay them."""
        if self.spaces.painted():
            self.details.graph.load()
        elif self.spaces.panels:
            self._graph_timer.start(_GRAPH_MILLIS)

    def settle(self) -> None:
        """Say everything now that would be said a moment later: for a picture of the window."""
        self._details_timer.stop()
        self._graph_timer.stop()
        self._refresh_details()
        self.details.graph.settle()

    def set_probe(self, probe: PaintProbe | None) -> None:
        """Have a function called at the end of every paint of tiles."""
        self.spaces.set_probe(probe)

    # --------------------------------------------------------------------- what users do

    def toggle_pause(self) -> None:
        """Pause after the next event, or go on."""
        if not self.footer.pause.isEnabled():
            return
        paused = self.session.interpreter.state in (ControlState.PAUSING, ControlState.PAUSED)
        self.link.send(Resume() if paused else Pause())

    def step(self) -> None:
        """Go on until after the next event; only while paused."""
        if self.footer.step.isEnabled():
            self.link.send(Step())

    def activate(self, space_id: int) -> None:
        """Make a space the active one."""
        before = self.session.active_space()
        self.session.activate(space_id)
        if before is None or before.space.id != space_id:
            self._refresh_details()

    def choose_stream(self, space_id: int, stream_id: int) -> None:
        """Paint a space in another stream."""
        self.session.choose_stream(space_id, stream_id)
        self.spaces.show_stream(space_id, stream_id)
        self._refresh_details()

    def select(self, space_id: int, tile: int | None) -> None:
        """Select a tile."""
        self.session.activate(space_id)
        self.session.select(space_id, tile)
        self.spaces.select(space_id)
        self._refresh_details()

    def ask_where(self) -> None:
        """Ask for an address and connect there."""
        now = self.link.address
        dialog = ConnectDialog("" if now is None else str(now), self)
        if dialog.exec() and dialog.address is not None:
            self.link.open(
                dialog.address, token=dialog.token.text() or None, wants_control=dialog.control.isChecked()
            )
        dialog.deleteLater()

    def _deselect(self) -> None:
        space = self.session.active_space()
        if space is not None and space.space.id in self.spaces.panels:
            self.select(space.space.id, None)

    def _hovered(self, space_id: int, tile: int) -> None:
        self._under_mouse = None if tile < 0 else (space_id, tile)
        if not self._details_timer.isActive():
            self._details_timer.start(_DETAILS_MILLIS // 4)

    def _next_space(self, step: int) -> None:
        self.session.activate_next(step)
        space = self.session.active_space()
        if space is not None and space.space.id in self.spaces.panels:
            panel = self.spaces.panels[space.space.id]
            panel.canvas.setFocus(Qt.FocusReason.ShortcutFocusReason)
            self.spaces.ensureWidgetVisible(panel)
            self._refresh_details()

    def _next_stream(self, step: int) -> None:
        space = self.session.active_space()
        if space is None or not space.streams:
            return
        ids = [stream.id for stream in ordered_streams(space)]
        now = self.session.chosen_stream(space.space.id)
        place = ids.index(now) if now in ids else 0
        self.choose_stream(space.space.id, ids[(place + step) % len(ids)])

    def _focus_active(self) -> None:
        """Give the keyboard to the tiles of the active space."""
        space = self.session.active_space()
        if space is not None and space.space.id in self.spaces.panels:
            self.spaces.panels[space.space.id].canvas.setFocus(Qt.FocusReason.OtherFocusReason)

    def _zoom(self, step: int) -> None:
        space = self.session.active_space()
        if space is not None and space.space.id in self.spaces.panels:
            self.spaces.panels[space.space.id].canvas.zoom(step)
            self._refresh_details()

    # ----------------------------------------------------------------------------- theme

    def set_theme(self, theme: Theme) -> None:
        """Dress window and tiles."""
        self.theme = theme
        application = QApplication.instance()
        if isinstance(application, QApplication):
            apply_theme(application, theme)
        self.spaces.set_theme(theme)
        self.details.set_theme(theme)
        self._refresh_details()

    def _choose_theme(self, theme: Theme | None) -> None:
        self._follow_system = theme is None
        self.set_theme(theme if theme is not None else system_theme())

    def _system_changed(self) -> None:
        if self._follow_system and not self._closed:
            self.set_theme(system_theme())

    def _show_keys(self) -> None:
        box = QMessageBox(self)
        box.setWindowTitle("Keys")
        box.setTextFormat(Qt.TextFormat.RichText)
        box.setText(_KEYS)
        box.exec()
        box.deleteLater()

    # --------------------------------------------------------------------------- closing

    def closeEvent(self, event: QCloseEvent) -> None:
        """Leave the session; the target goes on. Also in the middle of an event."""
        self._closed = True
        self.link.shut()
        self._details_timer.stop()
        self._refusal_timer.stop()
        self._graph_timer.stop()
        self.details.graph.stop()
        self.set_probe(None)
        super().closeEvent(event)
