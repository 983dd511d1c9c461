"""The history graphs that a user has open: each of a stream of a space, or of a number derived from several, by name.

By name, since ids of spaces are never reused: after a new connection the same graphs are found
again.

Knows sessions; does not know rows or pixels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from gcspy_protocol.errors import ExpressionError
from gcspy_protocol.interpreter import SpaceState
from gcspy_protocol.schema import MAX_ENUM_NAMES
from gcspy_protocol.streams.named_stream import NamedStream

from gcspy_client.model.derived_source import DerivedSource
from gcspy_client.model.history.pooling import Pooling
from gcspy_client.model.session import ClientSession, ordered_streams
from gcspy_client.model.tile_source import StreamSource, TileSource

__all__ = ["FOLLOWS", "TrackSource", "TrackSpec", "choices", "graphed"]


@dataclass(frozen=True, slots=True)
class TrackSpec:
    """The specification of a graph.

    Attributes:
        space: Name of the space; None: the active one, in its chosen stream, whichever that is.
        stream: Name of the stream, or of the formula.
        formula: An expression over streams; empty: a stream as it was sent.
        pooling: How several tiles and events share a pixel.
    """

    space: str | None = None
    stream: str = ""
    formula: str = ""
    pooling: Pooling = Pooling.GREATEST


FOLLOWS = TrackSpec()
"""The active space in its chosen stream."""


@dataclass(frozen=True, slots=True)
class TrackSource:
    """The graph's space and stream in a session.

    Attributes:
        space: Id of the space.
        title: Space and stream.
        identity: Changes when it is another graph.
        source: Makes the numbers; one for each thread, as they cache their last result.
    """

    space: int
    title: str
    identity: tuple[object, ...]
    source: Callable[[], TileSource]


def graphed(
    spec: TrackSpec, session: ClientSession, before: TrackSource | None = None
) -> TrackSource | None:
    """The current space and stream of a graph; None while they do not exist.

    Args:
        spec: The specification.
        session: Where.
        before: The earlier result: finding the same again costs nothing, though a new formula is
            evaluated.
    """
    if spec.space is None:
        space = session.active_space()
        source = None if space is None else session.chosen_source(space.space.id)
        if space is None or source is None:
            return None
        if isinstance(source, DerivedSource):
            return _again(space, source, before)
        # The live one, if it exists: names in the displayed state change when the user looks back.
        live = session.live.spaces.get(space.space.id)
        there = live if live is not None and live.space == space.space else space
        return _stream(there, source.schema.id)
    space = next(
        (one for one in session.live.spaces.values() if one.space.name == spec.space), None
    )
    if space is None:
        return None
    if spec.formula:
        for made in session.looks.made_of(space):
            if (made.schema.name, made.formula) == (spec.stream, spec.formula):
                return _again(space, made, before)
        same = before is not None and before.identity == (space.space, spec.formula)
        return before if same else _derived(space, spec)
    stream = next(
        (number for number, state in space.streams.items() if state.schema.name == spec.stream),
        None,
    )
    return None if stream is None else _stream(space, stream)


def _stream(space: SpaceState, stream: int) -> TrackSource:
    schema = space.streams[stream].schema
    title = f"{space.space.name} · {schema.name}"
    if not isinstance(schema, NamedStream):
        return TrackSource(
            space.space.id, title, (space.space, stream), lambda: StreamSource(schema)
        )
    # New names do not change the drawing, except those that become frequent: then all events are
    # read again.
    later = tuple(map(str, range(len(schema.enum_names), MAX_ENUM_NAMES)))
    grown = replace(schema, enum_names=schema.enum_names + later)
    return TrackSource(
        space.space.id, title, (space.space, stream, schema.frequent), lambda: StreamSource(grown)
    )


def _derived(space: SpaceState, spec: TrackSpec) -> TrackSource | None:
    try:
        first = DerivedSource(spec.stream, spec.formula, space)
    except ExpressionError:
        return None
    return _made(space, first, (space.space, spec.formula))


def _again(space: SpaceState, made: DerivedSource, before: TrackSource | None) -> TrackSource:
    """One that the user has made for the tiles, with its name and scale."""
    identity = (space.space, made.formula, made.least, made.greatest, made.percent)
    return (
        before
        if before is not None and before.identity == identity
        else _made(space, made, identity)
    )


def _made(space: SpaceState, made: DerivedSource, identity: tuple[object, ...]) -> TrackSource:
    name, formula, least, greatest, percent = (
        made.schema.name,
        made.formula,
        made.least,
        made.greatest,
        made.percent,
    )

    def make() -> TileSource:
        return DerivedSource(
            name, formula, SpaceState(space.space), least=least, greatest=greatest, percent=percent
        )

    return TrackSource(space.space.id, f"{space.space.name} · {name}", identity, make)


def choices(session: ClientSession) -> list[tuple[str, list[TrackSpec]]]:
    """Spaces by name, and the possible graphs of each: its streams, the most important first, and the user's formulas."""
    found = []
    for space in session.live.spaces.values():
        name = space.space.name
        specs = [TrackSpec(name, stream.name) for stream in ordered_streams(space)]
        specs += [
            TrackSpec(name, made.schema.name, made.formula) for made in session.looks.made_of(space)
        ]
        if specs:
            found.append((name, specs))
    return found
