"""The graph of objects in the page: drawn from its spaces, said in words, and selected with the tiles."""

from __future__ import annotations

from pathlib import Path

from gcspy_replay.file import Recording

from gcspy_client.page import page_of_recording
from tests.client.page.browser import Browser
from tests.client.small_heap import record_small_heap


def test_a_small_heap_is_drawn_as_a_graph(browser: Browser, tmp_path: Path) -> None:
    record_small_heap(tmp_path / "a.gcspy")
    with Recording.open(tmp_path / "a.gcspy") as recording:
        (tmp_path / "a.html").write_bytes(page_of_recording(recording, title="Objects").data)
        names = {
            state.space.name: state for state in recording.seek(recording.last).spaces.values()
        }
        said = names["Objects"].info
    browser.open((tmp_path / "a.html").as_uri())
    browser.press("End")
    browser.wait("gcspy.at === gcspy.store.length - 1 && !gcspy.drawn")
    words = browser.evaluate("document.getElementById('graph-words').textContent")
    assert words.startswith(said)  # "9 objects, 7 references"
    assert words.removeprefix(said).startswith(", ")
    assert browser.evaluate("gcspy.graph.nodes.length") == names["Objects"].count
    browser.evaluate("gcspy.selectObject(1)")
    browser.wait("gcspy.activeSpace.name === 'Objects' && gcspy.map.selected === 1")
    # While references are updated they are unknown, and the words say so.
    torn = browser.evaluate(
        """(async () => {
          for (let place = 0; place < gcspy.store.length; place++) {
            await gcspy.show(place);
            gcspy.draw();
            const words = document.getElementById('graph-words').textContent;
            if (words.includes('not known now')) return words;
          }
          return '';
        })()"""
    )
    assert "references are being updated" in torn
    browser.press("g")
    browser.wait("document.getElementById('graph').hidden")
    assert browser.errors == []
