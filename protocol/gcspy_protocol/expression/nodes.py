"""The nodes of a parsed expression (SPEC.md section 8.7).

Two nodes are equal if they mean the same, at whatever place; a tree that is printed and parsed
again is equal to itself. Knows the grammar; does not know spaces, arrays or what an expression is
used for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = [
    "COMPARISONS",
    "FACTS",
    "KEYWORDS",
    "Binary",
    "Call",
    "Chain",
    "EventFact",
    "Literal",
    "Name",
    "Node",
    "Not",
    "Sign",
    "Text",
    "children",
    "name_part",
    "printed",
]

COMPARISONS = ("<=", ">=", "==", "!=", "<", ">")
FACTS = ("event", "occurrence", "gather_ms", "held_ms", "cause")
"""Names of the facts of an event."""
KEYWORDS = frozenset({"and", "or", "not", "true", "false"})
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Literal:
    """An integer, a float, true or false."""

    value: int | float
    at: int = field(default=0, compare=False)

    def __eq__(self, other: object) -> bool:
        """Equal also in type: 1, 1.0 and true are different."""
        return (
            isinstance(other, Literal)
            and type(self.value) is type(other.value)
            and self.value == other.value
        )

    def __hash__(self) -> int:
        """Consistent with equality."""
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class Text:
    """A text, to be compared with a name of the event."""

    value: str
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class EventFact:
    """A fact of the event: one of `FACTS`."""

    name: str
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Name:
    """A stream: a number for each tile of its space.

    Attributes:
        stream: Its name.
        space: Name of the space; None: the default space.
        at: Its position in the text.
    """

    stream: str
    space: str | None = None
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A function of arguments."""

    function: str
    arguments: tuple[Node, ...]
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Sign:
    """A minus before a number."""

    operand: Node
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Not:
    """The negation of a condition."""

    operand: Node
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Binary:
    """Two operands and the operator between them: + - * / // % and or."""

    operator: str
    left: Node
    right: Node
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain of comparisons: ``1 < x <= 5`` is true if each of them is."""

    operands: tuple[Node, ...]
    operators: tuple[str, ...]
    at: int = field(default=0, compare=False)


Node = Literal | Text | EventFact | Name | Call | Sign | Not | Binary | Chain


def children(node: Node) -> Iterator[Node]:
    """The direct children of a node."""
    match node:
        case Call():
            yield from node.arguments
        case Sign() | Not():
            yield node.operand
        case Binary():
            yield node.left
            yield node.right
        case Chain():
            yield from node.operands
        case _:
            return


# Binding strength of operators; a weaker operand needs parentheses.
_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _SIGN, _PRIMARY = range(8)
STRENGTH = {
    "or": _OR,
    "and": _AND,
    "+": _SUM,
    "-": _SUM,
    "*": _PRODUCT,
    "/": _PRODUCT,
    "//": _PRODUCT,
    "%": _PRODUCT,
}


def printed(node: Node) -> str:
    """Print a tree, with no more parentheses than necessary."""
    return _printed(node, _OR)


def _printed(node: Node, least: int) -> str:
    text, strength = _with_strength(node)
    return f"({text})" if strength < least else text


def _with_strength(node: Node) -> tuple[str, int]:
    match node:
        case Literal():
            return (
                str(node.value).lower() if isinstance(node.value, bool) else repr(node.value)
            ), _PRIMARY
        case Text():
            return _quoted(node.value, "'"), _PRIMARY
        case EventFact():
            return node.name, _PRIMARY
        case Name():
            own = name_part(node.stream)
            return (own if node.space is None else f"{name_part(node.space)}.{own}"), _PRIMARY
        case Call():
            return f"{node.function}({', '.join(map(printed, node.arguments))})", _PRIMARY
        case Sign():
            return f"-{_printed(node.operand, _SIGN)}", _SIGN
        case Not():
            return f"not {_printed(node.operand, _NOT)}", _NOT
        case Binary():
            own_strength = STRENGTH[node.operator]
            left, right = _printed(node.left, own_strength), _printed(node.right, own_strength + 1)
            return f"{left} {node.operator} {right}", own_strength
        case Chain():
            parts = [_printed(node.operands[0], _SUM)]
            for operator, operand in zip(node.operators, node.operands[1:], strict=True):
                parts += [operator, _printed(operand, _SUM)]
            return " ".join(parts), _COMPARE


def name_part(text: str) -> str:
    """Write the name of a space or a stream as in an expression: in double quotes where needed."""
    bare = _BARE.fullmatch(text) and text not in KEYWORDS and text not in FACTS
    return text if bare else _quoted(text, '"')


def _quoted(text: str, mark: str) -> str:
    return mark + text.replace(mark, mark + mark) + mark
