"""General information, timers, the connection: panels in a window on a real server."""

from __future__ import annotations

import re

from gcspy_protocol.model import EventFilter
from PySide6.QtGui import QGuiApplication

from tests.client.watching import EVENTS, Wait, Watched


def test_general_information_tells_the_target_and_its_spaces(watched: Watched, wait: Wait) -> None:
    window = watched.window
    window.docks.show("general")
    wait(lambda: window.docks["general"].in_sight)
    said = window.facts.general.texts()
    assert said["Name"] == "Test program, pid 1"
    assert said["Events"] == "Clock, Collection"
    assert said["Tiles"] == "400"
    assert said["Streams"] == "Used"
    window.facts.general.copy()
    copied = QGuiApplication.clipboard().text()
    assert "Heap\n" in copied
    assert "Generations\n" in copied


def test_timers_tell_elapsed_compensation_and_difference_at_the_event_that_is_shown(
    watched: Watched, wait: Wait
) -> None:
    window = watched.window
    window.details_part.set_filters((EventFilter(event=0, delay_millis=40),))
    wait(
        lambda: (
            bool(window.session.live.filters) and window.session.live.filters[0].delay_millis == 40
        )
    )
    watched.happen(3)
    window.docks.show("timers")
    wait(lambda: window.docks["timers"].in_sight)
    window.facts.tell()
    said = window.facts.timers.texts()
    assert re.fullmatch(r"[89]\d(\.\d)? ms|1\d\d ms|.* s", said["held"]), (
        "two of the three delays lie between"
    )
    assert set(said) == {"Elapsed", "Compensation", "gathering", "held", "Difference"}
    window.navigator.go_to(1)
    wait(lambda: watched.shows(1))
    window.facts.tell()
    assert window.facts.timers.texts()["Elapsed"] == "0 ns"


def test_the_connection_is_told_while_it_can_be_seen_and_not_otherwise(
    watched: Watched, wait: Wait
) -> None:
    window = watched.window
    assert not window.facts.running
    window.docks.show("connection")
    wait(lambda: window.facts.running)
    watched.happen(5)
    wait(
        lambda: (
            "/s" in window.facts.connection.texts()["Events"]
            and f"{EVENTS + 5} in all" in window.facts.connection.texts()["Events"]
        )
    )
    said = window.facts.connection.texts()
    assert said["Address"].replace("\u200b", "").endswith("a.sock")
    assert said["Protocol"].startswith("version ")
    assert said["Missed events"] == "0"
    assert said["Clients"].startswith("1: gcspy window (")
    assert "controls" in said["Clients"]
    assert re.fullmatch(r"[\d.,]+ : 1", said["Compression"])
    assert "Clock" in said
    wait(lambda: window.facts.connection.texts()["Round trip"] != "–")
    window.docks["connection"].close()
    wait(lambda: not window.facts.running)


def test_after_the_connection_is_gone_the_panel_says_so(watched: Watched, wait: Wait) -> None:
    window = watched.window
    window.docks.show("connection")
    wait(lambda: window.facts.running)
    window.link.close()
    wait(lambda: window.facts.connection.texts()["State"].startswith("not connected"))


def test_without_a_session_every_panel_says_what_to_do(watched: Watched) -> None:
    panel = watched.window.facts.general
    panel.show_facts([])
    assert not panel._nothing.isHidden()
    assert "attach to a process" in panel._nothing.text()
