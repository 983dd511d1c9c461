"""Binds the names in an expression to the streams of a session.

A name without a space is a stream of the default space; if there is none, of the only space that
has a stream of that name. Names are compared exactly first, then case-insensitively. Knows schemas;
does not know values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from gcspy_protocol.errors import AmbiguousName, ExpressionError, UnknownName
from gcspy_protocol.expression.kinds import Shape, ValueKind, kind_of
from gcspy_protocol.expression.nodes import Call, Name, Node, Text, children, name_part, printed
from gcspy_protocol.expression.parser import parse_tree
from gcspy_protocol.model import Presentation, Space, Stream

__all__ = ["Bound", "Expression", "bind", "parse", "parse_condition"]

_SHOWN_NAMES = 12
_SHOWN_CHOICES = 3
Thing = TypeVar("Thing", Space, Stream)

_AGGREGATES = frozenset({"sum", "mean", "count", "share", "covered", "summary", "total"})


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression.

    Attributes:
        text: The original text.
        root: Its tree.
        shape: Kind of its result.
    """

    text: str
    root: Node
    shape: Shape

    def __str__(self) -> str:
        return printed(self.root)


def parse(text: str) -> Expression:
    """Parse a text.

    Raises:
        ExpressionError: It is not an expression; the message says what is wrong and where.
    """
    root = parse_tree(text)
    return Expression(text, root, kind_of(root, text))


def parse_condition(text: str) -> Expression:
    """Parse the condition of a trigger.

    Raises:
        ExpressionError: It is not an expression, or not a condition.
    """
    found = parse(text)
    if found.shape.kind is not ValueKind.TRUTH:
        raise _not_a_condition(found, "compare it with something")
    if found.shape.tiled:
        raise _not_a_condition(
            found, "count(…) > 0 says that it holds for some tile, share(…) > 0.5 for most"
        )
    return found


def _not_a_condition(found: Expression, remedy: str) -> ExpressionError:
    return ExpressionError(
        f"a condition is needed, but this is {found.shape}: {remedy}", text=found.text, offset=0
    )


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """An expression whose names are streams of a session.

    Attributes:
        expression: The expression.
        streams: Space and stream, by id, of each name.
        enums: Index of each name of an enum in a summary, by its call.
        tiles_of: The space whose tiles the result is for; None: the result is one value.
    """

    expression: Expression
    streams: dict[Name, tuple[int, int]]
    enums: dict[Call, int]
    tiles_of: int | None

    @property
    def wants(self) -> frozenset[tuple[int, int]]:
        """Space and stream, by id, of all streams that are needed."""
        return frozenset(self.streams.values())

    def space_of(self, tiled: Node) -> int:
        """The space, by id, of the tiles that a part of the expression covers."""
        found = _first_name(tiled)
        assert found is not None, "no name in an expression with one value per tile"
        return self.streams[found][0]


def bind(expression: Expression, spaces: Iterable[Space], scope: int | None = None) -> Bound:
    """Look the names up.

    Args:
        expression: The parsed expression.
        spaces: The spaces of the session.
        scope: Id of the default space; None: there is none.

    Raises:
        UnknownName: There is no such space or stream, or tiles of two spaces are combined.
        AmbiguousName: Several spaces have a stream of this name; the message has the words to use.
    """
    return _Binder(expression, tuple(spaces), scope).bound()


def _first_name(node: Node) -> Name | None:
    """Return the first stream of a part that has a value for each tile, without those inside an aggregate."""
    if isinstance(node, Name):
        return node
    if _is_aggregate(node):
        return None
    return next(
        (found for child in children(node) if (found := _first_name(child)) is not None), None
    )


def _is_aggregate(node: Node) -> bool:
    if not isinstance(node, Call):
        return False
    return node.function in _AGGREGATES or (
        node.function in ("min", "max") and len(node.arguments) == 1
    )


