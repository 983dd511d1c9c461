"""Kind of each part of an expression: number, condition or text; one, or one for each tile.

The text alone determines it, since every stream is a number for each tile. So an error of this kind
is found before a client is connected. Knows the functions; does not know spaces or arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from gcspy_protocol.errors import ExpressionError
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

__all__ = ["FUNCTIONS", "ValueKind", "Shape", "kind_of"]

FUNCTIONS = {
    "sum": "sum(x): over the tiles that are used and known",
    "mean": "mean(x): over the tiles that are used and known",
    "min": "min(x): the minimum over the tiles that are used and known; min(x, y): the smaller of two",
    "max": "max(x): the maximum over the tiles that are used and known; max(x, y): the larger of two",
    "count": "count(condition): number of used tiles for which it is true",
    "share": "share(condition): share of the used tiles for which it is true",
    "covered": "covered(x): number of used tiles for which x is known",
    "summary": "summary(stream): the driver's summary of the whole stream; summary(stream, 'name'): of one of its names",
    "total": "total(stream): the value that is 100 % of the driver's summary",
    "abs": "abs(x): the absolute value",
    "known": "known(x): whether it is known",
    "was": "was(x): the value at the previous event",
}
"""Every function, with its usage."""


class ValueKind(Enum):
    """Kind of a value."""

    NUMBER = "a number"
    TRUTH = "a condition"
    TEXT = "a text"


@dataclass(frozen=True, slots=True)
class Shape:
    """Kind of a node.

    Attributes:
        kind: Kind of its values.
        tiled: Whether there is one for each tile.
    """

    kind: ValueKind
    tiled: bool

    def __str__(self) -> str:
        return f"{self.kind.value} for each tile" if self.tiled else self.kind.value


_NUMBER, _TRUTH = Shape(ValueKind.NUMBER, False), Shape(ValueKind.TRUTH, False)


def kind_of(node: Node, text: str) -> Shape:
    """Determine the kind of a tree.

    Args:
        node: Its root.
        text: The source text, for errors.

    Raises:
        ExpressionError: An operator or a function has an argument of the wrong kind.
    """
    return _Judge(text).shape(node)


class _Judge:
    def __init__(self, text: str) -> None:
        self._text = text

    def _fail(self, message: str, node: Node) -> ExpressionError:
        return ExpressionError(message, text=self._text, offset=node.at)

    def shape(self, node: Node) -> Shape:
        match node:
            case Literal():
                return _TRUTH if isinstance(node.value, bool) else _NUMBER
            case Text():
                return Shape(ValueKind.TEXT, False)
            case EventFact():
                return Shape(ValueKind.TEXT, False) if node.name in ("event", "cause") else _NUMBER
            case Name():
                return Shape(ValueKind.NUMBER, True)
            case Sign():
                return self._needs(node.operand, ValueKind.NUMBER, "a minus")
            case Not():
                return self._needs(node.operand, ValueKind.TRUTH, "not")
            case Binary():
                kind = ValueKind.TRUTH if node.operator in ("and", "or") else ValueKind.NUMBER
                return self._both(node.left, node.right, kind, node.operator)
            case Chain():
                return self._chain(node)
            case Call():
                return self._call(node)

    def _needs(self, node: Node, kind: ValueKind, who: str) -> Shape:
        found = self.shape(node)
        if found.kind is not kind:
            raise self._fail(f"{who} takes {kind.value}, but this is {found}", node)
        return found

    def _both(self, left: Node, right: Node, kind: ValueKind, who: str) -> Shape:
        return Shape(kind, self._needs(left, kind, who).tiled | self._needs(right, kind, who).tiled)

    def _chain(self, node: Chain) -> Shape:
        shapes = [self.shape(one) for one in node.operands]
        for place, shape in enumerate(shapes):
            if shape.kind is ValueKind.TRUTH:
                raise self._fail(
                    "a condition is not compared; join conditions with and, or, not",
                    node.operands[place],
                )
        texts = [place for place, shape in enumerate(shapes) if shape.kind is ValueKind.TEXT]
        if texts and len(texts) != len(shapes):
            raise self._fail(
                "a text is compared with a text: event == 'GC start'. A stream's name stands in double quotes",
                node.operands[texts[0]],
            )
        if texts and any(operator not in ("==", "!=") for operator in node.operators):
            raise self._fail("texts are compared with == and !=", node.operands[0])
        return Shape(ValueKind.TRUTH, any(shape.tiled for shape in shapes))

    # ---------------------------------------------------------------- functions

    def _call(self, node: Call) -> Shape:
        name, arguments = node.function, node.arguments
        if name not in FUNCTIONS:
            raise self._fail(f"there is no function {name}; there are {', '.join(FUNCTIONS)}", node)
        if name in ("min", "max") and len(arguments) == 2:
            return self._both(arguments[0], arguments[1], ValueKind.NUMBER, name)
        if name in ("summary", "total"):
            return self._driver_summary(node)
        if len(arguments) != 1:
            raise self._fail(
                f"{name} with {len(arguments)} arguments; use it as {FUNCTIONS[name]}", node
            )
        return self._of_one(node, arguments[0])

    def _of_one(self, node: Call, argument: Node) -> Shape:
        name = node.function
        match name:
            case "abs":
                return self._needs(argument, ValueKind.NUMBER, name)
            case "known":
                return Shape(ValueKind.TRUTH, self.shape(argument).tiled)
            case "was":
                found = self.shape(argument)
                if found.tiled:
                    what = f"was takes one value, but this is {found}: tiles appear, disappear and move; use was(sum(…)) or similar"
                    raise self._fail(what, argument)
                return found
            case "count" | "share":
                return self._aggregate(node, argument, ValueKind.TRUTH)
            case "covered":
                return self._aggregate(node, argument, None)
            case _:
                return self._aggregate(node, argument, ValueKind.NUMBER)

    def _aggregate(self, node: Call, argument: Node, kind: ValueKind | None) -> Shape:
        found = self.shape(argument) if kind is None else self._needs(argument, kind, node.function)
        if not found.tiled:
            raise self._fail(
                f"{node.function} needs tiles, but this is {found} of all of them", argument
            )
        return _NUMBER

    def _driver_summary(self, node: Call) -> Shape:
        arguments = node.arguments
        most = 2 if node.function == "summary" else 1
        named = arguments and isinstance(arguments[0], Name)
        if (
            not named
            or len(arguments) > most
            or (len(arguments) == 2 and not isinstance(arguments[1], Text))
        ):
            raise self._fail(f"use it as {FUNCTIONS[node.function]}", node)
        return _NUMBER
