"""Evaluates an expression at an event, for a view of a space or for a trigger.

All parts are evaluated at each event, even if they cannot change the result, so that `was` is
always of the previous event. A repeated part is computed once. Knows arrays and bound expressions.
An `EvaluationSource` provides the values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gcspy_protocol.expression import tiles as t
from gcspy_protocol.expression.binding import Bound
from gcspy_protocol.expression.nodes import (
    Binary,
    Call,
    Chain,
    EventFact,
    Literal,
    Name,
    Node,
    Not,
    Sign,
    Text,
    printed,
)
from gcspy_protocol.expression.tiles import Single, TileValues

__all__ = ["Evaluator", "EventFacts", "Operand", "Result", "EvaluationSource"]

_LARGEST = 1 << 127
_SHOWN_OPERANDS = 16

Value = TileValues | Single


@dataclass(frozen=True, kw_only=True, slots=True)
class EventFacts:
    """Facts of the event itself.

    Attributes:
        event: Name of its kind.
        occurrence: Its occurrence number.
        gather_nanos: Nanoseconds spent gathering.
        held_nanos: Nanoseconds held since the previous event.
        cause: Its cause, if the runtime reports it.
    """

    event: str
    occurrence: int
    gather_nanos: int = 0
    held_nanos: int = 0
    cause: str = ""


class EvaluationSource(Protocol):
    """An event and the data gathered at it."""

    @property
    def facts(self) -> EventFacts:
        """Facts of the event."""
        ...

    def is_fresh(self, space: int, stream: int) -> bool:
        """Whether a stream was gathered at this event."""
        ...

    def stream(self, space: int, stream: int) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        """Values, shape (tiles,), and where they are known; None: everywhere. The arrays must not be changed."""
        ...

    def used(self, space: int) -> NDArray[np.bool_] | None:
        """Shape (tiles,), which tiles are used; None: all."""
        ...

    def summary(self, space: int, stream: int) -> tuple[tuple[int, ...], int]:
        """The driver's summary, and how many tiles it covers; 0: it is unknown."""
        ...


@dataclass(frozen=True, slots=True)
class Operand:
    """A part of an expression that is one number, and the tiles that it covers.

    Attributes:
        text: The part, as text.
        value: Its value; None: unknown.
        covered: Number of tiles that it covers.
        tiles: Number of used tiles; 0 if the part is not about tiles.
    """

    text: str
    value: int | float | bool | str | None
    covered: int = 0
    tiles: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """Result of an expression at an event.

    Attributes:
        value: One value, None when it is unknown; or `TileValues`.
        operands: The single numbers that went into it.
    """

    value: Value
    operands: tuple[Operand, ...]

    @property
    def holds(self) -> bool:
        """Whether it is a condition that is true; unknown is not true."""
        return self.value is True


@dataclass(slots=True)
class _Event:
    """The evaluation at one event."""

    source: EvaluationSource
    check: Callable[[], None]
    worth: dict[Node, Value] = field(default_factory=dict)
    operands: list[Operand] = field(default_factory=list)
    remembered: dict[Node, Single] = field(default_factory=dict)
    used: dict[int, NDArray[np.bool_] | None] = field(default_factory=dict)


def _nothing() -> None:
    return


