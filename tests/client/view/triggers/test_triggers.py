"""Triggers in the window: real servers, real targets, real players."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from gcspy_protocol.address import parse_address
from gcspy_protocol.messages import Fired
from gcspy_protocol.model import ControlState
from gcspy_protocol.playback import Pace, SetPlayback
from gcspy_protocol.triggers import Trigger, TriggerAction, TriggerState
from gcspy_replay.file import Recording, read_sidecar, sidecar_path
from gcspy_replay.player import PlaybackStart, serve_recording
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from gcspy_client.model.panels.trigger_list import TriggerFiring
from gcspy_client.model.playback.bookmarks import Bookmarks
from gcspy_client.view.triggers.panel import TriggerPanel
from gcspy_client.view.window import MainWindow
from tests.client.conftest import MakeWindow
from tests.client.watching import EVENTS, Wait, Watched

SAMPLE = Path(__file__).parents[4] / "replay" / "samples" / "semispace.gcspy"


def panel_of(watched: Watched) -> TriggerPanel:
    watched.window.docks.show("triggers")
    return watched.window.triggers.panel


def write(panel: TriggerPanel, condition: str, action: TriggerAction = TriggerAction.PAUSE) -> None:
    panel.condition.setText(condition)
    panel.does.setCurrentIndex(list(TriggerAction).index(action))
    assert panel.add.isEnabled(), panel.said.text()
    panel.add.click()


def statuses(window: MainWindow) -> list[tuple[str, TriggerState]]:
    return [(one.trigger.expression, one.state) for one in window.session.live.triggers.triggers]


def cells(panel: TriggerPanel, row: int) -> list[str]:
    found = []
    for column in range(1, panel.table.columnCount()):
        item = panel.table.item(row, column)
        assert item is not None
        found.append(item.text())
    return found


def at_tick(events_from_now: int) -> str:
    """True from the tick on that is this many after those that have happened."""
    return f"max(Used) > 0 and occurrence >= {EVENTS + events_from_now}"


def test_a_trigger_is_written_listed_and_removed(watched: Watched, wait: Wait) -> None:
    panel = panel_of(watched)
    assert panel.empty.isVisible()
    write(panel, "sum(Used) < 0")
    wait(lambda: statuses(watched.window) == [("sum(Used) < 0", TriggerState.ARMED)])
    wait(lambda: panel.table.rowCount() == 1)
    assert cells(panel, 0)[:4] == ["sum(Used) < 0", "pause", "armed", ""]
    assert not panel.empty.isVisible()
    assert panel.condition.text() == ""
    panel.table.selectRow(0)
    assert panel.condition.text() == "sum(Used) < 0"
    panel.remove.click()
    wait(lambda: statuses(watched.window) == [])
    wait(lambda: panel.table.rowCount() == 0)


def test_a_trigger_is_changed_and_switched_off_and_on(watched: Watched, wait: Wait) -> None:
    panel = panel_of(watched)
    write(panel, "sum(Used) < 0")
    wait(lambda: panel.table.rowCount() == 1)
    panel.table.selectRow(0)
    panel.condition.setText("sum(Used) < 1")
    panel.change.click()
    wait(lambda: statuses(watched.window) == [("sum(Used) < 1", TriggerState.ARMED)])
    tick = panel.table.item(0, 0)
    assert tick is not None
    tick.setCheckState(Qt.CheckState.Unchecked)
    wait(lambda: statuses(watched.window) == [("sum(Used) < 1", TriggerState.OFF)])
    wait(lambda: cells(panel, 0)[2] == "off")
    tick.setCheckState(Qt.CheckState.Checked)
    wait(lambda: statuses(watched.window) == [("sum(Used) < 1", TriggerState.ARMED)])


def test_a_fired_trigger_pauses_is_told_and_marked_and_is_resumed_from_the_notice(
    watched: Watched, wait: Wait
) -> None:
    window, panel = watched.window, panel_of(watched)
    write(panel, at_tick(3))
    wait(lambda: len(statuses(window)) == 1)
    watched.program.let_happen(8)
    wait(lambda: window.session.live.state is ControlState.PAUSED)
    wait(window.triggers.notice.isVisible)
    number = window.session.timeline.last
    assert number == EVENTS + 3
    notice = window.triggers.notice
    assert notice.what.text().startswith("Trigger 1 fired: max(Used)")
    for words in (
        f"event {number}",
        f"Clock #{number}",
        f"max(Used) = {watched.program.values.max()}",
        "the program is paused at this event",
    ):
        assert words in notice.where.text()
    assert [flag.number for flag in window.time_panel.strip.flags if flag.fired] == [number]
    assert cells(panel, 0)[2:4] == ["fired", f"{number}"]
    notice.resume.click()
    wait(lambda: window.session.timeline.last == EVENTS + 8)
    wait(lambda: not notice.isVisible())
    assert [flag.number for flag in window.time_panel.strip.flags if flag.fired] == [number], (
        "the mark stays"
    )


def test_the_notice_and_the_list_lead_to_the_event(watched: Watched, wait: Wait) -> None:
    window, panel = watched.window, panel_of(watched)
    write(panel, at_tick(2), TriggerAction.NOTE)
    wait(lambda: len(statuses(window)) == 1)
    watched.happen(5)
    wait(window.triggers.notice.isVisible)
    window.triggers.notice.go.click()
    wait(lambda: watched.shows(EVENTS + 2))
    assert window.time_panel.transport.badge.text(), "one looks back"
    window.navigator.last()
    wait(lambda: window.session.is_live)
    panel.table.selectRow(0)
    panel.go.click()
    wait(lambda: watched.shows(EVENTS + 2))


def test_a_bookmark_trigger_makes_a_real_bookmark(watched: Watched, wait: Wait) -> None:
    window, panel = watched.window, panel_of(watched)
    panel.note.setText("the fifteenth tick")
    write(panel, at_tick(3), TriggerAction.BOOKMARK)
    wait(lambda: len(statuses(window)) == 1)
    watched.happen(6)
    wait(lambda: len(window.bookmark_store.marks) == 1)
    (mark,) = window.bookmark_store.marks.all
    assert (mark.number, mark.title) == (EVENTS + 3, "the fifteenth tick")
    assert mark.note == f"max(Used) = {watched.heaps[EVENTS + 3].max()}"
    assert window.session.live.state is ControlState.RUNNING


def test_an_event_that_is_bookmarked_keeps_its_bookmark() -> None:
    marks = Bookmarks()
    marks.add(7, "mine")
    marks.add_all(
        [
            marks.all[0].__class__(number=7, title="the trigger's"),
            marks.all[0].__class__(number=3, title="x" * 999),
        ]
    )
    assert [(mark.number, mark.title) for mark in marks.all] == [(3, "x" * 200), (7, "mine")]


def test_what_is_wrong_is_underlined_where_it_stands_and_cannot_be_added(watched: Watched) -> None:
    panel = panel_of(watched)
    panel.condition.setText("sum(Used) > summ(Used)")
    assert panel.said.text().startswith("there is no function summ")
    assert panel._checked.offset == len("sum(Used) > ")
    assert not panel.add.isEnabled()
    panel.condition.setText("sum(Freed) > 3")
    assert panel.said.text().startswith("inactive")
    assert panel.said.property("tone") == "warning"
    assert panel.add.isEnabled(), "the server waits for what is not there yet"
    panel.condition.setText("sum(Used) >= 0")
    assert panel.said.text().startswith("at the current event: true  (sum(Used) = ")
    panel.condition.setText("sum(Used)")
    assert "a condition is needed" in panel.said.text()
    assert not panel.add.isEnabled()


def test_names_that_exist_are_offered_and_taken_with_enter(watched: Watched) -> None:
    edit = panel_of(watched).condition
    edit.setFocus()
    QTest.keyClicks(edit, "mean(Co")
    assert edit.offered()[:2] == ["Count", "count("]
    QTest.keyClick(edit, Qt.Key.Key_Return)
    assert edit.text() == "mean(Count"
    assert not edit.offered()
    QTest.keyClicks(edit, ") > 3 and event == 'Coll")
    assert edit.offered() == ["Collection'"]
    QTest.keyClick(edit, Qt.Key.Key_Tab)
    assert edit.text() == "mean(Count) > 3 and event == 'Collection'"


def test_a_viewer_sees_the_triggers_and_why_it_may_not_change_them(
    watched: Watched, make_window: MakeWindow, wait: Wait
) -> None:
    write(panel_of(watched), "sum(Used) < 0")
    wait(lambda: len(statuses(watched.window)) == 1)
    address = watched.window.link.address
    viewer = make_window(str(address), control=False)
    viewer.docks.show("triggers")
    watched.program.let_happen()
    panel = viewer.triggers.panel
    wait(lambda: panel.table.rowCount() == 1)
    viewer.settle()
    assert (
        panel.why_not.text()
        == "Only the client in control may change triggers: Session ▸ Take control."
    )
    panel.table.selectRow(0)
    assert not panel.condition.isEnabled()
    for button in (panel.add, panel.change, panel.remove):
        assert not button.isEnabled()
    tick = panel.table.item(0, 0)
    assert tick is not None
    assert not tick.flags() & Qt.ItemFlag.ItemIsUserCheckable


def test_what_the_server_refuses_is_told(watched: Watched, wait: Wait) -> None:
    watched.window.link.send(Trigger(id=1, expression="max(Used"))
    wait(watched.window.session_part.banner.isVisible)
    assert "at character 4" in watched.window.session_part.banner.text.text()


@pytest.fixture
def play(
    make_window: MakeWindow, socket_directory: Path, tmp_path: Path, wait: Wait
) -> Callable[[], MainWindow]:
    def begin() -> MainWindow:
        window = make_window()
        window.bookmark_store.use_files(tmp_path / "session.gcspy")
        window.link.open(parse_address(f"unix:{socket_directory}/p.sock"))
        wait(lambda: len(window.session.timeline) > 0 and window.session.number == 1)
        window.navigator.wire.set_manner(SetPlayback(pace=Pace.FIXED, interval_millis=1))
        return window

    return begin


def test_a_playback_stops_at_the_very_event_and_a_bookmark_goes_to_the_file(
    play: Callable[[], MainWindow], socket_directory: Path, tmp_path: Path, wait: Wait
) -> None:
    path = tmp_path / "session.gcspy"
    shutil.copy(SAMPLE, path)
    with serve_recording(
        Recording.open(path),
        f"unix:{socket_directory}/p.sock",
        beginning=PlaybackStart(running=False),
    ):
        window = play()
        part = window.triggers
        part.manager.add(
            Trigger(id=0, expression="occurrence >= 20", action=TriggerAction.BOOKMARK)
        )
        wait(lambda: len(statuses(window)) == 1)
        part.manager.add(Trigger(id=0, expression="occurrence >= 30"))
        wait(lambda: len(statuses(window)) == 2)
        window.navigator.play()
        wait(lambda: window.session.live.state_reason == "trigger 2: occurrence >= 30")
        wait(part.notice.isVisible)
        with Recording.open(path) as recording:
            expected = [
                next(
                    number
                    for number in range(1, len(recording) + 1)
                    if (event := recording.seek(number).last_event) is not None
                    and event.occurrence >= least
                )
                for least in (20, 30)
            ]
        assert window.session.number == expected[1]
        wait(lambda: len(window.bookmark_store.marks) == 1)
        beside = read_sidecar(sidecar_path(path))
        assert beside is not None
        assert [mark.number for mark in beside.bookmarks] == [expected[0]]
        assert (
            sorted(flag.number for flag in window.time_panel.strip.flags if flag.fired) == expected
        )
        part.notice.resume.click()
        wait(lambda: window.session.number > expected[1])
        window.close()


def test_the_notice_stays_when_it_is_told_before_the_pause_is_and_goes_with_it(
    watched: Watched,
) -> None:
    # FIRED comes before STATE: a session that has not stopped yet did not continue.
    notice = watched.window.triggers.notice
    trigger = Trigger(id=1, expression="1 < 2")
    fired = Fired(trigger=trigger, sequence=1, time_nanos=1, event=0, occurrence=1, pauses=True)
    notice.tell([TriggerFiring(fired, 3)], event="Clock #1", paused="program")
    for stands in (False, True, True):
        notice.follow(stands=stands, may=True, reason="")
        assert notice.isVisible()
    notice.follow(stands=False, may=True, reason="")
    assert not notice.isVisible()
