"""All spaces, one above the other, each in a panel; the user may drag the borders between them."""

from __future__ import annotations

from collections.abc import Callable

from gcspy_protocol.interpreter import EventChange, SpaceState
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QScrollArea, QSplitter, QVBoxLayout, QWidget

from gcspy_client.model.palette import Theme
from gcspy_client.model.session import ClientSession
from gcspy_client.model.spaces.panel_heights import allot_heights
from gcspy_client.model.spaces.picture import SpacePicture
from gcspy_client.model.tile_source import TileSource
from gcspy_client.model.view_states import TABLE, TILES, SpaceViewState
from gcspy_client.view.spaces.canvas import PaintProbe
from gcspy_client.view.spaces.space_panel import SpacePanel
from gcspy_client.view.spaces.space_view import SpaceView
from gcspy_client.view.spaces.tile_table import TableView
from gcspy_client.view.spaces.views import RendererView, make_view, order_words, title_of

__all__ = ["Spaces"]

MakeView = Callable[[SpaceState, TileSource, Theme, SpaceViewState], SpaceView | None]

_GAP = 8
_NO_LIMIT = 16777215  # QWIDGETSIZE_MAX
_HIGHEST = 1 << 20
"""Pixels a panel may be high. A splitter adds its parts' greatest heights up in 32 bits: with Qt's own
greatest, 129 panels are higher than that, and none is seen. There are at most 1,024 spaces."""


class Spaces(QScrollArea):
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
        self._arranged_by_user = False
        self._heights: dict[int, int | None] = {}
        self._arranged_for: list[tuple[int, int | None, int]] = []
        self.panels: dict[int, SpacePanel] = {}
        self.instead: MakeView | None = None
        """Makes the views in place of those that looks name: while spaces are compared, say."""
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        inside = QWidget()
        self._column = QVBoxLayout(inside)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self._splitter = QSplitter(Qt.Orientation.Vertical)
        self._splitter.setChildrenCollapsible(False)
        self._splitter.setHandleWidth(_GAP)
        self._splitter.splitterMoved.connect(self._moved)
        self._rest = QWidget()
        self._column.addWidget(self._splitter)
        self._column.addWidget(self._rest)
        self.setWidget(inside)

    # --------------------------------------------------------------- following a session

    def rebuild(self) -> None:
        """Make the panels again from the session: after a new bootstrap."""
        for space_id in list(self.panels):
            self._remove(space_id)
        self._arranged_by_user = False
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
            self.arrange()
            self.mark_active()

    def follow(self, change: EventChange) -> None:
        """Take an event into every picture."""
        for panel in self.panels.values():
            panel.follow(change)
        self._follow_names()
        for space in change.resized:
            if space in self.panels:
                self.select(space)
        if change.resized and self._sizes() != self._arranged_for:
            self.arrange()

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
        if now != self._active:
            self._active = now
            if self._enlarged > 1:
                self.arrange()

    def refresh(self) -> None:
        """Update the headers."""
        event = self._session.interpreter.last_event
        for panel in self.panels.values():
            panel.refresh(event)

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
            isinstance(view, RendererView)
            and view.look.view == look.view
            and (look.view != TILES or look.order is not None)
        ):
            view.set_look(look)
            return False
        if isinstance(view, TableView) and look.view == TABLE:
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
        """Draw nothing any more; no thread is left."""
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

    def arrange(self) -> None:
        """Give each panel a height that suits its tiles, unless the user has moved a border."""
        if self._arranged_by_user or not self.panels:
            return
        panels = list(self.panels.values())
        width = self.viewport().width()
        self._arranged_for = self._sizes()
        self._heights = {i: panel.height_for(width) for i, panel in self.panels.items()}
        gaps = _GAP * (len(panels) - 1)
        heights = allot_heights(
            self.viewport().height() - gaps,
            list(self._heights.values()),
            [1 << panel.canvas.picture.space.count.bit_length() for panel in panels],
        )
        self._give_leftovers(heights, width)
        presents = self._enlarged > 1 and len(panels) > 1
        if presents:
            heights = self._heights_far_away()
        whole = sum(heights) + gaps
        all_fixed = not presents and all(height is not None for height in self._heights.values())
        scrolls = whole > self.viewport().height()
        self._splitter.setMinimumHeight(whole if scrolls or all_fixed else 0)
        self._splitter.setMaximumHeight(whole if all_fixed else _NO_LIMIT)
        self._column.setStretch(0, 0 if all_fixed else 1)
        self._column.setStretch(1, 1 if all_fixed else 0)
        self._splitter.setSizes(heights)

    def _heights_far_away(self) -> list[int]:
        """For a large audience: the active space gets at least half of the height, the others share the rest."""
        active, room = (
            self._session.active_space(),
            self.viewport().height() - _GAP * (len(self.panels) - 1),
        )
        share = room // 2 // (len(self.panels) - 1)
        heights = {
            i: max(
                panel.minimumSizeHint().height(),
                share if self._heights[i] is None else min(share, self._heights[i] or share),
            )
            for i, panel in self.panels.items()
        }
        if active is not None and active.space.id in heights:
            others = sum(height for i, height in heights.items() if i != active.space.id)
            heights[active.space.id] = max(room - others, room // 2)
        return list(heights.values())

    def _sizes(self) -> list[tuple[int, int | None, int]]:
        """What the arrangement depends on; a space must double or halve before its panel moves the others."""
        width = self.viewport().width()
        return [
            (i, panel.height_for(width), panel.canvas.picture.space.count.bit_length())
            for i, panel in self.panels.items()
        ]

    def _give_leftovers(self, heights: list[int], width: int) -> None:
        """Take what tiles cannot cover from each large space and give it to the largest."""
        panels = list(self.panels.values())
        large = [i for i, height in enumerate(self._heights.values()) if height is None]
        if len(large) < 2 or any(panels[i].canvas.picture.zoom is not None for i in large):
            return
        largest = max(large, key=lambda i: panels[i].canvas.picture.space.count)
        for i in large:
            if i != largest:
                trimmed = panels[i].trimmed(width, heights[i])
                heights[largest] += heights[i] - trimmed
                heights[i] = trimmed

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Share the new height."""
        super().resizeEvent(event)
        self.arrange()

    def _moved(self) -> None:
        self._arranged_by_user = True
        self._splitter.setMinimumHeight(0)

    def _add(self, space_id: int, source: TileSource) -> None:
        picture = SpacePicture(
            self._session.interpreter.spaces[space_id], source, self._theme, self._session.palettes
        )
        panel = SpacePanel(picture)
        panel.setMaximumHeight(_HIGHEST)
        panel.enlarge(self._enlarged)
        panel.toolbar.set_theme(self._theme)
        panel.canvas.probe = self._probe
        panel.activated.connect(self.activated)
        panel.hovered.connect(self.hovered)
        panel.picked.connect(self.picked)
        panel.failed.connect(self.failed)
        panel.marked.connect(self.marked)
        panel.moved.connect(self.moved)
        panel.toolbar.views_asked.connect(lambda menu: self.views_asked.emit(space_id, menu))
        panel.toolbar.options_asked.connect(lambda menu: self.options_asked.emit(space_id, menu))
        self.panels[space_id] = panel
        self._splitter.addWidget(panel)
        panel.canvas.selected = self._session.selected(space_id)
        self._take_look(space_id)  # `sync` arranges, once for all that are new
        panel.refresh(self._session.interpreter.last_event)

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
