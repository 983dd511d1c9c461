"""Text that a stranger wrote shows all that is in it, and nothing that misleads."""

from __future__ import annotations

import sys
import unicodedata

from gcspy_protocol.text.visible import MOST_MARKS, shortened, visible, visible_lines
from hypothesis import given
from hypothesis import strategies as st

SEEN = frozenset(
    {"\u200c", "\u200d"}  # joiners: Persian, Indic scripts and emoji are misspelt without them
    | set(
        "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2"
    )  # signs with a glyph
    | {"\U000110bd", "\U000110cd"}
    | {chr(number) for number in range(0x13430, 0x13460)}  # join hieroglyphs
)
"""Format characters that have a glyph or make one."""


def test_each_control_and_each_invisible_character_becomes_an_escape() -> None:
    for number in range(sys.maxunicode + 1):
        letter = chr(number)
        hidden = unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        if hidden and letter not in SEEN:
            assert visible(f"a{letter}b").isprintable(), f"{number:#x}"
            assert f"{number:x}" in visible(letter).lower() or letter in "\n\r\t", f"{number:#x}"


def test_what_people_write_stays_as_it_is() -> None:
    for text in (
        "java.util.HashMap$Node[]",
        "größer als 30 €",
        "Việt Nam, e\u0301te\u0301",
        "می\u200cخواهم",
        "👩\u200d🔬 שלום مرحبا नमस्ते ภาษาไทย 한국어",
        "C:\\temp\\new",
        "<img src=x> &amp; 'quoted'",
    ):
        assert visible(text) == text


def test_escapes_are_those_that_python_writes() -> None:
    assert visible("a\nb\tc\rd\x00e\x1b[31m\u202e\U000e0041\udcff") == (
        "a\\nb\\tc\\rd\\x00e\\x1b[31m\\u202e\\U000e0041\\udcff"
    )


def test_marks_beyond_those_of_any_script_no_longer_pile_up() -> None:
    pile = "a" + "\u0301" * 200 + "b"
    assert visible(pile) == "a" + "\u0301" * MOST_MARKS + "\\u0301" * (200 - MOST_MARKS) + "b"


def test_lines_keep_their_breaks_alone() -> None:
    assert visible_lines("a\r\nb\n\tc\x1b\u2028d") == "a\nb\n    c\\x1b\\u2028d"


def test_a_long_text_says_how_long_it_is() -> None:
    assert shortened("x" * 50, 50) == "x" * 50
    assert shortened("x" * 1_000_000, 5) == "xxxxx… (1,000,000 characters)"


@given(st.text())
def test_any_text_can_be_printed_and_is_shown_but_once(text: str) -> None:
    once = visible(text)
    assert visible(once) == once
    once.encode("utf-8")
    assert not set(once) & {"\x1b", "\n", "\x00", "\u202e"}
    assert len(once.splitlines()) <= 1


@given(st.text())
def test_lines_are_no_more_than_there_were(text: str) -> None:
    assert visible_lines(text).count("\n") == text.count("\n")
    assert all(visible(line) == line for line in visible_lines(text).split("\n"))
