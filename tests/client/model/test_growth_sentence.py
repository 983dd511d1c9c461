"""The sentence about growth: its text, and that there is none where nothing grew."""

from __future__ import annotations

import pytest

from gcspy_client.model.growth_sentence import (
    GrownPart,
    Growth,
    growth_of_types,
    growth_sentence,
    least_growth,
)

MIB = 1 << 20
PARTS = (GrownPart("Order", 6 * MIB), GrownPart("list", 3 * MIB), GrownPart("int", MIB // 2))


def test_it_says_how_much_how_fast_what_and_who() -> None:
    growth = Growth(
        secs=30.0,
        resident=100 * MIB,
        grew=10 * MIB,
        parts=PARTS,
        holders=(GrownPart("__main__.AUDIT", 9 * MIB),),
    )
    assert growth_sentence(growth) == (
        "The resident set grew by 10.0 MiB in 30.0 s, 20.0 MiB a minute: mostly Order (63 %) and list (32 %). "
        "Held by __main__.AUDIT (95 %)."
    )


def test_a_row_that_is_no_type_is_named_without_its_brackets() -> None:
    parts = (GrownPart("Order", 6 * MIB), GrownPart("(items and tables of containers)", 4 * MIB))
    growth = Growth(secs=30.0, resident=100 * MIB, grew=10 * MIB, parts=parts)
    assert growth_sentence(growth).endswith(
        "mostly Order (60 %) and items and tables of containers (40 %)."
    )


@pytest.mark.parametrize("grew", [-5 * MIB, 0, least_growth(100 * MIB) - 1])
def test_nothing_is_said_where_nothing_grew(grew: int) -> None:
    assert growth_sentence(Growth(secs=10.0, resident=100 * MIB, grew=grew)) == ""
    shrank = (GrownPart("Order", -MIB), GrownPart("list", MIB))
    assert growth_sentence(Growth(secs=10.0, resident=100 * MIB, grew=grew, parts=shrank)) == ""


def test_a_large_process_has_more_noise() -> None:
    assert least_growth(100 * MIB) < least_growth(10_000 * MIB)


def test_objects_may_grow_in_memory_that_was_free() -> None:
    said = growth_sentence(Growth(secs=10.0, resident=100 * MIB, grew=0, parts=PARTS))
    assert said.startswith("Objects grew by 9.5 MiB, in memory that the process had before, in")


def test_without_types_it_says_how_much() -> None:
    said = growth_sentence(Growth(secs=60.0, resident=100 * MIB, grew=MIB))
    assert said == "The resident set grew by 1.0 MiB in 1 min 00 s, 1.0 MiB a minute."


def test_what_is_not_known_is_said() -> None:
    growth = Growth(secs=60.0, resident=100 * MIB, grew=10 * MIB, parts=PARTS, unsure=4 * MIB)
    assert growth_sentence(growth).endswith("The owner of 42 % of it is not known.")


def test_growth_of_objects_has_no_part_of_memory_that_is_none() -> None:
    parts = (*PARTS, GrownPart("C code", 4 * MIB, of_objects=False))
    growth = Growth(secs=10.0, resident=100 * MIB, grew=0, parts=parts, unsure=4 * MIB)
    assert growth_sentence(growth).endswith("mostly Order (63 %) and list (32 %).")


def test_what_no_type_grew_by_has_no_known_owner() -> None:
    types = PARTS[:2]
    growth = growth_of_types(
        secs=60.0, resident=100 * MIB, grew=20 * MIB, types=types, total=10 * MIB
    )
    assert growth.unsure == 10 * MIB
    assert sum(part.grew for part in growth.parts) == growth.grew
    said = growth_sentence(growth)
    assert said.endswith(
        "mostly Order (30 %) and list (15 %). The owner of 50 % of it is not known."
    )
    reused = growth_of_types(secs=60.0, resident=100 * MIB, grew=MIB, types=types, total=9 * MIB)
    assert reused.unsure == 0
    assert "not known" not in growth_sentence(reused), "types grew in memory that was there before"


def test_what_has_no_name_counts_and_is_not_named() -> None:
    parts = (GrownPart("", 6 * MIB), GrownPart("list", 4 * MIB))
    said = growth_sentence(Growth(secs=10.0, resident=100 * MIB, grew=10 * MIB, parts=parts))
    assert said.endswith("mostly list (40 %).")
