"""A recording opens as it was left, and settings of anybody else's making change nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from gcspy_protocol.address import parse_address
from gcspy_replay.file import Recording
from gcspy_replay.player import PlaybackStart, serve_recording

from benchmarks.window.timeline import record
from gcspy_client.model.palette import Theme
from gcspy_client.model.shell.recorded_view import (
    MOST_KEPT,
    RecordedView,
    SpaceView,
    latest_last,
    read_view,
)
from gcspy_client.settings import UserSettings
from gcspy_client.view.window import MainWindow
from tests.client.watching import Wait

Open = Callable[[Path], MainWindow]

VIEW = RecordedView(
    panels=("view", "history"),
    opened={"Heap": True},
    active="Heap",
    number=7,
    spaces={"Heap": SpaceView("hilbert", "Fill", (2.0, 0.0, 1.5)), "B": SpaceView("tiles", "", ())},
)


@pytest.fixture
def settings(tmp_path: Path) -> UserSettings:
    return UserSettings(tmp_path / "settings.ini")


@pytest.fixture
def open_recording(socket_directory: Path, settings: UserSettings, wait: Wait) -> Iterator[Open]:
    """Windows on players of files; each is closed by the next, as if the program were started again."""
    windows: list[MainWindow] = []
    with ExitStack() as stack:

        def opened(path: Path) -> MainWindow:
            for window in windows:
                window.close()
            address = f"unix:{socket_directory}/{len(windows)}.sock"
            recording = Recording.open(path)
            beginning = PlaybackStart(running=False)
            stack.enter_context(serve_recording(recording, address, beginning=beginning))
            window = MainWindow(Theme.DARK, settings)
            windows.append(window)
            window.resize(1280, 900)
            window.show()
            window.bookmark_store.use_files(path)
            window.link.open(parse_address(address))
            wait(lambda: len(window.session.timeline) == recording.last)
            wait(lambda: bool(window.recorded_views._restored))
            return window

        yield opened
        for window in windows:
            window.close()
            window.deleteLater()


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "one.gcspy"
    record(path, 40)
    return path


def test_a_recording_opens_as_it_was_left_and_is_not_written_to(
    recording: Path, tmp_path: Path, open_recording: Open, wait: Wait
) -> None:
    before = recording.read_bytes()
    window = open_recording(recording)
    heap, memory = list(window.session.interpreter.spaces)[:2]
    window.selection.turn_to(memory)
    window.spaces.open(heap)
    window.views.zoom(heap, 1)
    window.selection.turn_to(heap)
    window.views.choose_view("hilbert")
    window.selection.turn_to(memory)
    window.docks.show("history")
    window.docks["tile"].close()
    window.navigator.go_to(23)
    wait(lambda: window.session.number == 23)
    left = window.recorded_views.current()
    assert left.active == window.session.interpreter.spaces[memory].space.name
    again = open_recording(recording)
    wait(lambda: again.session.number == 23)
    assert again.recorded_views.current() == left
    assert again.docks.is_open("history")
    assert not again.docks.is_open("tile")
    assert again.session.looks.of(heap).view == "hilbert"
    other = tmp_path / "other.gcspy"
    record(other, 40, identity=b"another program.")
    fresh = open_recording(other)
    assert fresh.bookmark_store.identity != again.bookmark_store.identity
    assert fresh.session.looks.of(heap).view == "tiles"
    assert recording.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir() if "settings" not in path.name} == {
        "one.gcspy",
        "other.gcspy",
    }


def test_another_recording_in_the_same_window_keeps_the_view_of_the_first(
    recording: Path, open_recording: Open, settings: UserSettings, wait: Wait
) -> None:
    window = open_recording(recording)
    window.navigator.go_to(11)
    wait(lambda: window.session.number == 11)
    identity = window.bookmark_store.identity
    window.bookmark_store.use_files()
    kept = read_view(settings.value(f"recordings.view.{identity}"))
    assert kept is not None
    assert kept.number == 11


@pytest.mark.parametrize(
    "value",
    [
        "x",
        [],
        {},
        {**VIEW.to_dict(), "number": -1},
        {**VIEW.to_dict(), "number": 1 << 400},
        {**VIEW.to_dict(), "number": True},
        {**VIEW.to_dict(), "panels": ["view", 3]},
        {**VIEW.to_dict(), "panels": ["x" * 1000]},
        {**VIEW.to_dict(), "panels": ["x"] * 1000},
        {**VIEW.to_dict(), "opened": {"Heap": 1}},
        {
            **VIEW.to_dict(),
            "spaces": {"Heap": {"view": "tiles", "stream": "", "place": [0.0, 0.0, 0.0]}},
        },
        {
            **VIEW.to_dict(),
            "spaces": {"Heap": {"view": "tiles", "stream": "", "place": [1 << 90, 0]}},
        },
        {
            **VIEW.to_dict(),
            "spaces": {"Heap": {"view": "tiles", "stream": "", "place": [2, float("nan")]}},
        },
        {
            **VIEW.to_dict(),
            "spaces": {"Heap": {"view": "tiles", "stream": "", "place": [2.0, float("nan"), 0.0]}},
        },
        {**VIEW.to_dict(), "spaces": {"Heap": {"view": 1, "stream": "", "place": []}}},
        {**VIEW.to_dict(), "spaces": {str(number): {} for number in range(1000)}},
    ],
)
def test_what_is_no_view_is_refused(value: object) -> None:
    assert read_view(value) is None


def test_names_that_nothing_has_change_nothing(
    recording: Path, open_recording: Open, settings: UserSettings, wait: Wait
) -> None:
    with Recording.open(recording) as found:
        identity = found.facts.recording.hex()
    view = RecordedView(
        panels=("view", "no such panel"),
        opened={"no space": True},
        active="none",
        number=10**9,
        spaces={
            "Heap": SpaceView("no view", "no stream", (-5, 10**12)),
            "C": SpaceView("", "", ()),
        },
    )
    settings.store(f"recordings.view.{identity}", view.to_dict())
    window = open_recording(recording)
    heap = next(iter(window.session.interpreter.spaces))
    assert window.docks.is_open("view")
    assert window.session.looks.of(heap).view == "tiles"
    layout = window.spaces.panels[heap].canvas.picture.layout
    wait(lambda: layout.first <= layout.last <= 64)


def test_a_view_is_read_as_it_was_written() -> None:
    assert read_view(VIEW.to_dict()) == VIEW


def test_the_views_of_the_latest_recordings_are_kept() -> None:
    kept, gone = latest_last(["a", "b", "c"], "b")
    assert (kept, gone) == (["a", "c", "b"], [])
    kept, gone = latest_last([str(number) for number in range(MOST_KEPT)], "new")
    assert len(kept) == MOST_KEPT
    assert kept[-1] == "new"
    assert gone == ["0"]
