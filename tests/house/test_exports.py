"""What modules export is there, and the package says that it is typed."""

from __future__ import annotations

import importlib

import pytest

from tests.house.rooms import PACKAGES, modules

# A module named __main__ is a program: importing it runs it.
IMPORTABLE = [name for name in modules() if not name.endswith("__main__")]


@pytest.mark.parametrize("name", IMPORTABLE)
def test_a_module_imports_and_exports_what_it_says(name: str) -> None:
    module = importlib.import_module(name)
    exported = getattr(module, "__all__", [])
    assert len(exported) == len(set(exported)), "named twice"
    assert [one for one in exported if not hasattr(module, one)] == []
    assert [one for one in exported if one.startswith("_")] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_are_marked_as_typed(package: str) -> None:
    assert (PACKAGES[package] / "py.typed").exists()
