"""The start page, with real processes, real recordings and the children of the real front door."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil
import pytest
from gcspy_objects.samples import sample_traces
from gcspy_protocol.errors import LinkError
from gcspy_replay.samples import samples
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from gcspy.demo.demo_process import running_workload
from gcspy.hosts.launcher import front_door
from gcspy_client.model.palette import Theme
from gcspy_client.model.shell.launcher import FrontDoor, Launch
from gcspy_client.settings import UserSettings
from gcspy_client.view.start.thumbnails import THUMBNAIL
from gcspy_client.view.window import MainWindow
from tests.client.program import Program
from tests.matrix import matrix
from tests.unknown_process import unknown_process

Open = Callable[..., MainWindow]
PATIENCE_MILLIS = 150_000


@pytest.fixture
def settings(tmp_path: Path) -> UserSettings:
    return UserSettings(tmp_path / "settings.ini")


@pytest.fixture
def opened(qtbot: QtBot, settings: UserSettings) -> Iterator[Open]:
    windows = []

    def make(front: FrontDoor | None = None) -> MainWindow:
        window = MainWindow(Theme.DARK, settings, front or front_door())
        windows.append(window)
        window.resize(1280, 720)
        with qtbot.waitExposed(window, timeout=PATIENCE_MILLIS):
            window.show()
        return window

    yield make
    for window in windows:
        window.close()
        assert not window.opener.child.pid
        window.deleteLater()
    qtbot.wait(1)


@pytest.fixture
def workload() -> Iterator[int]:
    with running_workload(sys.executable, seed=1) as pid:
        yield pid


def shows_session(window: MainWindow) -> bool:
    return window.updater.has_tiles and not window.opener.wanted and window.session.events_seen > 0


def test_a_process_is_found_by_typing_and_attached_to_with_enter(
    opened: Open, workload: int, qtbot: QtBot
) -> None:
    window = opened()
    page = window.opener.page
    assert page.isVisible()
    qtbot.waitUntil(
        lambda: any(row.pid == workload for row in page.processes.model.rows),
        timeout=PATIENCE_MILLIS,
    )
    QTest.keyClicks(page.processes.field, f"workload {workload}")
    assert [row.pid for row in page.processes.model.rows] == [workload]
    qtbot.waitUntil(page.processes.attach.isEnabled, timeout=PATIENCE_MILLIS)
    QTest.keyClick(page.processes.field, Qt.Key.Key_Return)
    assert "Attaching" in page.said.text()
    qtbot.waitUntil(lambda: shows_session(window), timeout=PATIENCE_MILLIS)
    assert str(workload) in window.windowTitle()
    assert psutil.pid_exists(workload)
    assert not page.isVisible()
    child = window.opener.child.pid
    window.close()
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE
    assert psutil.Process(workload).is_running(), "the target goes on"


def test_a_process_that_cannot_be_watched_is_grey_and_says_why(
    opened: Open, qtbot: QtBot, tmp_path: Path
) -> None:
    with unknown_process(tmp_path) as other:
        window = opened()
        page = window.opener.page
        page.processes.everything.click()
        QTest.keyClicks(page.processes.field, f"{other} pause")
        rows = page.processes.model.rows
        qtbot.waitUntil(
            lambda: [row.pid for row in page.processes.model.rows] == [other],
            timeout=PATIENCE_MILLIS,
        )
        assert not rows or not rows[0].watchable
        assert "not recognised by any driver" in page.processes.said.text()
        assert not page.processes.attach.isEnabled()
        with qtbot.assertNotEmitted(page.processes.attach_asked):
            QTest.keyClick(page.processes.table, Qt.Key.Key_Return)


def test_what_goes_wrong_with_a_process_is_told_on_the_page_with_its_remedy(
    opened: Open, qtbot: QtBot, tmp_path: Path
) -> None:
    with unknown_process(tmp_path) as other:
        window = opened()
        window.opener.attach(other)  # as if it had been watchable when it was listed
        page = window.opener.page
        qtbot.waitUntil(lambda: "failed" in page.said.text(), timeout=PATIENCE_MILLIS)
        assert "no driver supports the runtime" in page.said.text()
        assert page.isVisible()
        assert page.cancel.isHidden()
    window.opener.attach(other)
    qtbot.waitUntil(lambda: "gcspy ps" in page.said.text(), timeout=PATIENCE_MILLIS)


def test_a_sample_is_played_and_is_listed_as_opened_lately(
    opened: Open, settings: UserSettings, qtbot: QtBot
) -> None:
    window = opened()
    page = window.opener.page
    assert len(page.samples.titles()) == len(samples()) + len(sample_traces())
    page.samples.itemActivated.emit(page.samples.item(0))
    qtbot.waitUntil(lambda: shows_session(window), timeout=PATIENCE_MILLIS)
    assert window.session.is_playback
    assert window.bookmark_store.recording == (samples()[0].path,)
    window.opener.open_page()
    assert page.isVisible()
    assert page.back.isVisible()
    assert any(samples()[0].path.name in title for title in page.recent.titles())
    page.back.click()
    assert not page.isVisible()


def test_an_object_trace_is_opened_with_its_progress_and_is_listed_by_its_own_name(
    opened: Open, qtbot: QtBot
) -> None:
    window = opened()
    page = window.opener.page
    said: list[str] = []
    window.opener.child.progressed.connect(
        lambda _launch, what, share: said.append(f"{what} {share:.1f}")
    )
    (trace,) = sample_traces()
    page.samples.itemActivated.emit(page.samples.item(page.samples.count() - 1))
    qtbot.waitUntil(lambda: shows_session(window), timeout=PATIENCE_MILLIS)
    assert said, "how far it is"
    (made,) = window.bookmark_store.recording
    assert made.name == "promote.gcspy"
    assert made.is_file()
    assert {space.space.name for space in window.session.interpreter.spaces.values()} >= {
        "Eden",
        "Survivors",
        "Old",
        "Types",
    }
    window.opener.open_page()
    assert any(trace.path.name in title for title in page.recent.titles())
    window.opener.child.stop()
    assert not made.exists()


def test_another_thing_is_opened_in_the_same_window_and_the_child_before_ends(
    opened: Open, workload: int, qtbot: QtBot
) -> None:
    window = opened()
    window.opener.play([samples()[1].path])
    qtbot.waitUntil(lambda: shows_session(window), timeout=PATIENCE_MILLIS)
    first = window.opener.child.pid
    window.opener.attach(workload)
    qtbot.waitUntil(
        lambda: not window.session.is_playback and shows_session(window), timeout=PATIENCE_MILLIS
    )
    assert window.opener.child.pid != first
    assert not psutil.pid_exists(first)
    assert window.bookmark_store.recording == ()


@pytest.mark.usefixtures("real_starts")  # the child of a stand-in has no children
def test_the_demo_starts_its_program_and_ends_it_with_the_window(
    opened: Open, qtbot: QtBot
) -> None:
    window = opened()
    window.opener.page.demo.click()
    qtbot.waitUntil(lambda: shows_session(window), timeout=PATIENCE_MILLIS)
    child = psutil.Process(window.opener.child.pid)
    programs = child.children()
    assert len(programs) == 1
    window.close()
    _gone, alive = psutil.wait_procs(programs, timeout=10)
    assert not alive


def test_what_is_gone_is_grey_and_the_list_can_be_cleared(
    opened: Open, settings: UserSettings, tmp_path: Path
) -> None:
    gone = tmp_path / "gone.gcspy"
    settings.store("recent.recordings", [str(gone)])
    settings.store("recent.servers", ["unix:/nowhere.sock"])
    window = opened()
    page = window.opener.page
    assert any("moved or deleted" in title for title in page.recent.titles())
    assert not page.recent.item(0).flags() & Qt.ItemFlag.ItemIsEnabled
    assert page.recent.item(1).flags() & Qt.ItemFlag.ItemIsEnabled
    page.forget.click()
    assert page.recent.titles() == []
    assert settings.texts("recent.recordings") == ()


def test_a_start_can_be_left(opened: Open, qtbot: QtBot) -> None:
    forever = Launch(
        command=(sys.executable, "-c", "import sys; sys.stdin.read()"), line="{}", title="Waiting"
    )
    window = opened(replace(front_door(), play=lambda _files: forever))
    page = window.opener.page
    window.opener.play([samples()[0].path])
    assert page.cancel.isVisible()
    qtbot.waitUntil(lambda: window.opener.child.pid > 0, timeout=60_000)
    page.cancel.click()
    assert not window.opener.child.pid
    assert page.cancel.isHidden()


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("import sys; sys.exit(3)", "exit code 3"),
        ("print('nonsense')", "gave an invalid answer"),
        ("print('[]')", "gave an invalid answer"),
        ("print('{}')", "gave an invalid answer"),
        ('print(\'{"error": "no permission: try sudo"}\')', "try sudo"),
    ],
)
def test_a_child_that_answers_nonsense_is_told_of(
    opened: Open, qtbot: QtBot, program: str, words: str
) -> None:
    launch = Launch(command=(sys.executable, "-c", program), line="{}", title="Trying")
    window = opened(replace(front_door(), play=lambda _files: launch))
    window.opener.play([samples()[0].path])
    page = window.opener.page
    qtbot.waitUntil(lambda: words in page.said.text(), timeout=PATIENCE_MILLIS)


def test_a_program_that_is_not_there_is_told_of(opened: Open, qtbot: QtBot) -> None:
    launch = Launch(command=("/nowhere/gcspy",), line="{}", title="Trying")
    window = opened(
        replace(front_door(), play=lambda _files: launch, processes=("/nowhere/gcspy",))
    )
    page = window.opener.page
    qtbot.waitUntil(
        lambda: "cannot start /nowhere/gcspy" in page.processes.said.text(), timeout=60_000
    )
    window.opener.play([samples()[0].path])
    qtbot.waitUntil(lambda: "cannot start /nowhere/gcspy" in page.said.text(), timeout=60_000)


@pytest.fixture
def workers() -> Iterator[tuple[int, list[int]]]:
    """A process with two workers, as gunicorn has them: their numbers."""
    source = (
        "import os, sys, signal\n"
        "pids = []\n"
        "for _ in range(2):\n"
        "    pid = os.fork()\n"
        "    if not pid:\n"
        "        sys.stdin.read(); os._exit(0)\n"
        "    pids.append(pid)\n"
        "print(*pids, flush=True)\n"
        "sys.stdin.read()\n"
        "[os.waitpid(pid, 0) for pid in pids]\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", source, "family of workers"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        yield parent.pid, [int(word) for word in parent.stdout.readline().split()]


def test_workers_are_listed_below_their_parent_with_their_memory_and_age(
    opened: Open, workers: tuple[int, list[int]], qtbot: QtBot
) -> None:
    parent, children = workers
    window = opened()
    processes = window.opener.page.processes
    QTest.keyClicks(processes.field, "family of workers")
    qtbot.waitUntil(
        lambda: (
            sorted(row.pid for row in processes.model.rows) == sorted([parent, *children])
            and all(row.watchable for row in processes.model.rows)
        ),
        timeout=PATIENCE_MILLIS,
    )
    first, *others = processes.model.branches
    assert (first.row.pid, first.depth, first.below) == (parent, 0, 2)
    assert [one.depth for one in others] == [1, 1]
    for branch in processes.model.branches:
        assert branch.row.rss_bytes > 1 << 20
        assert branch.row.started > 0
    assert first.rss_bytes == sum(one.row.rss_bytes for one in processes.model.branches)


def test_rows_are_listed_while_other_processes_are_still_examined(
    opened: Open, workload: int, qtbot: QtBot
) -> None:
    window = opened()
    processes = window.opener.page.processes
    seen: list[bool] = []
    window.opener._listing.printed.connect(
        lambda _lines: seen.append(
            any(row.pid == workload for row in processes.model.rows)
            and not window.opener._book.rounds
        )
    )
    qtbot.waitUntil(lambda: window.opener._book.rounds > 0, timeout=PATIENCE_MILLIS)
    assert any(seen), "the list had the process before the first round was over"
    (row,) = [row for row in processes.model.rows if row.pid == workload]
    assert row.watchable
    assert row.looked


def test_a_list_shows_growth_from_look_to_look(opened: Open, qtbot: QtBot) -> None:
    source = "import sys\nfor line in sys.stdin: held = bytearray(b'x' * (64 << 20)); print(1, flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", f"print(1, flush=True)\n{source}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as target:
        assert target.stdin is not None
        assert target.stdout is not None
        target.stdout.readline()
        window = opened()
        processes = window.opener.page.processes
        QTest.keyClicks(processes.field, str(target.pid))
        qtbot.waitUntil(
            lambda: any(row.pid == target.pid and row.looked for row in processes.model.rows),
            timeout=PATIENCE_MILLIS,
        )
        target.stdin.write(b"grow\n")
        target.stdin.flush()
        target.stdout.readline()
        qtbot.waitUntil(
            lambda: any(row.growth_bytes >= 64 << 20 for row in processes.model.rows),
            timeout=PATIENCE_MILLIS,
        )
        target.stdin.close()


def test_what_is_part_of_gcspy_is_not_listed(opened: Open, workload: int, qtbot: QtBot) -> None:
    command = [sys.executable, "-m", "gcspy", "attach", str(workload), "--no-window"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        server.stdout.readline()
        window = opened()
        processes = window.opener.page.processes
        qtbot.waitUntil(lambda: window.opener._book.rounds > 0, timeout=PATIENCE_MILLIS)
        listed = {row.pid for row in processes.model.rows}
        assert workload in listed, "the demonstration's program is a target"
        assert not listed & {server.pid, window.opener._listing.pid, os.getpid()}
        server.terminate()


@pytest.mark.parametrize(
    "size",
    matrix(
        [((1024, 600),), ((1280, 720),), ((1600, 1000),), ((3840, 2160),)], usual=[((1024, 600),)]
    ),
)
@pytest.mark.parametrize("points", [9.0, 13.0])
def test_the_page_fits_the_screen_and_attach_is_always_on_it(
    opened: Open, size: tuple[int, int], points: float
) -> None:
    window = opened()
    window.opener.show_recent()
    font = window.font()
    font.setPointSizeF(points)
    window.setFont(font)
    window.resize(*size)
    QApplication.processEvents()
    assert (window.width(), window.height()) == size
    page = window.opener.page
    shown = window.rect()
    for part in (page.processes.attach, page.processes.field, page.open, page.processes.table):
        assert shown.contains(QRect(part.mapTo(window, QPoint(0, 0)), part.size())), part
    assert page.processes.table.height() >= 5 * page.processes.table.rowHeight(0)


def test_a_session_that_is_left_leaves_its_picture_in_the_list_of_recent_ones(
    opened: Open, settings: UserSettings, qtbot: QtBot
) -> None:
    window = opened()
    opener = window.opener
    opener.play([samples()[0].path])
    qtbot.waitUntil(lambda: shows_session(window), timeout=PATIENCE_MILLIS)
    text = opener.recent()[0].text
    assert opener.thumbnails.picture(text) is None
    opener.open_page()
    picture = opener.thumbnails.picture(text)
    assert picture is not None
    assert picture.size() == THUMBNAIL
    colours = {picture.pixel(x, y) for x in range(0, 256, 3) for y in range(0, 144, 3)}
    assert len(colours) > 3, "of the session, not an empty one"
    assert settings.cache is not None
    (file,) = (settings.cache / "thumbnails").iterdir()
    assert "gcspy" not in file.name
    opener.forget_recent()
    assert not list((settings.cache / "thumbnails").iterdir())


def test_processes_are_only_looked_for_while_the_page_can_be_seen(
    opened: Open, qtbot: QtBot
) -> None:
    window = opened()
    listing = window.opener._listing
    assert listing.runs
    window.opener.play([samples()[1].path])
    qtbot.waitUntil(lambda: shows_session(window), timeout=PATIENCE_MILLIS)
    assert not window.opener._listing.runs


def test_a_process_that_somebody_watches_already_is_joined_there(
    opened: Open, program: Program, socket_directory: Path, qtbot: QtBot
) -> None:
    address = program.server.serve(f"unix:{socket_directory}/a.sock").addresses[0]
    window = opened(replace(front_door(), attach=lambda _pid: address))
    window.opener.attach(1)
    qtbot.waitUntil(lambda: window.link.status.phase.connected, timeout=PATIENCE_MILLIS)
    assert not window.opener.child.pid
    assert window.opener.recent() == []


def test_what_the_system_refuses_before_anything_is_started_is_told_of(opened: Open) -> None:
    def refuse(_what: object) -> Launch:
        raise LinkError("cannot make a folder for sockets: set XDG_RUNTIME_DIR")

    window = opened(replace(front_door(), attach=refuse, play=refuse))
    window.opener.attach(1)
    assert "XDG_RUNTIME_DIR" in window.opener.page.said.text()
    window.opener.page.say("")
    window.opener.play([samples()[0].path])
    assert "XDG_RUNTIME_DIR" in window.opener.page.said.text()


def test_attaching_to_the_process_that_is_watched_keeps_its_session(
    opened: Open, workload: int, qtbot: QtBot
) -> None:
    window = opened()
    window.opener.attach(workload)
    qtbot.waitUntil(lambda: shows_session(window), timeout=PATIENCE_MILLIS)
    child, before = window.opener.child.pid, window.session.live.welcome
    window.opener.open_page()
    window.opener.attach(workload)
    assert not window.opener.page.isVisible()
    seen = window.session.events_seen
    qtbot.waitUntil(lambda: window.session.events_seen > seen, timeout=PATIENCE_MILLIS)
    assert window.opener.child.pid == child
    assert window.session.live.welcome is before
    address = str(window.link.address)
    window.opener.connect_to(address)
    qtbot.waitUntil(
        lambda: window.session.live.welcome is not before and shows_session(window),
        timeout=PATIENCE_MILLIS,
    )
    assert window.opener.child.pid == child, "joined again, and not ended"


def plays(window: MainWindow, path: Path) -> bool:
    return window.bookmark_store.recording == (path,) and shows_session(window)


def test_another_recording_is_opened_without_a_warning(opened: Open, qtbot: QtBot) -> None:
    window = opened()
    said: list[str] = []
    window.announcer.changed.connect(lambda: said.append(window.announcer.text))
    addresses = []
    for sample in samples():
        window.opener.play([sample.path])
        qtbot.waitUntil(partial(plays, window, sample.path), timeout=PATIENCE_MILLIS)
        addresses.append(str(window.link.address))
    assert len(set(addresses)) < len(addresses), "both are served at the same address"
    assert not [text for text in said if "Another session" in text]
