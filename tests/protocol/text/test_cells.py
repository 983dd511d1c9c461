"""A cell is never a formula, and its text can be recovered from it."""

from __future__ import annotations

import pytest
from gcspy_protocol.text.cells import cell_text, table_cell
from hypothesis import given
from hypothesis import strategies as st

RISKY = "=+-@\t\r\n＝＋－＠"


@pytest.mark.parametrize("first", RISKY)
def test_a_formula_gets_an_apostrophe(first: str) -> None:
    formula = f"{first}cmd|' /C calc'!A0"
    assert table_cell(formula) == "'" + formula
    assert cell_text("'" + formula) == formula


@pytest.mark.parametrize(
    "text", ["-12", "+3.5", "-1,234,567", "-7 %", "12", "", "a=b", "it's", "'"]
)
def test_numbers_and_other_texts_stay(text: str) -> None:
    assert table_cell(text) == text


@pytest.mark.parametrize("text", ["-1+cmd|x", "+1@A1", "-", "=1", "--1", "-1\n=2"])
def test_what_only_begins_like_a_number_does_not(text: str) -> None:
    assert table_cell(text) == "'" + text


@pytest.mark.parametrize("cell", ["'", "''", "'it", "it's", "=1", "-12", "+a", ""])
def test_a_cell_that_was_written_without_an_apostrophe_of_ours_is_its_own_text(cell: str) -> None:
    assert cell_text(cell) == cell


def test_what_is_no_text_stays_what_it_is() -> None:
    for value in (-3, 2.5, None, True):
        assert table_cell(value) is value


@given(st.text(alphabet=st.sampled_from(RISKY + "'a1 ,.%")) | st.text())
def test_any_text_can_be_had_back_and_none_begins_a_formula(text: str) -> None:
    cell = table_cell(text)
    assert isinstance(cell, str)
    assert cell_text(cell) == text
    if cell[:1] in set(RISKY):
        float(cell.replace(",", "").removesuffix("%").strip())
