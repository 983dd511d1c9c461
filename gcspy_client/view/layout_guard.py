"""Guard of layouts: Python keeps no wrapper of an item that Qt may delete.

A layout has an item for each of its widgets and stretches. Qt deletes the item with the widget, or when
the widget gets another parent, and tells PySide6 nothing, since an item is no `QObject`. A wrapper of it then stays
valid at an address that has been freed. When Qt puts an object there, PySide6 gives the wrapper for
the object: ``QObject.children()`` has a `QWidgetItem` in it, or the process ends with SIGSEGV.

PySide6 makes such wrappers by itself (6.11.3; glue/qtwidgets.cpp, addLayoutOwnership): when a layout
is put into another one, for each item of it, and the outer layout keeps them. So the guard invalidates them
there. Of the methods below each was tried; the others of Qt's layouts leave no wrapper.

    takeAt                    Python owns the item if it had a wrapper before; otherwise nobody
                              does, and it is never deleted: `clear_layout` deletes it
    itemAt, itemAtPosition    leave a wrapper that the layout keeps: not used here
    replaceWidget             returns an item, as takeAt does: not used here

A layout written in Python (`FlowLayout`) has wrappers of its items itself, and drops each before Qt
deletes the item. An outer layout would keep them, so the guard refuses to put it into one.

The guard is set when `gcspy_client.view` is imported, and covers pyqtgraph too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, Final

import shiboken6
from PySide6.QtWidgets import QBoxLayout, QGridLayout, QLayout, QLayoutItem

__all__ = ["clear_layout", "install_layout_guard", "item_wrappers"]

_NESTING: Final = (
    (QBoxLayout, ("addLayout", "insertLayout", "addItem", "insertItem")),
    (QGridLayout, ("addLayout", "addItem")),
)
"""Methods that put a layout into another one and leave wrappers of its items."""


def install_layout_guard() -> None:
    """Guard the layouts of Qt; once in a process."""
    for kind, names in _NESTING:
        for name in names:
            method = getattr(kind, name)
            if not isinstance(method, FunctionType):
                setattr(kind, name, _guarded(method))


def _guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, which leaves no wrapper of an item."""

    @wraps(method)
    def call(self: QLayout, /, *arguments: Any, **options: Any) -> Any:
        inner = [one for one in (*arguments, *options.values()) if isinstance(one, QLayout)]
        for one in inner:
            if isinstance(type(one).itemAt, FunctionType):
                raise TypeError(
                    f"{type(one).__name__} has wrappers of its items: set it on a widget, and add the widget"
                )
        result = method(self, *arguments, **options)
        for one in inner:
            _invalidate_items(one)
        return result

    return call


def _invalidate_items(layout: QLayout) -> None:
    for index in range(layout.count()):
        item: QLayoutItem | None = layout.itemAt(index)
        if isinstance(item, QLayout):
            _invalidate_items(item)
        elif item is not None and not shiboken6.createdByPython(item):
            shiboken6.invalidate(item)


def clear_layout(layout: QLayout) -> None:
    """Take all items out of a layout and delete them, and let their widgets end: out of sight now, deleted by Qt's loop.

    Args:
        layout: Has widgets and stretches, and no layouts.
    """
    while (item := layout.takeAt(0)) is not None:
        widget = item.widget()
        shiboken6.delete(
            item
        )  # Python owns it only if it had a wrapper before; otherwise nobody does
        if widget is not None:
            widget.setParent(None)
            widget.deleteLater()


def item_wrappers() -> list[QLayoutItem]:
    """Return the wrappers of items that Qt may delete unnoticed; there should be none. For tests.

    Not among them: layouts, items that Python made or owns, and those of a layout written in Python.
    """
    wrappers = shiboken6.getAllValidWrappers()
    known = {
        id(layout.itemAt(index))
        for layout in wrappers
        if isinstance(layout, QLayout) and isinstance(type(layout).itemAt, FunctionType)
        for index in range(layout.count())
    }
    return [
        one
        for one in wrappers
        if isinstance(one, QLayoutItem)
        and not isinstance(one, QLayout)
        and id(one) not in known
        and not shiboken6.createdByPython(one)
        and not shiboken6.ownedByPython(one)
    ]
