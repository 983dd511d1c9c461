"""Layouts for kinds of work: a key opens their panels, files carry them to others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gcspy_protocol.errors import CommandError
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from gcspy_client.model.shell.work_layout import (
    LAYOUTS,
    MOST_OWN,
    WorkLayout,
    layout_content,
    read_layout,
    write_layout,
)
from gcspy_client.view.shell import layout as layout_module
from tests.client.watching import Wait, Watched


def open_panels(watched: Watched) -> set[str]:
    docks = watched.window.docks
    return {name for name in docks if docks.is_open(name)}


def test_a_key_opens_the_panels_of_a_layout_and_can_be_undone(watched: Watched, wait: Wait) -> None:
    window = watched.window
    assert {name for layout in LAYOUTS for name in layout.panels} <= set(window.docks)
    before = open_panels(watched)
    for number, layout in enumerate(LAYOUTS):
        key = Qt.Key(Qt.Key.Key_F2.value + number)
        QTest.keyClick(window, key)
        assert open_panels(watched) == set(layout.panels), layout.name
        assert (window.width(), window.height()) == (1280, 720)
        wait(lambda: window.spaces.height() >= window.docks.area.height() // 2)
    for _ in LAYOUTS:
        QTest.keyClick(window, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert open_panels(watched) == before


def test_a_layout_is_saved_and_opened_as_a_file(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, path = watched.window, tmp_path / "mine.gcspy-layout"
    other = next(iter(set(window.spaces.panels) - {window.session.active}))
    monkeypatch.setattr(layout_module, "ask_new_file", lambda *_: str(path))
    monkeypatch.setattr(layout_module, "ask_file", lambda *_: str(path))
    window.docks.show("history")
    window.spaces.open(other, on=False)
    saved, opened = open_panels(watched), window.spaces.opened
    window.actions_table["layout.save"].run()
    window.layout_part.use(LAYOUTS[4])
    assert open_panels(watched) == {"view"}
    assert window.spaces.opened == {}
    window.actions_table["layout.open"].run()
    assert open_panels(watched) == saved
    assert window.spaces.opened == opened
    path.write_text("{")
    window.actions_table["layout.open"].run()
    assert open_panels(watched) == saved
    assert "not a layout" in window.announcer.text


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"\xff\xfe",
        b"[" * 60_000,
        b" " * 70_000,
        json.dumps({"format": "gcspy layout", "version": 2, "panels": []}).encode(),
        json.dumps({"format": "gcspy layout", "version": 1}).encode(),
        json.dumps({"format": "gcspy layout", "version": 1, "panels": [1]}).encode(),
        json.dumps({"format": "gcspy layout", "version": 1, "panels": ["x" * 999]}).encode(),
        json.dumps(
            {"format": "gcspy layout", "version": 1, "panels": [], "opened": {"a": 1}}
        ).encode(),
    ],
)
def test_a_file_that_is_no_layout_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad.gcspy-layout"
    path.write_bytes(content)
    with pytest.raises(CommandError, match=r"bad\.gcspy-layout: "):
        read_layout(path)


def test_unknown_panels_and_spaces_are_left_out(watched: Watched, tmp_path: Path) -> None:
    path = tmp_path / "odd.gcspy-layout"
    write_layout(path, WorkLayout("", panels=("view", "no such panel"), opened={"no space": True}))
    watched.window.layout_part.use(read_layout(path))
    assert open_panels(watched) == {"view"}
    with pytest.raises(CommandError, match="missing"):
        write_layout(tmp_path / "missing" / "a", LAYOUTS[0])
    with pytest.raises(CommandError, match="missing"):
        read_layout(tmp_path / "missing")


def test_own_layouts_are_kept_under_names_and_used_by_key_and_palette(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, part = watched.window, watched.window.layout_part
    assert not window.actions_table["layout.own"].enabled()
    window.docks.show("history")
    kept = open_panels(watched)
    monkeypatch.setattr(layout_module, "ask_text", lambda *_: " my <b>layout</b> ")
    QTest.keyClick(window, Qt.Key.Key_F8, Qt.KeyboardModifier.ShiftModifier)
    assert list(part.own()) == ["my <b>layout</b>"]
    part.use(LAYOUTS[4])
    assert open_panels(watched) == {"view"}
    monkeypatch.setattr(layout_module, "ask_one_of", lambda *_: 0)
    QTest.keyClick(window, Qt.Key.Key_F8)
    assert open_panels(watched) == kept
    part.use(LAYOUTS[4])
    entry = next(one for one in window.palette_entries() if one.text == "my <b>layout</b>")
    entry.run()
    assert open_panels(watched) == kept
    assert any("keep" in row.about.lower() for row in window._key_rows() if "F8" in str(row.keys))
    part.keep("second")
    window.actions_table["layout.forget"].run()
    assert list(part.own()) == ["second"]


def test_damaged_and_too_many_own_layouts_are_left_out(watched: Watched) -> None:
    window, part = watched.window, watched.window.layout_part
    good = layout_content(WorkLayout("", panels=("view",)))
    window.settings.store(
        "layout.own", {"good": good, "bad": {"panels": 3}, "": good, "x" * 100: good, "worse": 1}
    )
    assert list(part.own()) == ["good"]
    for number in range(2 * MOST_OWN):
        part.keep(f"layout {number}")
    assert len(part.own()) == MOST_OWN
    assert "the limit is" in window.announcer.text
    part.keep("good")
    assert "Layout kept" in window.announcer.text, "one of that name is replaced"
