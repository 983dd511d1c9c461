"""Heights of panels: small spaces get what they need, large ones share the rest."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gcspy_client.model.spaces.panel_heights import allot_heights, wanted_height

panels = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(20, 200)), st.integers(1, 10**7)),
    min_size=1,
    max_size=12,
)


@given(st.integers(100, 3000), panels)
def test_nothing_is_lost_and_nobody_is_squeezed(
    total: int, spaces: list[tuple[int | None, int]]
) -> None:
    wanted, counts = [w for w, _ in spaces], [c for _, c in spaces]
    heights = allot_heights(total, wanted, counts)
    for height, want in zip(heights, wanted, strict=True):
        assert height == want if want is not None else height >= 84
    if None in wanted:
        assert sum(heights) >= total


@given(st.integers(400, 3000))
def test_of_two_large_spaces_the_larger_gets_no_less(total: int) -> None:
    small, large = allot_heights(total, [None, None], [1000, 1_000_000])
    assert large >= small


def test_four_tiles_want_one_row_and_a_hundred_thousand_all_they_can_get() -> None:
    assert wanted_height(4, 800, cell_width=92, cell_height=38) == 38
    assert wanted_height(32, 800, cell_width=92, cell_height=38) == 4 * 38
    assert wanted_height(100_000, 800, cell_width=92, cell_height=38) is None
