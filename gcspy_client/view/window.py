"""The main window: puts the parts together, and does what users ask for.

What came is shown by `following`; what can be asked for is listed in `commands`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from gcspy_protocol.messages import (
    Error,
    Follow,
    Message,
    Pause,
    Resume,
    SetFilters,
    Step,
    TakeControl,
)
from gcspy_protocol.model import ControlState, EventFilter
from PySide6.QtCore import QByteArray, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QShowEvent
from PySide6.QtWidgets import (
    QApplication,
    QMainWindow,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from gcspy_client.guide import pages
from gcspy_client.link import Link
from gcspy_client.model.palette import Theme
from gcspy_client.model.playback.time_shift import TimeShift
from gcspy_client.model.session import Session
from gcspy_client.model.shell.launcher import FrontDoor
from gcspy_client.model.shell.link_status import LinkPhase, LinkStatus
from gcspy_client.model.spaces.picture import Picture
from gcspy_client.settings import Settings
from gcspy_client.view.actions import Actions
from gcspy_client.view.classroom.part import ClassPart
from gcspy_client.view.commands import GESTURES, actions_of, entries_of
from gcspy_client.view.compare.comparing import ComparePart
from gcspy_client.view.following import Following
from gcspy_client.view.history.menus import HistoryMenus
from gcspy_client.view.history.panel import HistoryPanel
from gcspy_client.view.history.undo import HistoryUndo
from gcspy_client.view.lessons.part import LessonPart
from gcspy_client.view.panels.ages import Ages
from gcspy_client.view.panels.copying import Copying
from gcspy_client.view.panels.cost import CostPart
from gcspy_client.view.panels.details import Details
from gcspy_client.view.panels.facts import FactPanels
from gcspy_client.view.panels.following_object import FollowingObject
from gcspy_client.view.panels.settings import SettingPart
from gcspy_client.view.panels.telling import Telling
from gcspy_client.view.plain.dialogs import ask_one_of, ask_text
from gcspy_client.view.plain.text import set_window_title
from gcspy_client.view.shell.command_palette import CommandPalette
from gcspy_client.view.shell.connect_dialog import ConnectDialog
from gcspy_client.view.shell.docks import Docks
from gcspy_client.view.shell.dropping import Dropping
from gcspy_client.view.shell.event_bar import EventBar
from gcspy_client.view.shell.footer import Footer
from gcspy_client.view.shell.guide_window import GuideWindow
from gcspy_client.view.shell.key_sheet import KeySheet
from gcspy_client.view.shell.notices import Banner, StatePage, banner_words
from gcspy_client.view.shell.preferences import Preferences
from gcspy_client.view.shell.starting import Starting
from gcspy_client.view.shell.view_undo import ViewUndo
from gcspy_client.view.spaces.canvas import PaintProbe
from gcspy_client.view.spaces.formulas import Formulas
from gcspy_client.view.spaces.looking import Looking
from gcspy_client.view.spaces.sides import Sides
from gcspy_client.view.spaces.spaces import Spaces
from gcspy_client.view.theme import dress, system_theme, tokens
from gcspy_client.view.time.bookmarks import Bookmarking, BookmarkPanel
from gcspy_client.view.time.panel import TimePanel
from gcspy_client.view.time.saving import SaveDialog
from gcspy_client.view.time.timing import Timing
from gcspy_client.view.triggers.part import TriggerPart

__all__ = ["MainWindow"]

_REFUSAL_MILLIS = 8_000


class MainWindow(QMainWindow):
    """One window on one session.

    Signals:
        event_shown: An event was applied; its `Event`.

    Args:
        theme: Dark or light; None follows the system.
        settings: What is remembered; None: nothing is.
        front: What can be started from the window; None: it can only join servers.
        scaled: Percent by which the application was scaled when it started.
    """

    event_shown = Signal(object)

    def __init__(
        self,
        theme: Theme | None = None,
        settings: Settings | None = None,
        front: FrontDoor | None = None,
        *,
        scaled: int = 100,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.settings = Settings() if settings is None else settings
        set_window_title(self, "GCspy")
        self.resize(1280, 800)
        self.shift = TimeShift()
        self.session = Session(self.shift.timeline)
        self.link = Link(self)
        self.link.tap = self.shift
        self.shift.on_room = self.link.read_on
        self._follow_system = theme is None
        self.theme = theme if theme is not None else system_theme()
        self._refusal = self._undo_of = ""
        self._closed = self._laid_out = False
        self._put_away: list[QWidget] = []  # what the start page does without
        self.event_bar = EventBar(self.session)
        self.banner = Banner()
        self.spaces = Spaces(self.session, self.theme)
        self.page = StatePage()
        self.details = Details(self.session, self.theme)
        self.footer = Footer(self.session)
        self.following = Following(self.session, self.link, self.spaces, self.details, self)
        self.time_panel = TimePanel(self.theme)
        self.bookmarking = Bookmarking(self.session, self)
        self.bookmarks = BookmarkPanel(self.bookmarking, self.session, self.theme)
        self.timing = Timing(
            self.session,
            self.link,
            self.shift,
            self.following,
            self.time_panel,
            self.bookmarking,
            self,
        )
        self.history = HistoryPanel(
            self.session, self.shift, lambda: self.bookmarking.recording, self.theme
        )
        self.undo = ViewUndo(self)
        self.history_menus = HistoryMenus(self.history, self.session)
        self.history_undo = HistoryUndo(self.history, self.undo)
        self.sides = Sides(self.spaces)
        self.docks = Docks(self.sides, self.theme, self.undo, self)
        self._add_docks()
        self.looking = Looking(self)
        self.facts = FactPanels(self)
        self.cost = CostPart(self)
        self.preferences = Preferences(self, scaled)
        self.copying = Copying(self)
        self.starting = Starting(self, front)
        self.dropping = Dropping(self, self.starting.play)
        self.formulas = Formulas(self)
        self._saving: SaveDialog | None = None
        self._stack = QStackedWidget()
        self._refusal_timer = self._single_timer(self._forget_refusal)
        self.triggers = TriggerPart(self)
        self.comparing = ComparePart(self)
        self.telling, self.objects, self.ages = Telling(self), FollowingObject(self), Ages(self)
        self.classroom = ClassPart(self)
        self.setting_part = SettingPart(self)
        self.lessons = LessonPart(self)
        self._build()
        self._wire()
        self._keys: KeySheet | None = None
        self._guide: GuideWindow | None = None
        self.palette_sheet = CommandPalette(partial(entries_of, self), tokens(self.theme), self)
        self.actions_table = Actions(self, actions_of(self), GESTURES)
        for action in self.actions_table.made():
            self.addAction(action)
        self.actions_table.fill(self.menuBar())
        self._name_transport()
        self.set_theme(self.theme)
        self._refresh_status()

    def _name_transport(self) -> None:
        self.time_panel.transport.pressed.connect(self.actions_table.run)
        names = ("first", "back", "reverse", "play", "forward", "last", "loop", "bookmark", "save")
        self.time_panel.transport.set_tips(
            (f"time.{n}", self.actions_table.tip(f"time.{n}")) for n in names
        )

    def _single_timer(self, slot: Callable[[], None]) -> QTimer:
        timer = QTimer(self)
        timer.setSingleShot(True)
        timer.timeout.connect(slot)
        return timer

    def _build(self) -> None:
        body = QWidget()
        whole = QVBoxLayout(body)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(8)
        whole.addWidget(self.docks.area, 1)
        whole.addWidget(self.time_panel)
        self._stack.addWidget(self.page)
        self._stack.addWidget(body)
        self._stack.addWidget(self.starting.page)
        centre = QWidget()
        column = QVBoxLayout(centre)
        column.setContentsMargins(10, 6, 10, 9)
        column.setSpacing(8)
        column.addWidget(self.event_bar)
        column.addWidget(self.banner)
        column.addWidget(self.triggers.notice)
        column.addWidget(self._stack, 1)
        column.addWidget(self.footer)
        self.setCentralWidget(centre)

    def _add_docks(self) -> None:
        side, bottom = Qt.DockWidgetArea.RightDockWidgetArea, Qt.DockWidgetArea.BottomDockWidgetArea
        self.docks.add("view", "View and legend", self.details.view, side, shown=True)
        self.docks.add("tile", "Tile information", self.details.tile, side, shown=True)
        self.docks.add("trend", "Summary over time", self.details.trend, side, shown=True)
        self.docks.add("events", "Events and filters", self.details.filters, side, shown=True)
        self.docks.add(
            "bookmarks",
            "Bookmarks",
            self.bookmarks,
            side,
            keys=("Ctrl+B",),
            about="list of bookmarks",
        )
        about = "history graph: the active space over all events"
        self.docks.add("history", "History graph", self.history, bottom, keys=("H",), about=about)

    def _wire(self) -> None:
        self.link.status_changed.connect(self._status_changed)
        self.starting.changed.connect(self._refresh_status)
        self.page.start_asked.connect(self.starting.open_page)
        self.link.welcomed.connect(self.following.restart)
        self.link.received.connect(self.take)
        self.link.received.connect(self.classroom.take)  # behind it: it shows who leads now
        self.link.received.connect(self.triggers.triggering.take)
        self.link.refused.connect(self._command_refused)
        self.following.event_shown.connect(self.event_shown)
        self.following.spoken.connect(self._refresh_status)
        self.following.applied.connect(self.history.follow)
        self.history.event_asked.connect(self.timing.go_to)
        self.history.tile_asked.connect(self.select_key)
        self.history.share_time(self.time_panel.strip)
        self.timing.moved.connect(self._refresh_status)
        self.timing.refused.connect(self._say_refusal)
        self.bookmarking.refused.connect(self._say_refusal)
        self.bookmarks.filled.connect(partial(self.docks.show, "bookmarks"))
        self.event_bar.live_asked.connect(self.timing.last)
        self.spaces.activated.connect(self.activate)
        self.spaces.picked.connect(self.select)
        self.spaces.said.connect(self.following.speak_soon)
        self.details.stream_chosen.connect(self.choose_stream)
        self.details.formula_asked.connect(self.formulas.ask)
        self.details.filters.wished.connect(self.set_filters)
        self.footer.pause_toggled.connect(self.toggle_pause)
        self.footer.stepped.connect(self.step)
        self.footer.disconnect_asked.connect(self.link.close)
        for part in (self.footer, self.page):
            part.connect_asked.connect(partial(self.ask_where, ""))
            part.reconnect_asked.connect(self.link.reconnect)
        QApplication.styleHints().colorSchemeChanged.connect(self._system_changed)

    # -------------------------------------------------------------------------- messages

    def take(self, messages: list[Message]) -> None:
        """Follow messages; all are applied, what they changed is painted once."""
        self.following.take(messages)
        welcome = self.session.live.welcome
        if welcome is not None and welcome.session != self._undo_of:
            self._undo_of = welcome.session  # spaces and streams of another session have other ids
            self.undo.clear()
        if (
            self.session.interpreter.last_event is not None
            and self._stack.currentIndex() == 0
            and not self._closed
        ):
            self._turn_to_page()
            self.following.refresh()
            self.docks.fit()
            QTimer.singleShot(
                0, self.docks, self.docks.fit
            )  # once more, when Qt has laid out what the panels say

    def _status_changed(self, status: LinkStatus) -> None:
        if status.phase is LinkPhase.IDLE:
            self._refusal = ""
        self._refresh_status()

    def _command_refused(self, error: Error) -> None:
        self.details.filters.model.forget_wishes()
        remedy = f": {error.remedy}" if error.remedy else ""
        self._say_refusal(f"Refused: {error.message}{remedy}")

    def say(self, text: str) -> None:
        """Say something above the tiles for a while."""
        self._say_refusal(text)

    def _say_refusal(self, text: str) -> None:
        self._refusal = text
        self._refusal_timer.start(_REFUSAL_MILLIS)
        self._refresh_status()

    def _forget_refusal(self) -> None:
        self._refusal = ""
        self._refresh_status()

    # ------------------------------------------------------------------------ refreshing

    def _refresh_status(self) -> None:
        status = self.link.status
        has_tiles = self.following.has_tiles
        self._turn_to_page()
        self.page.refresh(status, self.session)
        text, kind = banner_words(status, self.session) if has_tiles else ("", "")
        self.banner.say(self._refusal or text, "warning" if self._refusal else kind)
        self.bookmarking.follow()
        self.bookmarks.refresh()
        self.event_bar.refresh(self.timing.past_words())
        self.footer.refresh(status)
        self.cost.refresh()
        self.history.refresh()
        self.triggers.refresh()
        self.comparing.refresh()
        self.setting_part.refresh()
        self.lessons.refresh()
        name = self.session.live.welcome
        set_window_title(self, f"{name.server} – GCspy" if name is not None else "GCspy")

    def _turn_to_page(self) -> None:
        """Show the start page, what the state of things is, or the session."""
        wanted = 2 if self.starting.wanted else 1 if self.following.has_tiles else 0
        if wanted != self._stack.currentIndex():
            self._stack.setCurrentIndex(wanted)
            self._page_turned()

    def _page_turned(self) -> None:
        starts = self._stack.currentIndex() == 2
        self.starting.page_shown(shown=starts and not self._closed)
        for part, needless in (
            (self.event_bar, starts),
            (self.footer, starts and not self.following.has_tiles),
        ):
            if needless and not part.isHidden():
                part.hide()
                self._put_away.append(part)
            elif not needless and part in self._put_away:
                self._put_away.remove(part)
                part.show()

    def active_picture(self) -> Picture | None:
        """The picture of the active space."""
        return self.following.active_picture()

    def settle(self) -> None:
        """Say everything now that would be said a moment later: for a picture of the window."""
        self.comparing.settle()
        self.spaces.settle()
        self.following.settle()

    def set_probe(self, probe: PaintProbe | None) -> None:
        """Have a function called at the end of every paint of tiles."""
        self.spaces.set_probe(probe)

    # --------------------------------------------------------------------- what users do

    def play_or_pause(self) -> None:
        """Hold or let go what is looked at: the playback of the past, else the session. Never goes live."""
        if self.timing.looks_back:
            self.timing.play()
        else:
            self.toggle_pause()

    def next_event(self) -> None:
        """Show the next event of what is looked at; live, let one happen."""
        if self.timing.is_live:
            self.step()
        else:
            self.timing.step(1)

    def toggle_pause(self) -> None:
        """Pause after the next event, or go on."""
        if not self.footer.pause.isEnabled():
            return
        paused = self.session.live.state in (ControlState.PAUSING, ControlState.PAUSED)
        self.link.send(Resume() if paused else Pause())

    def step(self) -> None:
        """Go on until after the next event; only while paused."""
        if self.footer.step.isEnabled():
            self.link.send(Step())

    def bookmark(self) -> None:
        """Bookmark the event that is shown; of one that is bookmarked already, write the title."""
        number = self.session.number
        if number and not self.bookmarking.add():
            self.bookmarks.edit(number)

    def save_session(self) -> SaveDialog | None:
        """Ask what to save and where to; the window goes on meanwhile."""
        offer = self.timing.offer()
        if offer is None:
            return None
        if self._saving is not None:
            self._saving.close()
            self._saving.deleteLater()
        self._saving = SaveDialog(offer, Path.cwd(), self)
        self._saving.keep_out_of_the_way()
        return self._saving

    def ask_whom(self) -> None:
        """Ask whose playback to see from now on."""
        others = self.timing.others()
        names = [f"{client.name} ({client.id})" for client in others]
        chosen = ask_one_of(self, "Follow", "See the playback of:", names)
        if chosen is not None:
            self.follow_client(others[chosen].id)

    def follow_client(self, client: int | None) -> None:
        """See the playback of another client from now on; None: have one of this window's own."""
        self.link.send(Follow(client=client))

    def ask_event(self) -> None:
        """Ask which event to show."""
        words = ask_text(self, "Go to event", "Number, time (12.5 s, 1:30) or name of an event:")
        if words is not None:
            self.timing.go_to_words(words)

    def use_recording(self, *paths: Path) -> None:
        """What is played are these files: bookmarks are kept beside them, and parts of them can be saved."""
        self.bookmarking.use_files(*paths)

    def set_filters(self, filters: tuple[EventFilter, ...]) -> None:
        """Ask for event filters; of a recording they are this window's own."""
        self.link.send(SetFilters(filters=filters))

    def take_control(self) -> None:
        """Ask for control."""
        self.link.send(TakeControl())

    def activate(self, space_id: int) -> None:
        """Make a space the active one."""
        before = self.session.active_space()
        self.session.activate(space_id)
        if before is None or before.space.id != space_id:
            self.following.refresh()

    def choose_stream(self, space_id: int, stream_id: int) -> None:
        """Paint a space in another stream."""
        before = self.session.chosen_source(space_id)
        now = self.session.looks.source(self.session.interpreter.spaces[space_id], stream_id)
        paint = partial(self._paint_stream, space_id)
        if now is None or before is None or before.schema.id == stream_id:
            paint(stream_id)
        else:
            text, back = f"view of {now.schema.name}", partial(paint, before.schema.id)
            self.undo.do(text, partial(paint, stream_id), back, ("stream", space_id))

    def _paint_stream(self, space_id: int, stream_id: int) -> None:
        space = self.session.interpreter.spaces.get(space_id)
        there = space is not None and self.session.looks.source(space, stream_id) is not None
        if there and space_id in self.spaces.panels:
            self.session.choose_stream(space_id, stream_id)
            self.spaces.show_stream(space_id)
            self.following.refresh()

    def select(self, space_id: int, tile: int | None) -> None:
        """Select a tile."""
        self.session.activate(space_id)
        self.session.select(space_id, tile)
        self.spaces.select(space_id)
        self.following.refresh()

    def select_key(self, space_id: int, key: int) -> None:
        """Select a tile by its key: it may be one of another moment, that is not there now."""
        self.session.activate(space_id)
        self.session.select_key(space_id, key)
        if space_id in self.spaces.panels:
            self.spaces.select(space_id)
        self.following.refresh()

    def deselect(self) -> None:
        """Select no tile of the active space."""
        space = self.session.active_space()
        if space is not None and space.space.id in self.spaces.panels:
            self.select(space.space.id, None)

    def ask_where(self, address: str = "") -> None:
        """Ask for an address, beginning with one, and connect there."""
        now = self.link.address
        dialog = ConnectDialog(address or ("" if now is None else str(now)), self)
        if dialog.exec() and dialog.address is not None:
            self.starting.connect_to(
                str(dialog.address),
                token=dialog.token.text() or None,
                control=dialog.control.isChecked(),
            )
        dialog.deleteLater()

    def next_space(self, step: int) -> None:
        """Make the next (1) or previous (-1) space the active one."""
        before = self.session.active_space()
        self.session.activate_next(step)
        space = self.session.active_space()
        if space is not None and before is not None:
            again, back = (
                partial(self.turn_to, space.space.id),
                partial(self.turn_to, before.space.id),
            )
            self.undo.do("space " + space.space.name, again, back, "space")

    def turn_to(self, space_id: int) -> None:
        """Make a space the active one, bring it into view, and give it the keyboard."""
        if space_id in self.spaces.panels:
            self.session.activate(space_id)
            panel = self.spaces.panels[space_id]
            panel.shown.setFocus(Qt.FocusReason.ShortcutFocusReason)
            self.spaces.ensureWidgetVisible(panel)
            self.following.refresh()

    def next_stream(self, step: int) -> None:
        """Paint the active space in the next (1) or previous (-1) stream."""
        space = self.session.active_space()
        source = None if space is None else self.session.chosen_source(space.space.id)
        if space is None or source is None:
            return
        ids = [one.schema.id for one in self.looking.sources(space)]
        now = source.schema.id
        place = ids.index(now) if now in ids else 0
        self.choose_stream(space.space.id, ids[(place + step) % len(ids)])

    def zoom(self, step: int) -> None:
        """Larger tiles (1) in the active space, smaller ones (-1), or all in view (0)."""
        space = self.session.active_space()
        if space is not None and space.space.id in self.spaces.panels:
            self.looking.zoom(space.space.id, step)
            self.following.refresh()

    def show_keys(self) -> None:
        """Tell all keys."""
        if self._keys is None:
            self._keys = KeySheet(self.actions_table.key_rows(), self)
        self._keys.show()
        self._keys.raise_()
        self._keys.activateWindow()

    def show_guide(self, page: str = "") -> GuideWindow:
        """Show the guide, at a page."""
        if self._guide is None:
            keys = [(row.menu, row.keys, row.about) for row in self.actions_table.key_rows()]
            self._guide = GuideWindow(pages(), keys, self)
        self._guide.show_page(page)
        self._guide.show()
        self._guide.raise_()
        self._guide.activateWindow()
        return self._guide

    # ----------------------------------------------------------------------------- theme

    def set_theme(self, theme: Theme) -> None:
        """Dress window and tiles."""
        self.theme = theme
        dress(self, theme, points=self.classroom.presenting.points)
        self.spaces.set_theme(theme)
        self.details.set_theme(theme)
        self.time_panel.set_theme(theme)
        self.bookmarks.set_theme(theme)
        self.history.set_theme(theme)
        self.docks.set_theme(theme)
        self.looking.set_theme(theme)
        self.starting.page.set_theme(theme)
        self.triggers.set_theme(theme)
        self.cost.set_theme(theme)
        self.comparing.set_theme(theme)
        self.telling.set_theme(theme)
        self.objects.set_theme(theme)
        self.ages.set_theme(theme)
        self.classroom.set_theme(theme)
        self.lessons.set_theme(theme)
        self.palette_sheet.set_colours(tokens(theme))
        self.following.refresh()

    def choose_theme(self, theme: Theme | None) -> None:
        """Dress the window as the user wishes; None follows the system."""
        self._follow_system = theme is None
        self.set_theme(theme if theme is not None else system_theme())
        self.settings.store("look.theme", "system" if theme is None else theme)

    def theme_is_chosen(self, theme: Theme | None) -> bool:
        """Whether this is what the user wishes."""
        return (
            self._follow_system
            if theme is None
            else not self._follow_system and theme is self.theme
        )

    def _system_changed(self) -> None:
        if self._follow_system and not self._closed:
            self.set_theme(system_theme())

    # -------------------------------------------------------------------------- layout

    def restore_place(self) -> None:
        """Stand on the screen where the last window stood; before it is shown."""
        stored = (
            self.settings.data("layout.window")
            if self.settings.flag("layout.restore", True)
            else b""
        )
        if stored:
            self.restoreGeometry(QByteArray(stored))

    def showEvent(self, event: QShowEvent) -> None:
        """Lay the panels out, now that the size of the window is known."""
        super().showEvent(event)
        if not self._laid_out:
            self._laid_out = True
            self.docks.restore(self.settings)
            self._page_turned()

    def _store_layout(self) -> None:
        if self._laid_out:
            self.docks.store(self.settings)
            self.settings.store_data("layout.window", bytes(self.saveGeometry().data()))
            self.settings.write()

    # --------------------------------------------------------------------------- closing

    def closeEvent(self, event: QCloseEvent) -> None:
        """Leave the session; the target goes on. Also in the middle of an event."""
        self.classroom.presenting.leave()
        if not self._closed:
            self._store_layout()
        self._closed = True
        for sheet in (self._saving, self._keys):
            if sheet is not None:
                sheet.close()
        self.link.shut()
        self.history.stop()
        self.triggers.stop()
        self.lessons.stop()
        self.comparing.stop()
        self.telling.stop()
        self.objects.stop()
        self.classroom.stop()
        self.spaces.stop()
        self.starting.stop()
        self.facts.stop()
        self.preferences.stop()
        self.formulas.close()
        self.timing.stop()
        self.following.stop()
        self.shift.close()
        self._refusal_timer.stop()
        self.details.graph.stop()
        self.set_probe(None)
        super().closeEvent(event)
