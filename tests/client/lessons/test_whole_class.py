"""A class of 100 students by program, three windows and five pages goes through a lesson from start to end: late ones, lost ones, bad links, and a teacher who disappears."""

from __future__ import annotations

import csv
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from gcspy.hosts.sidecar import start_sidecar
from gcspy.hosts.simulation_host import SimulatingOptions, fields_of_lesson
from gcspy_client.lessons import find_lesson
from gcspy_client.lessons.lesson import BEGINS
from gcspy_client.view.lessons.progress import LessonProgress
from gcspy_client.view.window import MainWindow
from tests.client.lessons.class_members import MemberProcesses
from tests.client.page.browser import Chromium
from tests.waiting import PATIENCE_MILLIS

Wait = Callable[[Callable[[], bool]], None]
NAME = "tiles"
TOKEN = "class token"
AT_FIRST, LATE, LOST, PAGES = 90, 10, 5, 5


class Pages:
    """Pages of one browser that have joined the class.

    Args:
        browser: The browser; None: it is not installed.
        address: Of the page.
        count: How many.
    """

    def __init__(self, browser: Chromium | None, address: str, count: int) -> None:
        self.browser = browser
        self.tabs: list[str] = []
        for number in range(count if browser is not None else 0):
            assert browser is not None
            self.tabs.append(browser.tab())
            browser.open(address)
            browser.wait("document.getElementById('join').open")
            browser.evaluate(
                f"(document.getElementById('person').value = 'Page {number}', document.getElementById('token').value = {TOKEN!r}, "
                "document.querySelector('#join button').click())"
            )
            browser.wait("gcspy.store.length > 0")

    def answer(self) -> None:
        """Each answers with its first choice."""
        for tab in self.tabs:
            assert self.browser is not None
            self.browser.select(tab)
            self.browser.wait("gcspy.lesson && gcspy.lesson.asks")
            self.browser.evaluate("gcspy.lesson.answerShown(0)")

    def __len__(self) -> int:
        return len(self.tabs)


class Walk:
    """One lesson with one class."""

    def __init__(
        self, windows: list[MainWindow], members: MemberProcesses, pages: Pages, wait: Wait
    ) -> None:
        self.teacher, self.heir, self.pupil = windows
        self.leader = self.teacher
        self.members, self.pages, self.wait = members, pages, wait
        self.arrivals: dict[int, float] = {}
        self.students = AT_FIRST

    @property
    def progress(self) -> LessonProgress:
        return self.leader.lessons.progress

    def arrive(self, place: int) -> None:
        self.wait(lambda: self.progress.at == place and self.progress.arrived)
        self.arrivals[place] = time.monotonic()
        if place == 2:  # late ones are at the right step at once
            for number in range(LATE):
                self.members.join(f"Late {number}", bad=number == 0)
            self.students += LATE
        if place == 3:  # some are lost, and come back
            for number in range(LOST):
                self.members.lose(f"Student {number + 1}")
            for number in range(LOST):
                self.members.join(f"Student {number + 1}")
        self.wait(lambda: self.members.at(place) == self.students)

    def lose_teacher(self) -> None:
        """The teacher disappears, and the successor goes on."""
        me = self.heir.session.live.welcome
        assert me is not None
        self.teacher.classroom.name_successor(me.client_id)
        self.wait(lambda: self.heir.session.live.clients.successor is not None)
        place = self.progress.at
        self.teacher.link.close()
        self.wait(self.heir.session.live.is_controller)
        self.leader = self.heir
        self.wait(lambda: self.progress.led is None and self.progress.at == place)

    def ask(self) -> None:
        """Everybody answers; the leader reveals."""
        self.pages.answer()
        if self.pupil.lessons.progress.asks:
            self.pupil.lessons.progress.answer_shown(0)
        followers = self.students + len(self.pages)
        self.wait(lambda: self.leader.lessons.panel.counts.answered >= followers)
        self.progress.reveal()

    def go_on(self) -> None:
        self.wait(lambda: not self.progress.why_not_next)
        self.progress.next()


