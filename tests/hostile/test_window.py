"""Whatever a server sends in any text: the window shows the characters, opens nothing, and keeps its shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil
import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.address import parse_address
from gcspy_protocol.details import AnswerState
from gcspy_protocol.messages import Message
from gcspy_protocol.model import ControlState, Role
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from gcspy_client.view.window import MainWindow
from tests.client.conftest import MakeWindow
from tests.client.watching import Wait
from tests.hostile.corpus import FORGED, corpus
from tests.hostile.fields import TextField, poisoned, text_fields
from tests.hostile.seen import Shown, fault_of, shown_texts
from tests.hostile.sentinel import Sentinel
from tests.hostile.server import SpeakingServer
from tests.hostile.session import ANSWER, EVENTS, NAMES, event, introduction, partings
from tests.hostile.walk import walked
from tests.matrix import matrix
from tests.protocol.sameness import same

FIXED = {"Stream.dtype"}
"""Fields of which a message allows some words only."""

OF_LINES = {"Welcome.general_info", "SpaceInfo.text", "Space.description"}
"""Texts that may have lines: nothing of ours follows them."""

FIELDS = [field for field in text_fields(Role.SERVER) if str(field) not in FIXED]

NAMES_OF_TEXTS = list(corpus(Path("/sentinel")))

MOST_GROWN = 1 << 29
"""Bytes; a picture that never ends took gigabytes."""

TextOf = Callable[[TextField], str | None]


def session() -> list[Message]:
    """Return all that is said in a session."""
    return [
        *introduction(),
        *(message for number in range(1, EVENTS + 1) for message in event(number)),
        *(message for parting in partings() for message in parting),
        *answers(),
        NAMES,
    ]


def answers() -> list[m.Answer]:
    """Return the two possible answers: a table, and a reason why there is none."""
    return [ANSWER, m.Answer(number=1, space=1, sequence=1, state=AnswerState.UNKNOWN, reason="no")]


def mixed(texts: dict[str, str], turn: int) -> TextOf:
    """Another text for each field; in as many turns as there are texts each field has had each."""
    ordered = list(texts.values())
    places = {field: place for place, field in enumerate(FIELDS)}

    def text_of(field: TextField) -> str | None:
        if field not in places:
            return None
        text = ordered[(places[field] + turn) % len(ordered)]
        return text.replace(FORGED, "line") if str(field) in OF_LINES else text

    return text_of


def _mark(marked: TextField, field: TextField) -> str | None:
    return "?" if field == marked else None


def faults(shown: list[Shown]) -> list[str]:
    """Return what is wrong, and where."""
    found = {(one.where, fault, one.text[:80]) for one in shown if (fault := fault_of(one))}
    return [f"{where}: {fault}: {text!r}" for where, fault, text in sorted(found)]


def see(window: MainWindow, wait: Wait, text_of: TextOf, folder: Path, parting: int) -> list[Shown]:
    """Show a session in a window, walk through it, and let it end in some way."""
    told: list[Message] = []

    def answer(message: Message) -> Message | None:
        if isinstance(message, m.Query):
            told.append(message)
            some = answers()[len(told) % 2]
            some = replace(some, number=message.number, space=message.space)
            reply: Message = poisoned(some, text_of)
            return reply
        if isinstance(message, m.TileNamesRequest):
            names = replace(NAMES, space=message.space, first=0)
            page: Message = poisoned(names, text_of)
            return page
        return None

    first = poisoned((*introduction(), *event(1)), text_of)
    with SpeakingServer(folder / "s", list(first), answer) as server:
        window.link.open(parse_address(server.address), token=None, wants_control=True)
        wait(lambda: window.session.events_seen >= 1)
        for number in range(2, EVENTS + 1):
            server.say(list(poisoned(tuple(event(number)), text_of)))
            wait(partial(lambda wanted: window.session.events_seen >= wanted, number))
        found = walked(window)
        before = window.link.status
        server.say(list(poisoned(tuple(partings()[parting]), text_of)))
        if partings()[parting]:
            wait(
                lambda: (
                    window.link.status != before or window.session.live.state is ControlState.ENDED
                )
            )
        window.settle()
        found += shown_texts()
    return found


def test_every_text_that_a_server_can_send_is_in_the_session() -> None:
    absent = []
    for field in FIELDS:
        marked = poisoned(tuple(session()), partial(_mark, field))
        if all(same(a, b) for a, b in zip(marked, session(), strict=True)):
            absent.append(str(field))
    assert not absent, "add them to tests/hostile/session.py: a server can say these, too"


def test_the_sentinel_notices_a_picture_that_a_label_opens(
    qtbot: QtBot, sentinel: Sentinel
) -> None:
    assert not sentinel.opened()
    label = QLabel(corpus(sentinel.path)["tag"])
    qtbot.addWidget(label)
    label.grab()
    assert sentinel.opened(), "else the other tests prove nothing"
    assert fault_of(Shown("a label", "", rendered=True))
    assert fault_of(Shown("a tip", "<b>x</b>", is_tip=True))
    assert fault_of(Shown("a line", f"a\n{FORGED} b"))
    assert fault_of(Shown("a line", "a\x1bb"))


def assert_letter_by_letter(
    make_window: MakeWindow, wait: Wait, sentinel: Sentinel, folder: Path, turn: int
) -> None:
    window = make_window()
    size = window.size()
    before = psutil.Process().memory_info().rss
    shown = see(window, wait, mixed(corpus(sentinel.path), turn), folder, turn % len(partings()))
    assert not faults(shown)
    assert not sentinel.opened()
    assert any(str(sentinel.path) in one.text for one in shown), "else nothing hostile was shown"
    assert window.size() == size
    assert window.minimumSizeHint().width() <= size.width(), "no text is as wide as it likes"
    assert psutil.Process().memory_info().rss - before < MOST_GROWN


@pytest.mark.parametrize("turn", matrix([0, 15], usual=[15]))
def test_hostile_texts_in_all_fields_are_shown_letter_by_letter(
    make_window: MakeWindow, wait: Wait, sentinel: Sentinel, socket_directory: Path, turn: int
) -> None:
    assert_letter_by_letter(make_window, wait, sentinel, socket_directory, turn)


@pytest.mark.soak
@pytest.mark.parametrize("turn", range(len(NAMES_OF_TEXTS)))
def test_each_field_has_each_hostile_text(
    make_window: MakeWindow, wait: Wait, sentinel: Sentinel, socket_directory: Path, turn: int
) -> None:
    assert_letter_by_letter(make_window, wait, sentinel, socket_directory, turn)
