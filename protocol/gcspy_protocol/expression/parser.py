"""Parses a text from a stranger into a tree of `nodes`; it does not look up names or run anything.

    condition  = conjunction { "or" conjunction }
    conjunction = negation { "and" negation }
    negation   = "not" negation | comparison
    comparison = sum { ( "<" | "<=" | ">" | ">=" | "==" | "!=" ) sum }
    sum        = product { ( "+" | "-" ) product }
    product    = sign { ( "*" | "/" | "//" | "%" ) sign }
    sign       = ( "-" | "+" ) sign | primary
    primary    = number | text | "true" | "false" | fact | call | name | "(" condition ")"

Text, nodes and depth are limited, so that neither the parser nor a walk over a tree can take long
or recurse deeply. Knows the grammar; does not know which functions and streams exist.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from gcspy_protocol.errors import ExpressionError
from gcspy_protocol.expression.nodes import (
    COMPARISONS,
    FACTS,
    KEYWORDS,
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
    children,
)

__all__ = ["MOST_CHARS", "MOST_DEPTH", "MOST_NODES", "parse_tree"]

MOST_CHARS = 1000
MOST_NODES = 200
MOST_DEPTH = 32
"""Maximum depth of parentheses and trees: a level costs the parser six calls."""

_LARGEST = (1 << 64) - 1
_FACTORS = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "Ki": 1 << 10,
    "Mi": 1 << 20,
    "Gi": 1 << 30,
    "Ti": 1 << 40,
}

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\n]+)
    |(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<name>"(?:[^"]|"")*")
    |(?P<text>'(?:[^']|'')*')
    |(?P<operator>//|<=|>=|==|!=|[-+*/%<>().,])""",
    re.VERBOSE,
)
_SUFFIX = re.compile(
    r"%(?![A-Za-z0-9_\"'(])|(?P<factor>[kMGT]|[KMGT]i)?(?P<bytes>B)?(?![A-Za-z0-9_])",
)
"""Suffixes of a number. A % right before an operand is the operator: ``7%3`` is 1."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int
    value: int | float = 0


def parse_tree(text: str) -> Node:
    """The tree of a text.

    Raises:
        ExpressionError: The text is not an expression, or is too large.
    """
    if len(text) > MOST_CHARS:
        raise ExpressionError(
            f"an expression of {len(text)} characters; at most {MOST_CHARS} are taken",
            text=text,
            offset=MOST_CHARS,
        )
    return _Parser(text).whole()


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ExpressionError(_stray(text[at]), text=text, offset=at)
        kind, at = str(match.lastgroup), match.end()
        if kind == "number":
            token, at = _number(text, match)
            found.append(token)
        elif kind != "blank":
            found.append(_Token(kind, match.group(), match.start()))
    found.append(_Token("end", "", len(text)))
    return found


def _stray(character: str) -> str:
    if character in "\"'":
        return f"the {character} is never closed"
    if character == "=":
        return "a single =; use == to compare"
    return f"{character!r} has no meaning here; put names with such characters in double quotes"


def _number(text: str, match: re.Match[str]) -> tuple[_Token, int]:
    digits, start = match.group(), match.start()
    suffix = _SUFFIX.match(text, match.end())
    end = match.end() if suffix is None else suffix.end()
    after = text[end : end + 1]
    if suffix is None and after != "%" and (after.isalnum() or after == "_"):
        what = f"{digits} is followed by {after!r}; a number may be followed by %, k, M, G, T, Ki, Mi, Gi or Ti, and B"
        raise ExpressionError(what, text=text, offset=end)
    ending = "" if suffix is None else suffix.group()
    value: int | float = int(digits) if digits.isdigit() else float(digits)
    if ending == "%":
        value = _to_float(value) / 100
    else:
        value *= _FACTORS[ending.removesuffix("B")]
    if isinstance(value, int) and value > _LARGEST:
        what = f"an integer beyond the largest, {_LARGEST}; write it as a float, such as 1e20"
        raise ExpressionError(what, text=text, offset=start)
    if not math.isfinite(value):
        raise ExpressionError("a number beyond what a float can hold", text=text, offset=start)
    return _Token("number", digits + ending, start, value), end


def _to_float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


class _Parser:
    """A recursive descent parser with one method for each precedence."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._at = 0
        self._depth = 0

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self, *texts: str, kind: str = "operator") -> _Token | None:
        """The next token, if it is one of these."""
        token = self._next
        if token.kind != kind or (texts and token.text not in texts):
            return None
        self._at += 1
        return token

    def _fail(self, message: str, at: int | None = None) -> ExpressionError:
        return ExpressionError(message, text=self._text, offset=self._next.at if at is None else at)

    def whole(self) -> Node:
        """Parse the whole text.

        Raises:
            ExpressionError: It is not an expression.
        """
        if self._next.kind == "end":
            raise self._fail("an expression is missing")
        node = self._condition()
        if self._next.kind != "end":
            raise self._fail(
                f"{self._next.text} is unexpected here: an operator is missing before it"
            )
        self._measure(node)
        return node

    def _measure(self, root: Node) -> None:
        """Refuse a tree that is too large; the depth of a chain of operators is its length."""
        level, nodes, depth = [root], 0, 0
        while level:
            nodes, depth = nodes + len(level), depth + 1
            if nodes > MOST_NODES or depth > 2 * MOST_DEPTH:
                what = f"at most {MOST_NODES} names, numbers and operators are taken, {2 * MOST_DEPTH} in a row"
                raise self._fail(f"the expression is too long: {what}", level[0].at)
            level = [child for node in level for child in children(node)]

    def _condition(self) -> Node:
        if self._depth >= MOST_DEPTH:
            raise self._fail(f"more than {MOST_DEPTH} levels of parentheses and signs")
        self._depth += 1
        node = self._conjunction()
        while token := self._take("or", kind="word"):
            node = Binary("or", node, self._conjunction(), token.at)
        self._depth -= 1
        return node

    def _conjunction(self) -> Node:
        node = self._negation()
        while token := self._take("and", kind="word"):
            node = Binary("and", node, self._negation(), token.at)
        return node

    def _negation(self) -> Node:
        places = []
        while token := self._take("not", kind="word"):
            places.append(token.at)
        node = self._comparison()
        for at in reversed(places):
            node = Not(node, at)
        return node

    def _comparison(self) -> Node:
        first = self._sum()
        operands, operators, at = [first], [], self._next.at
        while token := self._take(*COMPARISONS):
            operators.append(token.text)
            operands.append(self._sum())
        return Chain(tuple(operands), tuple(operators), at) if operators else first

    def _sum(self) -> Node:
        node = self._product()
        while token := self._take("+", "-"):
            node = Binary(token.text, node, self._product(), token.at)
        return node

    def _product(self) -> Node:
        node = self._sign()
        while token := self._take("*", "/", "//", "%"):
            node = Binary(token.text, node, self._sign(), token.at)
        return node

    def _sign(self) -> Node:
        minuses = []
        while token := self._take("-", "+"):
            if token.text == "-":
                minuses.append(token.at)
        node = self._primary()
        for at in reversed(minuses):
            node = Sign(node, at)
        return node

    def _primary(self) -> Node:
        token = self._next
        self._at += 1
        match token.kind:
            case "number":
                return Literal(token.value, token.at)
            case "text":
                return Text(_unquoted(token.text), token.at)
            case "word":
                return self._word(token)
            case "name":
                return self._stream(token)
            case "operator" if token.text == "(":
                node = self._condition()
                self._close("(", token.at)
                return node
        self._at -= 1
        what = "it ends" if token.kind == "end" else f"there is {token.text}"
        raise self._fail(f"a number, a name or a parenthesis is expected here, but {what}")

    def _word(self, token: _Token) -> Node:
        if token.text in ("true", "false"):
            return Literal(token.text == "true", token.at)
        if token.text in KEYWORDS:
            raise self._fail(
                f"a number, a name or a parenthesis is expected here, but there is {token.text}",
                token.at,
            )
        after = self._next.text if self._next.kind == "operator" else ""
        if after == "(":
            return self._call(token)
        if token.text in FACTS and after != ".":
            return EventFact(token.text, token.at)
        return self._stream(token)

    def _call(self, token: _Token) -> Node:
        opened = self._next.at
        self._at += 1
        arguments: list[Node] = []
        if self._next.text != ")":
            arguments.append(self._condition())
            while self._take(","):
                arguments.append(self._condition())
        self._close("(", opened)
        return Call(token.text, tuple(arguments), token.at)

    def _close(self, opening: str, at: int) -> None:
        if self._take(")") is None:
            if self._next.kind == "end":
                raise self._fail(f"the {opening} is never closed", at)
            quotes = (
                ": a name with spaces is written in double quotes"
                if self._next.kind == "word" and self._next.text not in KEYWORDS
                else ""
            )
            raise self._fail(f"a ) is expected here, but there is {self._next.text}{quotes}")

    def _stream(self, token: _Token) -> Node:
        first = self._part(token)
        if self._take(".") is None:
            return Name(first, None, token.at)
        second = self._next
        if second.kind not in ("word", "name"):
            raise self._fail("the name of a stream is expected after the point")
        self._at += 1
        return Name(self._part(second), first, token.at)

    def _part(self, token: _Token) -> str:
        name = token.text if token.kind == "word" else _unquoted(token.text)
        if not name:
            raise self._fail("an empty name", token.at)
        return name


def _unquoted(text: str) -> str:
    mark = text[0]
    return text[1:-1].replace(mark + mark, mark)
