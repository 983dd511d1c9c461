"""The main window: makes the desk and the parts, lays them out, and calls all parts in loops.

The parts have the window's functions; see `part`. They use the services of the desk; see `desk`.
"""

from __future__ import annotations

from gcspy_protocol.messages import Message
from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QCloseEvent, QShowEvent
from PySide6.QtWidgets import QMainWindow, QStackedWidget, QVBoxLayout, QWidget

from gcspy_client.link import WindowLink
from gcspy_client.model.palette import Theme
from gcspy_client.model.playback.time_shift import TimeShift
from gcspy_client.model.session import ClientSession
from gcspy_client.model.shell.launcher import FrontDoor
from gcspy_client.model.spaces.picture import SpacePicture
from gcspy_client.settings import UserSettings
from gcspy_client.view.actions import Actions
from gcspy_client.view.classroom.part import ClassPart
from gcspy_client.view.classroom.presentation import PresentationMode
from gcspy_client.view.compare.part import ComparePart
from gcspy_client.view.desk import Desk
from gcspy_client.view.flame_graph.part import FlameGraphPart
from gcspy_client.view.history.part import HistoryPart
from gcspy_client.view.holders.growth_sites import GrowthSites
from gcspy_client.view.holders.part import HolderPart
from gcspy_client.view.lessons.part import LessonPart
from gcspy_client.view.live_updater import LiveUpdater
from gcspy_client.view.object_graph.panel import ObjectGraphPart
from gcspy_client.view.panels.ages import Ages
from gcspy_client.view.panels.cost import CostPart
from gcspy_client.view.panels.details import Details
from gcspy_client.view.panels.details_part import DetailsPart
from gcspy_client.view.panels.facts import FactPanels
from gcspy_client.view.panels.growth_line import GrowthLine
from gcspy_client.view.panels.object_tracker import ObjectTracker
from gcspy_client.view.panels.settings import SettingPart
from gcspy_client.view.panels.tile_types import TileTypes
from gcspy_client.view.panels.type_panels import TypePanels
from gcspy_client.view.part import Part
from gcspy_client.view.plain.text import set_window_title
from gcspy_client.view.shell.announcer import Announcer
from gcspy_client.view.shell.appearance import Appearance
from gcspy_client.view.shell.command_palette import PaletteEntry
from gcspy_client.view.shell.docks import Docks
from gcspy_client.view.shell.help import HelpPart
from gcspy_client.view.shell.key_sheet import KeyRow
from gcspy_client.view.shell.layout import LayoutPart
from gcspy_client.view.shell.preferences import Preferences
from gcspy_client.view.shell.recorded_views import RecordedViews
from gcspy_client.view.shell.session_part import QuitPart, SessionPart
from gcspy_client.view.shell.themes import ThemePart
from gcspy_client.view.shell.view_undo import ViewUndo
from gcspy_client.view.spaces.canvas import PaintProbe
from gcspy_client.view.spaces.formulas import Formulas
from gcspy_client.view.spaces.part import SpacesPart
from gcspy_client.view.spaces.selection import Selection
from gcspy_client.view.spaces.sides import Sides
from gcspy_client.view.spaces.spaces import Spaces
from gcspy_client.view.spaces.tile_copy import TileCopy
from gcspy_client.view.spaces.view_controller import ViewController
from gcspy_client.view.start.file_drop import FileDrop
from gcspy_client.view.start.session_opener import SessionOpener
from gcspy_client.view.time.bookmark_part import BookmarkPart
from gcspy_client.view.time.bookmarks import BookmarkStore
from gcspy_client.view.time.navigator import TimeNavigator
from gcspy_client.view.time.panel import TimePanel
from gcspy_client.view.time.part import TimePart
from gcspy_client.view.time.range_part import RangePart
from gcspy_client.view.time.tile_moments import TileMoments
from gcspy_client.view.triggers.part import TriggerPart

__all__ = ["MainWindow"]

