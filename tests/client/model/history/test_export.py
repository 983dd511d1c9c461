"""A history graph as a file holds the pixels that were drawn, and lines and texts where they were."""

from __future__ import annotations

import base64
import csv
import io
from dataclasses import replace
from io import BytesIO
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from gcspy_protocol.model import Naming
from hypothesis import given
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from PIL import Image

from gcspy_client.model.history.events import HistoryEvents
from gcspy_client.model.history.export import ExportedGraph, csv_of, png_of, side_by_side, svg_of
from gcspy_client.model.history.graph import HistoryGraph
from gcspy_client.model.history.series import SeriesMaker, TileSeries
from gcspy_client.model.palette import HIGH, Theme, sequential
from gcspy_client.model.tile_source import StreamSource
from tests.client.model.changing import STREAM, Changing

PALETTE = sequential(Theme.LIGHT)
SVG = "{http://www.w3.org/2000/svg}"


def read(data: bytes) -> NDArray[np.uint32]:
    with Image.open(BytesIO(data)) as image:
        rgb = np.array(image.convert("RGB"), dtype=np.uint32)
    return np.asarray(
        0xFF000000 | rgb[..., 0] << 16 | rgb[..., 1] << 8 | rgb[..., 2], dtype=np.uint32
    )


def graph_of(title: str, *, across: bool) -> ExportedGraph:
    changing = Changing(Naming.UNIFORM)
    graph = HistoryGraph(StreamSource(STREAM), HistoryEvents())
    for event in range(8):
        graph.follow(changing.space, changing.event({key: 10 * event + key for key in range(40)}))
    view = replace(graph.whole(32, 80), across=across, every=10, at_events=(4, 6))
    labels = {4: "1", 6: "2 <&"}
    return ExportedGraph(
        title, graph.draw(view, PALETTE), PALETTE, lambda place: f"{place} MB", lambda e: labels[e]
    )


@given(hnp.arrays(np.uint32, hnp.array_shapes(min_dims=2, max_dims=2, max_side=20)))
def test_a_picture_comes_back_from_its_file(pixels: NDArray[np.uint32]) -> None:
    assert (read(png_of(pixels)) == (pixels | np.uint32(0xFF000000))).all()


@pytest.mark.parametrize("across", [False, True])
def test_graphs_stand_side_by_side_with_a_line_between(across: bool) -> None:
    one, two = graph_of("one", across=across), graph_of("two", across=across)
    whole = side_by_side([one, two])
    upright = whole.T if across else whole
    drawn = one.drawn.pixels.T if across else one.drawn.pixels
    assert upright.shape == (32, 80 + 6 + 80)
    assert (upright[:, :80] == drawn).all()
    assert (upright[:, 86:] == drawn).all()
    assert (upright[:, 83] == PALETTE.line).all()


@pytest.mark.parametrize("across", [False, True])
def test_an_svg_holds_the_pixels_and_says_what_the_lines_are(across: bool) -> None:
    graph = graph_of("pools <Used> & \x00more", across=across)
    root = ET.fromstring(svg_of([graph, graph]))
    images = list(root.iter(f"{SVG}image"))
    assert len(images) == 2
    data = base64.b64decode(
        images[0].attrib["{http://www.w3.org/1999/xlink}href"].partition(",")[2]
    )
    assert (read(data) == graph.drawn.pixels).all()
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert texts[:6] == ["pools <Used> & \\x00more", "10 MB", "20 MB", "30 MB", "1", "2 <&"]
    assert len(list(root.iter(f"{SVG}line"))) == 2 * (3 + 2)
    wide, high = int(root.attrib["width"]), int(root.attrib["height"])
    assert (high if across else wide) > 2 * 80


def test_series_whose_name_begins_like_a_formula_are_texts_in_a_spreadsheet() -> None:
    changing, series, events = Changing(Naming.UNIFORM), TileSeries(), HistoryEvents()
    maker = SeriesMaker(StreamSource(STREAM), (0, 1))
    change = changing.event({0: 3, 1: 4})
    events.add(change.event, number=1)
    point = maker.follow(changing.space, change)
    assert point is not None
    series.take(point)
    text = csv_of([("=cmd\r|x", series)], events, lambda _kind: "@clock\nnext")
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows[0][4] == "'=cmd\r|x sum"
    assert rows[1][:6] == ["1", "'@clock\nnext", "1", "1000", "7", "3"]
    assert len(rows) == 2


def test_nothing_is_a_file_too() -> None:
    assert ET.fromstring(svg_of([])).tag == f"{SVG}svg"
    assert side_by_side([]).size


def test_a_legend_says_what_colours_mean_or_names_them() -> None:
    plain = graph_of("one", across=True)
    ramp = ET.fromstring(svg_of([replace(plain, ends=("0 B", "4 KiB"))]))
    texts = [text.text for text in ramp.iter(f"{SVG}text")]
    assert {"0 B", "4 KiB", "zero", "unknown", "unused"} <= set(texts)
    fills = [box.attrib["fill"] for box in ramp.iter(f"{SVG}rect")]
    assert f"#{int(PALETTE.lut[HIGH]) & 0xFFFFFF:06x}" in fills
    named = ET.fromstring(svg_of([replace(plain, names=("young", "old <3"))]))
    assert {"young", "old <3"} <= {text.text for text in named.iter(f"{SVG}text")}
    assert "0 B" not in {text.text for text in named.iter(f"{SVG}text")}


def test_series_as_csv_leave_empty_what_is_not_known() -> None:
    changing, series, events = Changing(Naming.UNIFORM), TileSeries(), HistoryEvents()
    maker = SeriesMaker(StreamSource(STREAM), (0, 1))
    for values, unknown in (({0: 3, 1: 4}, ()), ({0: 9, 1: 5}, (0,)), ({0: 1, 1: 2}, (0, 1))):
        change = changing.event(values, unknown=unknown)
        events.add(change.event, number=change.event.sequence + 40)
        point = maker.follow(changing.space, change)
        assert point is not None
        series.take(point)
    rows = [
        line.split(",")
        for line in csv_of(
            [("a, b", series)], events, ("Clock", "Collection").__getitem__
        ).splitlines()
    ]
    assert rows[0][:4] == ["event", "kind", "occurrence", "time_nanos"]
    assert rows[1] == ["41", "Clock", "1", "1000", "7", "3", "4", "2", "2"]
    assert rows[2] == ["42", "Clock", "2", "2000", "5", "5", "5", "1", "2"]
    assert rows[3] == ["43", "Clock", "3", "3000", "", "", "", "0", "2"]
