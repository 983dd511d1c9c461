"""The flow graph: edges as ways between blocks, each where it is pointed at, with its number and the colour of its value."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from gcspy_protocol.interpreter import SpaceState
from gcspy_replay.file import Recording
from gcspy_replay.samples import lesson_recording

from gcspy_client.lessons import find_lesson
from gcspy_client.lessons.claims import events_of_steps
from gcspy_client.model.palette import CANVAS, Theme, palette_for
from gcspy_client.model.renderers import Renderer
from gcspy_client.model.renderers.flow_graph import FlowGraphRenderer, lanes_of
from gcspy_client.model.tile_source import StreamSource


@pytest.fixture(scope="module")
def spaces() -> Iterator[dict[str, SpaceState]]:
    path = lesson_recording("paths")
    assert path is not None
    with Recording.open(path) as recording:
        state = recording.seek(events_of_steps(find_lesson("paths"), recording)[4])
        yield {one.space.name: one for one in state.spaces.values()}


def drawn(space: SpaceState, stream: str, height: int = 400) -> FlowGraphRenderer:
    schema = next(one.schema for one in space.streams.values() if one.schema.name == stream)
    renderer = FlowGraphRenderer(space, StreamSource(schema), palette_for(schema, Theme.DARK))
    renderer.resize(600, height)
    return renderer


def test_ways_that_meet_get_lanes_of_their_own_short_ones_nearer() -> None:
    assert lanes_of([(0, 9), (2, 4), (4, 6), (7, 8)]) == [2, 0, 1, 0]
    assert lanes_of([]) == []


def test_each_edge_is_found_where_it_is_drawn_in_the_colour_of_its_value(
    spaces: dict[str, SpaceState],
) -> None:
    space = spaces["Edges"]
    renderer = drawn(space, "Taken")
    for tile in range(space.count):
        place = renderer.rectangle(tile)
        assert place is not None
        x, y, wide, high = place
        assert tile in renderer.tiles_at(x + wide // 2, y + high // 2)
        part = renderer.pixels[y : y + high, x : x + wide]
        assert (part == renderer.palette.lut[renderer.codes[tile]]).any()
    assert renderer.rectangle(space.count) is None
    assert renderer.tiles_at(2, 2).tolist() == []


def test_blocks_and_edges_have_their_names_and_numbers(spaces: dict[str, SpaceState]) -> None:
    space = spaces["Edges"]
    texts = [one.text for one in drawn(space, "Taken").inscriptions()]
    assert texts[:12] == list("ABCDEFGHIJKL")
    taken = next(one for one in space.streams.values() if one.schema.name == "Taken")
    assert texts[12:] == [str(each) for each in taken.values.tolist()]
    unknown = [one.text for one in drawn(space, "Counter").inscriptions()][12:]
    assert unknown.count("?") == 13


def test_no_edge_crosses_a_number_where_there_is_room_beside_it(
    spaces: dict[str, SpaceState],
) -> None:
    """That of the edge from C to E stands above the one that leaves D."""
    renderer = drawn(spaces["Edges"], "Taken", 800)
    ground = renderer.palette.lut[CANVAS]
    for one in renderer.inscriptions()[12:]:
        under = renderer.pixels[one.y - 5 : one.y + 5, one.x + 1 : one.x + 8 * len(one.text)]
        assert (under == ground).all(), one


def test_an_edge_that_carries_something_is_thick(spaces: dict[str, SpaceState]) -> None:
    space = spaces["Edges"]
    renderer = drawn(space, "Carries")
    carries = next(one for one in space.streams.values() if one.schema.name == "Carries")
    thin, thick = (
        int((renderer.pixels == renderer.palette.lut[renderer.codes[tile]]).sum())
        / np.count_nonzero(carries.values == carries.values[tile])
        for tile in (int(np.argmin(carries.values)), int(np.argmax(carries.values == 1)))
    )
    assert thick > thin


def test_a_space_without_edges_says_so(spaces: dict[str, SpaceState]) -> None:
    renderer = drawn(spaces["Plans"], "Increments")
    assert (renderer.pixels == renderer.palette.lut[CANVAS]).all()
    (text,) = renderer.inscriptions()
    assert "From and To" in text.text
    assert isinstance(renderer, Renderer)
