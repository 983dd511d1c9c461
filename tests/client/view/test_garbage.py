"""Qt objects are destroyed in their own thread, whichever thread triggers the garbage collection."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import threading

from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from gcspy_client.view.garbage import GarbageTimer


def garbage(kind: type[QObject], destroyed: list[int]) -> None:
    """Make an object that nothing but itself refers to, and note the thread that destroys it."""
    made = kind()
    made.__dict__["itself"] = made
    made.destroyed.connect(
        lambda *_: destroyed.append(threading.get_ident()), Qt.ConnectionType.DirectConnection
    )


def allocate() -> None:
    """Have all generations be due, several times over."""
    for _ in range(300_000):
        pair: list[object] = []
        pair.append([pair])


def end(owner: QObject, qtbot: QtBot) -> None:
    """Destroy an object, and wait for it."""
    with qtbot.waitSignal(owner.destroyed):
        owner.deleteLater()


def test_another_thread_allocates_and_this_one_collects(qtbot: QtBot) -> None:
    destroyed: list[int] = []

    class Widget(QWidget):
        pass

    class Timer(QTimer):
        pass

    class Thing(QObject):
        pass

    owner = QObject()
    GarbageTimer(owner)
    assert not gc.isenabled()
    for kind in (Widget, Timer, Thing):
        garbage(kind, destroyed)
    other = threading.Thread(target=allocate)
    other.start()
    other.join()
    assert destroyed == []
    qtbot.waitUntil(lambda: len(destroyed) == 3, timeout=30_000)
    assert set(destroyed) == {threading.get_ident()}
    end(owner, qtbot)


def test_what_is_due_is_collected_each_time(qtbot: QtBot) -> None:
    owner = QObject()
    GarbageTimer(owner)
    before = [one["collections"] for one in gc.get_stats()]

    def all_were() -> bool:
        for _ in range(3000):
            pair: list[object] = []
            pair.append([pair])
        now = [one["collections"] for one in gc.get_stats()]
        return all(number > old for number, old in zip(now[:2], before[:2], strict=True))

    qtbot.waitUntil(all_were, timeout=60_000)
    assert gc.get_count()[0] < 100_000
    end(owner, qtbot)


def test_the_collector_is_switched_on_again_by_the_last_timer() -> None:
    """In a process of its own: here, windows of other tests may end, or be about to, with timers of theirs."""
    program = textwrap.dedent("""
        import gc
        from PySide6.QtCore import QCoreApplication, QEvent, QObject
        from gcspy_client.view.garbage import GarbageTimer

        application = QCoreApplication([])
        owners = [QObject(), QObject()]
        enabled = [gc.isenabled()]
        for owner in owners:
            GarbageTimer(owner)
            enabled.append(gc.isenabled())
        for owner in owners:
            owner.deleteLater()
            QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
            enabled.append(gc.isenabled())
        print(*enabled)
        """)
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout.split() == ["True", "False", "False", "False", "True"]
