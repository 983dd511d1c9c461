"""Laws of paint codes: order is kept, unknown never counts, incremental equals a full computation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gcspy_protocol.model import DTYPES, Control, PaintStyle, Presentation, Stream
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from gcspy_client.model.codes import TileArrays, TileCodes, maximum_of_used
from gcspy_client.model.palette import BACKGROUND, HIGH, LOW, OVERFLOW, UNKNOWN, UNUSED, ZERO

COUNT = 40
dtypes = st.sampled_from(sorted(DTYPES))
flags = hnp.arrays(np.uint8, COUNT, elements=st.integers(0, 31))
masks = hnp.arrays(np.bool_, COUNT)


def used(count: int) -> NDArray[np.uint8]:
    return np.full(count, Control.USED, dtype=np.uint8)


def values_of(dtype: str) -> st.SearchStrategy[NDArray[Any]]:
    info = np.iinfo(dtype)
    near = st.integers(max(info.min, -3), 12)
    return hnp.arrays(
        np.dtype("<" + dtype),
        COUNT,
        elements=st.one_of(near, st.integers(int(info.min), int(info.max))),
    )


@st.composite
def tiles(draw: st.DrawFn, dtype: str) -> TileArrays:
    known = draw(st.one_of(st.none(), masks))
    return TileArrays(draw(values_of(dtype)), known, draw(flags))


def encoded(stream: Stream, state: TileArrays) -> NDArray[np.uint8]:
    codes = TileCodes(stream)
    codes.refresh(state)
    return codes.codes


@given(st.data(), dtypes)
def test_greater_values_never_have_smaller_codes(data: st.DataObject, dtype: str) -> None:
    values = np.sort(data.draw(values_of(dtype)))
    low, high = sorted((int(values[3]), int(values[-3])))
    stream = Stream(id=0, name="s", dtype=dtype, minimum=low, maximum=high)
    codes = encoded(stream, TileArrays(values, None, used(COUNT)))
    assert (np.diff(codes.astype(int)) >= 0).all()
    assert ((codes == OVERFLOW) == (values > high)).all()
    if low < high:
        assert ((codes == HIGH) == (values == high)).all()


@given(
    st.data(),
    dtypes,
    st.sampled_from([Presentation.PLAIN, Presentation.MAX_VAR, Presentation.PLUS]),
)
def test_control_and_unknown_decide_before_the_value(
    data: st.DataObject, dtype: str, how: Presentation
) -> None:
    state = data.draw(tiles(dtype))
    stream = Stream(
        id=0, name="s", dtype=dtype, maximum=10, presentation=how, paint_style=PaintStyle.ZERO
    )
    codes = encoded(stream, state)
    background = (state.control & Control.BACKGROUND) != 0
    unused = ~background & (
        ((state.control & Control.UNUSED) != 0) | ((state.control & Control.USED) == 0)
    )
    unknown = (
        ~background & ~unused & (np.zeros(COUNT, bool) if state.known is None else ~state.known)
    )
    assert ((codes == BACKGROUND) == background).all()
    assert ((codes == UNUSED) == unused).all()
    assert ((codes == UNKNOWN) == unknown).all()
    assert ((codes == ZERO) == (~background & ~unused & ~unknown & (state.values == 0))).all()


@given(st.data(), dtypes)
def test_unknown_and_unused_never_count_in_the_maximum(data: st.DataObject, dtype: str) -> None:
    state = data.draw(tiles(dtype))
    counts = [
        int(state.values[i])
        for i in range(COUNT)
        if state.control[i] & 7 == Control.USED and (state.known is None or state.known[i])
    ]
    assert maximum_of_used(state) == (max(counts) if counts else None)


@given(st.data(), dtypes, st.sampled_from(list(Presentation)), st.sampled_from(list(PaintStyle)))
def test_following_changes_gives_what_encoding_anew_gives(
    data: st.DataObject, dtype: str, how: Presentation, style: PaintStyle
) -> None:
    before, after = data.draw(tiles(dtype)), data.draw(tiles(dtype))
    touched = np.flatnonzero(data.draw(masks)).astype(np.int64)
    names = ("a", "b", "c") if how is Presentation.ENUM else ()
    stream = Stream(
        id=0,
        name="s",
        dtype=dtype,
        maximum=9,
        presentation=how,
        paint_style=style,
        enum_names=names,
        max_stream=1 if how is Presentation.PERCENT_VAR else None,
    )
    tops: list[NDArray[Any] | None] = [None, None]
    if how is Presentation.PERCENT_VAR:
        tops = [data.draw(values_of(dtype)), data.draw(values_of(dtype))]
    known = np.ones(COUNT, bool) if before.known is None else before.known
    first = TileArrays(before.values, known, before.control, tops[0])
    known_now = known.copy()
    known_now[touched] = True if after.known is None else after.known[touched]
    now = TileArrays(
        before.values.copy(),
        known_now,
        before.control.copy(),
        None if tops[0] is None else tops[0].copy(),
    )
    now.values[touched] = after.values[touched]
    now.control[touched] = after.control[touched]
    if now.tops is not None and tops[1] is not None:
        now.tops[touched] = tops[1][touched]
    codes = TileCodes(stream)
    codes.refresh(first)
    codes.update(now, touched)
    assert (codes.codes == encoded(stream, now)).all()


def test_a_share_of_nothing_is_least_or_too_much_never_an_error() -> None:
    stream = Stream(id=0, name="s", dtype="u4", presentation=Presentation.PERCENT_VAR, max_stream=1)
    tops = np.array([0, 0, 4, 4, 4], dtype="<u4")
    codes = encoded(stream, TileArrays(np.array([0, 3, 4, 5, 0], dtype="<u4"), None, used(5), tops))
    assert codes.tolist() == [LOW, OVERFLOW, HIGH, OVERFLOW, LOW]


def test_a_share_of_an_unknown_total_is_unknown() -> None:
    stream = Stream(id=0, name="s", dtype="u4", presentation=Presentation.PERCENT_VAR, max_stream=1)
    tops_known = np.array([True, False])
    state = TileArrays(np.array([1, 1], "<u4"), None, used(2), np.array([2, 2], "<u4"), tops_known)
    assert (encoded(stream, state) == UNKNOWN).tolist() == [False, True]


def test_names_have_their_codes_and_the_nameless_overflow() -> None:
    stream = Stream(
        id=0, name="s", dtype="i1", presentation=Presentation.ENUM, enum_names=("x", "y")
    )
    state = TileArrays(np.array([0, 1, 2, -1], dtype="i1"), None, used(4))
    assert encoded(stream, state).tolist() == [LOW, LOW + 1, OVERFLOW, OVERFLOW]


def test_the_maximum_follows_its_tile_down() -> None:
    stream = Stream(id=0, name="s", dtype="i4", presentation=Presentation.MAX_VAR)
    values = np.array([1, 5, 9], dtype="<i4")
    codes = TileCodes(stream)
    codes.refresh(TileArrays(values, None, used(3)))
    assert codes.maximum == 9
    values[2] = 2
    assert codes.update(TileArrays(values, None, used(3)), np.array([2])) is None
    assert codes.maximum == 5
    assert codes.codes[1] == HIGH


@pytest.mark.parametrize("dtype", ["u8", "i8"])
def test_the_top_of_64_bits_is_reached_by_itself_only(dtype: str) -> None:
    top = int(np.iinfo(dtype).max)
    stream = Stream(id=0, name="s", dtype=dtype, minimum=0, maximum=top)
    codes = encoded(
        stream, TileArrays(np.array([top, top - 1, 0], dtype="<" + dtype), None, used(3))
    )
    assert codes[0] == HIGH
    assert codes[1] < HIGH
    assert codes[2] == LOW
