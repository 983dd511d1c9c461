"""Cost of comparing to the window: the duration of a turn of its loop while differences are shown, at 100,000 and 1,000,000 tiles.

A real server, socket and window (off screen). An event is set as A; then events arrive, each with 1
% of the heap changed, and the user moves to others; then a recording is compared with the session.
The results are the processor time of the window's own thread in the longest turn until the
difference is on the screen, and the elapsed time from an event to its difference, which a thread
computes.
"""

from __future__ import annotations

import argparse
import os
import time
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.harness.figures import tell
from benchmarks.window.scrub import has_seen, turns_until, watching
from gcspy_client.app import application
from gcspy_client.view.compare.side_by_side import SideBySide
from gcspy_client.view.window import MainWindow

__all__ = ["main"]

_HELD_SECS = 0.05
_MOST_SECS = 60.0


def _is_shown(window: MainWindow) -> bool:
    """Whether the difference on the screen is that of the shown event."""
    comparison, shown = (
        window.compare.painter.comparison,
        window.session.interpreter.last_event,
    )
    if comparison is None or shown is None:
        return False
    return all(one.space.control.sequence == shown.sequence for one in comparison.spaces.values())


def _shows(window: MainWindow, number: int) -> bool:
    return window.session.number == number


def _compared(window: MainWindow) -> float:
    """The longest turn until the difference is painted."""
    longest = turns_until(partial(_is_shown, window))
    began = time.thread_time()
    application().processEvents()
    return max(longest, time.thread_time() - began)


def _print(what: str, tiles: int, turns: list[float], waits: list[float]) -> None:
    median, worst = np.median(turns) * 1e3, max(turns) * 1e3
    held = sum(turn > _HELD_SECS for turn in turns)
    print(
        f"  {what:16} longest turn: median {median:6.1f} ms, worst {worst:6.1f} ms, over 50 ms: {held} of {len(turns)}; "
        f"to the picture by the clock: median {np.median(waits) * 1e3:6.1f} ms",
        flush=True,
    )
    tell(
        f"comparing {tiles:,} tiles, {what}: longest turn of the window's loop, worst",
        worst,
        "ms",
        "≤ 50 ms",
    )


def _measure(tiles: int, events: int) -> None:
    with watching(tiles, events) as (window, program, folder):
        print(f"{tiles:,} tiles")
        began = time.thread_time()
        window.compare.set_a()
        set_a = max(time.thread_time() - began, _compared(window))
        _print("setting A", tiles, [set_a], [0.0])
        turns, waits = [], []
        for number in range(events + 1, 2 * events + 1):
            start = time.monotonic()
            program.let_happen()
            came = turns_until(partial(has_seen, window, number))
            turns.append(max(came, _compared(window)))
            waits.append(time.monotonic() - start)
        _print("live", tiles, turns, waits)
        turns, waits = [], []
        window.shift.settle(_MOST_SECS)
        for number in np.random.default_rng(2).integers(1, 2 * events + 1, events).tolist():
            start = time.monotonic()
            window.navigator.go_to(number)
            came = turns_until(partial(_shows, window, number))
            turns.append(max(came, _compared(window)))
            waits.append(time.monotonic() - start)
        _print("anywhere", tiles, turns, waits)
        _beside(window, folder / "before.gcspy", tiles, events)


def _beside(window: MainWindow, path: Path, tiles: int, events: int) -> None:
    """The session beside a recording of itself, two events apart, as the user goes to events."""
    window.compare.leave()
    window.shift.save(path)
    window.compare.open_recording(path)
    beside = window.compare.beside
    assert beside is not None
    window.sides.bar.offset.setValue(2)
    turns, waits = [], []
    for number in np.random.default_rng(3).integers(1, 2 * events - 1, events).tolist():
        start = time.monotonic()
        window.navigator.go_to(number)
        longest = turns_until(partial(_shows, window, number))
        longest = max(longest, turns_until(partial(_is_beside, beside, number)))
        began = time.thread_time()
        application().processEvents()
        turns.append(max(longest, time.thread_time() - began))
        waits.append(time.monotonic() - start)
    _print("beside", tiles, turns, waits)


def _is_beside(beside: SideBySide, number: int) -> bool:
    """Whether the difference on the screen is that of the event two further on."""
    comparison, shown = beside.comparison, beside.other.session
    if comparison is None or shown.number != number + 2 or shown.interpreter.last_event is None:
        return False
    return all(
        one.space.control.sequence == shown.interpreter.last_event.sequence
        for one in comparison.spaces.values()
    )


def main() -> None:
    """Measure each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=40)
    options = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    for tiles in (100_000, 1_000_000):
        _measure(tiles, options.events)


if __name__ == "__main__":
    main()
