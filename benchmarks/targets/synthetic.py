"""A server with made-up data, as a process: a number of tiles, of which some change, at a rate.

Run as ``python -m benchmarks.targets.synthetic``; it prints its address, one JSON object a line, and stops
when its standard input ends. The last line says what it did and what processor time it took.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
import zlib
from pathlib import Path

import numpy as np

from gcspy_server.api import PaintStyle, Presentation, Server, ServerSpace, UniformNames

__all__ = ["main"]

_SETS = 16
"""Number of sets of changes made beforehand, so that making them costs nothing while measuring."""

_MAXIMUM = 32768


def _changes(
    tiles: int, fraction: float, rng: np.random.Generator
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Which tiles change and to what, for a cycle of events."""
    count = max(1, int(tiles * fraction))
    sets = []
    for _ in range(_SETS):
        where = np.arange(tiles) if fraction >= 1 else np.unique(rng.integers(0, tiles, count))
        sets.append((where, rng.integers(1, _MAXIMUM, len(where), dtype=np.int32)))
    return sets


def _names(tiles: int) -> UniformNames:
    return UniformNames(base=0x7F00_0000_0000, tile_bytes=_MAXIMUM, count=tiles)


def _run(
    options: argparse.Namespace, server: Server, space: ServerSpace, stop: threading.Event
) -> dict[str, float]:
    rng = np.random.default_rng(options.seed)
    (stream,) = space.streams
    sets = _changes(options.tiles, options.changed, rng)
    stream.data[:] = rng.integers(
        1, _MAXIMUM, options.tiles, dtype=np.int32
    )  # no zeros: those are drawn empty
    server.wait_for_client()
    stop.wait(options.wait)
    period = 1 / options.hz
    used_before, began = sum(os.times()[:2]), time.monotonic()
    events = 0
    encode = []
    while not stop.is_set() and (options.events is None or events < options.events):
        if server.should_transmit(0):
            if options.resize and events % 2:
                space.resize(_names(options.tiles - (events // 2 % 2) * (options.tiles // 100)))
            where, values = sets[events % _SETS]
            inside = where < len(stream.data)
            stream.data[where[inside]] = values[inside]
            stream.set_summary(0, _MAXIMUM * options.tiles, covered=options.tiles)
            started = time.monotonic_ns()
            server.finish(0, program_clock=("gathered", started))
            encode.append(time.monotonic_ns() - started)
        events += 1
        stop.wait(max(0.0, began + events * period - time.monotonic()))
    elapsed = time.monotonic() - began
    return {
        "crc": zlib.crc32(stream.data.astype("<i4").tobytes()),
        "events": events,
        "seconds": elapsed,
        "cpu_share": (sum(os.times()[:2]) - used_before) / elapsed,
        "finish_ms": float(np.median(encode)) / 1e6 if encode else float("nan"),
    }


def main() -> None:
    """Serve until standard input ends or this many events were sent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiles", type=int, default=1_000_000)
    parser.add_argument(
        "--changed", type=float, default=0.01, help="share of the tiles that change at each event"
    )
    parser.add_argument("--hz", type=float, default=60.0)
    parser.add_argument("--events", type=int, default=None)
    parser.add_argument(
        "--resize", action="store_true", help="resize the space at every other event"
    )
    parser.add_argument(
        "--wait", type=float, default=0.5, help="seconds from the first client to the first event"
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    stop = threading.Event()

    def stop_at_eof() -> None:
        while os.read(sys.stdin.fileno(), 4096):
            pass
        stop.set()

    with tempfile.TemporaryDirectory(prefix="gcspy-bench-") as folder:
        server = Server("synthetic", events=["Tick"])
        space = server.add_space("Synthetic", names=_names(options.tiles), main=True)
        space.add_stream(
            "Used",
            dtype="i4",
            maximum=_MAXIMUM,
            presentation=Presentation.PERCENT,
            paint_style=PaintStyle.ZERO,
        )
        with server.serve(f"unix:{Path(folder, 'socket')}") as listening:
            print(json.dumps({"address": listening.addresses[0], "pid": os.getpid()}), flush=True)
            threading.Thread(target=stop_at_eof, daemon=True).start()
            report = _run(options, server, space, stop)
            print(json.dumps(report), flush=True)
            stop.wait()


if __name__ == "__main__":
    main()
