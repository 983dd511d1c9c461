"""Takes the pictures of `docs/object-traces.md`, in a sample trace: ``python screenshots/traces.py [SCENE…]``.

A process of its own for each picture, as Qt reads the scale of the screen once.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import event_loop
from gcspy_drivers.traced import TracedOptions
from gcspy_protocol.playback import Seek
from gcspy_replay.file import Recording
from gcspy_replay.player import PlaybackStart, serve_recording

from gcspy.objects.trace_conversion import traced_recording
from gcspy_client.app import take_screenshot
from gcspy_client.model.history.tracks import TrackSpec
from gcspy_client.view.window import MainWindow

HERE = Path(__file__).parent
PROMOTE = HERE.parent / "objects" / "samples" / "anttracks" / "promote.tar.xz"
SIZE = (1600, 1000)
PATIENCE_SECS = 60.0
AFTER = "full GC 6: System.gc()"
"""The collection that finds dead what was promoted and dropped."""


OLD_TILES = 420
"""This many of the old space's tiles are ever used."""

wait_until = partial(event_loop.wait_until, secs=PATIENCE_SECS)


def choose(window: MainWindow, space: str, stream: str) -> int:
    """Show a space by one of its streams; returns the number of the space."""
    for number, state in window.session.interpreter.spaces.items():
        if state.space.name == space:
            (found,) = [one.id for one in state.space.streams if one.name == stream]
            window.selection.choose_stream(number, found)
            window.selection.activate(number)
            return number
    raise RuntimeError(f"the recording has no space {space!r}")


def go_to(window: MainWindow, kind: str, cause: str) -> None:
    """Go on to the next event of a kind with a given cause."""

    def arrived(number: int) -> bool:
        return window.session.number > number

    while True:
        event = window.session.interpreter.last_event
        assert event is not None
        if window.session.interpreter.event_name(event.event) == kind and event.cause == cause:
            return
        before = window.session.number
        window.navigator.playing.seek(Seek(name=kind))
        wait_until(lambda before=before: arrived(before), f"{kind}, {cause}")


def by_event(window: MainWindow) -> None:
    """Let the timeline count events: all of this happens within an eighth of a second."""
    window.time_panel.transport.axis.setCurrentIndex(1)
    window.time_panel.transport.axis_chosen.emit(False)


def promotion(window: MainWindow) -> None:
    """The promoted objects, before and after the full collection that finds half of them dead."""
    choose(window, "Old", "Used")
    window.docks.show("history")
    window.docks.give_height("history", 560)
    window.history.panel.add_track(TrackSpec("Old", "Promoted"))
    window.history.panel.add_track(TrackSpec("Eden", "Used"))
    by_event(window)
    go_to(window, "GC end", AFTER)
    last = window.session.timeline.last

    def drawn() -> bool:
        pictures = [track.canvas.drawn for track in window.history.panel.tracks]
        whole = all(
            one is not None and len(one.events) >= last - 1 and not one.preview.any()
            for one in pictures
        )
        return whole and window.history.panel.read == 1.0

    wait_until(drawn, "the history graphs")
    for track in window.history.panel.tracks[:2]:
        track.canvas.show_tiles(0, OLD_TILES)


def life(window: MainWindow) -> None:
    """An array that survives, is promoted, and is moved by full collections."""
    by_event(window)
    go_to(window, "GC start", "minor GC 2: Allocation Failure")
    window.actions_table.run("objects.find")
    window.docks.give_height("objects", 350)
    panel = window.objects.panel
    panel.text.setText("type:Promote$Tree[] size:272")
    panel.sought.emit()
    wait_until(lambda: not panel.said and len(panel.table.rows) == 1, "the object")
    panel.table.selectRow(0)
    window.actions_table.run("objects.follow")
    wait_until(lambda: window.objects.followed is not None, "its life")
    go_to(window, "GC end", "full GC 4: System.gc()")
    wait_until(lambda: list(window.session._selected) != [], "its tile")


def lifetimes(window: MainWindow) -> None:
    """The share of all objects that survives a number of bytes, at the trace's last event."""
    by_event(window)
    window.navigator.go_to(window.session.timeline.last)
    window.docks.show("ages")
    window.docks.give_height("ages", 430)
    wait_until(lambda: window.ages.panel.chart is not None, "the survival curve")
    wait_until(lambda: window.session.number == window.session.timeline.last, "the last event")


def flame(window: MainWindow) -> None:
    """The calls that allocated what a full collection left in the heap."""
    by_event(window)
    go_to(window, "GC end", AFTER)
    window.docks.show("flame-graph")
    window.docks.give_height("flame-graph", 330)
    canvas = window.flame_graph.panel.canvas
    wait_until(lambda: canvas.graph is not None, "the flame graph")
    window.flame_graph.panel.search.setText("Promote$Tree")


SCENES: dict[str, tuple[str, str, Callable[[MainWindow], None]]] = {
    "promotion": ("trace-promotion-dark.png", "dark", promotion),
    "life": ("trace-life-dark.png", "dark", life),
    "lifetimes": ("trace-lifetimes-dark.png", "dark", lifetimes),
    "flame": ("trace-flame-dark.png", "dark", flame),
    "lifetimes-light": ("trace-lifetimes-light.png", "light", lifetimes),
}
"""Name of the scene to its file, its theme, and what is arranged."""


def take(scene: str) -> None:
    """Take one picture."""
    name, theme, arrange = SCENES[scene]
    with (
        tempfile.TemporaryDirectory(prefix="gcspy-") as folder,
        traced_recording(PROMOTE, TracedOptions()) as traced,
        serve_recording(
            Recording.open(traced.path),
            f"unix:{folder}/s",
            beginning=PlaybackStart(running=False),
            query_service=traced.query_service,
        ) as playing,
    ):

        def arranged(window: MainWindow) -> None:
            window.bookmark_store.use_files(traced.path)
            arrange(window)

        take_screenshot(
            playing.addresses[0],
            HERE / name,
            size=SIZE,
            theme=theme,
            settle_secs=1.0,
            arrange=arranged,
            control=True,
        )


def main(arguments: list[str]) -> int:
    """Take all of them, or some."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    os.environ["GCSPY_SETTINGS"] = ""
    if len(arguments) == 1:
        take(arguments[0])
        return 0
    for scene in arguments or SCENES:
        subprocess.run([sys.executable, __file__, scene], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
