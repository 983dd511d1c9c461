"""Makes the view that a space's view state names: tiles exist already, all other views are made here.

Knows the views; does not know their places, or when they are changed.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import lru_cache

from gcspy_protocol.interpreter import SpaceState

from gcspy_client.model.palette import Palette, Theme
from gcspy_client.model.renderers import Renderer
from gcspy_client.model.renderers.bivariate import other_stream
from gcspy_client.model.renderers.registry import RendererFacts, find_renderers
from gcspy_client.model.renderers.renderer_options import dress
from gcspy_client.model.tile_source import TileSource
from gcspy_client.model.view_states import TABLE, TILES, SpaceViewState, SpaceViewStates
from gcspy_client.view.spaces.renderer_canvas import RendererCanvas
from gcspy_client.view.spaces.space_view import SpaceView
from gcspy_client.view.spaces.tile_table import TableView

__all__ = ["TITLES", "RendererView", "known_renderers", "make_view", "order_words", "title_of"]

TITLES = {
    TILES: "Tiles",
    "rows": "Rows (2-D)",
    "hilbert": "Hilbert curve",
    "histogram": "Histogram",
    "distribution": "Distribution",
    "bivariate": "Two streams",
    "multiples": "Side by side",
    TABLE: "Table",
    "curves": "Curves",
}
"""Titles of the views that come with GCspy, in the order of their keys."""

_LEGENDS = {
    "hilbert": "Tiles with neighbouring addresses are neighbours here: a contiguous range of memory is a patch.",
    "histogram": "The height of a bar is the value of its tile; stripes: unknown.",
    "distribution": "The height of a bar is the number of tiles with these values; a click selects the first.",
    "curves": "A curve for each stream of the space that has this unit, over the tiles.",
    "multiples": "Each panel uses the scale of its stream; select the panel to see its legend.",
}

_ORDERED = (TILES, "rows", "hilbert", "bivariate")


@lru_cache(maxsize=1)
def known_renderers() -> dict[str, RendererFacts]:
    """Return all installed renderers; searched only once, since the search reads the names of all packages."""
    return find_renderers()


def title_of(name: str) -> str:
    """Return the title of a view."""
    return TITLES.get(name) or (
        known_renderers()[name].title if name in known_renderers() else name
    )


def order_words(space: SpaceState, look: SpaceViewState, looks: SpaceViewStates) -> tuple[str, str]:
    """Return the text about an order other than by address, short and in full; empty if the order is by address."""
    order = look.order
    source = None if order is None else looks.source(space, order.stream)
    if order is None or source is None or look.view not in _ORDERED:
        return "", ""
    name, arrow = source.schema.name, "↓" if order.descending else "↑"
    way = "largest first" if order.descending else "smallest first"
    stays = (
        "The order follows events."
        if order.live
        else "The order dates from when it was chosen: View ▸ Order again updates it."
    )
    return (
        f"by {name} {arrow}, not by address{' · live' if order.live else ''}",
        f"Tiles are ordered by {name}, {way}, not by address. {stays}",
    )


class RendererView(RendererCanvas):
    """A renderer's view that knows its look.

    Args:
        look: How it looks first.
        looks: Where streams are found.
    """

    def __init__(
        self,
        space: SpaceState,
        source: TileSource,
        theme: Theme,
        look: SpaceViewState,
        looks: SpaceViewStates,
    ) -> None:
        facts = known_renderers()[look.view]
        margins = facts.load().margins if facts.builtin else frozenset()

        def make(space: SpaceState, source: TileSource, palette: Palette) -> Renderer:
            return facts.load()(space, source, palette)

        super().__init__(title_of(look.view), make, space, copy(source), theme, margins)
        self._looks = looks
        self.look = look
        dress(self.drawing, space, looks, None, look)

    def show_source(self, source: TileSource) -> None:
        """Draw other numbers."""
        super().show_source(copy(source))

    def second(self) -> TileSource | None:
        """The second stream of two that share a colour."""
        if self.look.view != "bivariate":
            return None
        chosen = (
            None if self.look.second is None else self._looks.source(self._space, self.look.second)
        )
        return chosen or other_stream(self._space, self._source)

    def legend_words(self) -> str:
        """Return the explanation of the view's shapes."""
        words = _LEGENDS.get(self.look.view, "")
        if self.look.view == "histogram" and self.say():
            words += (
                " Several tiles share a bar: full colour is their mean, pale colour their maximum."
            )
        if self.look.view == "distribution" and self.look.logarithmic:
            words += " Heights are logarithmic."
        return words.strip()

    def set_look(self, look: SpaceViewState) -> None:
        """Apply another state of a view with the same renderer."""
        before, self.look = self.look, look
        dress(self.drawing, self._space, self._looks, before, look)


def make_view(
    space: SpaceState,
    source: TileSource,
    sources: Callable[[], list[TileSource]],
    theme: Theme,
    look: SpaceViewState,
    looks: SpaceViewStates,
) -> SpaceView | None:
    """Make the view that a view state names; None: the tiles themselves.

    Args:
        space: The space.
        source: The numbers that are shown.
        sources: All numbers that it has.
        theme: The theme of its colours.
        look: The look.
        looks: Where streams are found.
    """
    if look.view == TILES and look.order is None:
        return None
    if look.view == TABLE:
        return TableView(space, sources, theme, look)
    if look.view not in known_renderers():
        return None
    return RendererView(space, source, theme, look, looks)
