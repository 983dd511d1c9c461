"""The page of a live session: joins with the token, follows a leader through a lesson, and answers."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path
from typing import Self

import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.attendance import Focus, LessonPlace

from gcspy.connection.link import connect
from gcspy_client.lessons import find_lesson
from tests.client.page.browser import Browser, Chromium, Firefox
from tests.client.page.serving import TOKEN, served_lesson
from tests.waiting import wait_until


def join(browser: Browser, page: str, person: str, token: str = TOKEN) -> None:
    """Open a page, and give a name and the token."""
    browser.open(page)
    browser.wait("document.getElementById('join').open")
    browser.evaluate(
        f"(document.getElementById('person').value = {json.dumps(person)}, document.getElementById('token').value = {json.dumps(token)}, "
        "document.querySelector('#join button').click())"
    )


class Leader:
    """A teacher's window by program; it answers pings all the time."""

    def __init__(self, address: str) -> None:
        self._link = connect(address, wants_control=True, person="Teacher")
        self._lock = threading.Lock()
        self._ends = threading.Event()
        self._clients: tuple[m.Client, ...] = ()
        self._thread = threading.Thread(target=self._run, name="leader")
        self._thread.start()

    def _run(self) -> None:
        while not self._ends.is_set():
            with self._lock:
                message = self._link.receive(0.02)
            if isinstance(message, m.Clients):
                self._clients = message.clients

    def look(self, step: int, attempt: int, *, revealed: bool = False) -> None:
        """Lead the class to a place."""
        lesson = LessonPlace(lesson="tiles", step=step, attempt=attempt, revealed=revealed)
        with self._lock:
            self._link.send(m.Look(at=Focus(space=1, stream=1, lesson=lesson)))

    def wait_for(self, person: str, step: int, tries: tuple[int, ...]) -> None:
        """Wait until these answers of a person are here."""
        wait_until(
            lambda: any(
                (one.person, one.step, one.tries) == (person, step, tries) for one in self._clients
            ),
            f"answers of {person}",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()
        self._link.close()


def test_a_page_follows_a_leader_and_answers(browser: Browser, tmp_path: Path) -> None:
    question = find_lesson("tiles").steps[1].question
    assert question is not None
    with (
        served_lesson("tiles", tmp_path) as served,
        Leader(served.address) as leader,
    ):
        join(browser, served.page, "Ada")
        browser.wait("gcspy.store.length > 0 && gcspy.at === gcspy.store.length - 1")
        leader.look(1, 1)
        browser.wait("gcspy.lesson && gcspy.lesson.asks")
        assert browser.evaluate("gcspy.lesson.next.disabled") is True
        order = browser.evaluate("gcspy.lesson.question.order")
        browser.press("1")
        leader.wait_for("Ada", 1, (order[0],))
        assert (
            browser.evaluate("gcspy.lesson.told.textContent") == "Your answer is with the teacher."
        )
        browser.press("2")  # one answer in each try
        leader.look(1, 2)
        browser.wait("gcspy.lesson.told.textContent.includes('Answer once more')")
        browser.press("2")
        leader.wait_for("Ada", 1, (order[0], order[1]))
        leader.look(1, 2, revealed=True)
        browser.wait("gcspy.lesson.isOver(1)")
        right = question.answer == order[1]
        assert browser.evaluate("gcspy.lesson.told.textContent").startswith(
            "Correct." if right else "Not correct."
        )
        browser.press("f")
        browser.wait("document.getElementById('follow').textContent === 'Follow'")
    browser.wait("document.getElementById('problem').textContent.includes('ended')")
    assert browser.errors == []


def test_a_wrong_token_is_told(browser: Browser, tmp_path: Path) -> None:
    with served_lesson("tiles", tmp_path) as served:
        join(browser, served.page, "Eve", "not it")
        browser.wait("document.getElementById('problem').textContent.includes('token is wrong')")
        assert browser.evaluate("gcspy.store.length") == 0


def test_a_page_is_in_the_language_of_its_maker(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GCSPY_LANG", "de")
    with served_lesson("tiles", tmp_path) as served, Leader(served.address) as leader:
        join(browser, served.page, "Ada")
        browser.wait("gcspy.store.length > 0")
        leader.look(1, 1)
        browser.wait("gcspy.lesson && gcspy.lesson.asks")
        assert browser.evaluate("document.documentElement.lang") == "de"
        assert browser.evaluate("gcspy.lesson.next.textContent") == "Weiter"
        assert browser.evaluate("document.querySelector('#side h3').textContent") == "Ströme"
        assert browser.evaluate("gcspy.lesson.text.textContent").startswith("Ein Ereignis")
    assert browser.errors == []


class StrictChromium(Chromium):
    """A browser that believes in its own certificates only, as a student's does."""

    @staticmethod
    def _arguments(folder: Path, width: int, height: int) -> list[str]:
        usual = Chromium._arguments(folder, width, height)
        return [one for one in usual if one != "--ignore-certificate-errors"]


@pytest.mark.soak
def test_a_page_over_tls_is_refused_until_its_certificate_is_accepted(tmp_path: Path) -> None:
    """The browser does not know the session's own certificate: it shows no page until its user accepts it."""
    if shutil.which(Chromium.program) is None:
        pytest.skip(f"{Chromium.program} is not installed: apt-get install {Chromium.program}")
    with (
        served_lesson("tiles", tmp_path, web="tls:127.0.0.1:0") as served,
        Leader(served.address) as leader,
        StrictChromium(tmp_path) as browser,
    ):
        page, _, fingerprint = served.page.partition(" ")
        assert page.startswith("https://127.0.0.1:")
        assert fingerprint
        browser.command("Page.navigate", url=page)
        browser.wait("document.documentElement !== null && document.readyState === 'complete'")
        assert browser.evaluate("document.getElementById('join')") is None
        browser.command("Security.enable")
        browser.command("Security.setIgnoreCertificateErrors", ignore=True)
        join(browser, page, "Ada")
        browser.wait("gcspy.store.length > 0")
        leader.look(1, 1)
        browser.wait("gcspy.lesson && gcspy.lesson.asks")
        assert browser.evaluate("location.protocol") == "https:"


@pytest.mark.matrix
@pytest.mark.parametrize("accepts", [False, True])
def test_firefox_shows_a_page_over_tls_only_when_its_certificate_is_accepted(
    accepts: bool, tmp_path: Path
) -> None:
    if shutil.which(Firefox.program) is None:
        pytest.skip(f"{Firefox.program} is not installed: apt-get install {Firefox.program}")

    class Asked(Firefox):
        accepts_any_certificate = accepts

    with (
        served_lesson("tiles", tmp_path, web="tls:127.0.0.1:0") as served,
        Leader(served.address) as leader,
        Asked(tmp_path) as browser,
    ):
        page = served.page.partition(" ")[0]
        if not accepts:
            with pytest.raises(AssertionError, match="SELF_SIGNED_CERT"):
                browser.open(page)
            return
        join(browser, page, "Ada")
        browser.wait("gcspy.store.length > 0")
        leader.look(1, 1)
        browser.wait("gcspy.lesson && gcspy.lesson.asks")
        assert browser.evaluate("location.protocol") == "https:"
