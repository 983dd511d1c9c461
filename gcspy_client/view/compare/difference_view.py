"""A space painted as a difference, in place of its tiles: blue where there is less than there was, orange where there is more.

The cells are at the places of the tiles. Hover shows the old value, the new value, and the
difference.

Knows a compared space; does not know the sessions, or how it is computed.
"""

from __future__ import annotations

from collections.abc import Callable

from gcspy_protocol.interpreter import EventChange, SpaceState
from gcspy_protocol.text.visible import Lines
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QStackedLayout

from gcspy_client.model.codes import Indices
from gcspy_client.model.compare.comparison import SpaceComparison
from gcspy_client.model.palette import Palette, Theme, diverging
from gcspy_client.model.renderers import Renderer
from gcspy_client.model.session import tile_title
from gcspy_client.model.spaces.picture import SpacePicture
from gcspy_client.model.tile_source import TileSource
from gcspy_client.model.view_states import TILES, SpaceViewState
from gcspy_client.view.plain.text import show_tip
from gcspy_client.view.plain.widgets import PlainLabel
from gcspy_client.view.spaces.canvas import TileCanvas
from gcspy_client.view.spaces.renderer_canvas import RendererCanvas
from gcspy_client.view.spaces.space_view import SpaceView
from gcspy_client.view.spaces.views import known_renderers, title_of

__all__ = ["DIFFERENCE_VIEWS", "DifferencePicture", "DifferenceView"]

DIFFERENCE_VIEWS = (TILES, "rows", "hilbert")
"""Views that give each tile a place of its own, so that a difference can be painted there; others show tiles."""


_LEAST_HEIGHT = 24


class DifferencePicture(SpacePicture):
    """The tiles of a space of differences, in the colours of differences."""

    @property
    def palette(self) -> Palette:
        """The scale from less to more."""
        return diverging(self.theme)


def _tip_lines(told: list[tuple[str, str]]) -> str:
    """A line for each fact about a place; a name that has lines forges none."""
    return Lines(*(": ".join(part for part in (name, text) if part) for name, text in told))


class _DifferenceCanvas(RendererCanvas):
    """Another view of a space of differences."""

    def colours(self, source: TileSource) -> Palette:
        """The scale from less to more, whatever the numbers are."""
        return diverging(self._theme)