class _Binder:
    def __init__(self, expression: Expression, spaces: Sequence[Space], scope: int | None) -> None:
        self._expression = expression
        self._spaces = spaces
        self._scope = scope
        self._found: dict[Name, tuple[Space, Stream]] = {}
        self._enums: dict[Call, int] = {}

    def bound(self) -> Bound:
        tiles_of = self._tiles_of(self._expression.root)
        streams = {name: (space.id, stream.id) for name, (space, stream) in self._found.items()}
        return Bound(
            self._expression, streams, self._enums, None if tiles_of is None else tiles_of.id
        )

    def _fail(self, message: str, at: int) -> UnknownName:
        return UnknownName(message, text=self._expression.text, offset=at)

    def _tiles_of(self, node: Node) -> Space | None:
        """The space whose tiles a node has a value for."""
        if isinstance(node, Name):
            return self._look_up(node)[0]
        spaces: list[Space] = []
        for child in children(node):
            space = self._tiles_of(child)
            if space is not None and space not in spaces:
                spaces.append(space)
        if len(spaces) > 1:
            what = f"tiles of {spaces[0].name!r} with tiles of {spaces[1].name!r}: reduce each to one number, with sum() or similar"
            raise self._fail(what, node.at)
        if isinstance(node, Call) and _is_aggregate(node):
            self._check_summary(node)
            return None
        return spaces[0] if spaces else None

    def _check_summary(self, node: Call) -> None:
        if node.function not in ("summary", "total"):
            return
        name = node.arguments[0]
        assert isinstance(name, Name)
        _, stream = self._found[name]
        if node.function == "total" and stream.presentation not in (
            Presentation.PERCENT,
            Presentation.PERCENT_VAR,
        ):
            raise self._fail(
                f"stream {stream.name!r} is not a percentage: its summary has no total", node.at
            )
        if stream.names_from is not None:
            what = f"the values of stream {stream.name!r} are numbers of names, and have no summary: count tiles, as in"
            raise self._fail(f'{what} count("{stream.name}" == 2)', node.at)
        if (len(node.arguments) == 2) != (stream.presentation is Presentation.ENUM):
            names = (
                f"one of its names: {_listed(stream.enum_names)}"
                if stream.enum_names
                else "no name: it is not an enum"
            )
            raise self._fail(f"the summary of stream {stream.name!r} takes {names}", node.at)
        if len(node.arguments) == 2:
            text = node.arguments[1]
            assert isinstance(text, Text)
            if text.value not in stream.enum_names:
                what = f"stream {stream.name!r} has no name {text.value!r}; it has {_listed(stream.enum_names)}"
                raise self._fail(what, text.at)
            self._enums[node] = stream.enum_names.index(text.value)

    def _look_up(self, name: Name) -> tuple[Space, Stream]:
        if name not in self._found:
            self._found[name] = self._search(name)
        return self._found[name]

    def _search(self, name: Name) -> tuple[Space, Stream]:
        spaces = self._candidates(name)
        found = [
            (space, stream) for space in spaces for stream in _named(space.streams, name.stream)
        ]
        if len(found) > 1:
            mine = [pair for pair in found if pair[0].id == self._scope]
            found = mine or found
        if len(found) == 1:
            return found[0]
        if found:
            raise self._ambiguous(name, found)
        raise self._fail(self._missing(name, spaces), name.at)

    def _ambiguous(self, name: Name, found: Sequence[tuple[Space, Stream]]) -> AmbiguousName:
        where = _listed([space.name for space, _ in found])
        choices = tuple(
            f"{name_part(space.name)}.{name_part(stream.name)}"
            for space, stream in found
            if sum(one.name == space.name for one in self._spaces) == 1
            and sum(one.name == stream.name for one in space.streams) == 1
        )
        words = " or ".join(choices[:_SHOWN_CHOICES])
        more = len(choices) - _SHOWN_CHOICES
        remedy = (
            f"write {words}" + (f", or one of {more} more" if more > 0 else "")
            if choices
            else "no name distinguishes them"
        )
        return AmbiguousName(
            f"several streams are called {name.stream!r}, in {where}: {remedy}",
            text=self._expression.text,
            offset=name.at,
            choices=choices,
        )

    def _candidates(self, name: Name) -> Sequence[Space]:
        if name.space is not None:
            spaces = _named(self._spaces, name.space)
            if not spaces:
                there = _listed([space.name for space in self._spaces])
                raise self._fail(f"there is no space {name.space!r}; there are {there}", name.at)
            return spaces
        mine = [space for space in self._spaces if space.id == self._scope]
        return mine or self._spaces

    def _missing(self, name: Name, spaces: Sequence[Space]) -> str:
        if len(spaces) == 1:
            there = _listed([stream.name for stream in spaces[0].streams])
            return f"space {spaces[0].name!r} has no stream {name.stream!r}; it has {there}"
        there = _listed([stream.name for space in spaces for stream in space.streams])
        return f"no space has a stream {name.stream!r}; there are {there}"


def _named(things: Iterable[Thing], name: str) -> list[Thing]:
    """Return the items of that name; if there are none, those that match it in another case."""
    things = list(things)
    exact = [one for one in things if one.name == name]
    return exact or [one for one in things if one.name.casefold() == name.casefold()]


def _listed(names: Sequence[str]) -> str:
    unique = list(dict.fromkeys(names))
    more = f" and {len(unique) - _SHOWN_NAMES} more" if len(unique) > _SHOWN_NAMES else ""
    return (", ".join(repr(name) for name in unique[:_SHOWN_NAMES]) or "none") + more