class Evaluator:
    """Evaluates a bound expression at one event after the other.

    Args:
        bound: The expression.
    """

    def __init__(self, bound: Bound) -> None:
        self.bound = bound
        self._before: dict[Node, Single] = {}

    def reset(self) -> None:
        """Forget the previous event, for example after a seek in a recording."""
        self._before = {}

    def is_due(self, source: EvaluationSource) -> bool:
        """Whether all streams that the expression needs were gathered at this event."""
        return all(source.is_fresh(*one) for one in self.bound.wants)

    def evaluate(self, source: EvaluationSource, check: Callable[[], None] = _nothing) -> Result:
        """Evaluate the expression at an event.

        Args:
            source: The event.
            check: Called between two steps; an exception in it ends the evaluation.
        """
        now = _Event(source, check)
        try:
            value = self._worth(self.bound.expression.root, now)
        except BaseException:
            self._before = {}
            raise
        self._before = now.remembered
        return Result(value, tuple(now.operands[:_SHOWN_OPERANDS]))

    def _worth(self, node: Node, now: _Event) -> Value:
        if node in now.worth:
            return now.worth[node]
        value = self._evaluate(node, now)
        now.worth[node] = value
        return value

    def _evaluate(self, node: Node, now: _Event) -> Value:
        match node:
            case Literal() | Text():
                return node.value
            case EventFact():
                return _fact(node.name, now.source.facts)
            case Name():
                values, known = now.source.stream(*self.bound.streams[node])
                return TileValues.of(values, known)
        now.check()
        match node:
            case Sign():
                return _negative(self._worth(node.operand, now))
            case Not():
                return _negated(self._worth(node.operand, now))
            case Binary():
                return _binary(
                    node.operator, self._worth(node.left, now), self._worth(node.right, now)
                )
            case Chain():
                return self._chain(node, now)
            case Call():
                return self._call(node, now)

    def _chain(self, node: Chain, now: _Event) -> Value:
        values = [self._worth(one, now) for one in node.operands]
        result: Value = True
        for operator, left, right in zip(node.operators, values, values[1:], strict=False):
            result = _binary("and", result, _compared(operator, left, right))
        return result

    def _call(self, node: Call, now: _Event) -> Value:
        name, arguments = node.function, node.arguments
        match name:
            case "summary" | "total":
                return self._summary(node, now)
            case "was":
                now.remembered[node] = _single(self._worth(arguments[0], now))
                value = self._before.get(node)
                now.operands.append(Operand(printed(node), value))
                return value
            case "known":
                return _is_known(self._worth(arguments[0], now))
            case "abs":
                return _absolute(self._worth(arguments[0], now))
            case "min" | "max" if len(arguments) == 2:
                return _chosen(name, self._worth(arguments[0], now), self._worth(arguments[1], now))
        tiles = self._worth(arguments[0], now)
        assert isinstance(tiles, TileValues)
        used = self._used(arguments[0], now)
        which = tiles.known if used is None else used if tiles.known is None else used & tiles.known
        covered = len(tiles.values) if which is None else int(np.count_nonzero(which))
        value = covered if name == "covered" else _limited(_aggregate(name, tiles, which, covered))
        of = len(tiles.values) if used is None else int(np.count_nonzero(used))
        now.operands.append(Operand(printed(node), value, covered, of))
        return value

    def _used(self, node: Node, now: _Event) -> NDArray[np.bool_] | None:
        space = self.bound.space_of(node)
        if space not in now.used:
            now.used[space] = now.source.used(space)
        return now.used[space]

    def _summary(self, node: Call, now: _Event) -> Single:
        name = node.arguments[0]
        assert isinstance(name, Name)
        values, covered = now.source.summary(*self.bound.streams[name])
        place = 1 if node.function == "total" else self.bound.enums.get(node, 0)
        value = values[place] if covered and place < len(values) else None
        now.operands.append(Operand(printed(node), value, covered, covered))
        return value


# --------------------------------------------------------------------- single values


def _fact(name: str, facts: EventFacts) -> Single:
    match name:
        case "event":
            return facts.event
        case "cause":
            return facts.cause
        case "occurrence":
            return facts.occurrence
        case "gather_ms":
            return facts.gather_nanos / 1e6
        case _:
            return facts.held_nanos / 1e6


def _single(value: Value) -> Single:
    assert not isinstance(value, TileValues)
    return value