class DifferenceView(SpaceView):
    """One space.

    Args:
        space: As it is.
        source: The displayed numbers.
        theme: The theme of its colours.
        look: Through which view.
        stale: Called when what it shows is not of now any more.
    """

    keeps_height = True
    has_strip = True

    def __init__(
        self,
        space: SpaceState,
        source: TileSource,
        theme: Theme,
        look: SpaceViewState,
        *,
        stale: Callable[[], None],
    ) -> None:
        super().__init__()
        self.space, self.source, self.look = space, source, look
        self._theme, self._stale = theme, stale
        self.compared: SpaceComparison | None = None
        self._is_strip = False
        self._canvas: TileCanvas | RendererCanvas | None = None
        self._stack = QStackedLayout(self)
        self._stack.setContentsMargins(0, 0, 0, 0)
        self._words = PlainLabel("comparing…")
        self._words.setProperty("dim", "true")
        self._words.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._words.setWordWrap(True)
        self._stack.addWidget(self._words)
        self.setMinimumSize(60, _LEAST_HEIGHT)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    # ---------------------------------------------------------------------- the display

    def take(self, compared: SpaceComparison | None, why_not: str = "") -> None:
        """Show a comparison.

        Args:
            compared: The difference; None: there is none.
            why_not: Why there is none, as text.
        """
        self.compared = compared
        if compared is None:
            self._words.setText(why_not)
            self._stack.setCurrentWidget(self._words)
            return
        if self._canvas is None:
            self._canvas = self._make_canvas(compared)
            self._stack.addWidget(self._canvas)
            self.setFocusProxy(self._canvas)
            self._fit_strip()
        elif isinstance(self._canvas, TileCanvas):
            self._use_picture(self._canvas, compared)
        else:
            self._canvas.use_space(compared.space)
            self._canvas.show_source(compared.source)
        self._stack.setCurrentWidget(self._canvas)
        self.select(self.selected)
        self.painted = True
        self.changed.emit()

    def _shows_tiles(self) -> bool:
        """Whether the differences are shown as tiles when they are not a strip."""
        return self.look.view == TILES or self.look.view not in DIFFERENCE_VIEWS

    def _make_canvas(self, compared: SpaceComparison) -> TileCanvas | RendererCanvas:
        canvas: TileCanvas | RendererCanvas
        if self._is_strip or self._shows_tiles():
            canvas = TileCanvas(DifferencePicture(compared.space, compared.source, self._theme))
        else:
            load = known_renderers()[self.look.view].load

            def make(space: SpaceState, source: TileSource, palette: Palette) -> Renderer:
                return load()(space, source, palette)

            canvas = _DifferenceCanvas(
                title_of(self.look.view), make, compared.space, compared.source, self._theme
            )
            canvas.failed.connect(self.failed)
        canvas.hovered.connect(self._hovered)
        canvas.picked.connect(self._picked)
        canvas.entered.connect(self.entered)
        return canvas

    def _use_picture(self, canvas: TileCanvas, compared: SpaceComparison) -> None:
        before = canvas.picture
        picture = DifferencePicture(compared.space, compared.source, self._theme)
        picture.zoom, picture.is_strip = before.zoom, before.is_strip
        canvas.use(picture)
        picture.scroll_to(before.layout.first_row)

    def show_strip(self, *, on: bool) -> None:
        """Show all differences in a strip, or not."""
        if on == self._is_strip:
            return
        self._is_strip = on
        self._words.setWordWrap(not on)
        if isinstance(self._canvas, TileCanvas) and self._shows_tiles():
            self._fit_strip()
        elif self._canvas is not None:
            # A strip is of tiles, whatever the view: the painter is another one.
            before, self._canvas = self._canvas, None
            self._stack.removeWidget(before)
            if isinstance(before, RendererCanvas):
                before.stop()
            before.deleteLater()
            self.take(self.compared)

    def _fit_strip(self) -> None:
        """Let the tiles be as low as a strip, or not."""
        if isinstance(self._canvas, TileCanvas):
            self._canvas.setMinimumHeight(1 if self._is_strip else _LEAST_HEIGHT)
            self._canvas.picture.show_strip(on=self._is_strip)
            self._canvas.update()

    def follow(self, change: EventChange) -> None:
        """Compare the new values soon."""
        self._stale()

    def use_space(self, space: SpaceState) -> None:
        """Another state of the space is shown; it is compared soon."""
        self.space = space
        self._stale()

    def show_source(self, source: TileSource) -> None:
        """Other numbers are displayed; they are compared soon."""
        self.source = source
        self._stale()

    def place(self) -> object:
        """Which part is seen and how close, for `use_place`."""
        return None if self._canvas is None else self._canvas.place()

    def use_place(self, place: object) -> None:
        """See the part that was seen."""
        if self._canvas is not None:
            self._canvas.use_place(place)

    def set_theme(self, theme: Theme) -> None:
        """Paint for another ground."""
        self._theme = theme
        if isinstance(self._canvas, TileCanvas):
            self._canvas.picture.set_theme(theme)
            self._canvas.update()
        elif self._canvas is not None:
            self._canvas.set_theme(theme)

    def select(self, tile: int | None) -> None:
        """Frame a tile of the space."""
        self.selected = tile
        place = self.place_of(tile)
        if isinstance(self._canvas, TileCanvas):
            self._canvas.selected = place
            self._canvas.update()
        elif self._canvas is not None:
            self._canvas.select(place)

    def zoom(self, step: int) -> None:
        """Zoom in (1), out (-1), or show all (0)."""
        if self._canvas is not None:
            self._canvas.zoom(step)

    def say(self) -> str:
        """How much more there is, all in all."""
        if self.compared is None:
            return ""
        told = self.compared.summary
        words = [
            f"B − A: {self.compared.net_short}"
            if self.compared.net
            else f"{told.changed:,} changed"
        ]
        words += [f"{told.only_right:,} appeared"] if told.only_right else []
        words += [f"{told.only_left:,} disappeared"] if told.only_left else []
        return ", ".join(words)

    @property
    def canvas(self) -> TileCanvas | RendererCanvas | None:
        """The painter; None before the first comparison."""
        return self._canvas

    def settle(self) -> None:
        """Show everything now that would be shown a moment later."""
        if isinstance(self._canvas, RendererCanvas):
            self._canvas.settle()

    def stop(self) -> None:
        """Show nothing any more; no thread is left."""
        if isinstance(self._canvas, RendererCanvas):
            self._canvas.stop()

    # ------------------------------------------------------------------------ which tile

    def place_of(self, tile: int | None) -> int | None:
        """The place of a tile of the space among the compared ones; None where it is not compared."""
        if tile is None or self.compared is None:
            return None
        right: Indices = self.compared.source.compared.right
        if tile < len(right) and right[tile] == tile:
            return tile
        found = (right == tile).nonzero()[0]
        return int(found[0]) if len(found) else None

    def _hovered(self, place: int) -> None:
        self.under_mouse = None if place < 0 else place
        tile = self._tile(place)
        self.hovered.emit(-1 if tile is None else tile)

    def _picked(self, place: int) -> None:
        tile = self._tile(place)
        if tile is not None:
            self.picked.emit(tile)

    def _tile(self, place: int) -> int | None:
        """The tile of the space at a place; None if there is none: it disappeared."""
        if self.compared is None or not 0 <= place < len(self.compared.source.compared):
            return None
        tile = int(self.compared.source.compared.right[place])
        return tile if 0 <= tile < self.space.count else None

    def words(self, place: int | None) -> list[tuple[str, str]]:
        """The text for a place: name, A, B and the difference."""
        if self.compared is None or place is None or not 0 <= place < self.compared.space.count:
            return []
        source = self.compared.source
        return [
            ("", tile_title(self.compared.space, place)),
            ("A", source.side_words(place, left=True)),
            ("B", source.side_words(place, left=False)),
            ("B − A", source.difference_words(place)),
        ]

    def event(self, event: QEvent) -> bool:
        """The tooltip says what the tile under the mouse was and is."""
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            told = self.words(self.under_mouse)
            show_tip(event.globalPos(), _tip_lines(told), self)
            return True
        return super().event(event)
