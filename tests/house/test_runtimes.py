"""Commands, server and client know no runtime: its driver has the knowledge of it, and only drivers of programs are imported."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.house.rooms import PACKAGES, parsed

RUNTIMES = ("cpython", "hotspot", "semispace")

IMPORTERS = {
    "hosts/listener.py": "it is called by a Python program, to become its stub",
    "site_counts/counted_jvm.py": "a user says that it is a JVM: its classes get counters, without a session",
}
"""Files that import a driver of a runtime by name, with the reason."""

WORDS = ("CPython", "HotSpot", "JVM", "java.lang", "pymalloc", "G1 ", "PyObject")
"""Words that only a driver, or a text about all of them, may contain."""


def modules(*packages: str) -> list[Path]:
    """Return the modules of some packages."""
    return sorted(path for name in packages for path in PACKAGES[name].rglob("*.py"))


def texts(tree: ast.Module) -> list[tuple[int, str]]:
    """Return line and text of each string that is no docstring."""
    documentation = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for one in body if isinstance(body, list) else ():
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
                documentation.add(one.value)
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node not in documentation
    ]


def test_no_command_imports_the_driver_of_a_runtime() -> None:
    found = {}
    for path in modules("gcspy", "gcspy_server", "gcspy_client"):
        for node in ast.walk(parsed(path.read_text())):
            names = [getattr(node, "module", "") or ""] if isinstance(node, ast.ImportFrom) else []
            names += [one.name for one in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                parts = name.split(".")
                if parts[0] == "gcspy_drivers" and set(parts[1:2]) & set(RUNTIMES):
                    found[f"{path.parent.name}/{path.name}"] = name
    assert set(found) == set(IMPORTERS), found


@pytest.mark.parametrize("package", ["gcspy_client", "gcspy_server"])
def test_no_text_of_the_client_or_the_server_names_a_runtime(package: str) -> None:
    found = [
        f"{path.name}, line {line}: {text!r}"
        for path in modules(package)
        for line, text in texts(parsed(path.read_text()))
        for word in WORDS
        if word in text
    ]
    assert found == []
