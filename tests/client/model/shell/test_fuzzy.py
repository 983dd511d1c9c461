"""Finding a text by some of its letters: laws, and what people expect."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcspy_client.model.shell.fuzzy import match

TEXTS = [
    "History graph",
    "Heap · Used",
    "Larger tiles",
    "Smaller tiles",
    "Go to event…",
    "Through the heap",
    "Undo zoom",
]


def best(wanted: str) -> str:
    found = [(match(wanted, text), text) for text in TEXTS]
    return max(((one.score, text) for one, text in found if one is not None))[1]


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ("hg", "History graph"),
        ("hist", "History graph"),
        ("lt", "Larger tiles"),
        ("used heap", "Heap · Used"),
        ("uz", "Undo zoom"),
    ],
)
def test_starts_of_words_find_what_is_meant(wanted: str, text: str) -> None:
    assert best(wanted) == text


def test_letters_in_another_order_do_not_match() -> None:
    assert match("ih", "hi") is None
    assert match("x", "History") is None


def test_nothing_typed_matches_everything() -> None:
    found = match("", "anything")
    assert found is not None
    assert found.places == ()


@given(st.text(max_size=12), st.text(max_size=40))
def test_what_is_found_are_the_letters_that_were_typed(wanted: str, text: str) -> None:
    found = match(wanted, text)
    if found is not None:
        assert list(found.places) == sorted(set(found.places))
        assert all(0 <= place < len(text) for place in found.places)


@given(st.text(alphabet="abc XY", min_size=1, max_size=30), st.data())
def test_any_letters_of_a_text_in_their_order_find_it(text: str, data: st.DataObject) -> None:
    places = sorted(data.draw(st.sets(st.integers(0, len(text) - 1))))
    wanted = "".join(text[place] for place in places).replace(" ", "")
    found = match(wanted, text)
    assert found is not None
    assert len(found.places) == len(wanted)
    assert "".join(text[place] for place in found.places).lower() == wanted.lower()