def _limited(value: Single) -> Single:
    """A number within the limits of one value, or unknown."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int) and not isinstance(value, bool):
        return value if -_LARGEST <= value < _LARGEST else None
    return value


def _negative(value: Value) -> Value:
    if isinstance(value, TileValues):
        return t.negative(value)
    return _limited(-value) if isinstance(value, int | float) else None


def _negated(value: Value) -> Value:
    if isinstance(value, TileValues):
        return t.negated(value)
    return None if value is None else not value


def _absolute(value: Value) -> Value:
    if isinstance(value, TileValues):
        return t.absolute(value)
    return _limited(abs(value)) if isinstance(value, int | float) else None


def _is_known(value: Value) -> Value:
    if not isinstance(value, TileValues):
        return value is not None
    known = np.ones(len(value.values), dtype=np.bool_) if value.known is None else value.known
    return TileValues(known)


def _binary(operator: str, left: Value, right: Value) -> Value:
    if operator in ("and", "or"):
        return _joined(operator, left, right)
    if isinstance(left, TileValues) or isinstance(right, TileValues):
        if left is None or right is None:
            return t.unknown_tiles(_count(left, right))
        return t.arithmetic(operator, _operand(left), _operand(right))
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        return None
    return _limited(_of_two(operator, left, right))


def _operand(value: Value) -> TileValues | int | float:
    assert isinstance(value, TileValues | int | float)
    return value


def _count(left: Value, right: Value) -> int:
    tiles = left if isinstance(left, TileValues) else right
    assert isinstance(tiles, TileValues)
    return len(tiles.values)


def _of_two(operator: str, a: int | float, b: int | float) -> int | float | None:
    """Arithmetic of two numbers; if one is a float both are converted to floats first, as for tiles."""
    if operator == "/" or isinstance(a, float) or isinstance(b, float):
        a, b = float(a), float(b)
    if operator in ("/", "//", "%") and b == 0:
        return None
    try:
        match operator:
            case "+":
                return a + b
            case "-":
                return a - b
            case "*":
                return a * b
            case "/":
                return a / b
            case "//":
                return a // b
            case _:
                return a % b
    except OverflowError:
        return None


def _joined(operator: str, left: Value, right: Value) -> Value:
    join = t.both if operator == "and" else t.either
    if isinstance(left, TileValues) or isinstance(right, TileValues):
        if operator == "and" and (left is True or right is True):
            return right if left is True else left
        return join(_truth(left), _truth(right), _count(left, right))
    decides = operator == "or"
    if left is decides or right is decides:
        return decides
    return None if left is None or right is None else not decides


def _truth(value: Value) -> TileValues | bool | None:
    assert value is None or isinstance(value, bool | TileValues)
    return value


def _compared(operator: str, left: Value, right: Value) -> Value:
    if isinstance(left, TileValues) or isinstance(right, TileValues):
        if left is None or right is None:
            return t.unknown_tiles(_count(left, right), np.bool_)
        return t.compare(operator, _operand(left), _operand(right))
    if left is None or right is None:
        return None
    if isinstance(left, str) or isinstance(right, str):
        return (left == right) is (operator == "==")
    return _compared_numbers(operator, left, right)


def _compared_numbers(operator: str, a: int | float, b: int | float) -> bool:
    if isinstance(a, float) or isinstance(b, float):
        a, b = float(a), float(b)
    match operator:
        case "<":
            return a < b
        case "<=":
            return a <= b
        case ">":
            return a > b
        case ">=":
            return a >= b
        case "==":
            return a == b
        case _:
            return a != b


def _chosen(function: str, left: Value, right: Value) -> Value:
    if isinstance(left, TileValues) or isinstance(right, TileValues):
        if left is None or right is None:
            return t.unknown_tiles(_count(left, right))
        return t.lesser_or_greater(function, _operand(left), _operand(right))
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        return None
    if isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)
    return min(left, right) if function == "min" else max(left, right)


# --------------------------------------------------------------- from tiles to one


def _aggregate(
    function: str, tiles: TileValues, which: NDArray[np.bool_] | None, covered: int
) -> Single:
    """Aggregate the tiles that count to one number; None if there are none.

    Args:
        function: One of sum, mean, min, max, count, share.
        tiles: A value for each tile.
        which: Shape (tiles,), the tiles that count; None: all.
        covered: Number of tiles that count.
    """
    if not covered:
        return None
    values = tiles.values
    if function in ("min", "max"):
        least = values.min if function == "min" else values.max
        return _scalar(
            least() if which is None else least(where=which, initial=values[int(which.argmax())])
        )
    if function in ("count", "share"):
        true = int(np.count_nonzero(values if which is None else values & which))
        return true if function == "count" else true / covered
    if which is not None:  # selecting them took five times as long
        tiles = TileValues(
            np.where(which, values, values.dtype.type(0)),
            None,
            min(tiles.low, 0),
            max(tiles.high, 0),
        )
    total = t.exact_sum(tiles)
    return None if total is None else total / covered if function == "mean" else total


def _scalar(value: Any) -> int | float:
    found: int | float = value.item()
    return found
