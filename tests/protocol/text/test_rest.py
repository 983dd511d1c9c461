from __future__ import annotations

import pytest
from gcspy_protocol.text.rest import rest_heading


@pytest.mark.parametrize(
    ("rows", "heading"), [(1, "(1 other)"), (2, "(2 others)"), (12_345, "(12,345 others)")]
)
def test_the_number_of_rows_that_are_left_out_is_written_as_people_do(
    rows: int, heading: str
) -> None:
    assert rest_heading(rows) == heading
