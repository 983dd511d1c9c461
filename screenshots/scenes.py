"""Takes the pictures that need actions of a user: one scene each, in a live session or in a recording of one.

A process of its own for each picture, as Qt reads the scale of the screen once; called by `make.py`.

    scenes.py SCENE PID PICTURE SIZE THEME     a live session, in one of the `LIVE` scenes
    scenes.py start - PICTURE SIZE THEME       the start page
    scenes.py save PID FILE                    save a session from the window that watches it
    scenes.py replay FILE PICTURE SIZE THEME   that file, played
    scenes.py workbook|linter|graph FILE PICTURE SIZE THEME   a recording of docs/investigations, at its last event
    scenes.py attachments|sessions|accounts FILE PICTURE SIZE THEME   one of docs/jvm-investigations
    scenes.py many_arenas|cache_hoard|… FILE PICTURE SIZE THEME   one of docs/native-investigations
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from event_loop import wait_until
from gcspy_protocol.model import ControlState, EventFilter
from gcspy_protocol.triggers import Trigger
from gcspy_replay.file import Recording
from gcspy_replay.player import PlaybackStart, serve_recording
from gcspy_replay.samples import samples
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QTableView

from gcspy.hosts.launcher import front_door
from gcspy.hosts.process_host import ServingOptions
from gcspy.hosts.sidecar import start_sidecar
from gcspy_client.app import application, take_screenshot
from gcspy_client.model.history.tracks import TrackSpec
from gcspy_client.model.history.view import HistoryPicture
from gcspy_client.model.palette import Theme
from gcspy_client.model.shell.launcher import FrontDoor
from gcspy_client.model.shell.recent import Recent
from gcspy_client.settings import UserSettings
from gcspy_client.view.window import MainWindow

EVENTS = 150
CLOCK_HZ = 20.0
HISTORY_HEIGHT = 520
JVM_TILES = 4096

PROGRAMS = (
    ("gcspy/demo/workload.py", "--seed", "1"),
    ("screenshots/service.py", "--workers", "3"),
    ("-m", "http.server", "--bind", "127.0.0.1", "0"),
)
"""Arguments of the programs that the start page lists."""

_Arrange = Callable[[MainWindow], None]


def look_back(window: MainWindow, number: int) -> None:
    """Bookmark two moments, choose a range and go to an event."""
    first = window.session.timeline.first
    window.bookmark_store.marks.add(first + EVENTS // 4, "before the burst")
    window.bookmark_store.marks.add(first + EVENTS * 3 // 5, "the arenas have holes")
    window.navigator.choose_range(first + EVENTS // 5, first + EVENTS * 7 // 10)
    window.navigator.go_to(first + number)
    wait_until(lambda: window.session.number == first + number)


def look_back_and_loop(window: MainWindow, file: Path, number: int) -> None:
    """The same in a recording, whose range is played over and over, with a filter of the window's own."""
    window.bookmark_store.use_files(file)
    look_back(window, number)
    window.navigator.toggle_loop()
    window.details_part.set_filters((EventFilter(event=0, delay_millis=40),))
    wait_until(lambda: window.session.live.filters[0].delay_millis == 40)


def has_events(drawn: HistoryPicture | None, events: int = EVENTS) -> bool:
    """Whether a graph shows the whole session so far."""
    return (
        drawn is not None
        and len(drawn.events) >= events
        and len(drawn.keys) > 0
        and not drawn.preview.any()
    )


def show_history(window: MainWindow) -> None:
    """Open two history graphs with a line at each collection, draw over some tiles, and go to an event."""
    panel = window.history.panel
    window.docks.show("history")
    window.docks.give_height("history", HISTORY_HEIGHT)
    panel.add_track(TrackSpec("pymalloc arenas", "Free blocks"))
    panel.set_lines(at_kind=1)
    wait_until(lambda: all(has_events(track.canvas.drawn) for track in panel.tracks))
    graph = panel.graph
    assert graph is not None
    for low, high in ((0.2, 0.35), (0.55, 0.8)):
        first, last = graph.keys.at(
            (np.array([low, high]) * len(graph.keys)).astype(np.int64)
        ).tolist()
        panel.first.add_brush(first, last)
    plotted = panel.series.plotted
    panel.first.rename_brush(plotted[0].brush, "first arenas")
    wait_until(lambda: all(len(one.series) >= EVENTS for one in panel.series.plotted))
    number = window.session.timeline.first + EVENTS * 3 // 5
    window.navigator.go_to(number)
    wait_until(lambda: window.session.number == number)


