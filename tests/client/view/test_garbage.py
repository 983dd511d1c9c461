"""Qt objects are destroyed in their own thread, whichever thread triggers the garbage collection."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import weakref
from functools import partial

from PySide6.QtCore import QObject, QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from gcspy_client.view.garbage import GarbageTimer
from tests.waiting import PATIENCE_SECS


def end(owner: QObject, qtbot: QtBot) -> None:
    """Destroy an object, and wait for it."""
    with qtbot.waitSignal(owner.destroyed):
        owner.deleteLater()


def test_another_thread_allocates_and_this_one_collects() -> None:
    """In a process of its own: here, windows of other tests may exist, and their timers collect, or freeze everything, too."""
    program = textwrap.dedent("""
        import gc, threading
        from PySide6.QtCore import QObject, Qt, QTimer
        from PySide6.QtWidgets import QApplication, QWidget
        from gcspy_client.view.garbage import GarbageTimer

        application = QApplication([])
        owner = QObject()
        timer = GarbageTimer(owner)
        timer.idle_secs = 0.0
        destroyed = []
        # Subclasses of Python's have a dictionary, by which an object can refer to itself.
        kinds = [type(kind.__name__, (kind,), {}) for kind in (QWidget, QTimer, QObject)]
        for kind in kinds:
            made = kind()
            made.__dict__["itself"] = made
            made.destroyed.connect(lambda *_: destroyed.append(threading.get_ident()), Qt.ConnectionType.DirectConnection)
            del made

        def allocate():
            for _ in range(300_000):
                pair = []
                pair.append([pair])

        assert not gc.isenabled()
        other = threading.Thread(target=allocate)
        other.start()
        other.join()
        before = len(destroyed)
        look = QTimer()
        look.timeout.connect(lambda: len(destroyed) == 3 and application.quit())
        look.start(20)
        application.exec()
        print(before, len(destroyed), set(destroyed) == {threading.get_ident()})
        """)
    ran = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_SECS,
    )
    assert ran.stdout.split() == ["0", "3", "True"]


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


def collected(timer: GarbageTimer, thing: weakref.ref[object]) -> bool:
    timer._look()
    return thing() is None


class Knot:
    """Refers to itself, so that only the collector ends it."""

    def __init__(self) -> None:
        self.itself = self


def test_what_survives_a_full_collection_is_not_visited_by_the_next_until_nobody_acts(
    qtbot: QtBot,
) -> None:
    owner = QObject()
    timer = GarbageTimer(owner)
    timer.least_new, timer.idle_secs = 1, 1e9
    knot = Knot()
    thing: weakref.ref[object] = weakref.ref(knot)
    timer._collect_all()
    assert not any(one is knot for one in gc.get_objects(generation=2))
    del knot
    gc.collect()
    assert thing() is not None, "it is frozen"
    assert not collected(timer, thing), "someone acts"
    timer._new, timer.least_new, timer.idle_secs = 1 << 30, 1, 0.0
    timer._frozen = 1
    timer._rests_until = 0.0
    assert collected(timer, thing)
    assert timer._new == 0
    end(owner, qtbot)


def test_keys_and_the_mouse_put_a_deep_collection_off(qtbot: QtBot) -> None:
    owner = QObject()
    timer = GarbageTimer(owner)
    widget = QWidget()
    qtbot.addWidget(widget)
    widget.show()
    handle = widget.windowHandle()
    timer._watch(handle)
    for act in (
        partial(QTest.keyClick, handle, Qt.Key.Key_A),
        partial(QTest.mouseMove, handle, QPoint(3, 4)),
    ):
        timer._acted = 0.0
        act()
        qtbot.waitUntil(lambda: timer._acted > 0)
    timer._acted = 0.0
    widget.resize(100, 100)
    widget.repaint()
    assert timer._acted == 0, "nobody acted"
    end(owner, qtbot)


def test_what_is_built_at_once_is_not_visited(qtbot: QtBot) -> None:
    owner = QObject()
    timer = GarbageTimer(owner)
    gc.collect()
    before = [one["collections"] for one in gc.get_stats()]
    built = [[number] for number in range(50_000)]
    timer._look()
    assert [one["collections"] for one in gc.get_stats()] == before
    assert gc.get_count()[0] < 5_000
    assert len(built) == 50_000
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
