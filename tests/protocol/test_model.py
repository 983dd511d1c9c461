"""The model's own laws: what a stream may be, what a filter lets through."""

from __future__ import annotations

from typing import Any

import pytest
from gcspy_protocol.errors import LocalProtocolError
from gcspy_protocol.model import DTYPES, Control, EventFilter, Presentation, Space, Stream
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.strategies import spaces


@pytest.mark.parametrize(
    ("fields", "about"),
    [
        ({"dtype": "f8"}, "type 'f8' is none of i1, u1"),
        ({"dtype": "u1", "default": 256}, "default 256 does not fit u1"),
        ({"dtype": "i1", "default": -129}, "default -129 does not fit i1"),
        ({"minimum": 2, "maximum": 1}, "minimum 2 > maximum 1"),
        ({"maximum": 1 << 64}, "maximum 18446744073709551616 does not fit 64 bits"),
        ({"minimum": -(1 << 63) - 1}, "minimum -9223372036854775809 does not fit"),
        ({"zero": 1 << 64}, "zero 18446744073709551616 does not fit"),
        ({"presentation": Presentation.ENUM}, "names belong to ENUM"),
        ({"enum_names": ("a",)}, "names belong to ENUM"),
        ({"presentation": Presentation.PERCENT_VAR}, "max stream belongs"),
        ({"max_stream": 1}, "max stream belongs"),
    ],
)
def test_a_stream_that_no_client_could_show_is_refused(fields: dict[str, Any], about: str) -> None:
    with pytest.raises(LocalProtocolError, match=about) as caught:
        Stream(id=1, name="Objects", **fields)
    assert "'Objects'" in str(caught.value)


def test_bounds_of_each_type_are_allowed_as_default() -> None:
    for dtype in DTYPES:
        bits = 8 * int(dtype[1])
        low, high = (
            (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype[0] == "i" else (0, (1 << bits) - 1)
        )
        for default in (low, high):
            stream = Stream(id=1, name="s", dtype=dtype, default=default, minimum=low, maximum=high)
            assert stream.default == default
        for beyond in (low - 1, high + 1):
            with pytest.raises(LocalProtocolError):
                Stream(id=1, name="s", dtype=dtype, default=beyond)


def test_a_summary_has_one_number_two_or_one_a_name() -> None:
    more: dict[Presentation, dict[str, Any]] = {
        Presentation.ENUM: {"enum_names": ("a", "b", "c")},
        Presentation.PERCENT_VAR: {"max_stream": 0},
    }
    lengths = {
        p.name: Stream(id=1, name="s", presentation=p, **more.get(p, {})).summary_length
        for p in Presentation
    }
    assert lengths == {
        "PLAIN": 1,
        "PLUS": 1,
        "MAX_VAR": 1,
        "PERCENT": 2,
        "PERCENT_VAR": 2,
        "ENUM": 3,
    }


@given(spaces())
def test_a_space_finds_each_of_its_streams_and_no_other(space: Space) -> None:
    for stream in space.streams:
        assert space.stream(stream.id) is stream
    missing = next(i for i in range(9) if all(s.id != i for s in space.streams))
    with pytest.raises(LocalProtocolError, match=f"no stream {missing}"):
        space.stream(missing)


@given(st.integers(1, 50), st.integers(0, 500))
def test_a_period_lets_one_in_so_many_through(period: int, start: int) -> None:
    every = EventFilter(event=0, period=period)
    assert (
        sum(every.wants(occurrence) for occurrence in range(start + 1, start + 1 + 3 * period)) == 3
    )
    assert not any(
        EventFilter(event=0, enabled=False, period=period).wants(i) for i in range(1, 99)
    )


def test_the_control_flags_are_the_original_ones() -> None:
    assert [(flag.name, flag.value) for flag in Control] == [
        ("USED", 1), ("BACKGROUND", 2), ("UNUSED", 4), ("SEPARATOR", 8), ("LINK", 16),
    ]  # fmt: skip
