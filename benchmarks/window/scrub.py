"""Delays of scrubbing in a live session: the duration of a turn of the window's loop, at 100,000 and 1,000,000 tiles.

A real server, socket and window (off screen); the heap changes by 1 % at each event. The results
are the processor time of the window's own thread in the longest turn between a request and the
picture, since other work on the machine does not show in it, and how many of those turns took
longer than 50 ms.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
from gcspy_protocol.address import parse_address

from benchmarks.harness.figures import tell
from gcspy_client.app import application
from gcspy_client.model.palette import Theme
from gcspy_client.view.window import MainWindow
from gcspy_server.api import Server, UniformNames

__all__ = ["Program", "has_passed", "has_seen", "main", "turns_until", "watching"]

_HELD_SECS = 0.05
_MOST_SECS = 60.0


class Program:
    """A heap of which 1 % changes at each event; events happen on request.

    Args:
        tiles: Of the heap.
        second: Whether there is a second stream.

    Attributes:
        server: Its server.
    """

    def __init__(self, tiles: int, *, second: bool = False) -> None:
        self.server = Server("benchmark", events=["Clock"])
        self._heap = self.server.add_space(
            "Heap", names=UniformNames(1 << 40, 16, tiles), main=True
        )
        self._used = self._heap.add_stream("Used", dtype="i4", maximum=1 << 20)
        self._objects = (
            self._heap.add_stream("Objects", dtype="i4", maximum=1 << 20) if second else None
        )
        self._random = np.random.default_rng(1)
        self._values = self._random.integers(0, 1 << 20, tiles).astype("<i4")
        self._wanted = threading.Semaphore(0)
        self._stopping = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while self._wanted.acquire() and not self._stopping:
            changed = self._random.integers(0, len(self._values), len(self._values) // 100)
            self._values[changed] = self._random.integers(0, 1 << 20, len(changed))
            if self.server.should_transmit(0):
                self._heap.reset()
                self._used.data[:] = self._values
                if self._objects is not None:
                    self._objects.data[:] = self._values[::-1]
            self.server.finish(0, "")

    def let_happen(self) -> None:
        """Let an event happen."""
        self._wanted.release()

    def stop(self) -> None:
        """End it."""
        self._stopping = True
        self._wanted.release()
        self.server.close()
        self._thread.join()


def turns_until(condition: Callable[[], bool]) -> float:
    """Let the window live until something is so; the longest turn of its loop, in seconds of this thread's processor time."""
    longest, give_up = 0.0, time.monotonic() + _MOST_SECS
    app = application()
    while not condition():
        if time.monotonic() > give_up:
            raise RuntimeError("the window did not come where it was sent")
        began = time.thread_time()
        app.processEvents()
        longest = max(longest, time.thread_time() - began)
    return longest


def has_passed(moment: float) -> bool:
    """Whether a moment of the monotonic clock has passed, in seconds."""
    return time.monotonic() > moment


def has_seen(window: MainWindow, events: int) -> bool:
    """Whether this many events have arrived."""
    return window.session.events_seen >= events


@contextmanager
def watching(tiles: int, events: int) -> Iterator[tuple[MainWindow, Program, Path]]:
    """A window on a program of which this many events have arrived and are kept; with a folder, for the body of the `with`."""
    application()
    program = Program(tiles)
    window = MainWindow(Theme.DARK)
    window.resize(1600, 1000)
    window.show()
    try:
        with tempfile.TemporaryDirectory(prefix="gcspy-") as folder:
            address = program.server.serve(f"unix:{folder}/session.sock").addresses[0]
            window.link.open(parse_address(address))
            turns_until(lambda: window.link.status.phase.connected)
            for number in range(1, events + 1):
                program.let_happen()
                turns_until(partial(has_seen, window, number))
            window.shift.settle(_MOST_SECS)
            window.settle()
            yield window, program, Path(folder)
    finally:
        window.close()
        program.stop()


def _go(window: MainWindow, number: int) -> float:
    window.navigator.go_to(number)
    came = turns_until(lambda: window.session.number == number and not window.session.is_live)
    began = time.thread_time()
    application().processEvents()  # the paint
    return max(came, time.thread_time() - began)


def _print(what: str, spans: Iterable[float]) -> None:
    spans = sorted(spans)
    median, worst = spans[len(spans) // 2] * 1e3, spans[-1] * 1e3
    held = sum(span > _HELD_SECS for span in spans)
    print(
        f"  {what:18} median {median:6.1f} ms   worst {worst:6.1f} ms   over 50 ms: {held} of {len(spans)}",
        flush=True,
    )
    tell(f"{what}: longest turn of the window's loop, median", median, "ms")


def _measure(tiles: int, events: int, seeks: int) -> None:
    with watching(tiles, events) as (window, _, _):
        print(
            f"{tiles:,} tiles, {events} events, {window.shift.status.memory_bytes >> 20} MiB kept"
        )
        requests = np.random.default_rng(2).integers(1, events + 1, seeks).tolist()
        _print("anywhere", [_go(window, number) for number in requests])
        _print("next event", [_go(window, number) for number in range(1, seeks + 1)])
        _print("previous event", [_go(window, number) for number in range(seeks, 0, -1)])


def main() -> None:
    """Measure each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=200)
    parser.add_argument("--seeks", type=int, default=60)
    options = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    for tiles in (100_000, 1_000_000):
        _measure(tiles, options.events, options.seeks)


if __name__ == "__main__":
    main()
