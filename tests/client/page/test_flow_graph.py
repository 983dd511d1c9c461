"""The flow graph in the page: drawn from a space whose tiles are edges, said in words, and selected with the tiles."""

from __future__ import annotations

from pathlib import Path

from gcspy_replay.file import Recording
from gcspy_replay.samples import lesson_recording

from gcspy_client.lessons import find_lesson
from gcspy_client.lessons.claims import events_of_steps
from gcspy_client.model.renderers.flow_graph import lanes_of
from gcspy_client.page import page_of_recording
from tests.client.page.browser import Browser


def test_edges_are_drawn_as_a_flow_graph(browser: Browser, tmp_path: Path) -> None:
    path = lesson_recording("paths")
    assert path is not None
    with Recording.open(path) as recording:
        reached = events_of_steps(find_lesson("paths"), recording)
        page = page_of_recording(recording, title="Paths", reached=reached)
        spaces = {one.space.name: one for one in recording.seek(reached[4]).spaces.values()}
    (tmp_path / "a.html").write_bytes(page.data)
    edges = spaces["Edges"]
    taken, carries = (
        next(one.values for one in edges.streams.values() if one.schema.name == name)
        for name in ("Taken", "Carries")
    )
    browser.open((tmp_path / "a.html").as_uri())
    browser.evaluate(
        f"""(async () => {{
          await gcspy.show(gcspy.store.rows.findIndex((row) => row.number === {reached[4]}));
          gcspy.chooseSpace([...gcspy.session.spaces.values()].find((one) => one.name === "Edges").id);
          const edges = gcspy.activeSpace;
          gcspy.chooseStream([...edges.streams.values()].find((one) => one.schema.name === "Taken").schema.id);
          gcspy.draw();
        }})()"""
    )
    words = browser.evaluate("document.getElementById('graph-words').textContent")
    counted = int((carries == 1).sum())
    assert counted == 5
    assert words == f"{edges.count} edges between 12 blocks; {counted} carry a counter"
    label = browser.evaluate("gcspy.flow.canvas.getAttribute('aria-label')")
    assert label == f"Flow graph: {words}. The tiles below are its edges."
    assert browser.evaluate("gcspy.graph.canvas.hidden && !gcspy.flow.canvas.hidden")
    drawn = browser.evaluate(
        """(() => {
          const texts = [], { context } = gcspy.flow, fill = context.fillText;
          context.fillText = (text, ...where) => texts.push(text);
          gcspy.draw();
          context.fillText = fill;
          return texts;
        })()"""
    )
    assert drawn == [*"ABCDEFGHIJKL", *map(str, taken.tolist())]
    # Each edge is found where it is drawn, and pressing it selects its tile.
    places = browser.evaluate(
        """gcspy.flow.ways.map(({ corners }) => {
          const parts = corners.slice(1).map(([x, y], n) => [corners[n], [x, y]]);
          const long = parts.reduce((one, other) => (Math.hypot(...one[0].map((v, i) => v - one[1][i])) >= Math.hypot(...other[0].map((v, i) => v - other[1][i])) ? one : other));
          const box = gcspy.flow.canvas.getBoundingClientRect();
          return gcspy.flow.edgeAt(box.left + (long[0][0] + long[1][0]) / 2, box.top + (long[0][1] + long[1][1]) / 2);
        })"""
    )
    assert places == list(range(edges.count))
    assert browser.evaluate("gcspy.flow.edgeAt(2, 2)") == -1
    browser.evaluate("gcspy.selectTile(3)")
    browser.wait("gcspy.map.selected === 3")
    spans = [[0, 9], [2, 4], [4, 6], [7, 8], [3, 3]]
    assert browser.evaluate(f"FlowGraph.lanes({spans})") == lanes_of([(a, b) for a, b in spans])
    browser.evaluate(
        "gcspy.chooseSpace([...gcspy.session.spaces.values()].find((one) => one.name === 'Sites').id)"
    )
    browser.wait("document.getElementById('graph').hidden")
    assert browser.evaluate("document.getElementById('graph-words').hidden")
    assert browser.errors == []
