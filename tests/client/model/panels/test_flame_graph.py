"""A flame graph's boxes: inside their parents, side by side, as wide as their share; and answers that are no tree."""

from __future__ import annotations

import numpy as np
import pytest
from gcspy_protocol.details import ColumnKind, DetailColumn, DetailTable
from gcspy_protocol.errors import RemoteProtocolError

from gcspy_client.model.panels.flame_graph import FlameGraph, flame_graph_of


def random_graph(seed: int, count: int = 200) -> FlameGraph:
    """Return a random tree, in the order of depths, whose boxes are at least as heavy as those below."""
    random = np.random.default_rng(seed)
    parent = [-1]
    depth = [0]
    for box in range(1, count):
        below = int(random.integers(max(0, box - 40), box))
        parent.append(below)
        depth.append(depth[below] + 1)
    order = np.argsort(depth, kind="stable")
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    parents = np.array([-1 if parent[old] < 0 else place[parent[old]] for old in order])
    weight = random.integers(1, 50, count)
    for box in range(count - 1, 0, -1):
        weight[parents[box]] += weight[box]
    names = [f"f{box % 7} (file{box % 3}.c)" for box in range(count)]
    return FlameGraph(parents, np.array(depth)[order], names, weight // 2, weight)


@pytest.mark.parametrize("seed", [1, 2])
def test_boxes_lie_in_their_parents_side_by_side(seed: int) -> None:
    graph = random_graph(seed)
    for focus in (0, 5, 60):
        layout = graph.layout(focus=focus)
        shown = np.flatnonzero(layout.width > 0)
        above = set(graph.path(focus))
        for box in shown.tolist():
            if box in above:
                assert (layout.left[box], layout.width[box]) == (0.0, 1.0)
                continue
            parent = int(graph.parent[box])
            assert layout.left[box] >= layout.left[parent] - 1e-9
            assert (
                layout.left[box] + layout.width[box]
                <= layout.left[parent] + layout.width[parent] + 1e-9
            )
            assert layout.width[box] == pytest.approx(graph.bytes[box] / graph.bytes[focus])
        for row in set(layout.row[shown].tolist()):
            here = shown[layout.row[shown] == row]
            here = here[np.argsort(layout.left[here])]
            ends = layout.left[here] + layout.width[here]
            assert (layout.left[here][1:] >= ends[:-1] - 1e-9).all()
            for box in here.tolist():
                place = float(layout.left[box] + layout.width[box] / 2)
                assert graph.at(layout, row, place) == box


def test_boxes_that_match_within_others_count_once() -> None:
    graph = FlameGraph(
        np.array([-1, 0, 1, 0]), np.array([0, 1, 2, 1]), ["all", "Parse", "parse_more", "other"],
        np.array([4, 3, 2, 1]), np.array([100, 60, 40, 40]),
    )  # fmt: skip
    assert graph.share(graph.matching("parse"), in_bytes=True) == pytest.approx(0.6)
    assert graph.share(graph.matching(""), in_bytes=True) == 0.0
    assert graph.words(1) == "Parse: 60 bytes in 3 objects, 60.0 % of the bytes"


def answer(rows: tuple[tuple[int | str | None, ...], ...]) -> DetailTable:
    """Return an answer of a server."""
    columns = (
        DetailColumn(name="Parent"),
        DetailColumn(name="Name", kind=ColumnKind.TEXT),
        DetailColumn(name="Objects"),
        DetailColumn(name="Bytes", kind=ColumnKind.BYTES),
    )
    return DetailTable(columns=columns, rows=rows)


def test_an_answer_is_read_or_blamed_on_the_server() -> None:
    graph = flame_graph_of(answer(((-1, "all", 2, 9), (0, "f", 2, 9), (1, "int", 1, 3))))
    assert graph.depth.tolist() == [0, 1, 2]
    for rows in (
        ((0, "all", 2, 9),),
        ((-1, "all", 2, 9), (1, "f", 2, 9)),
        ((-1, "a", 1, 1), (-1, "b", 1, 1)),
        (),
    ):
        with pytest.raises(RemoteProtocolError):
            flame_graph_of(answer(rows))
