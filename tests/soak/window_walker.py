"""A window that is used at random: a program of its own, because what is looked for ends the process.

Each step is written to standard output before it is done, so that the last line of a process that crashed is the step that
crashed it. `python -m tests.soak.window_walker --seed 7 --steps 500 --address unix:/path --file a.gcspy` repeats a walk: the
same steps in the same order; what the server sends in between is not repeated.

A fault is a signal, an exception in a slot, or a warning of Qt about objects or painters. The walker knows windows only.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import os
import random
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from gcspy_protocol.address import parse_address
from PySide6.QtCore import (
    QCoreApplication,
    QEvent,
    QPoint,
    QPointF,
    Qt,
    QTimer,
    QtMsgType,
    qInstallMessageHandler,
)
from PySide6.QtGui import QImage, QMouseEvent, QPainter, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QMenu, QWidget
from shiboken6 import isValid

from gcspy.hosts.launcher import front_door
from gcspy_client.app import application
from gcspy_client.model.palette import Theme
from gcspy_client.settings import UserSettings
from gcspy_client.view.window import MainWindow

_LEFT_OUT = {
    "session.quit",  # the walk closes windows by itself
    "session.another",  # a process that nobody would end
}
"""Actions that are not for a walk."""

_HARMLESS = (
    "propagateSizeHints",
    "QWidgetWindow(",  # geometries that the window system refuses, as the xcb platform reports
    "Unable to set geometry",
    "This plugin does not support",
    "setGeometry",
    "QFileSystemWatcher",
)
"""In warnings of Qt that say nothing of us."""

_AREAS = (
    Qt.DockWidgetArea.LeftDockWidgetArea,
    Qt.DockWidgetArea.RightDockWidgetArea,
    Qt.DockWidgetArea.TopDockWidgetArea,
    Qt.DockWidgetArea.BottomDockWidgetArea,
)

_KEYS = "nphbl,.[]+-0?{}<> \x1b"

_Step = Callable[[], str | None]


def _say(text: str) -> None:
    os.write(1, (text + "\n").encode(errors="replace"))


class Walker:
    """Goes through a window, step by step, from a seed.

    Args:
        seed: Of the steps.
        addresses: Of sessions to join.
        files: Recordings to play and to compare with.
        pids: Processes to attach to.

    Attributes:
        faults: Descriptions of the faults.
    """

    def __init__(self, seed: int, addresses: list[str], files: list[Path], pids: list[int]) -> None:
        self._rng = random.Random(seed)
        self._addresses, self._files, self._pids = addresses, files, pids
        self._layouts: list[bytes] = []
        self.faults: list[str] = []
        self.window = self._make_window()
        self._closer = QTimer()  # of dialogs and menus, which have loops of their own
        self._closer.timeout.connect(self._close_modal)
        self._closer.start(40)
        self._steps: list[tuple[int, str, _Step]] = [
            (14, "present", self._present),
            (10, "resize", self._resize),
            (5, "window state", self._window_state),
            (14, "dock", self._dock),
            (4, "use layout", self._use_layout),
            (5, "theme", self._theme),
            (6, "join", self._join),
            (1, "play", self._play),
            (1, "attach", self._attach),
            (14, "action", self._action),
            (14, "mouse", self._mouse),
            (6, "wheel", self._wheel),
            (8, "key", self._key),
            (2, "picture", self._picture),
            (2, "collect", self._collect),
            (1, "new window", self._new_window),
        ]

    def walk(self, steps: int) -> None:
        """Do this many steps; between two of them Qt does its own work for some milliseconds."""
        names = [step for _, _, step in self._steps]
        weights = [weight for weight, _, _ in self._steps]
        titles = {step: title for _, title, step in self._steps}
        for number in range(steps):
            (step,) = self._rng.choices(names, weights)
            _say(f"step {number}: {titles[step]}")
            try:
                detail = step()
            except Exception:  # noqa: BLE001  # told, and the walk goes on
                self.faults.append(f"step {number} {titles[step]}: {traceback.format_exc()}")
                detail = "raised"
            if detail:
                _say(f"  {detail}")
            self._breathe(self._rng.choice((0, 0, 0, 1, 5, 20, 60)))

    def end(self) -> None:
        """Close the window, and let Qt delete it."""
        self._close_window()
        self._closer.stop()

    # ------------------------------------------------------------------------- helpers

    def _make_window(self) -> MainWindow:
        window = MainWindow(Theme.DARK, UserSettings(), front_door())
        window.resize(self._rng.randint(500, 1300), self._rng.randint(400, 1000))
        window.show()
        if self._addresses:
            window.link.open(parse_address(self._rng.choice(self._addresses)), wants_control=True)
        return window

    def _close_window(self) -> None:
        self.window.close()
        self.window.deleteLater()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        QApplication.processEvents()

    def _breathe(self, millis: int) -> None:
        """Let Qt work; at least on the pending events."""
        until = time.monotonic() + millis / 1000
        while True:
            QApplication.processEvents()
            QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
            if time.monotonic() >= until:
                return

    def _close_modal(self) -> None:
        for found in (QApplication.activePopupWidget(), QApplication.activeModalWidget()):
            if found is None:
                continue
            if isinstance(found, QDialog) and self._rng.random() < 0.3:
                found.accept()
            else:
                found.close()

    def _dock_names(self) -> list[str]:
        return list(self.window.docks)

    def _a_widget(self) -> QWidget:
        """One of the widgets that can be seen, of any window."""
        roots = [top for top in QApplication.topLevelWidgets() if top.isVisible()]
        if not roots:
            return self.window
        root = self.window if self._rng.random() < 0.7 else self._rng.choice(roots)
        seen = [part for part in root.findChildren(QWidget) if part.isVisible()]
        seen = [part for part in seen if not isinstance(part, QMenu)]
        return self._rng.choice(seen) if seen else root

    def _a_place(self, part: QWidget) -> QPoint:
        return QPoint(
            self._rng.randint(0, max(0, part.width() - 1)),
            self._rng.randint(0, max(0, part.height() - 1)),
        )

    # --------------------------------------------------------------------------- steps

    def _present(self) -> str:
        if self._rng.random() < 0.3:
            QTest.keyClick(self.window, Qt.Key.Key_F11)
        else:
            self.window.presentation.toggle()
        # Twice at once is what a held key does.
        if self._rng.random() < 0.2:
            self.window.presentation.toggle()
        return f"on: {self.window.presentation.on}"

    def _resize(self) -> str:
        width, height = self._rng.randint(200, 1500), self._rng.randint(150, 1200)
        self.window.resize(width, height)
        return f"{width} x {height}"

    def _window_state(self) -> str:
        change = self._rng.choice(
            ("showMinimized", "showMaximized", "showFullScreen", "showNormal", "showNormal", "hide")
        )
        getattr(self.window, change)()
        if change == "hide":
            self._breathe(self._rng.choice((0, 10)))
            self.window.show()
        return change

    def _dock(self) -> str:
        docks, rng = self.window.docks, self._rng
        name = rng.choice(self._dock_names())
        other = rng.choice(self._dock_names())
        dock, area = docks[name], docks.area
        how = rng.choice(
            ("toggle", "show", "close", "float", "float", "move", "tabify", "split", "resize")
        )
        if how == "toggle":
            docks.toggle(name)
        elif how == "show":
            docks.show(name)
        elif how == "close":
            dock.close()
        elif how == "float":
            dock.setFloating(not dock.isFloating())
            if dock.isFloating():
                dock.resize(rng.randint(50, 700), rng.randint(50, 700))
        elif how == "move":
            area.addDockWidget(rng.choice(_AREAS), dock)
        elif how == "tabify" and other != name:
            area.tabifyDockWidget(docks[other], dock)
        elif how == "split" and other != name:
            area.splitDockWidget(
                docks[other], dock, rng.choice((Qt.Orientation.Vertical, Qt.Orientation.Horizontal))
            )
        elif how == "resize":
            docks.give_width(name, rng.randint(10, 900))
            docks.give_height(name, rng.randint(10, 900))
        return f"{how} {name} {other}"

    def _use_layout(self) -> str:
        docks = self.window.docks
        if not self._layouts or self._rng.random() < 0.5:
            self._layouts.append(docks.state())
            return "kept"
        docks.use_state(self._rng.choice(self._layouts))
        return "used"

    def _theme(self) -> str:
        theme = self._rng.choice((None, *Theme))
        self.window.appearance.choose(theme)
        return str(theme)

    def _join(self) -> str:
        how = self._rng.choice(("open", "open", "reconnect", "close", "page", "back"))
        link, starting = self.window.link, self.window.opener
        if how == "open" and self._addresses:
            starting.connect_to(self._rng.choice(self._addresses), control=self._rng.random() < 0.5)
        elif how == "reconnect" and link.address is not None:
            link.reconnect()
        elif how == "close":
            link.close()
        elif how == "page":
            starting.open_page()
        elif how == "back":
            starting.close_page()
        return how

    def _play(self) -> str | None:
        if not self._files:
            return None
        path = self._rng.choice(self._files)
        if self._rng.random() < 0.5:
            self.window.opener.play([path])
            return f"play {path.name}"
        self.window.compare.open_soon(path)
        return f"compare {path.name}"

    def _attach(self) -> str | None:
        if not self._pids:
            return None
        self.window.opener.attach(self._rng.choice(self._pids))
        return "attach"

    def _action(self) -> str:
        name = self._rng.choice([one.name for one in self.window.actions_table])
        if name in _LEFT_OUT:
            return f"not {name}"
        _say(f"  {name}")
        self.window.actions_table.run(name)
        return ""

    def _mouse(self) -> str:
        part = self._a_widget()
        how = self._rng.choice(("click", "click", "right", "double", "drag", "move"))
        begin, end = self._a_place(part), self._a_place(part)
        _say(f"  {how} {type(part).__name__} {part.objectName()} {begin.x()},{begin.y()}")
        left = Qt.MouseButton.LeftButton
        if how == "click":
            QTest.mouseClick(part, left, pos=begin)
        elif how == "right":
            QTest.mouseClick(part, Qt.MouseButton.RightButton, pos=begin)
        elif how == "double":
            QTest.mouseDClick(part, left, pos=begin)
        elif how == "drag":
            QTest.mousePress(part, left, pos=begin)
            for share in (0.3, 0.7, 1.0):
                if isValid(part):
                    place = begin + (end - begin) * share
                    self._drag_over(part, place)
                    self._breathe(self._rng.choice((0, 0, 5)))
            if isValid(part):
                QTest.mouseRelease(part, left, pos=end)
        else:
            QTest.mouseMove(part, begin)
        return ""

    def _drag_over(self, part: QWidget, place: QPoint) -> None:
        """Move with the button held: QTest's own moves hold none."""
        left = Qt.MouseButton.LeftButton
        event = QMouseEvent(
            QEvent.Type.MouseMove,
            QPointF(place),
            QPointF(part.mapToGlobal(place)),
            left,
            left,
            Qt.KeyboardModifier.NoModifier,
        )
        QApplication.sendEvent(part, event)

    def _wheel(self) -> str:
        part = self._a_widget()
        place = self._a_place(part)
        turn = QPoint(0, self._rng.choice((-360, -120, 120, 360)))
        modifier = self._rng.choice(
            (Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ControlModifier)
        )
        event = QWheelEvent(
            QPointF(place),
            QPointF(part.mapToGlobal(place)),
            QPoint(),
            turn,
            Qt.MouseButton.NoButton,
            modifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        QApplication.sendEvent(part, event)
        return type(part).__name__

    def _key(self) -> str:
        key = self._rng.choice(_KEYS)
        part = QApplication.focusWidget() or self.window
        _say(f"  {key!r} to {type(part).__name__}")
        if key == "\x1b":
            QTest.keyClick(part, Qt.Key.Key_Escape)
        else:
            QTest.keyClicks(part, key)
        return ""

    def _picture(self) -> str:
        if self._rng.random() < 0.5:
            self.window.grab()
            return "grabbed"
        part = self._a_widget()
        image = QImage(max(1, part.width()), max(1, part.height()), QImage.Format.Format_RGB32)
        painter = QPainter(image)
        part.render(painter, QPoint())
        painter.end()
        return type(part).__name__

    def _collect(self) -> str:
        gc.collect()
        return ""

    def _new_window(self) -> str:
        presenting = self.window.presentation.on
        self._close_window()
        self._layouts.clear()
        if self._rng.random() < 0.5:
            gc.collect()
        self.window = self._make_window()
        return f"the one before presented: {presenting}"


def main() -> int:
    """Walk; the exit code is 1 when anything went wrong that did not end the process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--address", action="append", default=[])
    parser.add_argument("--file", action="append", default=[], type=Path)
    parser.add_argument("--pid", action="append", default=[], type=int)
    chosen = parser.parse_args()
    faulthandler.enable()
    app = application()
    app.setQuitOnLastWindowClosed(False)
    walker = Walker(chosen.seed, chosen.address, chosen.file, chosen.pid)

    def qt_says(kind: QtMsgType, _context: object, text: str) -> None:
        if kind is not QtMsgType.QtDebugMsg and not any(one in text for one in _HARMLESS):
            where = "".join(traceback.format_stack(limit=8)[:-1])
            walker.faults.append(f"Qt: {text}\n{where}")

    def raised(
        kind: type[BaseException], error: BaseException, where: TracebackType | None
    ) -> None:
        walker.faults.append("".join(traceback.format_exception(kind, error, where)))

    qInstallMessageHandler(qt_says)
    sys.excepthook = raised
    began = time.monotonic()
    walker.walk(chosen.steps)
    walker.end()
    _say(f"walked {chosen.steps} steps in {time.monotonic() - began:.0f} s, {app.platformName()}")
    for fault in walker.faults:
        _say(f"FAULT {fault}")
    sys.stdout.flush()
    return 1 if walker.faults else 0


if __name__ == "__main__":
    sys.exit(main())
