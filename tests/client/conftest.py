from __future__ import annotations

import gc
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from gcspy_protocol.address import parse_address
from PySide6.QtCore import QEvent, QProcess, QTimer
from PySide6.QtGui import QCursor
from PySide6.QtWidgets import QApplication, QToolTip
from pytestqt.qtbot import QtBot

from gcspy_client.app import application
from gcspy_client.model.palette import Theme
from gcspy_client.model.shell.launcher import FrontDoor
from gcspy_client.model.shell.link_status import LinkPhase
from gcspy_client.view.layout_guard import item_wrappers
from gcspy_client.view.start import children
from gcspy_client.view.window import MainWindow
from gcspy_session.options import SessionOptions
from tests.client.program import Program
from tests.client.watching import Wait
from tests.fork_server import forked
from tests.waiting import PATIENCE_MILLIS, PATIENCE_SECS

MakeWindow = Callable[..., MainWindow]

_AWAY = 9000, 9000
"""Where no window is."""


@pytest.fixture(scope="session")
def qapp_cls() -> type:
    return type(application())


class ForkedProcess(QProcess):
    """A process of Qt's that the fork server starts, if it can."""

    def start(self, *given: Any, **options: Any) -> None:
        """Start it."""
        program, arguments = given
        command, *words = forked([program, *arguments])
        super().start(command, words, **options)


@pytest.fixture(autouse=True, scope="session")
def forked_children() -> Iterator[None]:
    """Have windows start what `subprocess` would have the fork server start."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(children, "QProcess", ForkedProcess)
        yield


@pytest.fixture(autouse=True, scope="session")
def patient_greetings() -> Iterator[None]:
    """Let a greeting take as long as a busy machine may: a window whose thread got no processor for 15 s is refused for good otherwise."""
    defaults = SessionOptions.__init__.__kwdefaults__
    assert defaults is not None
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(defaults, "handshake_secs", PATIENCE_SECS)
        yield


@pytest.fixture(autouse=True)
def garbage_in_this_thread() -> Iterator[None]:
    """No other thread destroys what Qt has; the tests of other folders, in the same process, have the usual collector."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(autouse=True)
def nothing_in_sight() -> Iterator[None]:
    """No test leaves a window: the one on top would take the mouse from the windows of later tests."""
    yield
    if not isinstance(QApplication.instance(), QApplication):
        return
    QToolTip.hideText()
    tips = [tip for tip in QApplication.topLevelWidgets() if tip.inherits("QTipLabel")]
    for tip in tips:
        tip.hide()
    left = [widget for widget in QApplication.topLevelWidgets() if widget.isVisible()]
    for widget in left:
        widget.hide()
    assert not left, f"the test left windows in sight: {left}"


@pytest.fixture
def socket_directory() -> Iterator[Path]:
    # Not tmp_path: a Unix socket's path has at most 107 bytes.
    directory = Path(tempfile.mkdtemp(prefix="gcspy-test-"))
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def program() -> Iterator[Program]:
    made = Program()
    yield made
    made.server.close()
    made.stop()


@pytest.fixture
def make_window(qtbot: QtBot) -> Iterator[MakeWindow]:
    """Windows of 1280 by 720, shown; each is closed at the end and must leave no timer running, no widget, and no wrapper of an item of a layout."""
    # Where a test before has left it, a window may come up, or lay itself out anew, under the pointer: the space that
    # it then is over becomes the active one.
    QCursor.setPos(*_AWAY)
    windows: list[MainWindow] = []
    others = QApplication.topLevelWidgets()

    def make(
        address: str | None = None,
        *,
        token: str | None = None,
        control: bool = True,
        theme: Theme = Theme.DARK,
        front: FrontDoor | None = None,
    ) -> MainWindow:
        window = MainWindow(theme, front=front)
        windows.append(window)
        window.resize(1280, 720)
        with qtbot.waitExposed(window, timeout=PATIENCE_MILLIS):
            window.show()
        if address is not None:
            window.link.open(parse_address(address), token=token, wants_control=control)
        return window

    yield make
    for window in windows:
        window.close()
        wrappers = item_wrappers()
        assert not wrappers, f"Python keeps items that Qt may delete (layout_guard): {wrappers}"
        left = [timer for timer in window.findChildren(QTimer) if timer.isActive()]
        assert not left, f"the closed window left timers running: {left}"
        assert window.link.status.phase is LinkPhase.IDLE or not window.link.status.address
        window.deleteLater()
    windows.clear()
    qtbot.wait(1)
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)  # not in another test
    qtbot.wait(1)  # a view that the closed window has just let go
    kept = [widget for widget in QApplication.topLevelWidgets() if widget not in others]
    assert not kept, f"a closed window's widgets are still there: {kept}"


@pytest.fixture
def wait(qtbot: QtBot) -> Wait:
    """Wait until something is so, and look each millisecond: a test waits dozens of times, and `qtbot.waitUntil` looks each ten."""

    def until(condition: Callable[[], bool]) -> None:
        give_up = monotonic() + PATIENCE_SECS
        while not condition():
            assert monotonic() < give_up, f"not so after {PATIENCE_SECS:g} s: {condition}"
            qtbot.wait(1)

    return until
