"""Python keeps no wrapper of a layout's item that Qt may delete."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import shiboken6
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import (
    QApplication,
    QBoxLayout,
    QFormLayout,
    QGridLayout,
    QHBoxLayout,
    QLayout,
    QVBoxLayout,
    QWidget,
)
from pytestqt.qtbot import QtBot

from gcspy_client.view.layout_guard import clear_layout, item_wrappers
from gcspy_client.view.widgets.flow import FlowLayout

_PROGRAM = """
import sys
if sys.argv[1] == "guarded":
    import gcspy_client.view
from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtWidgets import QApplication, QHBoxLayout, QListWidget, QVBoxLayout, QWidget

app = QApplication(["test", "-platform", "offscreen"])
window = QWidget()
outer = QVBoxLayout(window)
for _ in range(20):
    inner = QHBoxLayout()
    widgets = [QWidget() for _ in range(50)]
    for widget in widgets:
        inner.addWidget(widget)
    outer.addLayout(inner)
    for widget in widgets:
        widget.deleteLater()
    del widgets, widget
    app.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    box = QObject()
    timers = [QTimer(box) for _ in range(300)]
    lists = [QListWidget() for _ in range(10)]
    for one in lists:
        for child in one.children():
            for part in (child, *child.children()):
                part.children()
"""

Made = tuple[Any, ...]


def inner() -> QHBoxLayout:
    """A layout with a widget, stretches, and a layout with a widget."""
    made, within = QHBoxLayout(), QVBoxLayout()
    within.addWidget(QWidget())
    made.addWidget(QWidget())
    made.addStretch(1)
    made.addSpacing(2)
    made.addLayout(within)
    return made


def boxed(put: Callable[[QBoxLayout, QLayout], None]) -> Made:
    window = QWidget()
    outer = QVBoxLayout(window)
    put(outer, inner())
    return window, outer


def gridded(put: Callable[[QGridLayout, QLayout], None]) -> Made:
    window = QWidget()
    outer = QGridLayout(window)
    put(outer, inner())
    return window, outer


def formed(put: Callable[[QFormLayout, QLayout], None]) -> Made:
    window = QWidget()
    outer = QFormLayout(window)
    put(outer, inner())
    return window, outer


def set_later() -> Made:
    window, outer = QWidget(), QVBoxLayout()
    outer.addLayout(inner())
    window.setLayout(outer)
    return window, outer


NESTED: dict[str, Callable[[], Made]] = {
    "box.addLayout": lambda: boxed(lambda outer, one: outer.addLayout(one)),
    "box.addLayout, stretch": lambda: boxed(lambda outer, one: outer.addLayout(one, stretch=2)),
    "box.insertLayout": lambda: boxed(lambda outer, one: outer.insertLayout(0, one)),
    "box.addItem": lambda: boxed(lambda outer, one: outer.addItem(one)),
    "box.insertItem": lambda: boxed(lambda outer, one: outer.insertItem(0, one)),
    "grid.addLayout": lambda: gridded(lambda outer, one: outer.addLayout(one, 0, 0)),
    "grid.addItem": lambda: gridded(lambda outer, one: outer.addItem(one, 0, 0)),
    "form.addRow": lambda: formed(lambda outer, one: outer.addRow("a", one)),
    "form.setLayout": lambda: formed(
        lambda outer, one: outer.setLayout(0, QFormLayout.ItemRole.FieldRole, one)
    ),
    "setLayout": set_later,
}


@pytest.mark.parametrize("made", NESTED.values(), ids=NESTED)
def test_no_wrapper_of_an_item_is_left_when_a_layout_is_put_into_another(
    qtbot: QtBot, made: Callable[[], Made]
) -> None:
    gc.collect()
    before = {id(one) for one in item_wrappers()}
    window, outer = made()
    qtbot.addWidget(window)
    assert outer.count() > 0
    assert not [one for one in item_wrappers() if id(one) not in before]


def test_a_layout_written_in_python_is_not_put_into_another(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    with pytest.raises(TypeError, match="set it on a widget"):
        QVBoxLayout(window).addLayout(FlowLayout())


def test_objects_are_never_taken_for_items_that_qt_deleted() -> None:
    """Without the guard ``children()`` gives items, or the process ends with SIGSEGV; else this proves nothing."""

    def run(how: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", _PROGRAM, how]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)

    bare, guarded = run("bare"), run("guarded")
    assert bare.returncode < 0 or "Item' object has no attribute 'children'" in bare.stderr
    assert (guarded.returncode, guarded.stderr) == (0, "")


@pytest.mark.parametrize("kind", [QHBoxLayout, QVBoxLayout, QGridLayout, FlowLayout])
def test_a_cleared_layout_has_no_item_and_no_wrapper_and_its_widgets_end(
    qtbot: QtBot, kind: Callable[[], QLayout]
) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    layout = kind()
    window.setLayout(layout)
    ended: list[object] = []
    before = {id(one) for one in item_wrappers()}
    for _ in range(500):
        for _ in range(3):
            widget = QWidget()
            widget.destroyed.connect(lambda *_: ended.append(None))
            layout.addWidget(widget)
        if isinstance(layout, QBoxLayout):
            layout.addStretch(1)
            layout.addSpacing(3)
        del widget
        clear_layout(layout)
        assert layout.count() == 0
        assert not window.findChildren(QWidget)
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    assert len(ended) == 1500
    assert not [one for one in item_wrappers() if id(one) not in before]


@pytest.mark.parametrize("had_wrapper", [False, True])
def test_python_owns_a_taken_item_only_if_it_had_a_wrapper_before(
    qtbot: QtBot, had_wrapper: bool
) -> None:
    """Why `clear_layout` deletes it in both cases; another version of PySide6 may change the rule."""
    window = QWidget()
    qtbot.addWidget(window)
    layout = QHBoxLayout(window)
    for _ in range(1000):
        layout.addWidget(QWidget())
        if had_wrapper:
            layout.itemAt(0)
        item = layout.takeAt(0)
        assert item is not None
        assert shiboken6.ownedByPython(item) is had_wrapper
        assert not shiboken6.createdByPython(item)
        widget = item.widget()
        assert widget is not None
        widget.deleteLater()
        shiboken6.delete(item)
        assert not shiboken6.isValid(item)
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    assert not [one for one in item_wrappers() if one is item]
