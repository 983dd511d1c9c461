"""Keeping the messages of a real server: the live side loses nothing, whatever the disk does and whether or not the user looks back."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gcspy_protocol.address import parse_address
from gcspy_protocol.messages import Event, Message
from gcspy_replay.file import ChunkRule, FileSource, Recording, verify
from gcspy_replay.file.storage import shift as shift_module
from numpy.typing import NDArray
from PySide6.QtCore import QTimer
from pytestqt.qtbot import QtBot

from gcspy_client.link import WindowLink
from gcspy_client.model.playback.time_shift import StorageState, TimeShift
from gcspy_client.model.session import ClientSession
from gcspy_client.model.shell.link_status import LinkPhase
from tests.client.program import Program
from tests.client.watching import Wait
from tests.waiting import PATIENCE_SECS


class Watcher:
    """The parts of a window that need no window: a link, a session, a time shift.

    Attributes:
        heaps: The heap of the program at each event that was seen live, in order.
    """

    def __init__(self, **more: Any) -> None:
        self.link = WindowLink()
        self.shift = TimeShift(rule=ChunkRule(events=3, weight=0.0), **more)
        self.session = ClientSession(self.shift.timeline)
        self.heaps: list[NDArray[np.uint8]] = []
        self.link.tap = self.shift
        self.shift.on_room = self.link.read_on
        self.link.welcomed.connect(self.session.restart)
        self.link.received.connect(self._take)

    def _take(self, messages: list[Message]) -> None:
        for message in messages:
            self.session.apply(message)
            if isinstance(message, Event):
                self.heaps.append(self.session.live.spaces[1].streams[0].values.copy())

    @property
    def seen(self) -> int:
        return len(self.heaps)

    def assert_kept(self) -> None:
        """Whatever was seen live is kept, event for event."""
        assert self.shift.settle(PATIENCE_SECS)
        assert (self.shift.first, self.shift.last) == (1, self.seen)
        for number in range(1, self.seen + 1):
            values = self.shift.at(number).spaces[1].streams[0].values
            assert np.array_equal(values, self.heaps[number - 1]), number

    def close(self) -> None:
        self.link.shut()
        self.shift.close()
        self.link.deleteLater()


@pytest.fixture
def address(program: Program, socket_directory: Path) -> str:
    return program.server.serve(f"unix:{socket_directory}/a.sock").addresses[0]


@contextmanager
def watching(address: str, wait: Wait, **more: Any) -> Iterator[Watcher]:
    watcher = Watcher(**more)
    try:
        watcher.link.open(parse_address(address))
        wait(lambda: watcher.link.status.phase is LinkPhase.LIVE)
        yield watcher
    finally:
        watcher.close()


def test_who_scrubs_while_it_is_live_loses_no_event(
    program: Program, address: str, wait: Wait, qtbot: QtBot
) -> None:
    random = np.random.default_rng(3)
    with watching(address, wait) as watcher:
        truths = []
        looked = 0
        for events in range(1, 61):
            program.let_happen()
            wait(partial(has_seen, events, watcher))
            truths.append(program.values.copy())
            if watcher.shift.last:
                number = int(random.integers(1, watcher.shift.last + 1))
                watcher.session.show(watcher.shift.at(number), number)
                shown = watcher.session.interpreter.spaces[1].streams[0].values
                assert np.array_equal(shown, truths[number - 1])
                assert watcher.session.behind == events - number
                looked += 1
        assert looked > 30
        watcher.session.go_live()
        assert watcher.session.live.missed_total == 0
        assert all(np.array_equal(*pair) for pair in zip(watcher.heaps, truths, strict=True))
        watcher.assert_kept()


def test_events_that_come_together_are_numbered_as_they_are_kept(
    program: Program, address: str, wait: Wait
) -> None:
    with watching(address, wait) as watcher:
        for _ in range(20):
            before = watcher.seen
            program.let_happen(12)  # of more at once the server would leave some out
            wait(partial(has_seen, before + 12, watcher))
        watcher.assert_kept()
        recorded = watcher.shift.recording().events
        for name in ("time_nanos", "occurrence", "missed", "event"):
            assert np.array_equal(recorded[name], watcher.shift.timeline.rows[name])
        assert recorded["missed"].sum() == 0


def phase(watcher: Watcher) -> LinkPhase:
    return watcher.link.status.phase


def has_seen(events: int, *watchers: Watcher) -> bool:
    return all(watcher.seen == events for watcher in watchers)


def held(watcher: Watcher) -> bool:
    return watcher.link.is_held


class SlowDisk:
    """A disk that writes nothing until the test releases it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.let_go = threading.Event()
        append = shift_module.ShiftStore.append

        def slowly(store: shift_module.ShiftStore, data: bytes, *, time_nanos: int) -> None:
            assert self.let_go.wait(PATIENCE_SECS)
            append(store, data, time_nanos=time_nanos)

        monkeypatch.setattr(shift_module.ShiftStore, "append", slowly)