_STATE, _SESSION, _START = range(3)
"""The pages of the window: why there is nothing to see, the session, the start page."""


class MainWindow(QMainWindow):
    """One window on one session.

    Signals:
        event_shown: An event was applied; its `Event`.

    Args:
        theme: Dark or light; None follows the system.
        settings: Stored settings; None: nothing is stored.
        front: The commands that the window can start; None: it can only join servers.
        scaled: Percent by which the application was scaled when it started.

    Attributes:
        desk: Services for the parts.
        parts: All parts, in the order of the menus.
    """

    event_shown = Signal(object)

    def __init__(
        self,
        theme: Theme | None = None,
        settings: UserSettings | None = None,
        front: FrontDoor | None = None,
        *,
        scaled: int = 100,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        set_window_title(self, "GCspy")
        self.resize(1280, 800)
        self._undo_of = ""
        self._closed = False
        self._put_away: list[QWidget] = []  # what the start page does without
        self._stack = QStackedWidget()
        self.desk = self._make_desk(theme, UserSettings() if settings is None else settings)
        self.parts = self.make_parts(front, scaled)
        self.file_drop = FileDrop(self, self.opener.play)
        self._build()
        self._wire()
        self.actions_table = Actions(
            self,
            [action for part in self.parts for action in part.actions()],
            [gesture for part in self.parts for gesture in part.gestures()],
        )
        for action in self.actions_table.made():
            self.addAction(action)
        self.actions_table.fill(self.menuBar())
        self.time.use_actions(self.actions_table)
        self.ranges.use_actions(self.actions_table)
        self.appearance.renew()
        self._refresh()

    def _make_desk(self, theme: Theme | None, settings: UserSettings) -> Desk:
        self.settings = settings
        self.shift = TimeShift()
        self.session = ClientSession(self.shift.timeline)
        self.link = WindowLink(self)
        self.link.tap = self.shift
        self.shift.on_room = self.link.read_on
        self.appearance = Appearance(self, settings, theme)
        self.announcer = Announcer(self)
        dark_or_light = self.appearance.theme
        self.spaces = Spaces(self.session, dark_or_light)
        self.details = Details(self.session, dark_or_light)
        self.updater = LiveUpdater(self.session, self.link, self.spaces, self.details, self)
        self.time_panel = TimePanel(dark_or_light)
        self.bookmark_store = BookmarkStore(self.session, self)
        self.navigator = TimeNavigator(
            self.session,
            self.link,
            self.shift,
            self.updater,
            self.time_panel,
            self.bookmark_store,
            self,
        )
        self.undo = ViewUndo(self)
        self.selection = Selection(self.session, self.spaces, self.updater, self.undo, self)
        self.sides = Sides(self.spaces)
        self.docks = Docks(self.sides, dark_or_light, self.undo, self)
        self.docks.height_changed.connect(self.sides.use_whole_height)
        return Desk(
            frame=self,
            session=self.session,
            link=self.link,
            shift=self.shift,
            settings=settings,
            undo=self.undo,
            docks=self.docks,
            spaces=self.spaces,
            sides=self.sides,
            updater=self.updater,
            selection=self.selection,
            navigator=self.navigator,
            bookmarks=self.bookmark_store,
            appearance=self.appearance,
            say=self.announcer.say,
        )

    def make_parts(self, front: FrontDoor | None, scaled: int) -> tuple[Part, ...]:
        """Make the parts; those with panels in the order of the panels.

        Args:
            front: The commands that the window can start.
            scaled: Percent by which the application was scaled when it started.
        """
        desk = self.desk
        self.layout_part = LayoutPart(desk)
        self.opener = SessionOpener(desk, front)
        self.session_part = SessionPart(desk, self.opener, self.announcer)
        self.details_part = DetailsPart(desk, self.details)
        self.bookmarks = BookmarkPart(desk)
        self.time = TimePart(desk, self.time_panel, self.session_part, self.bookmarks)
        self.history = HistoryPart(desk, self.time_panel.strip)
        self.formulas = Formulas(desk)
        self.views = ViewController(desk, self.formulas)
        self.tile_copy = TileCopy(desk, (self.spaces, self.details.tile))
        self.spaces_part = SpacesPart(desk, self.views, self.tile_copy)
        self.facts = FactPanels(desk)
        self.cost = CostPart(desk, self.session_part.footer)
        self.preferences = Preferences(desk, scaled)
        self.triggers = TriggerPart(desk)
        self.compare = ComparePart(desk, self.details)
        self.ranges = RangePart(desk, self.time_panel, self.compare)
        self.moments = TileMoments(desk)
        self.types = TypePanels(desk, self.compare)
        self.tile_types = TileTypes(desk)
        self.recorded_views = RecordedViews(desk)
        self.growth_line = GrowthLine(desk, self.types.log)
        self.growth_sites = GrowthSites(desk, self.types.growth)
        self.holders = HolderPart(desk, self.types.chosen_type)
        self.types.who_asked.connect(self.holders.ask_type)
        self.objects = ObjectTracker(desk)
        self.ages = Ages(desk)
        self.flame_graph = FlameGraphPart(desk)
        self.object_graph = ObjectGraphPart(desk)
        self.classroom = ClassPart(desk)
        self.presentation = PresentationMode(
            desk,
            lambda: (self.menuBar(), self.session_part.footer, self.time_panel),
            lambda: self.classroom.front,
            self.details.enlarge,
        )
        self.help = HelpPart(desk, self.palette_entries, self._key_rows)
        self.setting_part = SettingPart(desk, self.cost)
        self.lessons = LessonPart(
            desk,
            triggers=self.triggers,
            views=self.views,
            history=self.history.panel,
            show_guide=self.help.show_guide,
            over_now=(
                self.sides,
                self.session_part.event_bar,
                self.details.tile,
                self.details.trend,
            ),
            over_time=(self.history.panel, self.time_panel, self.ranges.panel),
            classroom=self.classroom,
            gives_room=self.time_panel.strip,
        )
        return (
            self.opener,
            self.session_part,
            self.details_part,
            self.preferences,
            QuitPart(desk),
            self.triggers,
            self.cost,
            self.compare,
            self.time,
            self.moments,
            self.ranges,
            self.spaces_part,
            self.bookmarks,
            ThemePart(desk),
            self.presentation,
            self.views,
            self.formulas,
            self.types,
            self.tile_types,
            self.recorded_views,
            self.growth_line,
            self.growth_sites,
            self.holders,
            self.objects,
            self.ages,
            self.flame_graph,
            self.object_graph,
            self.classroom,
            self.facts,
            self.setting_part,
            self.layout_part,
            self.history,
            self.lessons,
            self.help,
        )

    def _build(self) -> None:
        body = QWidget()
        whole = QVBoxLayout(body)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(8)
        whole.addWidget(self.docks.area, 1)
        whole.addWidget(self.time_panel)
        for page in (self.session_part.page, body, self.opener.page):
            self._stack.addWidget(page)
        centre = QWidget()
        column = QVBoxLayout(centre)
        column.setContentsMargins(10, 6, 10, 9)
        column.setSpacing(8)
        column.addWidget(self.session_part.event_bar)
        column.addWidget(self.session_part.banner)
        column.addWidget(self.triggers.notice)
        column.addWidget(self.growth_line.label)
        column.addWidget(self._stack, 1)
        column.addWidget(self.session_part.footer)
        self.setCentralWidget(centre)

    def _wire(self) -> None:
        """Connect what has to come after the parts: they see messages and events first."""
        self.link.status_changed.connect(self._refresh)
        self.opener.changed.connect(self._refresh)
        self.announcer.changed.connect(self._refresh)
        self.link.welcomed.connect(self.updater.restart)
        self.link.received.connect(self.take)
        self.link.received.connect(self.classroom.take)  # after it: the leader is known then
        self.link.received.connect(self.triggers.manager.take)
        self.updater.event_shown.connect(self.event_shown)
        self.updater.spoken.connect(self._refresh)
        self.navigator.moved.connect(self._refresh)
        self.navigator.refused.connect(self.announcer.say)
        self.spaces.said.connect(self.updater.speak_soon)
        self.details.formula_asked.connect(self.formulas.ask)
        self.appearance.changed.connect(self._set_theme)

    def _key_rows(self) -> list[KeyRow]:
        """Return the rows of the sheet of keys."""
        return self.actions_table.key_rows()

    def palette_entries(self) -> list[PaletteEntry]:
        """The entries of the command palette: all actions, and visible items."""
        entries = self.actions_table.entries()
        for part in self.parts:
            entries += part.entries()
        return entries

    # -------------------------------------------------------------------------- messages

    def take(self, messages: list[Message]) -> None:
        """Follow messages; all are applied, what they changed is painted once."""
        self.updater.take(messages)
        welcome = self.session.live.welcome
        if welcome is not None and welcome.session != self._undo_of:
            self._undo_of = welcome.session  # spaces and streams of another session have other ids
            self.undo.clear()
        if (
            self.session.interpreter.last_event is not None
            and self._stack.currentIndex() == _STATE
            and not self._closed
        ):
            self._turn_to_page()
            self.updater.refresh()
            self.docks.fit()
            QTimer.singleShot(
                0, self.docks, self.docks.fit
            )  # once more, when Qt has laid out what the panels say

    # ------------------------------------------------------------------------ the loops

    def _refresh(self, _change: object = None) -> None:
        self._turn_to_page()
        for part in self.parts:
            part.refresh()
        name = self.session.live.welcome
        set_window_title(self, f"{name.server} – GCspy" if name is not None else "GCspy")

    def _set_theme(self) -> None:
        theme = self.appearance.theme
        self.spaces.set_theme(theme)
        for part in self.parts:
            part.set_theme(theme)
        self.updater.refresh()

    def settle(self) -> None:
        """Say everything now that would be said a moment later: for a picture of the window."""
        for part in self.parts:
            part.settle()
        self.spaces.settle()
        self.updater.settle()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Leave the session; the target keeps running. Also in the middle of an event."""
        self.presentation.leave()
        self.layout_part.store()
        self._closed = True
        self.link.shut()
        for part in self.parts:
            part.stop()
        self.docks.hide_floating()
        self.updater.stop()
        self.shift.close()
        self.announcer.stop()
        self.appearance.stop()
        self.set_probe(None)
        super().closeEvent(event)

    # ------------------------------------------------------------------------ the pages

    def _turn_to_page(self) -> None:
        """Show the start page, what the state of things is, or the session."""
        wanted = _START if self.opener.wanted else _SESSION if self.updater.has_tiles else _STATE
        if wanted != self._stack.currentIndex():
            self._stack.setCurrentIndex(wanted)
            self._page_turned()

    def _page_turned(self) -> None:
        starts = self._stack.currentIndex() == _START
        self.opener.page_shown(shown=starts and not self._closed)
        for widget, needless in (
            (self.session_part.event_bar, starts),
            (self.session_part.footer, starts and not self.updater.has_tiles),
        ):
            if needless and not widget.isHidden():
                widget.hide()
                self._put_away.append(widget)
            elif not needless and widget in self._put_away:
                self._put_away.remove(widget)
                widget.show()

    def showEvent(self, event: QShowEvent) -> None:
        """Lay the panels out, now that the size of the window is known."""
        super().showEvent(event)
        if self.layout_part.restore():
            self._page_turned()

    # --------------------------------------------------------------------- for programs

    def active_picture(self) -> SpacePicture | None:
        """The picture of the active space."""
        return self.updater.active_picture()

    def set_probe(self, probe: PaintProbe | None) -> None:
        """Have a function called at the end of every paint of tiles."""
        self.spaces.set_probe(probe)
