"""Each planted fault is one small change, in code that affects behaviour."""

from __future__ import annotations

import ast

import pytest

from tests.mutation.__main__ import ROOT
from tests.mutation.faults import faults
from tests.mutation.judged import judged

SOURCE = b'''"""A module; 1 < 2."""
LIMIT = 4096


def place(a: int, b: int = 3) -> int:
    """Say 1 + 1."""
    if a < 0:
        raise ValueError(f"{a} is below {0}")
    values.append(a)
    return min(a + b, 7) if not b and a is not None else 1
'''


def test_each_fault_changes_one_line_into_another_that_is_python() -> None:
    found = list(faults(SOURCE))
    for fault in found:
        planted = fault.plant(SOURCE)
        ast.parse(planted)
        lines = zip(SOURCE.splitlines(), planted.splitlines(), strict=True)
        assert [number for number, (a, b) in enumerate(lines, 1) if a != b] == [fault.line]
    assert len({fault.plant(SOURCE) for fault in found}) == len(found)


RETURN = "return min(a + b, 7) if not b and a is not None else 1"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if a < 0:", "if a <= 0:"),
        ("if a < 0:", "if False:"),
        ("if a < 0:", "if a < 1:"),
        ("values.append(a)", "pass"),
        (RETURN, RETURN.replace("min", "max")),
        (RETURN, RETURN.replace("+", "-")),
        (RETURN, RETURN.replace("not b", "b")),
        (RETURN, RETURN.replace(" and ", " or ")),
        (RETURN, RETURN.replace("is not None", "is None")),
    ],
)
def test_faults_of_this_kind_are_planted(before: str, after: str) -> None:
    assert f"{before}  →  {after}" in {fault.shown(SOURCE) for fault in faults(SOURCE)}


def test_texts_annotations_and_limits_of_modules_are_left_alone() -> None:
    assert {fault.line for fault in faults(SOURCE)} == {7, 9, 10}


@pytest.mark.parametrize(("path", "change"), judged(), ids=str)
def test_a_fault_that_was_judged_is_one_that_can_still_be_planted(path: str, change: str) -> None:
    source = (ROOT / path).read_bytes()
    before = change.partition("  →  ")[0]
    texts = source.decode().splitlines()
    lines = [number for number, text in enumerate(texts, 1) if text.strip() == before]
    assert change in {fault.shown(source) for fault in faults(source, lines)}