def test_a_slow_disk_slows_the_socket_and_nothing_else(
    program: Program, address: str, wait: Wait, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    disk = SlowDisk(monkeypatch)
    with watching(address, wait, queue_bytes=1) as watcher:
        program.let_happen()
        wait(lambda: held(watcher) and watcher.seen == 1)
        seen = watcher.seen
        ticks = []
        timer = QTimer()
        timer.timeout.connect(lambda: ticks.append(1))
        timer.start(1)
        program.let_happen(12)
        wait(lambda: len(ticks) > 50 and program.server.counts()[0] == 13)
        assert held(watcher)
        assert watcher.seen == seen  # nothing more was read, and Qt's loop continued all the time
        timer.stop()
        disk.let_go.set()
        wait(lambda: watcher.seen == 13)
        assert np.array_equal(watcher.heaps[-1], program.values)
        wait(lambda: not held(watcher))
        watcher.assert_kept()


def test_a_held_link_does_not_take_its_own_silence_for_the_server_s(
    program: Program, address: str, wait: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = SlowDisk(monkeypatch)
    with watching(address, wait, queue_bytes=1) as watcher:
        program.let_happen()
        wait(lambda: held(watcher) and watcher.seen == 1)
        for _ in range(50):
            watcher.link._ping()  # what its timer does each second and a half
        assert phase(watcher) is LinkPhase.LIVE
        disk.let_go.set()
        wait(lambda: not watcher.link.is_held and watcher.seen == 1)
        watcher.link._unanswered = 0
        for _ in range(11):
            watcher.link._ping()  # nothing is read in between: Qt's loop does not run
        assert phase(watcher) is LinkPhase.LOST


def test_what_came_before_the_end_of_the_server_counts_when_reading_was_held(
    program: Program, address: str, wait: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = SlowDisk(monkeypatch)
    with watching(address, wait, queue_bytes=1) as watcher:
        program.let_happen()
        wait(lambda: held(watcher) and watcher.seen == 1)
        program.let_happen(5)
        wait(lambda: program.server.counts()[0] == 6)
        program.server.close()
        disk.let_go.set()
        wait(lambda: watcher.link.status.phase is LinkPhase.ENDED)
        assert np.array_equal(watcher.heaps[-1], program.values)
        watcher.assert_kept()


def test_a_reconnect_goes_on_where_it_was_and_counts_what_was_missed(
    program: Program, address: str, wait: Wait
) -> None:
    with watching(address, wait) as watcher, watching(address, wait) as other:
        for events in range(1, 4):
            program.let_happen()
            wait(partial(has_seen, events, watcher, other))
        watcher.link.close()
        for events in range(4, 8):
            program.let_happen()
            wait(partial(has_seen, events, other))
        watcher.link.reconnect()
        wait(lambda: watcher.seen == 4)
        program.let_happen()
        wait(lambda: watcher.seen == 5)
        watcher.assert_kept()
        assert watcher.shift.timeline.rows["missed"].tolist() == [0, 0, 0, 3, 0]
        assert watcher.shift.recording().events["missed"].tolist() == [0, 0, 0, 3, 0]


def test_a_saved_session_is_intact_and_is_what_was_seen(
    program: Program, address: str, wait: Wait, tmp_path: Path
) -> None:
    with watching(address, wait) as watcher:
        for events in range(1, 21):
            program.let_happen()
            wait(partial(has_seen, events, watcher))
        paths = {tmp_path / "whole.gcspy": (1, 20), tmp_path / "part.gcspy": (5, 12)}
        for path, (first, last) in paths.items():
            assert watcher.shift.save(path, first, last) == last - first + 1
            with FileSource(path) as source:
                assert verify(source).findings == []
            with Recording.open(path) as recording:
                assert recording.indexed
                for step, session in recording.steps():
                    assert np.array_equal(
                        session.spaces[1].streams[0].values, watcher.heaps[step.number - 1]
                    )
                assert step.number == last


def test_a_full_disk_leaves_the_live_view_alone(
    program: Program, address: str, wait: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_file: object, _data: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shift_module, "_write", full)
    with watching(address, wait, memory_bytes=1 << 16, disk_bytes=1 << 30) as watcher:
        for _ in range(200):
            events = watcher.seen + 1
            program.let_happen()
            wait(partial(has_seen, events, watcher))
            if watcher.shift.status.keeping is StorageState.ENDED:
                break
        kept = watcher.shift.last
        assert 0 < kept < watcher.seen
        assert "No space left" in watcher.shift.status.reason
        before = watcher.seen
        program.let_happen()
        wait(lambda: watcher.seen == before + 1)
        assert np.array_equal(watcher.heaps[-1], program.values)
        assert watcher.shift.last == watcher.shift.timeline.last == kept
        values = watcher.shift.at(kept).spaces[1].streams[0].values
        assert np.array_equal(values, watcher.heaps[kept - 1])


def keep(memory_bytes: int, disk_bytes: int, *, times: int, seed: int) -> dict[str, Any]:
    """Let a process keep a session this many times larger than its budgets."""
    arguments = [str(number) for number in (memory_bytes, disk_bytes, 4 << 20, times, seed)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.client.keeping_program", *arguments],
        check=False,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    assert told["sent_bytes"] >= times * (memory_bytes + disk_bytes)
    assert told["reason"] == ""
    assert told["last"] == told["events"]
    assert told["first"] > 1
    assert told["most_memory_bytes"] <= memory_bytes
    assert told["disk_bytes"] <= disk_bytes
    assert told["looked"] > 20
    assert told["wrong"] == 0
    # The queue, what one batch goes beyond it, a chunk that is read, and what Python's allocator holds on to.
    assert told["rss_growth"] < memory_bytes + (4 << 20) + (24 << 20)
    return told


@pytest.mark.parametrize("disk_bytes", [0, 12 << 20])
def test_memory_stays_within_its_budget_in_a_session_ten_times_larger(disk_bytes: int) -> None:
    keep(12 << 20, disk_bytes, times=10, seed=1)


@pytest.mark.soak
def test_memory_stays_within_its_budget_in_a_long_session(soak_seed: int) -> None:
    keep(64 << 20, 64 << 20, times=20, seed=soak_seed)
