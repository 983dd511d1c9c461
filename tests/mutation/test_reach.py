"""The stored results of a run are used for the test files that did not change, and for no others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.mutation.__main__ import placed
from tests.mutation.reach import measured

SOURCE = """
def one() -> int:
    return 1


def two() -> int:
    return 2 if one() < 2 else 3
"""
TEST = "from package.module import {name}\ndef test_{name}() -> None: assert {name}() == {wanted}\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project of one module and two files of tests."""
    for path, text in {
        "package/__init__.py": "",
        "package/module.py": SOURCE,
        "tests/test_one.py": TEST.format(name="one", wanted=1),
        "tests/test_two.py": TEST.format(name="two", wanted=2),
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def test_only_what_changed_is_measured_anew(project: Path) -> None:
    root = str(Path(__file__).resolve().parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(project), root))}
    kept, module = project / "kept.json", "package/module.py"

    def tests_of(line: int, *chosen: str) -> set[str]:
        reach = measured(project, environment, "package", chosen or ["tests"], kept)
        return {name.rpartition("::")[2] for name in reach.tests(module, line)}

    assert tests_of(3, "tests/test_two.py") == {"test_two"}, "the other was not asked for"
    assert tests_of(3) == {"test_one", "test_two"}
    assert tests_of(7) == {"test_two"}
    (project / "tests/test_two.py").write_text("def test_nothing() -> None: pass\n")
    assert tests_of(3) == {"test_one"}
    assert tests_of(7) == set()
    (project / "package/module.py").write_text("\n" + SOURCE)
    assert tests_of(4) == {"test_one"}
    assert tests_of(3) == set(), "the lines have other numbers"


def test_all_faults_of_a_line_are_those_of_a_room(project: Path) -> None:
    found = placed(project, "package", "package/module.py:7")
    assert {fault.line for _, fault in found} == {7}
    assert len(found) == 4
    assert placed(project, "other", "package/module.py:7") == []
