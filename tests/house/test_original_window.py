"""The table of the original's window against ours points at tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = (ROOT / "docs" / "original-window.md").read_text(encoding="utf-8")
ROWS = [
    line
    for line in TABLE.splitlines()
    if line.startswith("| ") and not line.startswith("| the original")
]


def test_every_row_has_its_test() -> None:
    assert len(ROWS) > 20
    for row in ROWS:
        assert "::test_" in row, row


@pytest.mark.parametrize("place", re.findall(r"`(tests/\S+::\w+)`", TABLE))
def test_the_test_exists(place: str) -> None:
    path, _, name = place.partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert name in {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }, place
