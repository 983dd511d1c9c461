"""No error of ours leaves a method that Qt calls: it is reported, and the window goes on."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from types import FunctionType

import pytest
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QLayout

import gcspy_client
from gcspy_client.view.override_guard import is_virtual

_PROGRAM = """
import sys
import gcspy_client.view
from PySide6.QtCore import QEvent, QSize, QTimer
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget

app = QApplication(["test", "-platform", "offscreen"])
sys.excepthook = lambda kind, error, _trace: print(kind.__name__, type(error).__name__, flush=True)

class Parent(QWidget):
    def event(self, event):
        return super().event(event)

class Child(Parent):
    def event(self, event):
        if event.type() is QEvent.Type.Polish:
            {}["event"]
        return super().event(event)
    def resizeEvent(self, event):
        int("x")
    def paintEvent(self, event):
        raise IndexError("in Python")
    def sizeHint(self):
        return QSize(float("y"), 3)

def act():
    child.resize(70, 50)
    child.repaint()
    print("after", flush=True)
    QTimer.singleShot(50, app.quit)

window = QWidget()
child = Child()
QVBoxLayout(window).addWidget(child)
window.show()
QTimer.singleShot(0, act)
print("exit code", app.exec(), flush=True)
"""


def test_an_error_that_c_code_raised_in_an_overridden_method_ends_no_window() -> None:
    """Without the guard the process ends with SIGSEGV on CPython 3.11."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )
    lines = done.stdout.split("\n")
    assert done.returncode == 0, done.stderr
    assert "exit code 0" in lines
    assert "after" in lines, "the code that made Qt call it went on"
    for reported in ("KeyError", "ValueError", "IndexError"):
        assert f"{reported} {reported}" in lines
    assert "Invalid return value" not in done.stderr, "Qt's own method answered"


_NOT_VIRTUAL = {
    "addItems", "setItemData", "setItemText", "setPlaceholderText", "setStringList", "setText", "setTextFormat", "setWordWrap", "text",
}  # fmt: skip
"""Methods of ours that hide one of Qt's, which Qt does not call: an error in one is its caller's."""


def test_every_method_that_overrides_one_of_qt_is_guarded() -> None:
    for module in pkgutil.walk_packages(gcspy_client.__path__, "gcspy_client."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    seen = 0
    for cls in _subclasses(QObject):
        if not cls.__module__.startswith("gcspy_client."):
            continue
        for name, method in vars(cls).items():
            if isinstance(method, FunctionType) and _is_of_qt(cls, name):
                of_python = name in _NOT_VIRTUAL or (
                    name == "addItem" and not issubclass(cls, QLayout)
                )
                assert is_virtual(cls, name) != of_python, f"{cls.__name__}.{name}"
                assert hasattr(method, "__wrapped__") != of_python, f"{cls.__name__}.{name}"
                seen += 1
    assert seen > 100


def _subclasses(cls: type) -> set[type]:
    below: set[type] = set(cls.__subclasses__())
    return below.union(*map(_subclasses, below))


def _is_of_qt(cls: type, name: str) -> bool:
    return not name.startswith("__") and any(
        name in vars(base) and not isinstance(vars(base)[name], FunctionType | property)
        for base in cls.__mro__[1:]
    )


def test_the_error_of_a_method_that_is_called_from_python_goes_to_its_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Unless Qt may call it, too."""
    reported: list[type] = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, *_: reported.append(kind))

    class Named(QObject):
        def objectName(self) -> str:
            raise KeyError("own")

        def eventFilter(self, *_: object) -> bool:
            raise KeyError("virtual")

    named = Named()
    with pytest.raises(KeyError):
        named.objectName()
    assert named.eventFilter(named, None) is not True
    assert reported == [KeyError]
