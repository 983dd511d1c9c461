"""The view of each space: the renderer, the order of tiles, the streams; and the user's derived streams.

Choices are kept by space for the duration of the session, and are one value that can be restored as
a whole.

Knows names and numbers of the choices; does not know how anything is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gcspy_protocol.interpreter import SpaceState

from gcspy_client.model.derived_source import DERIVED_STREAM, DerivedSource
from gcspy_client.model.tile_source import StreamSource, TileSource

__all__ = ["TABLE", "TILES", "SpaceViewState", "SpaceViewStates", "OrderChoice"]

TILES = "tiles"
TABLE = "table"
"""Views that are no renderer drawn by a thread: the tiles, and a table of them."""


@dataclass(frozen=True, slots=True)
class OrderChoice:
    """The order of tiles.

    Attributes:
        stream: Id of the stream that decides.
        descending: The greatest first.
        live: The order follows events; else it is that of the moment when it was chosen.
        serial: Increases with each choice, so that a frozen order can be made again.
    """

    stream: int
    descending: bool = False
    live: bool = False
    serial: int = 0


@dataclass(frozen=True, slots=True)
class SpaceViewState:
    """The view of a space.

    Attributes:
        view: Name of a renderer, or `TABLE`.
        order: The order of tiles; None: by address.
        row_width: Tiles per row of the 2-D view; None: the space's.
        second: The second stream of two that share a colour; None: the next in importance.
        parts: Streams beside the chosen one in small multiples; None: the most important ones.
        logarithmic: Whether a distribution's heights grow with the logarithm.
    """

    view: str = TILES
    order: OrderChoice | None = None
    row_width: int | None = None
    second: int | None = None
    parts: tuple[int, ...] | None = None
    logarithmic: bool = True


_PLAIN = SpaceViewState()


@dataclass
class SpaceViewStates:
    """The views of all spaces of a session, and the derived streams.

    Attributes:
        by_space: The choices, by id of the space.
        derived: The derived streams, by id of the space.
        chosen: Which of them is displayed, by id of the space.
        marks: Keys of the tiles that users marked, by id of the space.
    """

    by_space: dict[int, SpaceViewState] = field(default_factory=dict)
    derived: dict[int, list[DerivedSource]] = field(default_factory=dict)
    chosen: dict[int, int] = field(default_factory=dict)
    marks: dict[int, frozenset[int]] = field(default_factory=dict)

    def clear(self) -> None:
        """Forget everything: it is another session."""
        self.by_space.clear()
        self.derived.clear()
        self.chosen.clear()
        self.marks.clear()

    def of(self, space: int) -> SpaceViewState:
        """The view of a space."""
        return self.by_space.get(space, _PLAIN)

    def made_of(self, space: SpaceState) -> list[DerivedSource]:
        """The streams that users made of a space's, as far as it still has those."""
        return [made for made in self.derived.get(space.space.id, []) if made.is_of(space)]

    def source(self, space: SpaceState, stream: int) -> TileSource | None:
        """The numbers of a stream, possibly a derived one; None if there is none."""
        if stream in space.streams:
            return StreamSource(space.streams[stream].schema)
        return next((made for made in self.made_of(space) if made.schema.id == stream), None)

    def sources(self, space: SpaceState) -> list[TileSource]:
        """The streams of a space, the most important first, and the derived ones."""
        streams = sorted(
            (state.schema for state in space.streams.values()), key=lambda s: (s.order, s.id)
        )
        return [*map(StreamSource, streams), *self.made_of(space)]

    def marked(self, space: SpaceState) -> list[int]:
        """The tiles of a space that are marked and there, increasing."""
        found = (space.names.index_of(key) for key in self.marks.get(space.space.id, ()))
        return sorted(tile for tile in found if tile is not None)

    def next_number(self, space: int) -> int:
        """An id that no stream made of this space's has."""
        return (
            min(
                (made.schema.id for made in self.derived.get(space, [])), default=DERIVED_STREAM + 1
            )
            - 1
        )
