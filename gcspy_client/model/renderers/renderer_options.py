"""Passes the choices of a view to a renderer: the order of tiles, the width of rows, the other streams.

Knows view states and the renderers of GCspy; other packages' renderers get no choices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy

from gcspy_protocol.interpreter import EventChange, SpaceState

from gcspy_client.model.renderers.bars import DistributionRenderer
from gcspy_client.model.renderers.bivariate import BivariateRenderer
from gcspy_client.model.renderers.cell_renderers import ArrangedRenderer, RowsRenderer
from gcspy_client.model.renderers.multiples import MultiplesRenderer
from gcspy_client.model.renderers.order import order_by
from gcspy_client.model.renderers.renderer import Renderer
from gcspy_client.model.renderers.renderer_worker import SpaceRenderer
from gcspy_client.model.tile_source import TileSource
from gcspy_client.model.view_states import OrderChoice, SpaceViewState, SpaceViewStates

__all__ = ["dress"]


def dress(
    drawing: SpaceRenderer,
    space: SpaceState,
    looks: SpaceViewStates,
    before: SpaceViewState | None,
    look: SpaceViewState,
) -> None:
    """Set a renderer's choices from a view state.

    Args:
        drawing: Draws.
        space: Its space.
        looks: Finds streams.
        before: The previous view state; None: none.
        look: The new view state.
    """
    plain = before or SpaceViewState(view=look.view)
    if look.order != plain.order:
        _order(drawing, space, looks, look.order)
    if look.row_width != plain.row_width:
        width = look.row_width
        drawing.request(
            "width", lambda r: r.set_row_width(width) if isinstance(r, RowsRenderer) else None
        )
    if look.second != plain.second:
        second = _own(looks, space, look.second)
        if second is not None:
            drawing.request(
                "second",
                lambda r: r.set_second(second) if isinstance(r, BivariateRenderer) else None,
            )
    if look.parts != plain.parts and look.parts is not None:
        parts = [
            part
            for part in (_own(looks, space, number) for number in look.parts)
            if part is not None
        ]
        drawing.request("parts", _parts(parts))
    if look.logarithmic != plain.logarithmic:
        log = look.logarithmic
        drawing.request(
            "log", lambda r: r.set_logarithmic(log) if isinstance(r, DistributionRenderer) else None
        )


def _own(looks: SpaceViewStates, space: SpaceState, stream: int | None) -> TileSource | None:
    """A source for the thread alone: a derived one caches its last result."""
    found = None if stream is None else looks.source(space, stream)
    return None if found is None else copy(found)


def _parts(parts: Sequence[TileSource]) -> Callable[[Renderer], None]:
    def set_parts(renderer: Renderer) -> None:
        if isinstance(renderer, MultiplesRenderer):
            # The chosen stream is always there, and first.
            rest = [part for part in parts if part.schema.id != renderer.source.schema.id]
            renderer.set_parts([renderer.source, *rest])

    return set_parts


def _order(
    drawing: SpaceRenderer, space: SpaceState, looks: SpaceViewStates, choice: OrderChoice | None
) -> None:
    source = None if choice is None else _own(looks, space, choice.stream)
    if choice is None or source is None:
        drawing.after_events(None)
        drawing.request(
            "order", lambda r: r.set_order(None) if isinstance(r, ArrangedRenderer) else None
        )
        return
    descending, live = choice.descending, choice.live

    def sort(renderer: Renderer) -> None:
        if isinstance(renderer, ArrangedRenderer):
            renderer.set_order(order_by(renderer.space, source, descending=descending))

    def follow(renderer: Renderer, change: EventChange) -> None:
        if not isinstance(renderer, ArrangedRenderer):
            return
        changed = source.changed(change, renderer.space)
        if renderer.order is None or (live and (changed is None or len(changed))):
            sort(renderer)

    drawing.request("order", sort)
    drawing.after_events(follow)
