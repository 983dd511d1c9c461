"""A stream that the user made from others: ``used / size``, with a name, a range and a presentation.

It is a source of numbers like any stream, so that tiles, histograms, tables and history graphs can
show it. If a part of it is unknown for a tile, the result is unknown. Numbers are painted on a
scale of a million steps between the ends of the range; texts show the number itself.

Knows expressions and one space; does not know how numbers are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gcspy_protocol.errors import ExpressionError
from gcspy_protocol.expression import Bound, Evaluator, EventFacts, ValueKind, bind, parse
from gcspy_protocol.expression import TileValues as Worth
from gcspy_protocol.expression.client import used_tiles
from gcspy_protocol.expression.nodes import Call, EventFact, Node, children
from gcspy_protocol.interpreter import EventChange, SpaceState
from gcspy_protocol.messages import Event
from gcspy_protocol.model import CONTROL_STREAM, PaintStyle, Presentation, Stream
from numpy.typing import NDArray

from gcspy_client.model.codes import Indices, TileArrays, used
from gcspy_client.model.text import UNKNOWN_TEXT, control_words, short_number

__all__ = ["DERIVED_STREAM", "DerivedSource", "automatic_range"]

DERIVED_STREAM = -1
"""Id in the schema of a derived stream, unless it is given another; no stream that is sent has one below 0."""

_STEPS = 1_000_000

_TILE_BY_TILE = frozenset({"abs", "known"})


@dataclass(frozen=True, slots=True)
class _OneSpace:
    """A space as the source of an expression; there are no facts of an event."""

    space: SpaceState

    @property
    def facts(self) -> EventFacts:
        return EventFacts(event="", occurrence=0)

    def is_fresh(self, space: int, stream: int) -> bool:  # noqa: ARG002  # the protocol's signature
        return True

    def stream(self, space: int, stream: int) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:  # noqa: ARG002  # as above
        state = self.space.stream(stream)
        return state.values, state.known

    def used(self, space: int) -> NDArray[np.bool_] | None:  # noqa: ARG002  # as above
        return used_tiles(self.space.control.values)

    def summary(self, space: int, stream: int) -> tuple[tuple[int, ...], int]:  # noqa: ARG002  # as above
        found = self.space.stream(stream).summary
        return ((), 0) if found is None else (found.values, found.covered)


class DerivedSource:
    """Numbers made of the streams of one space.

    Args:
        name: As in the view chooser.
        formula: An expression with a number, or a condition, for each tile: ``Used / Size``.
        space: The space, for its streams.
        least: Number at the lower end of the scale; None: determined by the current values.
        greatest: Number at the upper end.
        percent: Show it as percent.
        number: Its id among several; below 0, as no stream that is sent has one.

    Attributes:
        formula: The expression.
        percent: Whether they are reported as percent.
        ends: The requested ends of the scale; None: determined by the values.

    Raises:
        ExpressionError: The formula is invalid, names something that does not exist, has no value
            per tile, or refers to the event.
    """

    def __init__(
        self,
        name: str,
        formula: str,
        space: SpaceState,
        *,
        least: float | None = None,
        greatest: float | None = None,
        percent: bool = False,
        number: int = DERIVED_STREAM,
    ) -> None:
        expression = parse(formula)
        self.formula, self.percent, self._number = formula, percent, number
        self.ends = least, greatest
        self._bound: Bound = bind(expression, [space.space], space.space.id)
        if not expression.shape.tiled or expression.shape.kind is ValueKind.TEXT:
            raise ExpressionError(
                f"this is {expression.shape}, but a view needs one number per tile: use a stream outside of sum(…) and similar functions",
                text=formula,
                offset=0,
            )
        self._refuse_events(expression.root)
        self._whole = not _tile_by_tile(expression.root)
        self._condition = expression.shape.kind is ValueKind.TRUTH
        self._latest: tuple[SpaceState, tuple[int, ...], Worth] | None = None
        low, high = (
            (least, greatest)
            if least is not None and greatest is not None
            else self._range(space, least, greatest)
        )
        self.least, self.greatest = low, high if high > low else low + 1.0
        self._schema = self._look(name)

    def _refuse_events(self, node: Node) -> None:
        if isinstance(node, EventFact) or (isinstance(node, Call) and node.function == "was"):
            what = node.name if isinstance(node, EventFact) else "was"
            raise ExpressionError(
                f"{what} is a value of the event, not of tiles: use it in a trigger",
                text=self.formula,
                offset=node.at,
            )
        for child in children(node):
            self._refuse_events(child)

    def _range(
        self, space: SpaceState, least: float | None, greatest: float | None
    ) -> tuple[float, float]:
        low, high = automatic_range(self._worth(space), space)
        return low if least is None else least, high if greatest is None else greatest

    def _look(self, name: str) -> Stream:
        if self._condition:
            return Stream(
                id=self._number, name=name, dtype="u1", maximum=1, presentation=Presentation.ENUM,
                enum_names=("no", "yes"), description=self.formula,
            )  # fmt: skip
        zero = round(self._place(0.0))
        return Stream(
            id=self._number,
            name=name,
            dtype="i8",
            maximum=_STEPS,
            zero=max(-1, min(zero, _STEPS + 1)),
            paint_style=PaintStyle.ZERO if self.least <= 0 <= self.greatest else PaintStyle.PLAIN,
            description=self.formula,
        )

    def _place(self, number: float) -> float:
        return (number - self.least) / (self.greatest - self.least) * _STEPS

    @property
    def schema(self) -> Stream:
        """Stream as which the numbers are painted: on a scale of a million steps."""
        return self._schema

    def _worth(self, space: SpaceState) -> Worth:
        """The numbers themselves; worked out once for each event."""
        ids = sorted({stream for _, stream in self._bound.wants})
        stamp = (
            space.count,
            space.control.sequence,
            *(space.stream(stream).sequence for stream in ids),
        )
        if self._latest is not None and self._latest[0] is space and self._latest[1] == stamp:
            return self._latest[2]
        result = Evaluator(self._bound).evaluate(_OneSpace(space)).value
        assert isinstance(result, Worth)
        self._latest = space, stamp, result
        return result

    def tiles(self, space: SpaceState) -> TileArrays:
        """The numbers on the scale."""
        worth = self._worth(space)
        if self._condition:
            return TileArrays(worth.values.astype(np.uint8), worth.known, space.control.values)
        numbers = worth.values.astype(np.float64)
        # At least a step beyond the ends: a value just above them is not within.
        places = np.clip(
            np.rint((numbers - self.least) * (_STEPS / (self.greatest - self.least))),
            -1,
            _STEPS + 1,
        )
        places[(places == _STEPS) & (numbers > self.greatest)] = _STEPS + 1
        places[~np.isfinite(places)] = 0  # if nothing is known
        places[numbers == 0] = self._schema.zero
        if self._schema.paint_style is PaintStyle.ZERO:
            near = (places == self._schema.zero) & (numbers != 0)
            places[near] += np.where(numbers[near] > 0, 1, -1)
        return TileArrays(places.astype(np.int64), worth.known, space.control.values)

    def numbers(self, space: SpaceState) -> TileArrays:
        """The numbers themselves, to be summed up or sorted."""
        worth = self._worth(space)
        values = worth.values.astype(np.uint8) if self._condition else worth.values
        return TileArrays(values, worth.known, space.control.values)

    def changed(self, change: EventChange, space: SpaceState) -> Indices | None:
        """Tiles of which any part changed; with an aggregate in the formula, all may have."""
        ids = [CONTROL_STREAM, *{stream for _, stream in self._bound.wants}]
        nothing = np.empty(0, dtype=np.int64)
        parts = [change.changed.get((space.space.id, stream), nothing) for stream in ids]
        if any(part is None for part in parts):
            return None
        some = [part for part in parts if part is not None and len(part)]
        if not some:
            return nothing
        if self._whole:
            return None
        return some[0] if len(some) == 1 else np.unique(np.concatenate(some))

    def is_fresh(self, space: SpaceState, event: Event) -> bool:
        """Whether all streams of the formula were gathered at this event."""
        return all(space.stream(stream).is_fresh(event) for _, stream in self._bound.wants)

    def is_stale(self, space: SpaceState, event: Event) -> bool:
        """Whether any stream of the formula is older than is usual for it."""
        return any(space.stream(stream).is_stale(event) for _, stream in self._bound.wants)

    def text(self, space: SpaceState, tile: int) -> str:
        """The number of a tile, in words."""
        words = control_words(int(space.control.values[tile]) & 7, space.space.unused_text)
        worth = self._worth(space)
        if words or (worth.known is not None and not worth.known[tile]):
            return words or UNKNOWN_TEXT
        return self._words(worth.values[tile].item())

    def short(self, space: SpaceState, tile: int) -> str:
        """The same; an unknown one as everywhere on tiles."""
        words = self.text(space, tile)
        return "?" if words == UNKNOWN_TEXT else words

    def scale_text(self, share: float, maximum: int) -> str:  # noqa: ARG002  # the protocol's signature
        """A number of the range."""
        return (
            ""
            if self._condition
            else self._words(self.least + share * (self.greatest - self.least))
        )

    def is_of(self, space: SpaceState) -> bool:
        """Whether the space has all streams of the formula."""
        return all(stream in space.streams for _, stream in self._bound.wants)

    def _words(self, number: float) -> str:
        if self._condition:
            return "yes" if number else "no"
        if self.percent:
            return f"{100 * number:.1f} %"
        return f"{number:,}" if isinstance(number, int) else _rounded(number)


def _rounded(number: float) -> str:
    """Five digits are enough to read."""
    return short_number(round(number)) if abs(number) >= 1e6 else f"{number:.5g}"


def _tile_by_tile(node: Node) -> bool:
    """Whether a tile's number depends on that tile alone."""
    if isinstance(node, Call) and node.function not in _TILE_BY_TILE and len(node.arguments) != 2:
        return False
    if isinstance(node, Call) and node.function in ("summary", "total"):
        return False
    return all(_tile_by_tile(child) for child in children(node))


def automatic_range(worth: Worth, space: SpaceState) -> tuple[float, float]:
    """Return the range of the known numbers of used tiles, from zero if all are above it; 0 to 1 if there are none."""
    counts = used(space.control.values)
    if worth.known is not None:
        counts &= worth.known
    numbers = worth.values[counts]
    if not len(numbers):
        return 0.0, 1.0
    return min(0.0, float(numbers.min())), float(numbers.max())
