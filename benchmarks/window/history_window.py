"""A window on 1,000,000 tiles with a history graph of 10,000 events open: what a frame takes, memory, and how long a user waits.

The benchmark makes a recording (1 % of the tiles change at each event); one process plays it and
another watches it, a real window off screen with its history graph open. It reports when the graph
shows anything and when all of it; how long frames take and messages wait for the window's loop
(`watchdog`) while the graph fills, and while the recording plays at 60 events a second and a user
zooms in the graph; and the memory. With `--live` it does the same with a live program, from its
first event on.

The budget: the interface never blocks for more than 50 ms. Other work on the machine shows in these figures; beside each block
stands the processor time of the window's own thread in it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from gcspy_protocol.interpreter import EventChange
from gcspy_protocol.messages import SetPlayback
from gcspy_protocol.playback import Direction, Pace
from gcspy_replay.file import FileStore, Recording, RecordingWriter
from gcspy_replay.player import PlaybackStart, serve_recording
from PySide6.QtCore import QPoint, QPointF, Qt, QTimer
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication

from benchmarks.harness.figures import tell
from benchmarks.harness.processes import child
from benchmarks.harness.watchdog import HELD_SECS, Block, Watchdog
from benchmarks.window.history import HeapSession
from gcspy_client.app import run_window
from gcspy_client.view.window import MainWindow

__all__ = ["main"]

_SIZE = (1600, 1000)
_HZ = 60.0
_GRAPH_HEIGHT = 400
_WHEEL_MILLIS = 150


def _write(path: Path, tiles: int, events: int, changed: float) -> None:
    session = HeapSession(tiles, changed)
    writer = RecordingWriter(FileStore(path), session.interpreter)
    for message in session.greeting:
        writer.add(message)
    for _ in range(events):
        for message in session.event():
            session.interpreter.apply(message)
            writer.add(message)
    writer.close()


def _serve(path: Path) -> None:
    """Play it until standard input ends."""
    with tempfile.TemporaryDirectory(prefix="gcspy-") as folder:
        address = f"unix:{folder}/player.sock"
        with serve_recording(Recording.open(path), address, beginning=PlaybackStart(running=False)):
            print(json.dumps({"address": address}), flush=True)
            sys.stdin.read()


class _Phase:
    """The results of one part of the run."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.began, self.used = time.monotonic(), time.process_time()
        self.events = 0
        self.watchdog = Watchdog().start()
        self.frames: list[float] = []

    def end(self) -> dict[str, Any]:
        self.watchdog.stop()
        secs = time.monotonic() - self.began
        waits, frames = self.watchdog.waits, np.array(self.frames or [0.0])
        return {
            "phase": self.name,
            "secs": secs,
            "cpu": (time.process_time() - self.used) / secs,
            "events": self.events,
            "frame_p50_ms": float(np.median(frames)) * 1e3,
            "frame_p99_ms": float(np.percentile(frames, 99)) * 1e3,
            "wait_p50_ms": float(np.median(waits)) * 1e3 if len(waits) else 0.0,
            "wait_p99_ms": float(np.percentile(waits, 99)) * 1e3 if len(waits) else 0.0,
            "wait_max_ms": float(waits.max()) * 1e3 if len(waits) else 0.0,
            "blocks": [[one.secs, one.used_secs, one.stack] for one in self.watchdog.blocks],
        }


