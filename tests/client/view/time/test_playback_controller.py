"""The window on a recording: real file, real player, real socket."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from gcspy_protocol.address import parse_address
from gcspy_protocol.messages import Position
from gcspy_protocol.model import ControlState, EventFilter
from gcspy_protocol.playback import Pace
from gcspy_replay.file import Recording
from gcspy_replay.player import PlaybackStart, serve_recording
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QToolButton

from gcspy_client.model.spaces.picture import SpacePicture
from gcspy_client.view.window import MainWindow
from tests.client.conftest import MakeWindow
from tests.client.watching import Wait, chips_of

SAMPLE = Path(__file__).parents[4] / "replay" / "samples" / "semispace.gcspy"


class Played:
    """A window on a player that stands still at the first event.

    Attributes:
        recording: The played recording, read separately.
    """

    def __init__(self, window: MainWindow, recording: Recording, path: Path) -> None:
        self.window, self.recording, self.path = window, recording, path

    def shows(self, number: int) -> bool:
        """Whether the window shows an event, as the recording has it and as it is painted."""
        session = self.window.session
        if session.number != number or session.interpreter.last_event is None:
            return False
        then = self.recording.seek(number)
        if (
            then.last_event is None
            or session.interpreter.last_event.sequence != then.last_event.sequence
        ):
            return False
        for space_id, space in then.spaces.items():
            picture = self.window.spaces.panels[space_id].canvas.picture
            painted = SpacePicture(picture.space, picture.stream_id, picture.theme).codes
            same = all(
                np.array_equal(stream.values, picture.space.streams[stream_id].values)
                for stream_id, stream in space.streams.items()
            )
            if not same or not np.array_equal(picture.codes, painted):
                return False
        return True

    def press(self, name: str) -> None:
        button = self.window.time_panel.findChild(QToolButton, name)
        assert isinstance(button, QToolButton)
        assert button.isEnabled(), name
        button.click()


def runs(played: Played) -> bool:
    return played.window.navigator.wire.running


def at_delay(played: Played, millis: int) -> None:
    manner = played.window.navigator.playing.manner
    played.window.navigator.wire.set_manner(
        replace(manner, pace=Pace.FIXED, interval_millis=millis)
    )


@pytest.fixture
def played(
    make_window: MakeWindow, socket_directory: Path, tmp_path: Path, wait: Wait
) -> Iterator[Played]:
    path = tmp_path / "session.gcspy"
    shutil.copy(SAMPLE, path)
    playing = serve_recording(
        Recording.open(path),
        f"unix:{socket_directory}/p.sock",
        beginning=PlaybackStart(running=False),
    )
    with playing, Recording.open(path) as recording:
        window = make_window()
        window.bookmark_store.use_files(path)
        window.link.open(parse_address(playing.addresses[0]))
        made = Played(window, recording, path)
        wait(lambda: len(window.session.timeline) == len(recording) and made.shows(1))
        window.settle()
        yield made
        window.close()


def test_the_window_says_that_it_is_a_recording_and_how_it_was_watched(played: Played) -> None:
    bar = played.window.session_part.event_bar
    assert bar._mode.text() == "playback"
    assert bar._recorded.isVisible()
    assert bar._recorded.text() == f"recorded {played.recording.welcome.mode.value}"
    assert bar._role.text() == "own playback"
    assert not bar.past.isVisible()
    transport = played.window.time_panel.transport
    assert transport.badge.isHidden(), "a recording has no live end"
    assert f"event 1 of {len(played.recording)}" in transport.position.text()
    assert played.window.session_part.footer.pause.text() == "Resume playback"


def test_scrubbing_a_recording_shows_what_was_recorded(played: Played, wait: Wait) -> None:
    strip = played.window.time_panel.strip
    strip.set_by_time(False)
    last = played.recording.last
    for number in (last // 2, 3, last):
        QTest.mouseClick(
            strip, Qt.MouseButton.LeftButton, pos=QPoint(round(strip.x_of(number)), 25)
        )
        wait(partial(played.shows, number))
        played.window.settle()


def test_a_drag_has_one_seek_under_way_and_ends_at_the_latest(played: Played, wait: Wait) -> None:
    seen: list[int] = []
    played.window.event_shown.connect(lambda event: seen.append(event.sequence))
    for number in range(2, 40):
        played.window.time_panel.strip.scrubbed.emit(number)
    wait(lambda: played.shows(39))
    assert len(seen) == 2, "the first of them, and the latest"


def test_every_button_moves_a_recording(played: Played, wait: Wait) -> None:
    last = played.recording.last
    played.press("time.forward")
    wait(lambda: played.shows(2))
    played.press("time.last")
    wait(lambda: played.shows(last))
    played.press("time.back")
    wait(lambda: played.shows(last - 1))
    played.press("time.first")
    wait(lambda: played.shows(1))
    at_delay(played, 0)
    played.press("time.play")
    wait(lambda: played.shows(last) and not runs(played))
    played.press("time.reverse")
    wait(lambda: played.shows(1) and not runs(played))


def test_keys_move_a_recording(played: Played, wait: Wait) -> None:
    window, last = played.window, played.recording.last
    QTest.keyClick(window, Qt.Key.Key_End)
    wait(lambda: played.shows(last))
    QTest.keyClick(window, Qt.Key.Key_Comma)
    wait(lambda: played.shows(last - 1))
    QTest.keyClick(window, Qt.Key.Key_Home)
    wait(lambda: played.shows(1))
    QTest.keyClick(window, Qt.Key.Key_Period)
    wait(lambda: played.shows(2))
    at_delay(played, 500)  # 98 events: however long the second key takes
    QTest.keyClick(window, Qt.Key.Key_Space)
    wait(lambda: runs(played))
    QTest.keyClick(window, Qt.Key.Key_Space)
    wait(lambda: not runs(played))
    assert window.session.number < last, "Space never jumps to the end"


def test_a_range_of_a_recording_is_played_over_and_over(played: Played, wait: Wait) -> None:
    timing = played.window.navigator
    timing.choose_range(5, 8)
    timing.go_to(5)
    wait(lambda: played.shows(5))
    played.press("time.loop")
    at_delay(played, 1)
    seen: list[int] = []
    played.window.link.received.connect(
        lambda batch: seen.extend(
            message.number for message in batch if isinstance(message, Position)
        )
    )
    played.press("time.play")
    wait(lambda: seen.count(5) > 3)
    assert all(after == (before + 1 if before < 8 else 5) for before, after in pairwise(seen))
    played.press("time.reverse")
    wait(
        lambda: timing.wire.running and (8, 7) in pairwise(seen)
    )  # several may arrive between two checks; forwards there is none
    seen.clear()
    wait(lambda: seen.count(8) > 3)
    assert all(after == (before - 1 if before > 5 else 8) for before, after in pairwise(seen))


def test_events_are_found_by_number_time_and_name(played: Played, wait: Wait) -> None:
    timing, recording = played.window.navigator, played.recording
    timing.go_to_words("17")
    wait(lambda: played.shows(17))
    start = int(recording.events["time_nanos"][0])
    secs = (int(recording.events["time_nanos"][30]) - start) / 1e9
    timing.go_to_words(f"{secs:.6f} s")
    wait(lambda: played.shows(recording.nearest(start + round(float(f"{secs:.6f}") * 1e9))))
    name = recording.welcome.events[-1].name
    timing.go_to(1)
    wait(lambda: played.shows(1))
    timing.go_to_words(name.upper())
    following = recording.find(name, after=1)
    assert following is not None
    wait(lambda: played.shows(following))
    timing.go_to_words("no such thing")
    assert "is not an event" in played.window.session_part.banner.text.text()


def test_filters_of_a_recording_are_this_windows_own(played: Played, wait: Wait) -> None:
    window = played.window
    kind = int(np.bincount(played.recording.events["event"]).argmax())
    window.details_part.set_filters((EventFilter(event=kind, period=4),))
    wait(lambda: window.session.live.filters[kind].period == 4)
    shown = [
        int(row["number"])
        for row in played.recording.events
        if row["event"] != kind or row["occurrence"] % 4 == 0
    ]
    window.navigator.first()
    wait(lambda: played.shows(shown[0]))
    for number in shown[1:4]:
        QTest.keyClick(window, Qt.Key.Key_Period)
        wait(partial(played.shows, number))
    window.settle()
    assert any("1 in 4" in chip.text() for chip in chips_of(window.details.filters))


def test_bookmarks_of_a_recording_are_kept_beside_its_file(played: Played, wait: Wait) -> None:
    window = played.window
    window.navigator.go_to(6)
    wait(lambda: played.shows(6))
    QTest.keyClick(window, Qt.Key.Key_B)
    window.bookmark_store.rename(6, "here")
    sidecar = window.bookmark_store.marks.path
    assert sidecar is not None
    assert sidecar.parent == played.path.parent
    assert "here" in sidecar.read_text()


def test_a_part_of_a_recording_is_saved_from_the_window(
    played: Played, tmp_path: Path, wait: Wait
) -> None:
    window = played.window
    window.navigator.choose_range(10, 20)
    dialog = window.time.save_session()
    assert dialog is not None
    dialog.path.setText(str(tmp_path / "part.gcspy"))
    dialog.start.click()
    wait(lambda: "saved to" in dialog.said.text())
    with Recording.open(tmp_path / "part.gcspy") as part:
        assert (part.first, part.last) == (10, 20)


def test_closing_in_the_middle_of_a_drag_leaves_nothing(played: Played) -> None:
    for number in range(2, 30):
        played.window.navigator.go_to(number)
    played.window.close()
    assert played.window.session.live.state is ControlState.PAUSED


def test_a_window_that_reconnects_finds_the_recording_again(played: Played, wait: Wait) -> None:
    window = played.window
    window.navigator.go_to(12)
    wait(lambda: played.shows(12))
    window.link.reconnect()
    wait(lambda: window.link.status.phase.connected and window.session.number > 0)
    window.navigator.go_to(9)
    wait(lambda: played.shows(9))


def test_a_window_follows_another_and_leaves_it_again(
    played: Played, make_window: MakeWindow, wait: Wait
) -> None:
    leader = played.window
    assert not leader.actions_table.run("session.follow"), "there is nobody else"
    follower = make_window(str(leader.link.address))
    mirror = Played(follower, played.recording, played.path)
    wait(lambda: len(follower.navigator.others()) == 1 and mirror.shows(1))
    follower.session_part.follow_client(follower.navigator.others()[0].id)
    wait(lambda: not follower.session.live.is_controller())
    leader.navigator.go_to(22)
    wait(lambda: played.shows(22) and mirror.shows(22))
    follower.settle()
    assert follower.session_part.event_bar._role.text() == "following"
    assert follower.details.filters.model.reason
    assert follower.actions_table.run("session.own")
    wait(follower.session.live.is_controller)
    leader.navigator.go_to(30)
    wait(lambda: played.shows(30))
    assert mirror.shows(22)
