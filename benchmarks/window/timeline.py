"""Delays at the timeline of a long recording: the longest turn of the window's loop, with 100,000 events and their memory.

A real recording, player, socket and window (off screen). Every third event ends a collection. The
results are the processor time of the window's own thread in the longest turn while the memory of the
recording is read in a thread, and while a user zooms, moves along, points at events and draws ranges.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
from gcspy_drivers.kit import HeapBytes, MemoryHistorySpace
from gcspy_protocol.address import parse_address
from gcspy_protocol.connection import Connection
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.messages import Hello
from gcspy_protocol.model import Role
from gcspy_replay.file import FileStore, PartFacts, Recording, RecordingWriter, WireTap
from gcspy_replay.player import PlaybackStart, serve_recording
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest

from benchmarks.harness.figures import tell
from benchmarks.window.scrub import has_passed, turns_until
from gcspy_client.app import application
from gcspy_client.model.palette import Theme
from gcspy_client.view.window import MainWindow
from gcspy_server.api import Server, UniformNames

__all__ = ["main", "record"]

_MIB = 1 << 20
_HELD_SECS = 0.016
_OPENING_SECS = 1.0
_BUDGET = "16 ms"


def record(path: Path, events: int, *, identity: bytes = bytes(16)) -> None:
    """Record a session whose memory goes up and down, as fast as it can be written."""
    now = [10**12]
    server = Server("benchmark", events=["Clock", "GC start", "GC end"], time_nanos=lambda: now[0])
    heap = server.add_space("Heap", names=UniformNames(1 << 40, 4096, 64), main=True)
    fill = heap.add_stream("Fill", dtype="u1", maximum=255)
    memory = MemoryHistorySpace(server, driver="benchmark", managers=("heap",))
    connection, state, tap = Connection(Role.CLIENT), ClientInterpreter(), WireTap()
    connection.send(Hello(client="benchmark"))
    facts = PartFacts(recording=identity, created=time.time_ns())
    writer = RecordingWriter(FileStore(path), state, facts=facts, tap=tap)

    def take(data: bytes) -> None:
        connection.receive_data(data)
        tap.receive_data(data)
        for message in connection.messages():
            state.apply(message)
            writer.add(message)

    random = np.random.default_rng(5)
    try:
        server.deliver_to(take)
        for number in range(events):
            now[0] += int(random.integers(1_000_000, 9_000_000))
            kind = number % 3
            if server.should_transmit(kind):
                heap.reset()
                fill.data[number % 64] = number % 251
                used = (100 + number % 997) * _MIB // 4
                resident = (400 + number * 600 // events) * _MIB
                memory.fill(resident, {"heap": HeapBytes(used=used, committed=300 * _MIB)})
            server.finish(kind, "")
    finally:
        writer.close()
        server.close()


@contextmanager
def _playing(path: Path, folder: str) -> Iterator[tuple[MainWindow, float]]:
    """A window on a player of the file, and the longest turn while it came to show the memory of every event."""
    application()
    recording = Recording.open(path)
    last = recording.last
    address = f"unix:{folder}/player.sock"
    with serve_recording(recording, address, beginning=PlaybackStart(running=False)):
        window = MainWindow(Theme.DARK)
        window.resize(1600, 1000)
        window.show()
        try:
            window.link.open(parse_address(address))
            turns_until(lambda: len(window.session.timeline) == last)
            window.settle()
            turns_until(lambda: window.details.graph.plot is not None)
            feed = window.ranges.feed
            # The window's first pictures need every font and colour for the first time.
            first = turns_until(partial(has_passed, time.monotonic() + _OPENING_SECS))
            print(f"longest turn of the first pictures {first * 1e3:.1f} ms")
            window.bookmark_store.use_files(path)  # only now is there something to read
            window.ranges.refresh()
            longest = turns_until(lambda: feed.settled and len(feed.track.samples) == last)
            window.settle()
            yield window, longest
        finally:
            window.close()


def _turn(work: Callable[[], object]) -> float:
    """Do something as a user; processor time of this thread until it is painted, in seconds."""
    began = time.thread_time()
    work()
    application().processEvents()
    return time.thread_time() - began


def _print(what: str, spans: list[float]) -> None:
    spans = sorted(spans)
    median, worst = spans[len(spans) // 2] * 1e3, spans[-1] * 1e3
    held = sum(span > _HELD_SECS for span in spans)
    print(
        f"  {what:28} median {median:6.1f} ms   worst {worst:6.1f} ms   over 16 ms: {held} of {len(spans)}",
        flush=True,
    )
    tell(f"timeline, {what}: longest turn of the window's loop", worst, "ms", budget=_BUDGET)


def _measure(window: MainWindow, times: int) -> None:
    strip = window.time_panel.strip
    plot = strip.plot()
    y = plot.center().y()
    last = window.session.timeline.last
    random = np.random.default_rng(2)

    def wheel(turned: int) -> None:
        at = QPointF(plot.left() + plot.width() * float(random.random()), y)
        event = QWheelEvent(
            at,
            strip.mapToGlobal(at),
            QPoint(),
            QPoint(0, turned),
            Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        application().sendEvent(strip, event)

    turns = [120] * (times // 2) + [-120] * (times // 2)
    _print("zoom", [_turn(partial(wheel, one)) for one in turns])
    strip.show_span(None)
    strip.zoom_at(0.2, plot.center().x())
    _print("move along", [_turn(lambda: strip.move_along(9.0)) for _ in range(times)])
    strip.show_span(None)
    places = [
        QPoint(round(plot.left() + plot.width() * float(share)), round(y))
        for share in random.random(times)
    ]
    _print("point", [_turn(partial(QTest.mouseMove, strip, at)) for at in places])
    window.actions_table.run("time.range-statistics")
    ends = [sorted(random.integers(1, last + 1, 2).tolist()) for _ in range(times)]
    _print(
        "choose a range",
        [_turn(partial(window.navigator.choose_range, *one)) for one in ends],
    )
    axes = [number % 2 == 0 for number in range(times)]
    _print("other axis", [_turn(partial(strip.set_by_time, one)) for one in axes])


def main() -> None:
    """Record, play, measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=60)
    options = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    with tempfile.TemporaryDirectory(prefix="gcspy-") as folder:
        path = Path(folder) / "long.gcspy"
        record(path, options.events)
        began = time.monotonic()
        with _playing(path, folder) as (window, longest):
            secs = time.monotonic() - began
            print(f"{options.events:,} events, memory read {secs:.1f} s after the window was made")
            _print("while memory is read", [longest])
            _measure(window, options.times)


if __name__ == "__main__":
    main()