def show_views(window: MainWindow) -> None:
    """Each space through another view, as far as they go."""
    ids = {space.space.name: number for number, space in window.session.interpreter.spaces.items()}
    for name, view in (("pymalloc arenas", "hilbert"), ("Size classes", "histogram")):
        window.views.choose_view(view, ids[name])
    window.selection.activate(ids["pymalloc arenas"])
    wait_until(lambda: window.session.events_seen > EVENTS + 5)


def filter_events(window: MainWindow) -> None:
    """One kind of event each fifth time only, the other with a delay and a pause."""
    window.docks.show("events")
    window.details_part.set_filters(
        (EventFilter(event=0, period=5), EventFilter(event=1, delay_millis=250, pause=True))
    )
    wait_until(lambda: window.session.live.filters[1].pause)
    wait_until(lambda: window.session.live.state is ControlState.PAUSED)


def compare(window: MainWindow) -> None:
    """An early event, and the one before the arenas were emptied."""
    first = window.session.timeline.first
    for part, what in ((0.2, window.compare.set_a), (0.9, lambda: window.docks.show("compare"))):
        number = first + round(EVENTS * part)
        window.navigator.go_to(number)
        wait_until(lambda number=number: window.session.number == number)
        what()


def put_beside(window: MainWindow) -> None:
    """The session beside a recording of itself that is ahead by a number of events."""
    with tempfile.TemporaryDirectory(prefix="gcspy-") as folder:
        path = Path(folder) / "before.gcspy"
        window.shift.save(path)
        first = window.session.timeline.first
        window.navigator.go_to(first + 20)
        wait_until(lambda: window.session.number == first + 20)
        window.compare.open_recording(path)
        window.sides.bar.offset.setValue(EVENTS - 40)
        wait_until(
            lambda: (
                window.compare.beside is not None and window.compare.beside.comparison is not None
            )
        )
        wait_until(window.compare.settle)


def fire_trigger(window: MainWindow) -> None:
    """A condition that becomes true soon, and pauses."""
    window.docks.show("triggers")
    window.triggers.manager.add(
        Trigger(
            id=1,
            expression="event == 'Collections' and sum(\"pymalloc arenas\".Used) > 8MiB",
            note="a collection with a full heap",
        )
    )
    wait_until(
        lambda: window.session.live.state is ControlState.PAUSED and window.triggers.has_fired
    )


def see_holders(window: MainWindow) -> None:
    """The holders of the program's sessions: a tree, and the tile of the uppermost holder."""
    window.holders.ask_type("Session")
    wait_until(lambda: not window.holders.asking.waits, secs=120)
    tree = window.holders.panel.tree
    node = tree.first_row(lambda one: one.address is not None)
    if node is None:
        raise RuntimeError(f"nothing was told: {window.holders.asking.failure}")
    tree.choose(node)
    window.holders.show_tile(node)
    window.docks.give_height("holders", 300)


def choose(window: MainWindow, space: str, stream: str) -> int:
    """Show a space by one of its streams; returns the number of the space."""
    for number, state in window.session.interpreter.spaces.items():
        if state.space.name == space:
            (found,) = [one.id for one in state.space.streams if one.name == stream]
            window.selection.choose_stream(number, found)
            window.selection.activate(number)
            return number
    raise RuntimeError(f"the recording has no space {space!r}")


def see_holes(window: MainWindow) -> None:
    """The memory that a workbook leaves behind: pools, and the arenas that they keep."""
    choose(window, "Size classes", "Lost")
    choose(window, "Whole arenas", "Used")


