"""Expressions over streams that users write, as a view of a space or as the condition of a trigger (SPEC.md section 8.7).

    parse(text) ─▶ Expression ─ bind(spaces) ─▶ Bound ─ Evaluator ─▶ Result at each event

`eval` is never used: a text is parsed into the few kinds of node of `nodes`, with limits on length
and depth. Knows schemas and arrays; does not know the wire, or what an expression is used for.
"""

from gcspy_protocol.expression.binding import Bound, Expression, bind, parse, parse_condition
from gcspy_protocol.expression.evaluation import (
    EvaluationSource,
    Evaluator,
    EventFacts,
    Operand,
    Result,
)
from gcspy_protocol.expression.kinds import FUNCTIONS, Shape, ValueKind
from gcspy_protocol.expression.nodes import FACTS, KEYWORDS, name_part
from gcspy_protocol.expression.parser import MOST_CHARS, MOST_DEPTH, MOST_NODES
from gcspy_protocol.expression.tiles import TileValues

__all__ = [
    "FACTS",
    "FUNCTIONS",
    "KEYWORDS",
    "MOST_CHARS",
    "MOST_DEPTH",
    "MOST_NODES",
    "Bound",
    "Evaluator",
    "Expression",
    "EventFacts",
    "ValueKind",
    "Operand",
    "Result",
    "Shape",
    "EvaluationSource",
    "TileValues",
    "bind",
    "name_part",
    "parse",
    "parse_condition",
]
