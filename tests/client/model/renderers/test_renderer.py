"""Laws of all renderers: each tile has its place and is found there, and no change is hidden."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gcspy_protocol.errors import Unsupported
from gcspy_protocol.interpreter import EventChange, SpaceState
from gcspy_protocol.messages import Event
from gcspy_protocol.model import PaintStyle, Presentation, Stream
from hypothesis import given
from hypothesis import strategies as st

from gcspy_client.model.palette import LOW, OVERFLOW, UNKNOWN, Theme, categorical, sequential
from gcspy_client.model.renderers import Renderer
from gcspy_client.model.renderers.bars import (
    DistributionRenderer,
    ProfileRenderer,
    _faded,
    distribution_of,
)
from gcspy_client.model.renderers.cell_renderers import (
    ArrangedRenderer,
    HilbertRenderer,
    RowsRenderer,
    TilesRenderer,
)
from gcspy_client.model.renderers.hilbert import fit_curve, number_at, place_of
from gcspy_client.model.renderers.multiples import MultiplesRenderer
from gcspy_client.model.renderers.order import TileOrder, order_by
from gcspy_client.model.renderers.registry import find_renderers, load_renderer
from gcspy_client.model.tile_source import StreamSource
from tests.client.feeding import space_state
from tests.client.model.changing import Changing

PALETTE = sequential(Theme.DARK)
STREAM = Stream(id=0, name="Used", dtype="i4", maximum=249)
ARRANGED: list[type[ArrangedRenderer]] = [TilesRenderer, RowsRenderer, HilbertRenderer]
arranged = st.sampled_from(ARRANGED)
sizes = st.tuples(st.integers(1, 60), st.integers(1, 60))
counts = st.integers(1, 700)


def drawn(
    kind: type[Renderer], space: SpaceState, size: tuple[int, int], stream: Stream = STREAM
) -> Renderer:
    renderer = kind(space, StreamSource(stream), PALETTE)
    renderer.width, renderer.height = size
    renderer.draw()
    return renderer


def space_of(values: list[int]) -> SpaceState:
    return space_state(STREAM, np.array(values, dtype=np.int32))


def change_of(tiles: list[int]) -> EventChange:
    event = Event(sequence=2, time_nanos=0, event=0, occurrence=2, epoch=1)
    return EventChange(event, {(1, 0): np.array(sorted(tiles), dtype=np.int64)})


@given(arranged, counts, sizes, st.booleans())
def test_each_tile_is_found_where_it_is(
    kind: type[ArrangedRenderer], count: int, size: tuple[int, int], shuffled: bool
) -> None:
    space = space_of([0] * count)
    renderer = drawn(kind, space, size)
    assert isinstance(renderer, ArrangedRenderer)
    if shuffled:
        renderer.set_order(TileOrder(np.random.default_rng(count).permutation(count)))
    height, width = renderer.pixels.shape
    assert width <= size[0]
    assert height <= size[1]
    for tile in range(0, count, max(1, count // 40)):
        place = renderer.rectangle(tile)
        assert place is not None
        x, y, wide, high = place
        if 0 <= y < height:
            assert tile in renderer.tiles_at(x, y)
            assert tile in renderer.tiles_at(x + wide - 1, y + high - 1)
        else:
            assert renderer.layout.scrolls
    assert not len(renderer.tiles_at(width, 0))
    if not renderer.layout.scrolls:
        layout = renderer.layout
        xs, ys = (
            np.arange(layout.columns) * layout.cell_width,
            np.arange(layout.rows) * layout.cell_height,
        )
        found = np.concatenate([renderer.tiles_at(int(x), int(y)) for y in ys for x in xs])
        assert sorted(found.tolist()) == list(range(count)), "each once"


@given(arranged, counts, sizes, st.data())
def test_what_changed_is_seen_and_nothing_else(
    kind: type[ArrangedRenderer], count: int, size: tuple[int, int], data: st.DataObject
) -> None:
    values = data.draw(st.lists(st.integers(0, 249), min_size=count, max_size=count))
    space = space_of(values)
    renderer = drawn(kind, space, size)
    assert isinstance(renderer, ArrangedRenderer)
    if data.draw(st.booleans()):
        renderer.set_order(order_by(space, renderer.source))
    before = renderer.pixels.copy()
    tile = data.draw(st.integers(0, count - 1))
    space.streams[0].values[tile] = data.draw(
        st.integers(0, 249).filter(lambda value: value != values[tile])
    )
    now = int(space.streams[0].values[tile])
    assert renderer.follow(change_of([tile]))
    place = renderer.rectangle(tile)
    assert place is not None
    x, y, wide, high = place
    differ = before != renderer.pixels
    seen = (
        y < renderer.pixels.shape[0] and PALETTE.lut[now + LOW] != PALETTE.lut[values[tile] + LOW]
    )
    assert bool(differ[y : y + high, x : x + wide].any()) >= seen
    differ[y : y + high, x : x + wide] = False
    assert not differ.any()
    assert not renderer.follow(change_of([]))
    renderer.draw_changed(np.empty(0, dtype=np.int64))  # takes the mark back
    after = renderer.pixels.copy()
    renderer.draw()
    assert (after == renderer.pixels).all()


@given(st.integers(0, 6))
def test_the_curve_visits_each_place_once_and_leaps_nowhere(order: int) -> None:
    numbers = np.arange(4**order)
    x, y = place_of(numbers, order)
    assert (number_at(x, y, order) == numbers).all()
    assert len({(int(a), int(b)) for a, b in zip(x, y, strict=True)}) == 4**order
    assert (np.abs(np.diff(x)) + np.abs(np.diff(y)) == 1).all()
    assert (x[0], y[0], x[-1], y[-1]) == (0, 0, 2**order - 1, 0)


@given(st.integers(1, 100_000), st.integers(1, 300), st.integers(1, 300))
def test_neighbours_in_memory_are_neighbours_in_the_picture(
    count: int, width: int, height: int
) -> None:
    curve = fit_curve(count, width, height)
    cells = curve.cells(-(-count // curve.per_cell))
    rows, columns = np.divmod(cells, curve.columns)
    assert (np.abs(np.diff(rows)) + np.abs(np.diff(columns)) == 1).all(), (
        "from square to square too"
    )
    assert curve.columns * curve.cell <= width
    assert curve.rows * curve.cell <= height
    assert rows.max(initial=0) < curve.rows


def test_a_curve_uses_most_of_a_wide_window() -> None:
    curve = fit_curve(1 << 14, 1600, 400)
    assert (curve.columns * curve.cell, curve.rows * curve.cell, curve.per_cell) == (1536, 384, 1)
    many = fit_curve(10_000_000, 1600, 1000)
    assert many.columns * many.rows >= 1_400_000


@pytest.mark.parametrize(
    ("count", "size"),
    [(3223, (990, 435)), (2212, (850, 240)), (900, (400, 900)), (40_000, (990, 435))],
)
def test_a_curve_leaves_little_of_its_room_empty(count: int, size: tuple[int, int]) -> None:
    """One row of squares used half of a window."""
    curve = fit_curve(count, *size, largest=40)
    assert curve.per_cell == 1
    assert count * curve.cell**2 >= 0.5 * size[0] * size[1]
    assert curve.order >= 3


@given(st.lists(st.integers(0, 255), max_size=300), st.integers(1, 60))
def test_a_distribution_counts_each_tile_once(codes: list[int], bars: int) -> None:
    codes = [code for code in codes if code]  # a tile is never canvas
    found = distribution_of(np.array(codes, dtype=np.uint8), bars)
    assert found.counts.sum() == len(codes)
    for low, high, count in zip(found.lows, found.highs, found.counts, strict=True):
        assert count == sum(low <= code <= high for code in codes)


@given(st.lists(st.integers(-1, 400), min_size=1, max_size=200), sizes)
def test_bars_of_a_distribution_hold_the_tiles_they_count(
    values: list[int], size: tuple[int, int]
) -> None:
    space = space_of(values)
    renderer = drawn(DistributionRenderer, space, (size[0] + 60, size[1]))
    found = [renderer.tiles_at(x, 0) for x in range(renderer.width)]
    distinct = {tuple(tiles.tolist()) for tiles in found if len(tiles)}
    assert sorted(tile for tiles in distinct for tile in tiles) == list(range(len(values)))


@given(
    st.lists(st.integers(0, 249), min_size=1, max_size=200), st.integers(4, 90), st.integers(10, 90)
)
def test_a_greater_value_has_a_higher_bar(values: list[int], width: int, height: int) -> None:
    renderer = drawn(ProfileRenderer, space_of(values), (width, height))
    assert isinstance(renderer, ProfileRenderer)
    tops = (renderer.pixels[: height - 4, :: renderer.bar_width] != PALETTE.lut[0]).sum(axis=0)
    bars = [values[i : i + renderer.per_bar] for i in range(0, len(values), renderer.per_bar)]
    tops = tops[: len(bars)]
    order = np.argsort([max(bar) for bar in bars], kind="stable")
    assert (np.diff(tops[order]) >= 0).all()
    assert (tops > 0).all(), "the least has a bar too"
    for tile in range(len(values)):
        place = renderer.rectangle(tile)
        assert place is not None
        assert tile in renderer.tiles_at(place[0], height - 1)


def test_what_is_unknown_is_hatched_from_top_to_foot() -> None:
    known = np.array([True, False, True])
    stream = Stream(id=0, name="Used", dtype="i4", maximum=249, paint_style=PaintStyle.ZERO)
    space = space_state(stream, np.array([100, 100, 999], dtype=np.int32), known=known)
    renderer = drawn(ProfileRenderer, space, (3, 50), stream)
    assert set(renderer.pixels[:-4, 1].tolist()) == {int(PALETTE.lut[0]), int(PALETTE.lut[UNKNOWN])}
    assert renderer.pixels[-1, 1] == PALETTE.lut[UNKNOWN]
    assert renderer.pixels[0, 2] == PALETTE.lut[OVERFLOW]


def test_what_is_faded_is_half_way_to_the_canvas_and_covers_it() -> None:
    colours = np.array([0xFF204060, 0xFFFFFFFF, 0xFF000000], dtype=np.uint32)
    assert _faded(colours, np.uint32(0xFF000000)).tolist() == [0xFF102030, 0xFF7F7F7F, 0xFF000000]
    assert _faded(colours, np.uint32(0xFFFFFFFF)).tolist() == [0xFF8F9FAF, 0xFFFEFEFE, 0xFF7F7F7F]


def test_names_have_a_bar_each() -> None:
    stream = Stream(
        id=0, name="State", dtype="u1", presentation=Presentation.ENUM, enum_names=("a", "b", "c")
    )
    space = space_state(stream, np.array([0, 2, 2, 9], dtype=np.uint8))
    renderer = DistributionRenderer(space, StreamSource(stream), categorical(Theme.DARK, 3))
    renderer.resize(80, 40)
    found = [renderer.tiles_at(x, 5).tolist() for x in range(0, 80, 20)]
    assert found == [[0], [], [1, 2], [3]]


def test_streams_side_by_side_follow_a_maximum_that_varies_and_a_resize() -> None:
    changing = Changing(
        stream=Stream(id=0, name="Used", dtype="i4", maximum=249, presentation=Presentation.MAX_VAR)
    )
    changing.event({10: 5, 20: 1})
    renderer = MultiplesRenderer(changing.space, StreamSource(changing.stream), PALETTE)
    renderer.resize(120, 90)
    assert renderer.maximum == 5
    renderer.follow(changing.event({10: 5, 20: 90}, delta=True))
    assert renderer.maximum == 90
    renderer.follow(changing.event({5: 3, 10: 5}))
    assert renderer.maximum == 5
    place = renderer.rectangle(0)
    assert place is not None
    assert renderer.tiles_at(*place[:2]).tolist() == [0]


def test_an_order_goes_on_across_a_resize() -> None:
    changing = Changing()
    changing.event({10: 5, 20: 1, 30: 9})
    source = StreamSource(changing.stream)
    renderer = TilesRenderer(changing.space, source, PALETTE)
    renderer.resize(66, 30)
    renderer.set_order(order_by(changing.space, source))
    change = changing.event({5: 7, 10: 5, 30: 9})
    renderer.follow(change)
    assert renderer.order is not None
    assert [changing.keys[tile] for tile in renderer.order.tiles] == [10, 30, 5], (
        "20 is gone, 5 is new"
    )


@pytest.mark.parametrize("name", list(find_renderers()))
def test_a_renderer_of_any_name_draws_an_empty_space_and_a_space_of_one(name: str) -> None:
    for values in ([], [3]):
        space = space_of(values)
        renderer = load_renderer(name)(space, StreamSource(STREAM), PALETTE)
        renderer.resize(40, 30, 2.0)
        renderer.set_palette(sequential(Theme.LIGHT))
        assert renderer.pixels.dtype == np.uint32
        assert renderer.pixels.flags.c_contiguous
        assert renderer.title
        height, width = renderer.pixels.shape
        assert 0 < height <= 30
        assert 0 < width <= 40


PLUGIN = """
import numpy as np
from gcspy_client.model.renderers import NO_TILES, Renderer

class Flag(Renderer):
    name, title = "flag", "Flag"
    def draw(self):
        self.pixels = np.full((self.height, self.width), self.palette.lut[self.codes.max(initial=0)])
    def tiles_at(self, x, y):
        return np.arange(self.space.count)
"""


def test_another_package_adds_a_renderer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gcspy_flag.py").write_text(PLUGIN)
    info = tmp_path / "gcspy_flag-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gcspy-flag\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[gcspy.renderers]\nflag = gcspy_flag:Flag\ntiles = gcspy_flag:Flag\nbad = gcspy_flag:PLUGIN\nworse = gcspy_flag:NO_TILES\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    found = find_renderers()
    assert not found["flag"].builtin
    assert load_renderer("tiles") is TilesRenderer, "ours is not replaced"
    flag = load_renderer("flag")(space_of([1, 7]), StreamSource(STREAM), PALETTE)
    flag.resize(3, 2)
    assert (flag.pixels == PALETTE.lut[7 + LOW]).all()
    assert flag.rectangle(0) is None
    with pytest.raises(Unsupported, match="worse"):
        load_renderer("worse")
    with pytest.raises(Unsupported, match=r"no such renderer.*tiles"):
        load_renderer("cube")
