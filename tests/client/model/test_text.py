"""Values in words: exact where they are exact, and never a wrong sort of zero."""

from __future__ import annotations

from typing import Any

import pytest
from gcspy_protocol.messages import Summary
from gcspy_protocol.model import Control, Presentation, Stream
from gcspy_protocol.streams.named_stream import named
from hypothesis import given
from hypothesis import strategies as st

from gcspy_client.model.text import (
    control_words,
    duration,
    long_value,
    short_number,
    short_value,
    summary_heading,
    summary_short,
    summary_text,
)

PLAIN = Stream(id=0, name="Used", prefix="≈ ", suffix=" bytes", maximum=4096)
PERCENT = Stream(
    id=0, name="Used", suffix=" bytes", maximum=4096, presentation=Presentation.PERCENT
)
PLUS = Stream(id=0, name="Roots", maximum=10, presentation=Presentation.PLUS)
CARDS = Stream(id=0, name="Card", presentation=Presentation.ENUM, enum_names=("clean", "dirty"))
SHARE = Stream(id=0, name="Live", presentation=Presentation.PERCENT_VAR, max_stream=1)


@pytest.mark.parametrize(
    ("stream", "value", "more", "text"),
    [
        (PLAIN, 1234, {}, "≈ 1,234 bytes"),
        (PLAIN, 1234, {"known": False}, "unknown"),
        (PERCENT, 1024, {}, "25.0 %  (1,024 of 4,096 bytes)"),
        (PLUS, 10, {}, "10"),
        (PLUS, 11, {}, "10+"),
        (CARDS, 1, {}, "dirty"),
        (CARDS, 7, {}, "7 (has no name)"),
        (SHARE, 3, {"top": 4}, "75.0 %  (3 of 4)"),
        (SHARE, 3, {"top": None}, "unknown"),
        (SHARE, 0, {"top": 0}, "0 %  (0 of 0)"),
    ],
)
def test_a_value_is_worded_as_its_presentation_asks(
    stream: Stream, value: int, more: dict[str, Any], text: str
) -> None:
    assert long_value(stream, value, **more) == text


@given(st.integers(1, 4095))
def test_a_share_is_never_rounded_to_nothing_or_to_all(value: int) -> None:
    assert short_value(PERCENT, value) not in ("0 %", "0.0 %", "100 %", "100.0 %")


@given(st.integers(-(2**63), 2**64 - 1), st.sampled_from([1000, 1024]))
def test_short_numbers_are_short(value: int, base: int) -> None:
    assert len(short_number(value, base)) <= 9


def test_what_the_control_stream_says() -> None:
    assert control_words(Control.USED, "free") == ""
    assert control_words(Control.UNUSED, "free") == "free"
    assert control_words(0, "") == "unused"
    assert control_words(Control.BACKGROUND | Control.USED, "free") == "background"
    assert (
        control_words(Control.USED | Control.LINK | Control.SEPARATOR, "")
        == "separator before, linked to the next"
    )


@pytest.mark.parametrize(
    ("nanos", "text"),
    [
        (999, "999 ns"),
        (1_500, "1.50 µs"),
        (12_340_000, "12.3 ms"),
        (59_900_000_000, "59.9 s"),
        (245 * 10**9, "4 min 05 s"),
        (2 * 3600 * 10**9, "2 h 00 min"),
    ],
)
def test_durations_have_three_digits(nanos: int, text: str) -> None:
    assert duration(nanos) == text


@pytest.mark.parametrize("stream", [PLAIN, PERCENT, CARDS])
def test_a_summary_of_no_tile_is_unknown_and_not_zero(stream: Stream) -> None:
    values = (0,) if stream is PLAIN else (0, 0)
    nothing = Summary(space=1, stream=0, sequence=1, time_nanos=0, values=values, covered=0)
    assert summary_text(stream, nothing) == "unknown"
    assert summary_short(stream, nothing) == "unknown"
    assert summary_heading(stream, nothing) == "unknown"


def test_a_heading_has_an_amount_in_its_unit() -> None:
    stream = Stream(id=0, name="Resident", dtype="u8", maximum=1 << 40, suffix=" bytes")
    summary = Summary(space=1, stream=0, sequence=1, time_nanos=0, values=(48_799_744,), covered=3)
    assert summary_heading(stream, summary) == "46.5 MiB"
    assert summary_text(stream, summary) == "48,799,744 bytes"


def test_a_summary_without_numbers_is_a_dash() -> None:
    assert summary_text(PLAIN, None) == "–"
    assert (
        summary_text(
            CARDS, Summary(space=1, stream=0, sequence=1, time_nanos=0, values=(3, 0), covered=3)
        )
        == "clean 3"
    )


def test_names_that_grow_are_told_by_frequency_and_the_rest_together() -> None:
    stream = named(
        Stream(id=1, name="Top type", names_from=2), tuple(f"type {i}" for i in range(9)), (7,)
    )
    summary = Summary(
        space=1, stream=1, sequence=1, time_nanos=0, values=(1, 2, 0, 3, 4, 5, 6, 70, 0), covered=91
    )
    assert (
        summary_text(stream, summary)
        == "type 7 70, type 6 6, type 5 5, type 4 4, type 3 3, 2 others 3"
    )
    assert summary_short(stream, summary) == "type 7: 70"
    assert long_value(stream, 7) == "type 7"
    assert long_value(stream, 9) == "unknown"
