"""Short names of tiles: different tiles have different labels."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gcspy_client.model.spaces.label_names import distinct_names


def test_ranges_are_named_by_the_digits_in_which_they_differ() -> None:
    names = [
        f"[{at:#x}, {at + 0x100000:#x})" for at in range(0x7F1234500000, 0x7F1234900000, 0x100000)
    ]
    assert distinct_names(names) == ["…500000", "…600000", "…700000", "…800000"]
    assert distinct_names(["[0x1000, 0x2000)", "[0xa000, 0xb000)"]) == ["0x1000", "0xa000"]
    assert distinct_names(names[:1]) == ["0x7f1234500000"]


def test_words_are_not_cut() -> None:
    assert distinct_names(["Generation 0", "Generation 1"]) == ["…0", "…1"]
    names = ["Generation 0", "Generation 10"]
    assert distinct_names(names, lambda name: len(name) < 14) == names
    assert distinct_names(names, lambda name: len(name) < 13) == ["…0", "…10"]
    assert distinct_names(["16 bytes", "160 bytes"]) == ["16 bytes", "160 bytes"]
    assert distinct_names(["eden", "old"]) == ["eden", "old"]
    assert distinct_names([]) == []
    assert distinct_names(["same", "same"]) == ["same", "same"]


def test_sites_are_named_without_the_folders_of_their_files() -> None:
    assert distinct_names(["f (/usr/lib/a.py) @ 3", "g (/usr/lib/b.py) @ 4"]) == [
        "f (…/a.py) @ 3",
        "g (…/b.py) @ 4",
    ]
    assert len(set(distinct_names(["f (/usr/a.py) @ 3", "f (/opt/a.py) @ 3"]))) == 2
    assert distinct_names(["f (a.py) @ 3", "g (int) @ 20"]) == ["f (a.py) @ 3", "g (int) @ 20"]


@given(st.lists(st.text(min_size=1, max_size=30), unique=True, max_size=30))
def test_different_names_stay_different(names: list[str]) -> None:
    short = distinct_names(names)
    assert len(set(short)) == len(names)
    assert all(len(one) <= len(name) + 2 for one, name in zip(short, names, strict=True))


@given(st.lists(st.integers(0, 2**48), unique=True, min_size=1, max_size=30))
def test_different_addresses_stay_different(starts: list[int]) -> None:
    assert len(set(distinct_names([f"[{at:#x}, {at + 64:#x})" for at in starts]))) == len(starts)
