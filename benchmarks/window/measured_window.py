"""The window as a measured process: it says when the paint of each event was finished, and checks its own pixels.

Run as ``python -m benchmarks.window.measured_window ADDRESS``; prints one JSON object when the server's last event was painted.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import zlib

import numpy as np
from gcspy_protocol.messages import Event
from PySide6.QtCore import QTimer

from gcspy_client.app import run_window
from gcspy_client.model.codes import TileCodes, tiles_of
from gcspy_client.view.window import MainWindow

__all__ = ["main"]

_QUIET_SECS = 1.5
_SAMPLES = 500


class _Meter:
    """Collects, for each event, when its data were gathered and when its paint was finished."""

    def __init__(self, window: MainWindow, *, skip: int) -> None:
        self.window = window
        self._skip = skip
        self.gathered: dict[int, int] = {}
        self.painted: dict[int, int] = {}
        self.last_paint = time.monotonic_ns()
        self.cpu_began: float | None = None
        self.began = 0.0
        window.event_shown.connect(self._event)
        window.set_probe(self._paint)
        self._timer = QTimer(window)
        self._timer.timeout.connect(self._look)
        self._timer.start(100)

    def _event(self, event: Event) -> None:
        if event.program_clock is not None and not event.cached and event.sequence > self._skip:
            self.gathered[event.sequence] = event.program_clock[1]
            self.last_paint = time.monotonic_ns()
            if self.cpu_began is None:
                self.cpu_began, self.began = sum(os.times()[:2]), time.monotonic()

    def _paint(self, _space: int, sequence: int, nanos: int) -> None:
        self.painted.setdefault(sequence, nanos)
        if sequence in self.gathered:
            self.last_paint = nanos

    def _look(self) -> None:
        if self.gathered and time.monotonic_ns() - self.last_paint > _QUIET_SECS * 1e9:
            self._timer.stop()
            self._report()
            self.window.close()

    def _report(self) -> None:
        seconds = self.last_paint / 1e9 - self.began
        used = sum(os.times()[:2]) - (self.cpu_began or 0)
        # An event that was overtaken is seen with the next one painted.
        latency, sequences = [], np.array(sorted(self.painted))
        for sequence, gathered in self.gathered.items():
            place = int(np.searchsorted(sequences, sequence))
            if place < len(sequences):
                latency.append((self.painted[int(sequences[place])] - gathered) / 1e6)
        wrong, checked = _wrong_pixels(self.window)
        space = next(iter(self.window.session.interpreter.spaces.values()))
        report = {
            "events": len(self.gathered),
            "paints": len(self.painted),
            "paints_per_sec": len([n for n in self.painted if n in self.gathered])
            / max(seconds, 1e-9),
            "p50_ms": float(np.percentile(latency, 50)),
            "p99_ms": float(np.percentile(latency, 99)),
            "max_ms": max(latency),
            "cpu_share": used / max(seconds, 1e-9),
            "cpu_ms": 1e3 * used / max(1, len(self.gathered)),
            "kept": self.window.shift.last,
            "kept_bytes": self.window.shift.status.memory_bytes
            + self.window.shift.status.disk_bytes,
            "missed": self.window.session.interpreter.missed_total,
            "pixels_checked": checked,
            "pixels_wrong": wrong,
            "crc": zlib.crc32(next(iter(space.streams.values())).values.tobytes()),
        }
        print(json.dumps(report), flush=True)


def _wrong_pixels(window: MainWindow) -> tuple[int, int]:
    """Compare sampled pixels of the painted widget with colours computed again from the values."""
    panel = next(iter(window.spaces.panels.values()))
    picture = panel.canvas.picture
    image = panel.canvas.grab().toImage()
    codes = TileCodes(picture.space.stream(picture.stream_id).schema)
    codes.refresh(tiles_of(picture.space, picture.stream_id))
    layout, palette = picture.layout, picture.palette
    rng = np.random.default_rng(1)
    wrong = checked = 0
    for tile in rng.integers(layout.first, layout.last, _SAMPLES).tolist():
        x, y, width, height = layout.rectangle(tile)
        x, y = x + width // 2, y + height // 2
        if x >= image.width() or y >= image.height():
            continue
        tiles = layout.tiles_at(x, y)
        code = int(codes.codes[tiles.start : tiles.stop].max())
        found = image.pixel(x, y) & 0xFFFFFF
        allowed = {int(palette.lut[code]) & 0xFFFFFF, int(palette.marked[code]) & 0xFFFFFF}
        checked += 1
        wrong += found not in allowed
    return wrong, checked


def main() -> None:
    """Measure until the server falls quiet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--size", default="1600x1000")
    parser.add_argument(
        "--skip", type=int, default=0, help="events at the beginning that are not measured"
    )
    parser.add_argument("--unkept", action="store_true", help="keep nothing for looking back")
    options = parser.parse_args()
    width, height = map(int, options.size.split("x"))
    meters: list[_Meter] = []  # kept: signals hold no reference

    def ready(window: MainWindow) -> None:
        if options.unkept:
            window.link.tap = None
        meters.append(_Meter(window, skip=options.skip))

    run_window(options.address, theme="dark", size=(width, height), on_ready=ready)


if __name__ == "__main__":
    main()
