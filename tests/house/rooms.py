"""Where the rooms are, for the tests of the house."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PACKAGES = {
    "gcspy": ROOT / "gcspy",
    "gcspy_client": ROOT / "gcspy_client",
    "gcspy_compiled": ROOT / "gcspy_compiled",
    "gcspy_counting": ROOT / "counting/gcspy_counting",
    "gcspy_drivers": ROOT / "drivers/gcspy_drivers",
    "gcspy_objects": ROOT / "objects/gcspy_objects",
    "gcspy_original": ROOT / "original/gcspy_original",
    "gcspy_protocol": ROOT / "protocol/gcspy_protocol",
    "gcspy_replay": ROOT / "replay/gcspy_replay",
    "gcspy_server": ROOT / "gcspy_server",
    "gcspy_session": ROOT / "gcspy_session",
}
"""Import name to folder."""

NEEDS_QT = (
    "gcspy_client.view",
    "gcspy_client.link",
    "gcspy_client.app",
    "gcspy_client.pictures",
    "gcspy_client.settings",
)
"""Modules that can be imported only in an install with the extra "gui"."""


@cache
def parsed(source: str) -> ast.Module:
    """Return the tree of a source; nobody may change it. Each is parsed once, for all tests of the house."""
    return ast.parse(source)


def modules() -> dict[str, Path]:
    """Return every module of the product, import name to file."""
    found = {}
    for package, folder in PACKAGES.items():
        for path in sorted(folder.rglob("*.py")):
            parts = [package, *path.relative_to(folder).with_suffix("").parts]
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def needs_qt(module: str) -> bool:
    """Return whether this module may import Qt."""
    return any(module == room or module.startswith(f"{room}.") for room in NEEDS_QT)


def exports(module: str) -> bool:
    """Return whether this module may import the packages of the extra "export"."""
    return module.startswith("gcspy_replay.file.export.")


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and full name of everything a file imports, inside functions too; not its relative imports."""
    for node in ast.walk(parsed(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.lineno, node.module
