"""No module imports itself by way of others: not in the client, and elsewhere only for types.

Imports within functions and under `TYPE_CHECKING` count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.house.rooms import PACKAGES, modules, parsed

_MOST_OF_TYPES = 3
"""Modules in a circle that some imports of types close."""

_HAVE_STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)

Graph = Mapping[str, frozenset[str]]


def targets(tree: ast.AST, known: Iterable[str], *, types: bool) -> frozenset[str]:
    """The known modules that a module imports.

    Args:
        tree: The module.
        known: Names of all modules.
        types: Whether imports under `TYPE_CHECKING` count.
    """
    found: set[str] = set()
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if not types and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in known else node.module)
        # Most nodes are expressions, which have no imports.
        inner_nodes = ast.iter_child_nodes(node)
        waiting += (one for one in inner_nodes if isinstance(one, _HAVE_STATEMENTS))
    return frozenset(found & set(known))


def circles(graph: Graph) -> list[frozenset[str]]:
    """The strongly connected components of two modules or more, by Tarjan's algorithm."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[frozenset[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for other in graph[module]:
            if other not in order:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in stack:
                lowest[module] = min(lowest[module], order[other])
        if lowest[module] == order[module]:
            place = stack.index(module)
            component = frozenset(stack[place:])
            del stack[place:]
            if len(component) > 1 or module in graph[module]:
                found.append(component)

    for module in graph:
        if module not in order:
            visit(module)
    return found


@cache
def _graph(*, types: bool) -> Graph:
    trees = {name: parsed(path.read_text()) for name, path in modules().items()}
    names = set(trees)
    return {name: targets(tree, names, types=types) - {name} for name, tree in trees.items()}


def test_no_module_imports_itself_when_it_runs() -> None:
    assert not [sorted(circle) for circle in circles(_graph(types=False))]


def test_the_client_has_no_circle_of_types_either() -> None:
    found = circles(_graph(types=True))
    assert not [
        sorted(one) for one in found if any(name.startswith("gcspy_client") for name in one)
    ]


def test_circles_of_types_are_small() -> None:
    found = circles(_graph(types=True))
    assert not [sorted(circle) for circle in found if len(circle) > _MOST_OF_TYPES]


@pytest.mark.parametrize(
    ("text", "types", "expected"),
    [
        ("import a.b", False, {"a.b"}),
        ("from a import b", False, {"a.b"}),
        ("from a.b import name", False, {"a.b"}),
        ("def f():\n    from a import b", False, {"a.b"}),
        ("if TYPE_CHECKING:\n    import a.b", False, set()),
        ("if TYPE_CHECKING:\n    import a.b", True, {"a.b"}),
        ("if not TYPE_CHECKING:\n    pass\nelse:\n    import a.b", False, {"a.b"}),
    ],
)
def test_imports_are_found(text: str, types: bool, expected: set[str]) -> None:
    assert targets(ast.parse(text), {"a", "a.b"}, types=types) == expected


def test_a_circle_is_found_and_a_diamond_is_none() -> None:
    def graph(**edges: str) -> Graph:
        return {name: frozenset(others) for name, others in edges.items()}

    assert circles(graph(a="bc", b="d", c="d", d="")) == []
    assert circles(graph(a="b", b="c", c="a", d="a")) == [frozenset("abc")]
    assert circles(graph(a="b", b="acd", c="d", d="c")) == [frozenset("cd"), frozenset("ab")]


def test_no_folder_of_the_view_has_more_than_twenty_modules() -> None:
    view: Path = PACKAGES["gcspy_client"] / "view"
    folders = [view, *(path for path in view.rglob("*") if path.is_dir())]
    counts = {path.name: len(list(path.glob("*.py"))) for path in folders}
    assert not {name: count for name, count in counts.items() if count > 20}