@pytest.mark.soak
def test_a_whole_class_goes_through_a_lesson(
    make_window: Callable[..., MainWindow],
    qtbot: QtBot,
    socket_directory: Path,
    tmp_path: Path,
) -> None:
    lesson = find_lesson(NAME)
    options = SimulatingOptions(
        simulation={**fields_of_lesson(lesson), "pace_millis": 10},
        listen=(f"unix:{socket_directory}/class.sock",),
        token=TOKEN,
        pause_at=BEGINS,
        web=("127.0.0.1:0",),
    )

    def wait(condition: Callable[[], bool]) -> None:
        qtbot.waitUntil(condition, timeout=4 * PATIENCE_MILLIS)

    with ExitStack() as stack:
        sidecar = stack.enter_context(start_sidecar(options))
        address = sidecar.addresses[0]
        # Before the windows: while this thread waits for a browser, a window that leads would be taken for lost.
        browser = None
        if shutil.which(Chromium.program) is not None:
            folder = tempfile.TemporaryDirectory(
                prefix="gcspy-browser-", ignore_cleanup_errors=True
            )
            browser = stack.enter_context(Chromium(Path(stack.enter_context(folder))))
        pages = Pages(browser, sidecar.pages[0], PAGES)
        teacher = make_window(address, token=TOKEN)
        wait(lambda: teacher.lessons.progress.arrived)
        windows = [teacher, *(make_window(address, token=TOKEN, control=False) for _ in range(2))]
        wait(lambda: all(one.lessons.progress.lesson is not None for one in windows))
        for window in windows[1:]:
            window.classroom.follow(True)
        members = stack.enter_context(MemberProcesses(address, NAME, seed=7))
        began = time.monotonic()
        for number in range(AT_FIRST):
            members.join(f"Student {number}", bad=number % 10 == 0)
        joined = time.monotonic() - began
        walk = Walk(windows, members, pages, wait)
        csvs = [tmp_path / "before.csv", tmp_path / "after.csv"]
        for place, step in enumerate(lesson.steps):
            walk.arrive(place)
            if place == 4:  # while a question is open
                teacher.lessons.save_answers(csvs[0])
                walk.lose_teacher()
            if step.question is not None:
                walk.ask()
            if place + 1 < len(lesson.steps):
                walk.go_on()
        walk.leader.lessons.save_answers(csvs[1])
        report(walk, csvs, joined)


def report(walk: Walk, csvs: list[Path], joined: float) -> None:
    """Print the figures, and check that nobody is missing."""
    members, pages = walk.members, len(walk.pages)
    everyone = members.states()
    present = [one for one in everyone if one.present]
    looks = np.array(
        [
            1000 * max(seen - walk.arrivals[place], 0)
            for one in everyone
            for place, attempt, seen in one.looks
            if not one.bad
            and attempt == 1
            and place in walk.arrivals
            and not (one.name.startswith("Late") and place <= 2)
        ]
    )
    rows = [row for path in csvs for row in csv.DictReader(path.read_text().splitlines())]
    named = {row["student"] for row in rows}
    print(
        f"\n{len(present)} students in 4 processes, 3 windows, {pages} pages; joined in {joined:.1f} s; "
        f"a step reaches a student after {np.median(looks):.0f} ms (p99 {np.percentile(looks, 99):.0f} ms); "
        f"{len(rows)} rows of answers by {len(named)} people"
    )
    assert joined < 60
    assert len(present) == AT_FIRST + LATE
    assert {f"Late {number}" for number in range(LATE)} <= named
    assert {f"Student {number}" for number in range(AT_FIRST)} <= named
    assert {f"Page {number}" for number in range(pages)} <= named
    assert all(one.placed for one in present)
    assert walk.pages.browser is None or walk.pages.browser.errors == []