class _Run:
    """Leads a window through the phases: fill, play and zoom (or: grow), idle."""

    def __init__(
        self, window: MainWindow, recording: Path | None, seconds: float, events: int
    ) -> None:
        self._window, self._recording, self._seconds, self._events = (
            window,
            recording,
            seconds,
            events,
        )
        self._phase: _Phase | None = None
        self._reports: list[dict[str, Any]] = []
        self._opened = self._first = 0.0
        self._before = 0
        self._event_at = 0.0
        self._turns = 0
        window.updater.applied.connect(self._applied)
        window.set_probe(self._painted)
        self._timer = QTimer(window)
        self._timer.timeout.connect(self._look)
        self._timer.start(20)
        self._wheel = QTimer(window)
        self._wheel.timeout.connect(self._turn)

    def _applied(self, _change: EventChange) -> None:
        if self._phase is not None:
            self._phase.events += 1
        if not self._event_at:
            self._event_at = time.monotonic()

    def _painted(self, _space: int, _sequence: int, nanos: int) -> None:
        if self._phase is not None and self._event_at:
            self._phase.frames.append(nanos / 1e9 - self._event_at)
        self._event_at = 0.0

    def _look(self) -> None:
        window = self._window
        if window.session.interpreter.last_event is None or window.details.graph.plot is None:
            return  # the window is not whole yet
        if not self._opened:
            self._before = _resident()
            window.docks.show("history")
            window.docks.give_height("history", _GRAPH_HEIGHT)
            self._opened = time.monotonic()
            self._phase = _Phase(
                "fills" if self._recording is not None else "grows, somebody zooms"
            )
            if self._recording is None:
                self._wheel.start(_WHEEL_MILLIS)
            return
        drawn = window.history.panel.canvas.drawn
        if not self._first and drawn is not None and drawn.codes.any():
            self._first = time.monotonic() - self._opened
        assert self._phase is not None
        spent = time.monotonic() - self._phase.began
        if self._recording is None:
            if window.session.events_seen >= self._events:
                self._finish()
        elif self._phase.name == "fills" and self._first and window.history.panel.read >= 1:
            self._next("plays at 60 Hz")
            window.navigator.playing.set_manner(
                SetPlayback(pace=Pace.FIXED, interval_millis=round(1000 / _HZ))
            )
            window.navigator.play(Direction.FORWARDS)
        elif self._phase.name == "plays at 60 Hz" and spent > self._seconds:
            self._next("plays, somebody zooms")
            self._wheel.start(_WHEEL_MILLIS)
        elif self._phase.name == "plays, somebody zooms" and spent > self._seconds:
            self._finish()

    def _turn(self) -> None:
        """The wheel over the graph: in, and out again; now and then over its tiles."""
        canvas = self._window.history.panel.canvas
        self._turns += 1
        closer = self._turns // 12 % 2 == 0
        tiles = self._turns % 3 == 0
        where = QPointF(canvas.area().center())
        modifiers = Qt.KeyboardModifier.ControlModifier if tiles else Qt.KeyboardModifier.NoModifier
        event = QWheelEvent(
            where, canvas.mapToGlobal(where), QPoint(), QPoint(0, 120 if closer else -120), Qt.MouseButton.NoButton,
            modifiers, Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        QApplication.sendEvent(canvas, event)

    def _next(self, name: str) -> None:
        assert self._phase is not None
        self._reports.append({**self._phase.end(), "took": time.monotonic() - self._opened})
        self._phase = _Phase(name)

    def _finish(self) -> None:
        self._wheel.stop()
        self._timer.stop()
        assert self._phase is not None
        self._reports.append({**self._phase.end(), "took": time.monotonic() - self._opened})
        graph, drawn = self._window.history.panel.graph, self._window.history.panel.canvas.drawn
        report = {
            "phases": self._reports,
            "first_secs": self._first,
            "resident_before": self._before,
            "resident": _resident(),
            "resident_most": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10,
            "graph_bytes": 0 if graph is None else graph.nbytes,
            "graph_events": 0 if drawn is None else len(drawn.events),
        }
        print(json.dumps(report), flush=True)
        self._window.close()


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _watch(address: str, recording: Path | None, seconds: float, events: int) -> None:
    runs: list[_Run] = []  # kept: signals hold no reference

    def ready(window: MainWindow) -> None:
        runs.append(_Run(window, recording, seconds, events))

    paths = () if recording is None else (recording,)
    run_window(address, theme="dark", size=_SIZE, recording=paths, on_ready=ready)


def _told(report: dict[str, Any], case: str) -> None:
    mib = 1 << 20
    print(f"  anything of it is seen after {report['first_secs'] * 1e3:.0f} ms")
    tell(f"{case}: first picture of the graph", report["first_secs"] * 1e3, "ms")
    for phase in report["phases"]:
        blocks = [Block(secs, used, tuple(stack)) for secs, used, stack in phase["blocks"]]
        own = sum(one.used_secs > HELD_SECS for one in blocks)
        print(
            f"  {phase['phase']:<22} {phase['secs']:6.1f} s, {phase['events']:6,} events, {phase['cpu']:5.1%} of a core | "
            f"frame p50 {phase['frame_p50_ms']:5.1f} p99 {phase['frame_p99_ms']:6.1f} ms | "
            f"loop waits p50 {phase['wait_p50_ms']:4.1f} p99 {phase['wait_p99_ms']:5.1f} most {phase['wait_max_ms']:6.1f} ms | "
            f"over 50 ms: {len(blocks)}, by its own work {own}"
        )
        name = f"{case}, {phase['phase']}"
        tell(f"{name}: frame median", phase["frame_p50_ms"], "ms")
        tell(f"{name}: frame p99", phase["frame_p99_ms"], "ms")
        tell(f"{name}: blocks over 50 ms", len(blocks), "", "0")
        for block in sorted(blocks, key=lambda one: -one.secs)[:3]:
            print(f"    {block}")
    print(
        f"  memory: {report['resident_before'] / mib:.0f} MiB before it was opened, {report['resident'] / mib:.0f} at the end, at most "
        f"{report['resident_most'] / mib:.0f}; rows of the graph {report['graph_bytes'] / mib:.0f} MiB for {report['graph_events']:,} events"
    )
    tell(f"{case}: memory at the end", report["resident"] / mib, "MiB")


def _played(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="gcspy-") as folder:
        path = options.file or Path(folder, "heap.gcspy")
        if not path.exists():
            _write(path, options.tiles, options.events, options.changed)
        print(
            f"{options.tiles:,} tiles, {options.events:,} events, a recording of {path.stat().st_size >> 20} MiB",
            flush=True,
        )
        with child("benchmarks.window.history_window", "--serve", str(path)) as player:
            address = player.line()["address"]
            arguments = ["--watch", address, "--file", str(path), f"--seconds={options.seconds}"]
            with child(
                "benchmarks.window.history_window",
                *arguments,
                QT_QPA_PLATFORM="offscreen",
                XDG_CONFIG_HOME=folder,
            ) as window:
                _told(window.line(), "played")


def _live(options: argparse.Namespace) -> None:
    print(f"{options.tiles:,} tiles, {options.events:,} events at {_HZ:g} Hz, live", flush=True)
    arguments = [
        f"--tiles={options.tiles}",
        f"--changed={options.changed}",
        f"--hz={_HZ}",
        "--wait=2",
    ]
    with (
        tempfile.TemporaryDirectory(prefix="gcspy-") as folder,
        child("benchmarks.targets.synthetic", *arguments) as server,
    ):
        address = server.line()["address"]
        watch = ["--watch", address, f"--events={options.events}"]
        with child(
            "benchmarks.window.history_window",
            *watch,
            QT_QPA_PLATFORM="offscreen",
            XDG_CONFIG_HOME=folder,
        ) as window:
            _told(window.line(), "live")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tiles", type=int, default=1_000_000)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--changed", type=float, default=0.01)
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="of each of the phases in which it plays"
    )
    parser.add_argument(
        "--live", action="store_true", help="a live program, instead of a recording"
    )
    parser.add_argument(
        "--file", type=Path, default=None, help="a recording; made when it is not there"
    )
    parser.add_argument("--serve", type=Path, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--watch", default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        _serve(options.serve)
    elif options.watch is not None:
        _watch(options.watch, options.file, options.seconds, options.events)
    elif options.live:
        _live(options)
    else:
        _played(options)


if __name__ == "__main__":
    main()
