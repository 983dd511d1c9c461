"""A client of a real server may use any name, and set triggers with any note: a window beside it shows characters."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.attendance import Focus
from gcspy_protocol.model import ControlState
from gcspy_protocol.triggers import TriggerAction

from gcspy.connection.link import Link, connect
from tests.client.conftest import MakeWindow
from tests.client.program import Program
from tests.client.watching import Wait
from tests.hostile.corpus import corpus
from tests.hostile.seen import Shown
from tests.hostile.sentinel import Sentinel
from tests.hostile.test_window import NAMES_OF_TEXTS, faults
from tests.hostile.walk import walked

_MOST_CHARS = 4000
"""Of a name: four of them, and what goes with them, are less than a server takes at once."""


def joined(address: str, texts: list[str], turn: int) -> Link:
    """A client that controls, with a hostile name, person, trigger and place."""
    name, person, note, place = (
        texts[(turn + step) % len(texts)][:_MOST_CHARS].encode("utf-8", "replace").decode()
        for step in range(4)
    )
    link = connect(address, client=name, person=person, following=True, wants_control=True)
    for number, action in enumerate((TriggerAction.BOOKMARK, TriggerAction.NOTE), 1):
        link.send(
            m.Trigger(id=number, expression="sum(Used) > 0", space="Heap", note=note, action=action)
        )
    link.send(m.Look(at=Focus(space=1, stream=0, view=place, panel=note)))
    return link


def assert_harmless(
    make_window: MakeWindow,
    wait: Wait,
    sentinel: Sentinel,
    program: Program,
    folder: Path,
    turn: int,
) -> None:
    address = program.server.serve(f"unix:{folder}/s").addresses[0]
    texts = list(corpus(sentinel.path).values())
    with joined(address, texts, turn):
        window = make_window(address, control=False)
        wait(lambda: len(window.session.interpreter.clients.clients) == 2)
        wait(lambda: len(window.session.interpreter.triggers.triggers) == 2)
        size = window.size()
        for number in (1, 2, 3):
            program.let_happen()
            wait(partial(lambda wanted: window.session.events_seen >= wanted, number))
        window.settle()
        assert window.session.interpreter.state is not ControlState.ENDED
        found: list[Shown] = walked(window)
    assert not faults(found)
    assert not sentinel.opened()
    assert window.size() == size
    assert window.minimumSizeHint().width() <= size.width(), "no text is as wide as it likes"


@pytest.mark.parametrize("turn", [0])
def test_hostile_people_are_shown_letter_by_letter(
    make_window: MakeWindow,
    wait: Wait,
    sentinel: Sentinel,
    program: Program,
    socket_directory: Path,
    turn: int,
) -> None:
    assert_harmless(make_window, wait, sentinel, program, socket_directory, turn)


@pytest.mark.soak
@pytest.mark.parametrize("turn", range(len(NAMES_OF_TEXTS)))
def test_each_hostile_text_of_people(
    make_window: MakeWindow,
    wait: Wait,
    sentinel: Sentinel,
    program: Program,
    socket_directory: Path,
    turn: int,
) -> None:
    assert_harmless(make_window, wait, sentinel, program, socket_directory, turn)
