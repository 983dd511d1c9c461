"""An oracle for expressions: the same trees, tile by tile, in plain Python; and strategies for trees.

It shares the nodes with the product and nothing else. Integers are Python's own, unknown is None.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from gcspy_protocol.expression import EventFacts
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
)
from gcspy_protocol.model import Presentation, Space, Stream
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from hypothesis.strategies import DrawFn, SearchStrategy
from numpy.typing import NDArray

STREAMS = (
    Stream(id=0, name="a", dtype="u1", maximum=255),
    Stream(id=1, name="b", dtype="i8", maximum=1, presentation=Presentation.PERCENT),
    Stream(id=2, name="c", dtype="u8", maximum=1),
    Stream(id=3, name="d", dtype="i4", maximum=1),
    Stream(
        id=4,
        name="Two words",
        dtype="i2",
        maximum=2,
        presentation=Presentation.ENUM,
        enum_names=("x", "y", "it's"),
    ),
)
HEAP = Space(id=1, name="heap", streams=STREAMS)
OTHER = Space(
    id=2,
    name="other heap",
    streams=(Stream(id=0, name="a", dtype="u4", maximum=9), Stream(id=1, name="only", dtype="u4")),
)
SPACES = (HEAP, OTHER)


@dataclass
class Gathered:
    """An event, as a `Source`."""

    facts: EventFacts
    values: dict[tuple[int, int], tuple[NDArray[Any], NDArray[np.bool_] | None]]
    tiles: dict[int, NDArray[np.bool_] | None]
    summaries: dict[tuple[int, int], tuple[tuple[int, ...], int]] = field(default_factory=dict)
    stale: set[tuple[int, int]] = field(default_factory=set)

    def is_fresh(self, space: int, stream: int) -> bool:
        return (space, stream) not in self.stale

    def stream(self, space: int, stream: int) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        return self.values[space, stream]

    def used(self, space: int) -> NDArray[np.bool_] | None:
        return self.tiles[space]

    def summary(self, space: int, stream: int) -> tuple[tuple[int, ...], int]:
        return self.summaries[space, stream]


def extremes(dtype: str) -> SearchStrategy[int]:
    info = np.iinfo(dtype)
    near = [
        info.min,
        info.min + 1,
        -1,
        0,
        1,
        2,
        1 << 31,
        (1 << 53) + 1,
        (1 << 62),
        (1 << 63) - 1,
        1 << 63,
        info.max - 1,
        info.max,
    ]
    return st.sampled_from([one for one in near if info.min <= one <= info.max]) | st.integers(
        int(info.min), int(info.max)
    )


@st.composite
def gathered(draw: DrawFn, most_tiles: int = 5) -> Gathered:
    """Any event: extremes, unknown values, unused tiles, spaces without tiles."""
    found = Gathered(
        EventFacts(
            event=draw(st.sampled_from(("GC start", "clock"))),
            occurrence=draw(st.integers(1, (1 << 64) - 1)),
            gather_nanos=draw(st.integers(0, 1 << 40)),
            cause=draw(st.sampled_from(("", "it's full"))),
        ),
        {},
        {},
    )
    masks = st.none() | st.just(npst)
    for space in SPACES:
        count = draw(st.integers(0, most_tiles))
        found.tiles[space.id] = None if draw(masks) is None else draw(npst.arrays(np.bool_, count))
        for stream in space.streams:
            values = draw(
                npst.arrays(np.dtype("<" + stream.dtype), count, elements=extremes(stream.dtype))
            )
            known = None if draw(masks) is None else draw(npst.arrays(np.bool_, count))
            found.values[space.id, stream.id] = values, known
            numbers = draw(
                st.lists(
                    extremes("i8"), min_size=stream.summary_length, max_size=stream.summary_length
                )
            )
            found.summaries[space.id, stream.id] = tuple(numbers), draw(st.integers(0, 2))
    return found


# ---------------------------------------------------------------------------- trees

_NAMES = st.sampled_from(
    [Name(stream.name) for stream in STREAMS]
    + [Name("a", "heap"), Name("TWO WORDS"), Name("D", "HEAP")]
)
_OTHERS = st.sampled_from([Name("a", "other heap"), Name("only", "other heap")])
_LITERALS = st.builds(
    Literal,
    st.sampled_from((0, 1, 2, 3, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 0.5, 0.0, 1e300))
    | st.integers(0, (1 << 64) - 1),
)
_ARITHMETIC = st.sampled_from(("+", "-", "*", "/", "//", "%"))
_ORDER = st.sampled_from(("<", "<=", ">", ">=", "==", "!="))


def _rows(operands: SearchStrategy[Node]) -> SearchStrategy[Node]:
    return st.lists(operands, min_size=2, max_size=3).flatmap(
        lambda found: st.builds(
            Chain, st.just(tuple(found)), st.tuples(*[_ORDER] * (len(found) - 1))
        )
    )


def _tiled(
    names: SearchStrategy[Node], singles: SearchStrategy[Node], depth: int
) -> SearchStrategy[Node]:
    """Numbers for each tile."""
    if depth == 0:
        return names
    less = _tiled(names, singles, depth - 1)
    either = less | singles
    return st.one_of(
        names,
        st.builds(Sign, less),
        st.builds(Binary, _ARITHMETIC, less, either),
        st.builds(Binary, _ARITHMETIC, either, less),
        st.builds(
            lambda name, one, other: Call(name, (one, other)),
            st.sampled_from(("min", "max")),
            less,
            either,
        ),
        st.builds(lambda one: Call("abs", (one,)), less),
    )


def _tiled_truths(
    numbers: SearchStrategy[Node], singles: SearchStrategy[Node], truths: SearchStrategy[Node]
) -> SearchStrategy[Node]:
    row = st.builds(
        lambda one, more: Chain((one, *more.operands), ("<", *more.operators)),
        numbers,
        _rows(numbers | singles),
    )
    simple = st.one_of(row, st.builds(lambda one: Call("known", (one,)), numbers))
    joined = st.builds(Binary, st.sampled_from(("and", "or")), simple, simple | truths)
    return st.one_of(simple, joined, st.builds(Not, joined))


@cache
def trees(depth: int = 2) -> SearchStrategy[Node]:
    """Any tree that is an expression: numbers or truths, one or one for each tile of the heap."""
    numbers, truths = _singles(depth)
    many = _tiled(_NAMES, numbers, depth)
    return numbers | truths | many | _tiled_truths(many, numbers, truths)


@cache
def _singles(depth: int) -> tuple[SearchStrategy[Node], SearchStrategy[Node]]:
    """One number, and one truth."""
    facts = st.sampled_from([EventFact("occurrence"), EventFact("gather_ms"), EventFact("held_ms")])
    texts: SearchStrategy[Node] = st.sampled_from(
        [EventFact("event"), EventFact("cause"), Text("GC start"), Text("it's full")]
    )
    equal = st.builds(
        lambda one, how, other: Chain((one, other), (how,)),
        texts,
        st.sampled_from(("==", "!=")),
        texts,
    )
    constants = st.sampled_from([Literal(True), Literal(False)])
    if depth == 0:
        return _LITERALS | facts, equal | constants
    less, less_truths = _singles(depth - 1)
    many = st.one_of(_tiled(_NAMES, less, depth - 1), _tiled(_OTHERS, less, depth - 1))
    conditions = st.one_of(
        _tiled_truths(_tiled(_NAMES, less, depth - 1), less, less_truths),
        _tiled_truths(_tiled(_OTHERS, less, depth - 1), less, less_truths),
    )
    aggregates = st.one_of(
        st.builds(
            lambda name, one: Call(name, (one,)),
            st.sampled_from(("sum", "mean", "min", "max", "covered")),
            many,
        ),
        st.builds(
            lambda name, one: Call(name, (one,)),
            st.sampled_from(("count", "share", "covered")),
            conditions,
        ),
        st.sampled_from(
            [
                Call("summary", (Name("a"),)),
                Call("summary", (Name("b"),)),
                Call("total", (Name("b"),)),
                Call("summary", (Name("Two words"), Text("it's"))),
            ]
        ),
    )
    numbers = st.one_of(
        aggregates,
        _LITERALS,
        st.builds(Sign, less),
        st.builds(Binary, _ARITHMETIC, less | aggregates, less | aggregates),
        st.builds(lambda one: Call("was", (one,)), less | aggregates),
        st.builds(
            lambda name, one, other: Call(name, (one, other)),
            st.sampled_from(("min", "max")),
            less,
            less | aggregates,
        ),
        st.builds(lambda one: Call("abs", (one,)), less),
    )
    truths = st.one_of(
        less_truths,
        _rows(less | aggregates),
        st.builds(Not, less_truths),
        st.builds(Binary, st.sampled_from(("and", "or")), less_truths, less_truths),
        st.builds(lambda one: Call("known", (one,)), numbers),
        st.builds(lambda one: Call("was", (one,)), less_truths),
    )
    return numbers, truths


# --------------------------------------------------------------------------- oracle

LOW, HIGH = -(1 << 63), (1 << 63) - 1


class Oracle:
    """Evaluates a tree, one tile after the other."""

    def __init__(self, scope: int = HEAP.id) -> None:
        self._scope = scope
        self._memory: dict[str, Any] = {}

    def evaluate(self, node: Node, source: Gathered) -> Any:
        """One value, or a list of them."""
        self._source = source
        self._next: dict[str, Any] = {}
        found = self._worth(node)
        self._memory = self._next
        return found

    def _stream(self, name: Name) -> tuple[int, int]:
        spaces = [
            one
            for one in SPACES
            if (name.space is None and one.id == self._scope)
            or one.name.lower() == (name.space or "").lower()
        ]
        (space,) = spaces
        exact = [one for one in space.streams if one.name == name.stream]
        (stream,) = exact or [
            one for one in space.streams if one.name.lower() == name.stream.lower()
        ]
        return space.id, stream.id

    def _space(self, node: Node) -> int | None:
        """The space of whose tiles a list of values is."""
        match node:
            case Name():
                return self._stream(node)[0]
            case Call() if node.function in ("min", "max") and len(node.arguments) == 2:
                parts: tuple[Node, ...] = node.arguments
            case Call() if node.function in ("abs", "known"):
                parts = node.arguments
            case Sign() | Not():
                parts = (node.operand,)
            case Binary():
                parts = (node.left, node.right)
            case Chain():
                parts = node.operands
            case _:
                parts = ()
        return next((found for one in parts if (found := self._space(one)) is not None), None)

    def _each(self, function: Any, *values: Any) -> Any:
        lengths = {len(value) for value in values if isinstance(value, list)}
        if not lengths:
            return function(*values, False)
        (length,) = lengths
        rows = [value if isinstance(value, list) else [value] * length for value in values]
        return [function(*row, True) for row in zip(*rows, strict=True)]

    def _worth(self, node: Node) -> Any:
        match node:
            case Literal() | Text():
                return node.value
            case EventFact():
                facts = self._source.facts
                return {
                    "event": facts.event,
                    "cause": facts.cause,
                    "occurrence": facts.occurrence,
                    "gather_ms": facts.gather_nanos / 1e6,
                    "held_ms": facts.held_nanos / 1e6,
                }[node.name]
            case Name():
                values, known = self._source.stream(*self._stream(node))
                return [int(v) if known is None or known[i] else None for i, v in enumerate(values)]
            case Sign():
                return self._each(
                    lambda x, tiled: _number("-", 0, x, tiled) if isinstance(x, int) else _no(x),
                    self._worth(node.operand),
                )
            case Not():
                return self._each(
                    lambda x, _: None if x is None else not x, self._worth(node.operand)
                )
            case Binary():
                left, right = self._worth(node.left), self._worth(node.right)
                if node.operator in ("and", "or"):
                    return self._each(lambda x, y, _: _join(node.operator, x, y), left, right)
                return self._each(
                    lambda x, y, tiled: _number(node.operator, x, y, tiled), left, right
                )
            case Chain():
                row = [self._worth(one) for one in node.operands]
                result: Any = True
                for how, left, right in zip(node.operators, row, row[1:], strict=False):
                    holds = self._each(lambda x, y, _, how=how: _compare(how, x, y), left, right)
                    result = self._each(lambda x, y, _: _join("and", x, y), result, holds)
                return result
            case Call():
                return self._call(node)

    def _call(self, node: Call) -> Any:
        name, arguments = node.function, node.arguments
        if name in ("summary", "total"):
            assert isinstance(arguments[0], Name)
            values, covered = self._source.summary(*self._stream(arguments[0]))
            at = 1 if name == "total" else 0
            if len(arguments) == 2:
                assert isinstance(arguments[1], Text)
                at = STREAMS[4].enum_names.index(arguments[1].value)
            return values[at] if covered else None
        if name in ("min", "max") and len(arguments) == 2:
            return self._each(
                lambda x, y, tiled: _choose(name, x, y, tiled),
                self._worth(arguments[0]),
                self._worth(arguments[1]),
            )
        value = self._worth(arguments[0])
        if name == "was":
            self._next[repr(node)] = value
            return self._memory.get(repr(node))
        if name == "known":
            return self._each(lambda x, _: x is not None, value)
        if name == "abs":
            return self._each(
                lambda x, tiled: (
                    x
                    if x is None
                    else _limit(abs(x) if isinstance(x, float) else _whole(x, tiled, abs), tiled)
                ),
                value,
            )
        space = self._space(arguments[0])
        assert space is not None
        used = self._source.used(space)
        return _aggregate(
            name, [x for i, x in enumerate(value) if x is not None and (used is None or used[i])]
        )


def _no(x: Any) -> Any:
    return None if x is None else -x


def _whole(x: int, tiled: bool, function: Any) -> int | None:
    return None if tiled and not LOW <= x <= HIGH else function(x)


def _limit(x: Any, tiled: bool) -> Any:
    if x is None:
        return None
    if isinstance(x, float):
        return x if math.isfinite(x) else None
    size = 63 if tiled else 127
    return x if -(1 << size) <= x < 1 << size else None


def _number(how: str, x: Any, y: Any, tiled: bool) -> Any:
    if x is None or y is None:
        return None
    if how == "/" or isinstance(x, float) or isinstance(y, float):
        x, y = float(x), float(y)
    elif tiled and not (LOW <= x <= HIGH and LOW <= y <= HIGH):
        return None
    if how in ("/", "//", "%") and y == 0:
        return None
    try:
        match how:
            case "+":
                found = x + y
            case "-":
                found = x - y
            case "*":
                found = x * y
            case "/":
                found = x / y
            case "//":
                found = x // y
            case _:
                found = x % y
    except OverflowError:
        return None
    return _limit(found, tiled)


def _join(how: str, x: Any, y: Any) -> Any:
    decides = how == "or"
    if x is decides or y is decides:
        return decides
    return None if x is None or y is None else not decides


def _compare(how: str, x: Any, y: Any) -> Any:
    if x is None or y is None:
        return None
    if isinstance(x, float) or isinstance(y, float):
        x, y = float(x), float(y)
    return (
        {"<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y, "==": x == y, "!=": x != y}[how]
        if not isinstance(x, str)
        else ((x == y) is (how == "=="))
    )


def _choose(name: str, x: Any, y: Any, tiled: bool) -> Any:
    if x is None or y is None:
        return None
    if isinstance(x, float) or isinstance(y, float):
        x, y = float(x), float(y)
    elif tiled and not (LOW <= x <= HIGH and LOW <= y <= HIGH):
        return None
    return min(x, y) if name == "min" else max(x, y)


def _aggregate(name: str, values: list[Any]) -> Any:
    if name == "covered":
        return len(values)
    if not values:
        return None
    match name:
        case "sum":
            return _limit(_sum(values), False)
        case "mean":
            total = _sum(values)
            return None if total is None else total / len(values)
        case "min":
            return min(values)
        case "max":
            return max(values)
        case "count":
            return sum(values)
        case _:
            return sum(values) / len(values)


def _sum(values: list[Any]) -> Any:
    if isinstance(values[0], int):
        return sum(values)
    try:
        return _limit(math.fsum(values), False)
    except OverflowError:
        return None
