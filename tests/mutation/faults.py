"""The small faults that can be planted in a source file, found in its syntax tree.

It knows Python's syntax; it knows neither tests nor the project. A fault replaces one span of bytes
by another, so that all other lines keep their numbers.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
_OPERATORS: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}
_SWAPPED_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
# Functions whose results only people read.
_SKIPPED_FUNCTIONS = {"__repr__", "__str__"}


@dataclass(frozen=True)
class Fault:
    """A span of a source file, and what is put in its place."""

    kind: str
    line: int
    begin: int
    end: int
    text: bytes

    def plant(self, source: bytes) -> bytes:
        """Return the source with the fault."""
        return source[: self.begin] + self.text + source[self.end :]

    def shown(self, source: bytes) -> str:
        """Return the faulty line and what it was: ``if a < b:  →  if a <= b:``."""
        before = source.splitlines()[self.line - 1].decode().strip()
        after = self.plant(source).splitlines()[self.line - 1].decode().strip()
        return f"{before}  →  {after}"


class _Finder(ast.NodeVisitor):
    """Collects the faults of one module; annotations, messages and docstrings are left alone."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self.found: list[Fault] = []
        self._in_function = False

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        begin = self._starts[node.lineno - 1] + node.col_offset
        return begin, self._starts[node.end_lineno - 1] + node.end_col_offset

    def _add(self, kind: str, begin: int, end: int, text: str) -> None:
        if not self._in_function:
            return  # a constant of a module is often a limit: any value near it is as right
        line = self._source.count(b"\n", 0, begin) + 1
        self.found.append(Fault(kind, line, begin, end, text.encode()))

    def _between(self, kind: str, left: ast.expr, right: ast.expr, old: str, new: str) -> None:
        begin, end = self._span(left)[1], self._span(right)[0]
        gap = self._source[begin:end]
        pattern = re.escape(old).replace(r"\ ", r"\s+").encode()
        places = [match.span() for match in re.finditer(pattern, gap)]
        if len(places) == 1 and b"#" not in gap:
            self._add(kind, begin + places[0][0], begin + places[0][1], new)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:  # the name is ast's
        """Visit a body; not decorators, defaults and annotations."""
        if node.name in _SKIPPED_FUNCTIONS:
            return
        outer, self._in_function = self._in_function, True
        for statement in node.body:
            self.visit(statement)
        self._in_function = outer

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:  # the name is ast's
        """Visit a body, as of any function."""
        outer, self._in_function = self._in_function, True
        for statement in node.body:
            self.visit(statement)
        self._in_function = outer

    def visit_Raise(self, node: ast.Raise) -> None:  # the name is ast's
        """Leave the words and numbers of an error alone."""

    def visit_Assert(self, node: ast.Assert) -> None:  # the name is ast's
        """Leave assertions alone: they are there for the type checker."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:  # the name is ast's
        """Leave texts alone."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:  # the name is ast's
        """Visit the value, not the annotation."""
        if node.value is not None:
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:  # the name is ast's
        """Drop a guard that raises or leaves; swap nothing under TYPE_CHECKING."""
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        if isinstance(node.body[0], ast.Raise | ast.Return | ast.Continue) and not node.orelse:
            self._add("guard dropped", *self._span(node.test), "False")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:  # the name is ast's
        """Drop a statement that is a call."""
        if isinstance(node.value, ast.Call):
            self._add("call dropped", *self._span(node), "pass")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:  # the name is ast's
        """Move a boundary, or negate."""
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            old, new = _COMPARISONS[type(operator)]
            self._between("comparison", left, right, old, new)
            left = right
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:  # the name is ast's
        """Take another operator, but not between texts."""
        if type(node.op) in _OPERATORS and not isinstance(node.left, ast.Constant | ast.JoinedStr):
            self._between("operator", node.left, node.right, *_OPERATORS[type(node.op)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:  # the name is ast's
        """Take "or" for "and"."""
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        self._between("and, or", node.values[0], node.values[1], old, new)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:  # the name is ast's
        """Drop a "not"."""
        if isinstance(node.op, ast.Not):
            begin, _ = self._span(node)
            self._add("not dropped", begin, self._span(node.operand)[0], "")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:  # the name is ast's
        """Count one too many, or take the other truth value."""
        if isinstance(node.value, bool):
            self._add("truth value", *self._span(node), str(not node.value))
        elif isinstance(node.value, int):
            self._add("one more", *self._span(node), str(node.value + 1))

    def visit_Call(self, node: ast.Call) -> None:  # the name is ast's
        """Take the largest for the smallest."""
        if isinstance(node.func, ast.Name) and node.func.id in _SWAPPED_CALLS:
            self._add("other function", *self._span(node.func), _SWAPPED_CALLS[node.func.id])
        self.generic_visit(node)


def faults(source: bytes, lines: Container[int] | None = None) -> Iterator[Fault]:
    """Find all faults that can be planted in a module, in the order of its text.

    Args:
        source: UTF-8, as in the file.
        lines: Only those of these lines, from 1; None: all.
    """
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    found = [fault for fault in finder.found if lines is None or fault.line in lines]
    for fault in sorted(found, key=lambda fault: (fault.begin, fault.end, fault.kind)):
        try:
            ast.parse(fault.plant(source))
        except SyntaxError:
            continue
        yield fault
