"""Finds renderers by name: those of GCspy, and those of other packages (docs/adding-a-renderer.md).

Other packages announce theirs in the entry point group ``gcspy.renderers``: name to class.

Knows the renderers of GCspy; imports none of another package before it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from gcspy_protocol.errors import Unsupported

from gcspy_client.model.renderers.bars import DistributionRenderer, ProfileRenderer
from gcspy_client.model.renderers.bivariate import BivariateRenderer
from gcspy_client.model.renderers.cell_renderers import HilbertRenderer, RowsRenderer, TilesRenderer
from gcspy_client.model.renderers.curves import CurvesRenderer
from gcspy_client.model.renderers.flow_graph import FlowGraphRenderer
from gcspy_client.model.renderers.multiples import MultiplesRenderer
from gcspy_client.model.renderers.renderer import Renderer

__all__ = ["ENTRY_POINT_GROUP", "RendererFacts", "find_renderers", "load_renderer"]

ENTRY_POINT_GROUP = "gcspy.renderers"
"""Entry point group for renderers."""

_OURS: tuple[type[Renderer], ...] = (
    TilesRenderer,
    RowsRenderer,
    HilbertRenderer,
    ProfileRenderer,
    DistributionRenderer,
    BivariateRenderer,
    MultiplesRenderer,
    CurvesRenderer,
    FlowGraphRenderer,
)


@dataclass(frozen=True, slots=True)
class RendererFacts:
    """A renderer that could be used.

    Attributes:
        name: Its name.
        title: In menus; for one that is not imported yet its name.
        builtin: Comes with GCspy.
        load: Imports it.
    """

    name: str
    title: str
    builtin: bool
    load: Callable[[], type[Renderer]]


def find_renderers() -> dict[str, RendererFacts]:
    """All renderers by name, those of GCspy first; none of another package is imported, and none replaces ours."""
    found = dict(_builtin())
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        if entry.name not in found:
            found[entry.name] = RendererFacts(
                entry.name, entry.name.replace("-", " ").capitalize(), False, _loader(entry)
            )
    return found


def _loader(entry: EntryPoint) -> Callable[[], type[Renderer]]:
    def load() -> type[Renderer]:
        found: object = entry.load()
        if not (isinstance(found, type) and issubclass(found, Renderer)):
            raise Unsupported(
                f"the renderer {entry.name!r} is not valid",
                found=repr(found),
                known="a class derived from Renderer",
            )
        return found

    return load


def load_renderer(name: str) -> type[Renderer]:
    """Import a renderer.

    Raises:
        Unsupported: There is none of that name, or the installed object is not a renderer.
    """
    found = find_renderers()
    if name not in found:
        raise Unsupported("no such renderer is installed", found=name, known=", ".join(found))
    return found[name].load()


def _builtin() -> dict[str, RendererFacts]:
    return {one.name: RendererFacts(one.name, one.title, True, _given(one)) for one in _OURS}


def _given(renderer: type[Renderer]) -> Callable[[], type[Renderer]]:
    return lambda: renderer
