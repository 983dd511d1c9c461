"""Spaces and streams as maps, and schemas that contradict themselves."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from gcspy_protocol.errors import RemoteProtocolError
from gcspy_protocol.frames.fields import Fields, pack_map
from gcspy_protocol.limits import Limits
from gcspy_protocol.model import PaintStyle, Presentation, Space, Stream
from gcspy_protocol.schema import pack_space, read_space
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.strategies import spaces

LIMITS = Limits(streams=4)


def read(space_id: int, values: dict[str, Any]) -> Space:
    return read_space(space_id, Fields.unpack(pack_map(values), "space", text_chars=1000), LIMITS)


@given(spaces())
def test_a_packed_space_is_read_back(space: Space) -> None:
    assert read(space.id, pack_space(space)) == space


def test_golden_map_of_a_space() -> None:
    stream = Stream(id=3, name="Used", dtype="u2", minimum=1, maximum=9, zero=1, default=2, prefix="p", suffix="s",
                    presentation=Presentation.PERCENT_VAR, paint_style=PaintStyle.ZERO, max_stream=3,
                    colour=(1, 2, 3), order=4, accumulates=True, description="d")  # fmt: skip
    space = Space(id=7, name="Heap", driver="x", tile_title="Block ", unused_text="free", main=True, row_width=8,
                  description="all of it", streams=(stream,))  # fmt: skip
    packed = {
        "name": "Heap", "driver": "x", "tile": "Block ", "unused": "free", "naming": "uniform", "main": True,
        "row": 8, "about": "all of it", "streams": [
            {"id": 3, "name": "Used", "type": "u2", "min": 1, "max": 9, "zero": 1, "default": 2, "prefix": "p",
             "suffix": "s", "presentation": 4, "paint": 1, "max_stream": 3, "enum": [], "colour": [1, 2, 3],
             "order": 4, "accumulates": True, "about": "d"}],
    }  # fmt: skip
    assert pack_space(space) == packed
    assert read(7, packed) == space


def test_the_six_presentations_and_two_paint_styles_have_the_original_numbers() -> None:
    assert [(p.name, p.value) for p in Presentation] == [
        ("PLAIN", 0), ("PLUS", 1), ("MAX_VAR", 2), ("PERCENT", 3), ("PERCENT_VAR", 4), ("ENUM", 5),
    ]  # fmt: skip
    assert [(p.name, p.value) for p in PaintStyle] == [("PLAIN", 0), ("ZERO", 1)]


_STREAM = {"id": 1, "name": "s", "type": "i4", "max": 9}


@pytest.mark.parametrize(
    ("stream", "about"),
    [
        ({"id": 0xFFFF}, "from 0 to 65534"),
        ({"type": "f4"}, "type 'f4' is none of"),
        ({"type": "<i4"}, "none of"),
        ({"type": "i16"}, "none of"),
        ({"type": None}, "a text"),
        ({"max": -1}, "minimum 0 > maximum -1"),
        ({"max": None}, "'max'"),
        ({"default": 1 << 31}, "default 2147483648 does not fit i4"),
        ({"default": -1, "type": "u8"}, "default -1 does not fit u8"),
        ({"presentation": 6}, "one of 0, 1"),
        ({"presentation": 5}, "names belong to ENUM"),
        ({"enum": ["a"]}, "names belong to ENUM"),
        ({"presentation": 4}, "max stream belongs to PERCENT_VAR"),
        ({"presentation": 4, "max_stream": 2}, "max stream 2, which does not exist"),
        ({"max_stream": 1}, "max stream belongs to PERCENT_VAR"),
        ({"presentation": 5, "enum": ["a"] * 4097}, "at most 4096"),
        ({"colour": [1, 2]}, "three numbers, got 2"),
        ({"colour": [1, 2, 256]}, "from 0 to 255"),
        ({"colour": []}, "three numbers, got 0"),
        ({"paint": 2}, "one of 0, 1"),
        ({"accumulates": 1}, "true or false"),
    ],
)
def test_a_stream_that_nobody_could_show_is_blamed_on_the_peer(
    stream: dict[str, Any], about: str
) -> None:
    values = {"name": "n", "naming": "uniform", "streams": [{**_STREAM, **stream}]}
    packed = pack_map(values)
    with pytest.raises(RemoteProtocolError, match=about):
        read_space(1, Fields.unpack(packed, "space", text_chars=1000), LIMITS)


@pytest.mark.parametrize(
    ("space", "about"),
    [
        ({"naming": "numbers"}, "one of uniform"),
        ({"naming": None}, "one of uniform"),
        ({"row": 0}, "from 1 to"),
        ({"streams": [_STREAM, _STREAM]}, "two streams with one id"),
        ({"streams": [{**_STREAM, "id": i} for i in range(5)]}, "at most 4 items"),
        ({"streams": {}}, "a list"),
        ({"name": None}, "'name'"),
    ],
)
def test_a_space_that_contradicts_itself_is_blamed_on_the_peer(
    space: dict[str, Any], about: str
) -> None:
    with pytest.raises(RemoteProtocolError, match=about):
        read(1, {"name": "n", "naming": "uniform", "streams": [], **space})


@pytest.mark.parametrize("name", ["min", "max", "zero", "default"])
def test_a_number_of_a_stream_is_from_the_least_signed_to_the_greatest_unsigned(name: str) -> None:
    least, most = -(1 << 63), (1 << 64) - 1

    def read_one(dtype: str, low: int, number: int) -> Stream:
        stream = {**_STREAM, "type": dtype, "min": low, "max": max(low, 0), "default": max(low, 0)}
        values = {"name": "n", "naming": "uniform", "streams": [{**stream, name: number}]}
        (read,) = read_space(1, Fields(values, "space", text_chars=100), LIMITS).streams
        return read

    attribute = {"min": "minimum", "max": "maximum"}.get(name, name)
    assert getattr(read_one("i8", least, least), attribute) == least
    for number in (least - 1, most + 1):
        with pytest.raises(RemoteProtocolError, match=f"from {least} to {most}"):
            read_one("i8", least, number)
    if name != "min":
        assert getattr(read_one("u8", 0, most), attribute) == most


@given(
    st.dictionaries(
        st.sampled_from(sorted(pack_space(Space(id=1, name="")))), st.integers() | st.text()
    )
)
def test_any_values_are_read_or_blamed_on_the_peer(values: dict[str, Any]) -> None:
    with suppress(RemoteProtocolError):
        read_space(1, Fields(values, "space", text_chars=100), LIMITS)


def test_a_threshold_is_sent_only_where_there_is_one_and_says_nothing_about_values() -> None:
    plain = Stream(id=1, name="Count", maximum=700)
    limit = replace(plain, threshold=True)
    assert limit == plain, "recordings of both can be compared"
    for stream in (plain, limit):
        sent = pack_space(Space(id=3, name="Generations", streams=(stream,)))
        assert ("threshold" in sent["streams"][0]) is stream.threshold
        assert read(3, sent).streams[0].threshold is stream.threshold