def see_leak(window: MainWindow) -> None:
    """The objects that a linter keeps: their types, the largest first."""
    number = choose(window, "Types", "Objects")
    window.views.choose_view("table", number)
    for table in window.spaces.panels[number].findChildren(QTableView):
        table.sortByColumn(2, Qt.SortOrder.DescendingOrder)


def see_survivors(window: MainWindow) -> None:
    """The yield of collections of a growing graph: they scan everything, and all of it stays."""
    number = choose(window, "GC generations", "Survivors")
    window.views.choose_view("table", number)


def see_kinds(window: MainWindow) -> None:
    """A heap of the JVM by what its regions, pages or tiles are for."""
    for stream in ("Type", "Space"):
        try:
            choose(window, "Heap", stream)
            return
        except ValueError:
            continue  # of this collector it is called otherwise


def see_cards(window: MainWindow) -> None:
    """Which cards of the old generation are dirty."""
    choose(window, "Heap", "Dirty cards")


def see_collections(window: MainWindow, *, stream: str = "Type", events: int = EVENTS) -> None:
    """The regions or tiles of a JVM's heap over time, and its pools."""
    choose(window, "Heap", stream)
    window.docks.show("history")
    window.docks.give_height("history", HISTORY_HEIGHT)
    window.history.panel.add_track(TrackSpec("Memory pools", "Used"))
    wait_until(
        lambda: all(has_events(track.canvas.drawn, events) for track in window.history.panel.tracks)
    )


def see_past_collections(window: MainWindow, file: Path) -> None:
    """The same in a recording, whose past the window reads in its file."""
    window.bookmark_store.use_files(file)
    see_collections(window, stream="Used", events=len(Recording.open(file).events))


def see_heap(window: MainWindow, stream: str) -> None:
    """A native heap in order of address, and its arenas."""
    choose(window, "malloc arenas", "Free")
    choose(window, "malloc heap", stream)


SEEN: dict[str, _Arrange] = {
    "fragmentation": partial(see_heap, stream="Used"),
    "kept_by_malloc": partial(see_heap, stream="Reclaimable"),
    "many_arenas": partial(see_heap, stream="Used"),
    "cache_hoard": partial(see_heap, stream="Thread caches"),
    "fast_bins": partial(see_heap, stream="Fast bins"),
    "workbook": see_holes,
    "linter": see_leak,
    "graph": see_survivors,
    "attachments": see_kinds,
    "accounts": see_cards,
}
"""Arrangements of a window that plays a recording of `docs/investigations.md`, `docs/jvm-investigations.md` or `docs/native-investigations.md`, at its last event."""


def save(window: MainWindow, path: Path) -> None:
    """Save what was kept."""
    window.shift.save(path, replace=True)


