"""Every public thing says what it is for, in modules whose name starts with an underscore too (ruff skips those)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.house.rooms import ROOT, modules, parsed

PROGRAMS = sorted(
    [
        *(ROOT / "benchmarks").rglob("*.py"),
        *(ROOT / ".ci").glob("*.py"),
        *(ROOT / "screenshots").glob("*.py"),
    ]
)

Documented = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def bare(body: list[ast.stmt], within: str) -> Iterator[str]:
    """Yield the public classes, functions and methods that have no docstring."""
    for node in body:
        if not isinstance(node, Documented) or node.name.startswith("_"):
            continue
        decorators = {
            ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list
        }
        if decorators & {"overload", "override", "setter", "deleter"}:
            continue
        if not ast.get_docstring(node):
            yield f"{within}{node.name} (line {node.lineno})"
        if isinstance(node, ast.ClassDef):
            yield from bare(node.body, f"{within}{node.name}.")


def test_everything_public_is_documented() -> None:
    undocumented = []
    for path in [*modules().values(), *PROGRAMS]:
        tree = parsed(path.read_text())
        missing = [] if ast.get_docstring(tree) else ["the module itself"]
        missing += bare(tree.body, "")
        undocumented += [f"{path.relative_to(ROOT)}: {each}" for each in missing]
    assert undocumented == []


def clauses(tree: ast.AST) -> Iterator[str]:
    """Yield the docstrings that begin with a clause ("What is shown") where the field has a noun."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | Documented):
            text = ast.get_docstring(node) or ""
            if text.startswith("What "):
                yield text.partition("\n")[0]


def test_docstrings_begin_with_a_noun_or_a_verb() -> None:
    found = []
    for path in [*modules().values(), *PROGRAMS]:
        tree = parsed(path.read_text())
        found += [f"{path.relative_to(ROOT)}: {each}" for each in clauses(tree)]
    assert found == []


def test_a_clause_in_the_place_of_a_noun_is_noticed() -> None:
    source = '"""What is here."""\nclass A:\n    """Whatever."""\n    def f(self): "What f does."'
    assert list(clauses(ast.parse(source))) == ["What is here.", "What f does."]


def test_a_bare_function_is_noticed() -> None:
    source = 'class A:\n    "a"\n    def f(self): pass\n    def _g(self): pass\ndef h(): "h"\ndef i(): pass'
    assert list(bare(ast.parse(source).body, "")) == ["A.f (line 3)", "i (line 6)"]
