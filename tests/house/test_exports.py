"""All names that modules export exist, and the package is marked as typed."""

from __future__ import annotations

import importlib

import pytest

from tests.house.rooms import PACKAGES, modules

# A module named __main__ is a program: importing it runs it.
IMPORTABLE = [name for name in modules() if not name.endswith("__main__")]


def misnamed(name: str) -> list[str]:
    """Import a module; return what it exports twice, what it exports and has not, and what is private."""
    module = importlib.import_module(name)
    exported = getattr(module, "__all__", [])
    return [
        f"{name}.{one}"
        for one in exported
        if exported.count(one) > 1 or not hasattr(module, one) or one.startswith("_")
    ]


def test_modules_import_and_export_what_they_say() -> None:
    assert [each for name in IMPORTABLE for each in misnamed(name)] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_are_marked_as_typed(package: str) -> None:
    assert (PACKAGES[package] / "py.typed").exists()
