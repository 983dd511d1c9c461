"""Guard of overridden methods: an error in one is reported, and Qt's own method is called in its place.

Two reasons. PySide6 keeps an error that leaves a method called by Qt, and raises it in whatever
Python code called Qt last, which then stops halfway. And before CPython 3.12 an error that C code
raised, such as that of ``int("x")``, is a type and a string until Python code catches it: PySide6
(tried: 6.9.0, 6.10.0, 6.11.0 to 6.11.3, 6.12.0) takes the string for an exception, and the process ends with SIGSEGV. So no
error may leave such a method.

The guard is set on `QObject` when `gcspy_client.view` is imported, and so covers every class that
is made afterwards, those of pyqtgraph too. Slots need none: their errors go to ``sys.excepthook``
at once.

Knows which methods of Qt are virtual, as far as classes of ours override them; does not know who
reads a report: ``sys.excepthook`` gets it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, Final, cast

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QLayout

__all__ = ["VIRTUAL_METHODS", "install_override_guard", "is_virtual"]

VIRTUAL_METHODS: Final = frozenset(
    [
        "addItem",
        "boundingRect",
        "canFetchMore",
        "columnCount",
        "count",
        "createEditor",
        "data",
        "dropMimeData",
        "editorEvent",
        "event",
        "eventFilter",
        "expandingDirections",
        "fetchMore",
        "filterAcceptsRow",
        "fixup",
        "flags",
        "focusNextPrevChild",
        "hasHeightForWidth",
        "headerData",
        "heightForWidth",
        "helpEvent",
        "highlightBlock",
        "index",
        "initStyleOption",
        "itemAt",
        "lessThan",
        "loadResource",
        "mimeData",
        "minimumSize",
        "minimumSizeHint",
        "paint",
        "parent",
        "reject",
        "rowCount",
        "scrollContentsBy",
        "setData",
        "setEditorData",
        "setGeometry",
        "setModelData",
        "setVisible",
        "shape",
        "sizeHint",
        "sizeHintForColumn",
        "sizeHintForRow",
        "sort",
        "supportedDropActions",
        "takeAt",
        "textFromValue",
        "updateEditorGeometry",
        "validate",
        "valueFromText",
    ]
)
"""Virtual methods of Qt that are no event handlers; the names of those end in ``Event``."""

_ONLY_OF_LAYOUTS: Final = frozenset(["addItem"])
"""Methods that are virtual in layouts; in other classes of the same method's name only Python calls them."""


def is_virtual(cls: type, name: str) -> bool:
    """Whether Qt calls a method of this name of a class."""
    if name in _ONLY_OF_LAYOUTS and not issubclass(cls, QLayout):
        return False
    return name in VIRTUAL_METHODS or name.endswith("Event")


def install_override_guard() -> None:
    """Guard the methods of all subclasses of `QObject` that are made from now on."""
    cast("Any", QObject).__init_subclass__ = classmethod(_guard_class)


def _guard_class(cls: Any, /, **options: Any) -> None:
    """Guard the methods of a new class that override one of Qt's."""
    super(QObject, cls).__init_subclass__(**options)
    for name, method in list(vars(cls).items()):
        if isinstance(method, FunctionType) and is_virtual(cls, name) and _overrides_qt(cls, name):
            setattr(cls, name, _guarded(cls, name, method))


def _overrides_qt(cls: type, name: str) -> bool:
    """Whether a class that C++ code made has a method of this name."""
    found = (vars(base).get(name) for base in cls.__mro__[1:])
    return any(method is not None and not isinstance(method, FunctionType) for method in found)


def _guarded(cls: type, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, from which no error comes."""

    @wraps(method)
    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return method(self, *arguments, **options)
        except Exception as error:  # noqa: BLE001  # whatever it is: reported, and Qt goes on
            sys.excepthook(type(error), error, error.__traceback__)
        try:
            return getattr(super(cls, self), name)(*arguments, **options)
        except Exception:  # noqa: BLE001  # Qt has none, or wants another answer: the default of the type
            return None

    return call
