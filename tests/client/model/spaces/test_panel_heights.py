"""Heights of panels: the active space has at least half, the others are lines unless there is room."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gcspy_client.model.spaces.panel_heights import (
    PanelForm,
    PanelNeeds,
    arrange_panels,
    wanted_height,
)

panels = st.lists(
    st.builds(
        PanelNeeds,
        wanted=st.one_of(st.none(), st.integers(40, 200)),
        line=st.integers(24, 40),
        count=st.integers(1, 10**7),
        kind=st.sampled_from([(), ("Used",), ("Objects", "Bytes")]),
        opened=st.sampled_from([None, True, False]),
    ),
    min_size=1,
    max_size=12,
)


@given(st.integers(100, 3000), panels, st.data())
def test_the_active_space_has_half_and_nothing_is_lost(
    total: int, needs: list[PanelNeeds], data: st.DataObject
) -> None:
    active = data.draw(st.integers(0, len(needs) - 1))
    made = arrange_panels(total, 8, active, needs)
    assert made.large >= total / 2
    assert made.forms[active] is PanelForm.LARGE
    assert made.heights[active] == made.large
    if len(needs) == 1:
        assert made.large == total
        return
    assert made.large + 8 + made.others == total
    listed = 8 * (len(needs) - 2)
    for i, (height, form, need) in enumerate(zip(made.heights, made.forms, needs, strict=True)):
        if i == active:
            continue
        listed += height
        assert height >= (need.line if form is PanelForm.LINE else need.open)
        if need.opened is not None:
            assert (form is PanelForm.OPEN) == need.opened
        if need.wanted is not None and form is PanelForm.OPEN:
            assert height == need.open
    chosen = any(need.opened for i, need in enumerate(needs) if i != active)
    lines = sum(need.line for i, need in enumerate(needs) if i != active) + 8 * (len(needs) - 2)
    if not chosen and lines <= total // 2 - 8:
        assert listed <= made.others, "what opens by itself has room"


def test_two_halves_of_a_heap_are_seen_beside_each_other() -> None:
    half = PanelNeeds(None, 30, 500, ("Used", "Objects"))
    other = PanelNeeds(None, 30, 500, ("Cards",))
    made = arrange_panels(600, 8, 0, [half, half, other])
    assert made.forms == (PanelForm.LARGE, PanelForm.OPEN, PanelForm.LINE)
    assert made.heights[0] >= 300
    assert made.heights[1] > 200
    many = arrange_panels(600, 8, 0, [half] * 200)
    assert set(many.forms[1:]) == {PanelForm.LINE}, "all or none"


def test_under_a_space_of_four_tiles_the_largest_other_one_is_open() -> None:
    few, arenas, tables = (
        PanelNeeds(70, 30, 4),
        PanelNeeds(None, 30, 4000),
        PanelNeeds(None, 30, 300),
    )
    made = arrange_panels(600, 8, 0, [few, tables, arenas])
    assert made.forms == (PanelForm.LARGE, PanelForm.LINE, PanelForm.OPEN)
    folded = arrange_panels(600, 8, 0, [few, tables, PanelNeeds(None, 30, 4000, opened=False)])
    assert folded.forms == (PanelForm.LARGE, PanelForm.LINE, PanelForm.LINE)


def test_four_tiles_want_one_row_and_a_hundred_thousand_all_they_can_get() -> None:
    assert wanted_height(4, 800, cell_width=92, cell_height=38) == 38
    assert wanted_height(32, 800, cell_width=92, cell_height=38) == 4 * 38
    assert wanted_height(100_000, 800, cell_width=92, cell_height=38) is None
