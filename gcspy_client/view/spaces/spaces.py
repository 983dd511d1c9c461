"""All spaces, each in a panel: the active one is large, the others stand below it, most of them as one line each.

The user opens and folds them, and may drag the border below the large one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gcspy_protocol.interpreter import EventChange, SpaceState
from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QSplitter, QVBoxLayout, QWidget

from gcspy_client.model.palette import Theme
from gcspy_client.model.session import ClientSession
from gcspy_client.model.spaces.panel_heights import PanelForm, arrange_panels
from gcspy_client.model.spaces.picture import SpacePicture
from gcspy_client.model.tile_source import TileSource
from gcspy_client.model.view_states import TABLE, TILES, SpaceViewState
from gcspy_client.view.plain.text import set_tip
from gcspy_client.view.plain.widgets import PlainPushButton
from gcspy_client.view.spaces.canvas import PaintProbe
from gcspy_client.view.spaces.space_panel import SpacePanel
from gcspy_client.view.spaces.space_view import SpaceView
from gcspy_client.view.spaces.tile_table import TableView
from gcspy_client.view.spaces.views import RendererView, make_view, order_words, title_of

__all__ = ["Spaces"]

MakeView = Callable[[SpaceState, TileSource, Theme, SpaceViewState], SpaceView | None]

_GAP = 8
_LEAST_LIST = 26
"""Height of the list of other spaces when there is room for one line only."""

_TREND_FROM = 600
"""Least width of lines with a trend beside their summary."""

_BUTTON_MILLIS = 30
"""Between two looks whether a mouse button is still held: a panel does not move under a pressed one."""


def _name_of(panel: SpacePanel) -> str:
    return panel.canvas.picture.space.space.name


class Spaces(QWidget):
    """The panels.

    Signals:
        activated: Space id.
        hovered: Space id, and the tile under the mouse or -1.
        picked: Space id, and the tile that was selected.
        marked: Space id, the first and the last tile that the user marks, and whether they are
            marked from now on.
        moved: Space id, and the previous visible part.
        failed: Space id, and why its view failed.
        views_asked: Space id, and a menu to be filled with its views.
        options_asked: Space id, and a menu to be filled with its view's options.
        said: The description of a view changed.

    Args:
        session: Whose spaces.
        theme: For which canvas the tiles are painted.
    """

    activated = Signal(int)
    hovered = Signal(int, int)
    picked = Signal(int, int)
    marked = Signal(int, int, int, bool)
    moved = Signal(int, object)
    failed = Signal(int, str)
    views_asked = Signal(int, object)
    options_asked = Signal(int, object)
    said = Signal()

    def __init__(self, session: ClientSession, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._theme = theme
        self._enlarged = 1.0
        self._active: int | None = None
        self._probe: PaintProbe | None = None
        self._dragged: int | None = None
        self._least = 0
        self._arranged_for: tuple[object, ...] | None = None
        self._opened: dict[str, bool] = {}
        self._hidden: set[str] = set()
        self._line_widths = (0, 0, 0)
        self.panels: dict[int, SpacePanel] = {}
        self.instead: MakeView | None = None
        """Makes the views in place of those that looks name: while spaces are compared, say."""
        self._stage, self._stage_column = self._make_column(0)
        inside, self._lines = self._make_column(_GAP)
        self._lines.addStretch(1)
        self._list = QScrollArea()
        self._list.setWidgetResizable(True)
        self._list.setFrameShape(QFrame.Shape.NoFrame)
        self._list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._list.setWidget(inside)
        self._list.setMinimumHeight(_LEAST_LIST)
        self._splitter = QSplitter(Qt.Orientation.Vertical)
        self._splitter.setChildrenCollapsible(False)
        self._splitter.setHandleWidth(_GAP)
        self._splitter.addWidget(self._stage)
        self._splitter.addWidget(self._list)
        self._splitter.splitterMoved.connect(self._moved)
        self.shows_hidden = PlainPushButton("Show hidden spaces")
        self.shows_hidden.setProperty("chip", "plain")
        self.shows_hidden.clicked.connect(self.show_all)
        self.shows_hidden.hide()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(_GAP // 2)
        column.addWidget(self._splitter, 1)
        column.addWidget(self.shows_hidden, 0, Qt.AlignmentFlag.AlignLeft)
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.setInterval(_BUTTON_MILLIS)
        self._later.timeout.connect(self.mark_active)

    def _make_column(self, gap: int) -> tuple[QWidget, QVBoxLayout]:
        widget = QWidget()
        column = QVBoxLayout(widget)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(gap)
        return widget, column

    # --------------------------------------------------------------- following a session

    def rebuild(self) -> None:
        """Make the panels again from the session: after a new bootstrap."""
        for space_id in list(self.panels):
            self._remove(space_id)
        self._dragged = None
        self.sync()

    def sync(self) -> None:
        """Add panels of new spaces and remove those of removed ones; show the state that is shown now."""
        spaces = self._session.interpreter.spaces
        before = tuple(self.panels)
        used = False
        for space_id in before:
            # An id may come back for another space, after a player has sought across its removal.
            if (
                space_id not in spaces
                or spaces[space_id].space != self.panels[space_id].canvas.picture.space.space
            ):
                self._remove(space_id)
            elif spaces[space_id] is not self.panels[space_id].canvas.picture.space:
                self._use(space_id)
                used = True
        if used:
            self._follow_names()
        for space_id in spaces:
            source = self._session.chosen_source(space_id)
            if space_id not in self.panels and source is not None:
                self._add(space_id, source)
        if tuple(self.panels) != before:
            self.mark_active()
            self.arrange()

    def follow(self, change: EventChange) -> None:
        """Take an event into every picture."""
        for panel in self.panels.values():
            panel.follow(change)
        self._follow_names()
        for space in change.resized:
            if space in self.panels:
                self.select(space)
        if change.resized:
            self.arrange()

    def renew(self) -> None:
        """Show the state that the session shows now, after events that no picture has followed."""
        self.sync()
        for space_id, panel in self.panels.items():
            source = self._session.chosen_source(space_id)
            if source is not None and self.is_current(space_id):
                panel.renew(source)
                self.select(space_id)
        self.arrange()

    def repaint_names(self) -> None:
        """Paint the names on tiles again: more of them are known."""
        for panel in self.panels.values():
            if panel.canvas.picture.layout.labelled or panel.view is not None:
                panel.shown.update()

    def _follow_names(self) -> None:
        """Repaint spaces painted by names that changed, or among which others have become frequent."""
        for space_id, panel in self.panels.items():
            before = panel.canvas.picture.source.schema
            source = None if before.names_from is None else self._session.chosen_source(space_id)
            if (
                source is not None
                and source.schema is not before
                and source.schema.id == before.id
                and source.schema != before
            ):
                panel.show_source(source)

    def mark_active(self) -> None:
        """Mark the panel of the active space, and all while they show the past."""
        active = self._session.active_space()
        for space_id, panel in self.panels.items():
            panel.mark(
                active=active is not None and active.space.id == space_id,
                past=not self._session.is_live,
            )
        now = None if active is None else active.space.id
        if now == self._active:
            return
        if QGuiApplication.mouseButtons() != Qt.MouseButton.NoButton:
            self._later.start()
            return
        self._active = now
        if now is not None and self.is_hidden(now):
            self._hidden.discard(_name_of(self.panels[now]))
        self.arrange()

    def refresh(self) -> None:
        """Update the headers."""
        event = self._session.interpreter.last_event
        for panel in self.panels.values():
            panel.refresh(event, self._session.history)
        self._align()

    def is_current(self, space_id: int) -> bool:
        """Whether a space has a panel, and that shows the state which the session shows.

        After a reconnect the panels are those of the previous session, until the first event
        arrives.
        """
        panel, space = self.panels.get(space_id), self._session.interpreter.spaces.get(space_id)
        return panel is not None and panel.canvas.picture.space is space

    def show_stream(self, space_id: int) -> None:
        """Paint a space in the stream that the session says is chosen; a panel that is not current keeps its own."""
        if not self.is_current(space_id):
            return
        source = self._session.chosen_source(space_id)
        if source is not None:
            self.panels[space_id].show_source(source)

    def show_look(self, space_id: int) -> None:
        """Apply the session's view of a space."""
        if self._take_look(space_id):
            self.arrange()

    def _take_look(self, space_id: int) -> bool:
        """Apply the session's view of a space; return whether its panel may need another height."""
        panel, look = self.panels[space_id], self._session.looks.of(space_id)
        panel.toolbar.say(
            title_of(look.view), *order_words(panel.canvas.picture.space, look, self._session.looks)
        )
        view = panel.view
        if (
            self.instead is None
            and isinstance(view, RendererView)
            and view.look.view == look.view
            and (look.view != TILES or look.order is not None)
        ):
            view.set_look(look)
            return False
        if self.instead is None and isinstance(view, TableView) and look.view == TABLE:
            return False
        panel.show_view(self._view(panel, look))
        panel.note("")
        if panel.view is not None:
            panel.view.changed.connect(self.said)
        return True

    def _view(self, panel: SpacePanel, look: SpaceViewState) -> SpaceView | None:
        picture = panel.canvas.picture
        if self.instead is not None:
            return self.instead(picture.space, picture.source, self._theme, look)

        def sources() -> list[TileSource]:
            return self._session.looks.sources(panel.canvas.picture.space)

        view = make_view(
            picture.space, picture.source, sources, self._theme, look, self._session.looks
        )
        if view is not None:
            view.use_palettes(self._session.palettes)
        return view

    def set_theme(self, theme: Theme) -> None:
        """Paint for another canvas."""
        self._theme = theme
        for panel in self.panels.values():
            panel.set_theme(theme)

    def enlarge(self, factor: float) -> None:
        """Draw cells, labels and frames larger than usual, for who sits far away; 1: as usual."""
        if factor == self._enlarged:
            return
        self._enlarged = factor
        for panel in self.panels.values():
            panel.enlarge(factor)
        self.arrange()

    def settle(self) -> None:
        """Show everything now that would be shown a moment later."""
        for panel in self.panels.values():
            panel.settle()

    def stop(self) -> None:
        """Draw nothing any more; no thread and no timer is left."""
        self._later.stop()
        for panel in self.panels.values():
            panel.stop()

    def painted(self) -> bool:
        """Whether tiles of any space were painted yet."""
        return any(panel.shown.painted for panel in self.panels.values())

    def set_probe(self, probe: PaintProbe | None) -> None:
        """Have a function called at the end of every paint."""
        self._probe = probe
        for panel in self.panels.values():
            panel.canvas.probe = probe

    def select(self, space_id: int) -> None:
        """Frame the tile that the session says is selected, and those that are marked."""
        self.panels[space_id].select(self._session.selected(space_id))
        self.show_marks(space_id)

    def show_marks(self, space_id: int) -> None:
        """Mark the tiles that the session says are marked."""
        panel = self.panels[space_id]
        tiles = self._session.looks.marked(panel.canvas.picture.space)
        if tiles != panel.canvas.marks:
            panel.mark_tiles(tiles)

    # ----------------------------------------------------------------------- arranging

    @property
    def opened(self) -> dict[str, bool]:
        """The panels that the user opened (True) or folded, by names of spaces."""
        return dict(self._opened)

    def use_opened(self, opened: dict[str, bool]) -> None:
        """Open and fold panels; those of other spaces as there is room."""
        if opened != self._opened:
            self._opened = dict(opened)
            self.arrange()

    def open(self, space_id: int, on: bool = True) -> None:
        """Open the panel of a space, or fold it to a line."""
        panel = self.panels[space_id]
        self._opened[_name_of(panel)] = on
        self.arrange()
        if on:
            self.reveal(panel)

    def open_all(self) -> None:
        """Open all panels; if they are all open, fold all but the large one."""
        on = any(panel.form is PanelForm.LINE for panel in self.panels.values())
        for panel in self.panels.values():
            self._opened[_name_of(panel)] = on
        self.arrange()

    # -------------------------------------------------------------------------- hiding

    def is_hidden(self, space_id: int) -> bool:
        """Whether the user hid a space."""
        panel = self.panels.get(space_id)
        return panel is not None and _name_of(panel) in self._hidden

    def can_hide(self, space_id: int) -> bool:
        """Whether another space would still be shown."""
        return any(one != space_id and not self.is_hidden(one) for one in self.panels)

    def hide_space(self, space_id: int) -> None:
        """Show a space no more, until it becomes the active one or `show_space` is called."""
        if self.can_hide(space_id):
            self._hidden.add(_name_of(self.panels[space_id]))
            self.arrange()

    def show_space(self, space_id: int) -> None:
        """Show a hidden space again."""
        if self.is_hidden(space_id):
            self._hidden.discard(_name_of(self.panels[space_id]))
            self.arrange()

    def show_all(self) -> None:
        """Show the hidden spaces again."""
        self._hidden.clear()
        self.arrange()

    @property
    def hidden(self) -> tuple[str, ...]:
        """Names of the spaces of this session that the user hid."""
        return tuple(_name_of(panel) for one, panel in self.panels.items() if self.is_hidden(one))

    def use_hidden(self, names: Iterable[str]) -> None:
        """Hide the spaces of these names, and show all others; the active one is shown."""
        self._hidden = set(names)
        if self._active in self.panels:
            self._hidden.discard(_name_of(self.panels[self._active]))
        self.arrange()

    @property
    def hidden_names(self) -> tuple[str, ...]:
        """Names of all spaces that the user hid, also of those that this session does not have."""
        return tuple(sorted(self._hidden))

    def _say_hidden(self) -> None:
        hidden = self.hidden
        self.shows_hidden.setVisible(bool(hidden))
        if hidden:
            many = "1 hidden space" if len(hidden) == 1 else f"{len(hidden):,} hidden spaces"
            self.shows_hidden.setText(f"{many} · show")
            set_tip(self.shows_hidden, f"Show again: {', '.join(hidden)}")

    def reveal_tile(self, space_id: int, tile: int) -> None:
        """Scroll until a tile is seen."""
        if space_id in self.panels:
            panel = self.panels[space_id]
            self.reveal(panel)
            panel.shown.reveal(tile)

    def reveal(self, panel: SpacePanel) -> None:
        """Scroll until a panel is seen; the large one always is."""
        if panel.form is not PanelForm.LARGE:
            self._list.ensureWidgetVisible(panel, 0, 0)

    def arrange(self) -> None:
        """Give each panel its form and its height, if anything changed that they depend on."""
        if not self.panels:
            return
        if not any(not self.is_hidden(one) for one in self.panels):
            self._hidden.clear()  # those of another session: all that there are would be away
        self._say_hidden()
        ids = [one for one in self.panels if not self.is_hidden(one)]
        active = ids.index(self._active) if self._active in ids else 0
        panels = [self.panels[one] for one in ids]
        needs = tuple(
            panel.needs(self.width(), self._opened.get(_name_of(panel))) for panel in panels
        )
        room = self.height()
        if self.hidden:
            room -= self.shows_hidden.sizeHint().height() + _GAP // 2
        wanted = room, ids, active, self._dragged, self._least, needs
        if wanted == self._arranged_for:
            return
        self._arranged_for = wanted
        self._line_widths = (0, 0, 0)
        made = arrange_panels(room, _GAP, active, needs, least=self._least)
        self.setUpdatesEnabled(False)
        self._put(ids[active])
        for number, height, form in zip(ids, made.heights, made.forms, strict=True):
            panel = self.panels[number]
            panel.set_form(form)
            if form is PanelForm.LARGE:
                panel.release_height()
            else:
                panel.setFixedHeight(height)
        self._align()
        self._list.setVisible(len(ids) > 1)
        others = made.others if self._dragged is None else self._dragged
        self._splitter.setSizes([room - _GAP - others, others])
        self.setUpdatesEnabled(True)

    def _put(self, large: int) -> None:
        """Have the large panel above, and all others below it in their order."""
        others = [
            panel
            for number, panel in self.panels.items()
            if number != large and not self.is_hidden(number)
        ]
        for number, panel in self.panels.items():
            if self.is_hidden(number) is not panel.is_put_away:
                panel.put_away(on=not panel.is_put_away)
        for place, panel in enumerate(others):
            if self._lines.indexOf(panel) != place:
                self._lines.insertWidget(place, panel)
                panel.show()
        panel = self.panels[large]
        if self._stage_column.indexOf(panel) < 0:
            keyboard = panel.has_keyboard()
            self._stage_column.addWidget(panel)
            panel.show()
            if keyboard:
                panel.shown.setFocus(Qt.FocusReason.OtherFocusReason)

    def _align(self) -> None:
        """Give names and summaries the same widths in all lines, so that their strips are one column."""
        lines = [panel for panel in self.panels.values() if panel.form is PanelForm.LINE]
        wide = [self._line_widths, *(panel.column_widths() for panel in lines)]
        name, summary, trend = map(max, zip(*wide, strict=True))
        if not any(panel.has_trend for panel in lines) or self.width() < _TREND_FROM:
            trend = 0
        most = self.width() // (3 if self.width() >= _TREND_FROM else 4)
        self._line_widths = min(name, self.width() // 4), min(summary, most), trend
        for panel in lines:
            panel.use_column_widths(*self._line_widths)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Share the new height."""
        super().resizeEvent(event)
        self.arrange()

    def use_least(self, pixels: int) -> None:
        """Give the large panel at least this height, as far as a line of the others remains."""
        if pixels != self._least:
            self._least = pixels
            self.arrange()

    def _moved(self) -> None:
        """Keep the height that the user gave the other panels, up to half of all."""
        dragged = min(self._splitter.sizes()[1], self.height() // 2)
        if dragged != self._dragged:
            self._dragged = dragged
            self.arrange()

    def _add(self, space_id: int, source: TileSource) -> None:
        picture = SpacePicture(
            self._session.interpreter.spaces[space_id], source, self._theme, self._session.palettes
        )
        panel = SpacePanel(picture)
        panel.enlarge(self._enlarged)
        panel.toolbar.set_theme(self._theme)
        panel.canvas.probe = self._probe
        panel.activated.connect(self.activated)
        panel.hovered.connect(self.hovered)
        panel.picked.connect(self.picked)
        panel.failed.connect(self.failed)
        panel.opened.connect(self.open)
        panel.marked.connect(self.marked)
        panel.moved.connect(self.moved)
        panel.toolbar.views_asked.connect(lambda menu: self.views_asked.emit(space_id, menu))
        panel.toolbar.options_asked.connect(lambda menu: self.options_asked.emit(space_id, menu))
        self.panels[space_id] = panel
        self._lines.insertWidget(self._lines.count() - 1, panel)
        panel.canvas.selected = self._session.selected(space_id)
        self._take_look(space_id)  # `sync` arranges, once for all that are new
        panel.refresh(self._session.interpreter.last_event, self._session.history)

    def _use(self, space_id: int) -> None:
        """Show another state of the same space, with cells and place as they are."""
        self.panels[space_id].use_space(self._session.interpreter.spaces[space_id], self._theme)
        self.select(space_id)

    def _remove(self, space_id: int) -> None:
        panel = self.panels.pop(space_id)
        panel.stop()
        panel.canvas.probe = None
        panel.setParent(None)
        panel.deleteLater()