LIVE: dict[str, _Arrange] = {
    "past": partial(look_back, number=EVENTS // 2),
    "history": show_history,
    "views": show_views,
    "filters": filter_events,
    "compare": compare,
    "beside": put_beside,
    "trigger": fire_trigger,
    "holders": see_holders,
    "jvm": see_kinds,
    "jvm-history": see_collections,
}
"""Arrangements of a window that has monitored a process for a while."""


def watch(
    pid: int,
    picture: Path,
    size: tuple[int, int],
    theme: str,
    arrange: _Arrange,
    *,
    tiles: int = 65_536,
) -> None:
    """Watch a process for a while, arrange the window, take the picture."""
    with tempfile.TemporaryDirectory(prefix="gcspy-") as folder:
        options = ServingOptions(
            pid=pid, listen=(f"unix:{folder}/session.sock",), clock_hz=CLOCK_HZ, tiles=tiles
        )
        with start_sidecar(options) as sidecar:
            take_screenshot(
                sidecar.addresses[0],
                picture,
                size=size,
                theme=theme,
                settle_events=EVENTS,
                settle_secs=1.0,
                arrange=arrange,
                control=True,
            )


def replay(file: Path, picture: Path, size: tuple[int, int], theme: str) -> None:
    """Play a file, arrange the window, take the picture."""
    with tempfile.TemporaryDirectory(prefix="gcspy-") as folder:
        address = f"unix:{folder}/player.sock"
        with serve_recording(Recording.open(file), address, beginning=PlaybackStart(running=False)):
            arrange = partial(look_back_and_loop, file=file, number=EVENTS // 2)
            take_screenshot(
                address, picture, size=size, theme=theme, settle_secs=0.5, arrange=arrange
            )


def investigate(
    file: Path, picture: Path, size: tuple[int, int], theme: str, arrange: _Arrange
) -> None:
    """Play a recording to its last event that the clock made, arrange the window, take the picture."""
    with tempfile.TemporaryDirectory(prefix="gcspy-") as folder:
        address = f"unix:{folder}/player.sock"
        recording = Recording.open(file)
        rows = recording.events
        last = int(rows["number"][rows["event"] == 0][-1])
        with serve_recording(recording, address, beginning=PlaybackStart(running=False)):
            take_screenshot(
                address,
                picture,
                size=size,
                theme=theme,
                settle_secs=1.5,
                event=last,
                arrange=arrange,
            )


def start(picture: Path, size: tuple[int, int], theme: str) -> None:
    """The start page, with processes that were started for it and recordings that were opened before."""
    with tempfile.TemporaryDirectory(prefix="gcspy-") as folder, ExitStack() as ended:
        os.environ["HOME"] = folder
        files = [Path(folder) / "recordings" / sample.path.name for sample in samples()]
        files[0].parent.mkdir()
        for file, sample in zip(files, samples(), strict=True):
            shutil.copy(sample.path, file)
        for words in PROGRAMS:
            child = subprocess.Popen(
                ["python", *words],
                executable=sys.executable,
                cwd=Path(__file__).parent.parent,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
            ended.callback(child.wait)
            ended.callback(child.kill)
        app = application()
        settings = UserSettings(Path(folder) / "settings")
        window = MainWindow(Theme(theme), settings, _front_of_own())
        window.resize(*size)
        window.show()
        for file in files:
            window.opener.play([file])
            wait_until(partial(_plays, window, file), secs=60)
        window.opener.open_page()
        processes = window.opener.page.processes
        wait_until(
            lambda: sum(row.growth_bytes > 1 << 20 for row in processes.model.rows) >= 3, secs=90
        )
        app.processEvents()
        window.grab().save(str(picture))
        window.close()


def _front_of_own() -> FrontDoor:
    """The commands of a window, which lists what this process has started."""
    front = front_door()
    return replace(front, processes=(*front.processes, "--below", str(os.getpid())))


def _plays(window: MainWindow, file: Path) -> bool:
    """Whether some events of a recording were shown, and it is listed as recent."""
    return (
        window.opener.recent()[:1] == [Recent(files=(file,))]
        and not window.opener.wanted
        and window.session.events_seen > EVENTS // 10
        and window.spaces.painted()
    )


def main(arguments: list[str]) -> int:
    """Take one of them."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    os.environ["GCSPY_SETTINGS"] = ""
    scene, source, file, *look = arguments
    size, theme = (1600, 1000), "dark"
    if look:
        width, _, height = look[0].partition("x")
        size, theme = (int(width), int(height)), look[1]
    if scene in LIVE:
        watch(
            int(source),
            Path(file),
            size,
            theme,
            LIVE[scene],
            tiles=JVM_TILES if scene.startswith("jvm") else 65_536,
        )
    elif scene in SEEN:
        investigate(Path(source), Path(file), size, theme, SEEN[scene])
    elif scene == "sessions":
        investigate(
            Path(source), Path(file), size, theme, partial(see_past_collections, file=Path(source))
        )
    elif scene == "start":
        start(Path(file), size, theme)
    elif scene == "save":
        with tempfile.TemporaryDirectory(prefix="gcspy-") as folder:
            watch(
                int(source),
                Path(folder) / "unused.png",
                size,
                theme,
                partial(save, path=Path(file)),
            )
    else:
        replay(Path(source), Path(file), size, theme)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
