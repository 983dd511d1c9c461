"""Every path that a document names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.house.rooms import PACKAGES, ROOT

FOLDERS = ("docs", "protocol", "drivers", "replay", "screenshots", "benchmarks")
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md"))]
)
SUFFIXES = {
    ".md",
    ".py",
    ".toml",
    ".txt",
    ".png",
    ".bin",
    ".json",
    ".h",
    ".c",
    ".pyi",
    ".yml",
    ".svg",
}
TOP = {path.name for path in ROOT.iterdir()}

CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
PATH = re.compile(r"\.?[\w-][\w.*-]*(/[\w.*-]+)*/?")
PLACEHOLDER = re.compile(r"[A-Z]+\.(png|json)")


def paths_in(text: str) -> set[str]:
    """Return what a document's text names as paths: link targets, and inline code that looks like one."""
    found = {
        link for link in LINK.findall(text) if "://" not in link and not link.startswith("mailto:")
    }
    for code in CODE.findall(text):
        for word in code.split():
            if not PATH.fullmatch(word) or PLACEHOLDER.fullmatch(word):
                continue
            if Path(word).suffix in SUFFIXES or (
                "/" in word and word.partition("/")[0] in TOP | set(PACKAGES)
            ):
                found.add(word)
    return found


def exists(name: str, document: Path) -> bool:
    bases = [document.parent, ROOT, *(folder.parent for folder in PACKAGES.values())]
    return any(any(base.glob(name)) if "*" in name else (base / name).exists() for base in bases)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_path_a_document_names_exists(document: Path) -> None:
    missing = sorted(name for name in paths_in(document.read_text()) if not exists(name, document))
    assert not missing, f"{document.relative_to(ROOT)} names {missing}"


def test_there_are_documents_and_they_name_paths() -> None:
    names = {path.relative_to(ROOT).as_posix() for path in DOCUMENTS}
    assert {"README.md", "ARCHITECTURE.md", "GLOSSARY.md", "CHANGELOG.md"} <= names
    assert "protocol/" in paths_in((ROOT / "ARCHITECTURE.md").read_text())


def test_a_path_that_is_not_there_is_noticed() -> None:
    text = "see [it](docs/none.md), `gcspy_server/none.py`, `none.py`, `gcspy attach PID -o FILE.png` and `a/b`"
    named = paths_in(text)
    assert named == {"docs/none.md", "gcspy_server/none.py", "none.py"}
    assert not any(exists(name, ROOT / "README.md") for name in named)


WRAPPED = [
    path
    for path in [*DOCUMENTS, *sorted((ROOT / "gcspy_client").rglob("*.md"))]
    if path.name not in {"CHANGELOG.md", "recordings-table.md"}
]
"""All but the change log, which is a record, and a table that a program writes; lessons and pages of the guide too."""


_NO_PROSE = ("|", "![", "[![", "    ", "<!--")
"""Beginnings of lines that cannot be wrapped: tables, images, code, comments."""


def long_lines(text: str, most: int = 100) -> list[int]:
    """Return the numbers of the lines of prose that are too long; not tables, images, code, heads of lessons."""
    numbers, fenced = [], False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith(("```", "+++")):
            fenced = not fenced
        elif len(line) > most and not fenced and not line.startswith(_NO_PROSE):
            numbers.append(number)
    return numbers


@pytest.mark.parametrize("document", WRAPPED, ids=lambda path: str(path.relative_to(ROOT)))
def test_prose_is_at_most_100_columns_wide(document: Path) -> None:
    assert long_lines(document.read_text()) == []


def test_a_long_line_of_prose_is_noticed() -> None:
    word = "x" * 101
    assert long_lines(f"short\n{word}\n| {word} |\n    {word}\n```\n{word}\n```\n* {word}") == [
        2,
        8,
    ]


def test_the_readme_is_read_in_three_minutes() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_the_architecture_names_every_folder_of_a_room() -> None:
    told = (ROOT / "ARCHITECTURE.md").read_text()
    folders = [
        f"{name}/{path.parent.name}/"
        for name, room in PACKAGES.items()
        for path in room.glob("*/__init__.py")
    ]
    assert len(folders) > 30
    assert not [folder for folder in folders if f"`{folder}`" not in told]
