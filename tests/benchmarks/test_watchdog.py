"""The watchdog sees what keeps a loop from serving, where it was, and nothing else."""

from __future__ import annotations

import time

from PySide6.QtCore import QTimer
from pytestqt.qtbot import QtBot

from benchmarks.harness.watchdog import Watchdog
from tests.waiting import PATIENCE_MILLIS


def spin(secs: float) -> None:
    until = time.thread_time() + secs
    while time.thread_time() < until:
        pass


def test_a_block_is_seen_with_its_length_its_work_and_its_stack(qtbot: QtBot) -> None:
    with Watchdog(held_secs=0.2) as watchdog:
        qtbot.waitUntil(lambda: len(watchdog.waits) > 3, timeout=PATIENCE_MILLIS)
        QTimer.singleShot(0, lambda: spin(0.5))
        qtbot.waitUntil(
            lambda: any("spin" in line for block in watchdog.blocks for line in block.stack),
            timeout=PATIENCE_MILLIS,
        )
        block = next(one for one in watchdog.blocks if any("spin" in line for line in one.stack))
    assert block.used_secs > 0.2
    assert block.secs >= block.used_secs
    assert "spin" in str(block)


def test_sleeping_is_a_block_without_work(qtbot: QtBot) -> None:
    with Watchdog(held_secs=0.2) as watchdog:
        qtbot.waitUntil(lambda: len(watchdog.waits) > 3, timeout=PATIENCE_MILLIS)
        QTimer.singleShot(0, lambda: time.sleep(0.6))
        qtbot.waitUntil(
            lambda: any(one.secs > 0.5 for one in watchdog.blocks), timeout=PATIENCE_MILLIS
        )
        block = next(one for one in watchdog.blocks if one.secs > 0.5)
    assert block.used_secs < 0.2


def test_a_loop_that_serves_has_no_block(qtbot: QtBot) -> None:
    with Watchdog(held_secs=30.0) as watchdog:
        qtbot.waitUntil(lambda: len(watchdog.waits) > 20, timeout=PATIENCE_MILLIS)
    assert not watchdog.blocks
    assert (watchdog.waits < 30).all()
