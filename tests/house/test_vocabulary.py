"""One vocabulary: modules are named after things, and documents use the words of `GLOSSARY.md`."""

from __future__ import annotations

import re

import pytest

from tests.house.rooms import ROOT, modules

VERB_LIKE = re.compile(r"(ing|ed|grown|found|told)$")

TERMS = {
    "accounting": "bookkeeping of what monitoring costs and of which events were counted",
    "binding": "compilers: from a name to what it stands for",
    "binning": "statistics: values sorted into intervals",
    "copying": "garbage collection: copying an object and leaving a forwarding address",
    "encoding": "a benchmark by its name on the command line; values as bytes",
    "feed": "a noun that only looks like a participle",
    "marking": "garbage collection: the tri-colour marking of what can be reached",
    "pooling": "machine learning and image scaling: one value for many",
    "recording": "a session as a file; a benchmark by its name on the command line",
    "sliding": "garbage collection: sliding compaction",
    "tiling": "a partition of a space into tiles",
    "transcoding": "from one encoding to another",
}
"""The last words of module names that end like a verb and are nouns of the field, each with its field."""


def is_verb_like(name: str) -> bool:
    """Tell whether a module's name ends like a verb and is no term of the field."""
    return bool(VERB_LIKE.search(name)) and name.rpartition("_")[2] not in TERMS


def files() -> list[str]:
    """Return the names of all modules of the product and of the programs beside it."""
    beside = [
        path.stem
        for folder in ("benchmarks", "screenshots", "stubs", ".ci")
        for path in (ROOT / folder).rglob("*.py")
    ]
    return [*(path.stem for path in modules().values()), *beside]


def test_modules_are_named_after_things() -> None:
    assert sorted(name for name in files() if is_verb_like(name)) == []


def test_every_exception_is_in_use() -> None:
    used = {name.rpartition("_")[2] for name in files()}
    assert set(TERMS) - used == set()


@pytest.mark.parametrize("name", ["looking", "type_grown", "found", "told", "stubbed"])
def test_a_verb_is_noticed(name: str) -> None:
    assert is_verb_like(name)
