"""Rules about the text of the sources that no tool of ours checks."""

from __future__ import annotations

import re
import tokenize
from pathlib import Path

import pytest

from tests.house.rooms import PACKAGES, ROOT

FOLDERS = [*PACKAGES.values(), ROOT / "tests", ROOT / "benchmarks", ROOT / "screenshots", ROOT / ".ci", ROOT / "stubs"]
SOURCES = sorted(path for folder in FOLDERS for path in [*folder.rglob("*.py"), *folder.rglob("*.pyi")])
REASONED = re.compile(r"#\s*noqa: [A-Z0-9, ]+\s+(#|--?|—|\()\s*\w+")


def comments(path: Path) -> list[tuple[int, str]]:
    with path.open("rb") as file:
        tokens = list(tokenize.tokenize(file.readline))
    return [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_silenced_without_a_reason(path: Path) -> None:
    for line, comment in comments(path):
        assert not re.match(r"#\s*type:\s*ignore", comment), f"line {line}: the type is wrong, or the stub is"
        assert "noqa" not in comment or REASONED.search(comment), f"line {line}: a noqa with its rule and its reason"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_are_named_after_something(path: Path) -> None:
    assert path.stem not in {"utils", "util", "helpers", "helper", "common", "misc"}


def test_a_silence_without_reason_is_noticed() -> None:
    assert REASONED.search("# noqa: BLE001  # a driver may raise anything")
    assert not REASONED.search("# noqa: BLE001")
    assert not REASONED.search("# noqa")
