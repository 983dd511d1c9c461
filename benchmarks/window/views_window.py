"""Delays of each view of 1,000,000 tiles: the time until it is drawn, and the time for which the window is blocked meanwhile.

A real server, socket and window (off screen, 1,600 by 1,000); 1 % of the heap changes at each
event. The results are the elapsed time from a request, or from the event's arrival, to the picture;
and the processor time of the window's own thread in the longest turn of its loop, since other work
on the machine does not show in it. The window must not be blocked for more than 50 ms, and for not
more than 16 ms while its map is zoomed. Its first pictures, which need fonts and colours for the
first time, are reported by themselves.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from gcspy_protocol.address import parse_address

from benchmarks.harness.figures import tell
from benchmarks.window.scrub import Program, has_passed, turns_until
from gcspy_client.app import application
from gcspy_client.model.palette import Theme
from gcspy_client.view.spaces.renderer_canvas import RendererCanvas
from gcspy_client.view.spaces.tile_table import TableView
from gcspy_client.view.spaces.views import TITLES
from gcspy_client.view.window import MainWindow

__all__ = ["main"]


_ZOOM_SECS = 0.016
_BUSY_SECS = 0.0005
_OPENING_SECS = 1.0


class _Spans:
    """Time to the picture, and the longest turn of the window's loop."""

    def __init__(self) -> None:
        self.clock: list[float] = []
        self.turns: list[float] = []
        self.held: list[float] = []

    def measure(self, act: Callable[[], object], done: Callable[[], bool]) -> None:
        """Do something, and let the window live until it is done and painted."""
        began, spent = time.monotonic(), time.thread_time()
        act()
        first = time.thread_time() - spent
        self.turns.append(first)
        self.held.append(time.monotonic() - began)
        give_up = began + 60
        while not done():
            if time.monotonic() > give_up:
                raise RuntimeError("the view was never drawn")
            self._turn()
        self.clock.append(time.monotonic() - began)
        self._turn()

    def _turn(self) -> None:
        """A turn of the window's loop: its processor time, and its time by the clock, in which it may wait for other threads."""
        spent, began = time.thread_time(), time.monotonic()
        application().processEvents()
        self.turns.append(time.thread_time() - spent)
        self.held.append(time.monotonic() - began)

    def shares(self) -> str:
        """The distribution of the turns in which there was anything to do."""
        busy = [pair for pair in zip(self.turns, self.held, strict=True) if pair[0] >= _BUSY_SECS]
        told = [
            f"{name} median {np.median(turns):.1f}, 99 % {np.percentile(turns, 99):.1f}, longest {max(turns):.1f} ms"
            for name, turns in zip(("processor", "clock"), np.transpose(busy) * 1e3, strict=True)
        ]
        over = sum(turn > _ZOOM_SECS for turn in self.turns)
        return f"{len(busy):,} turns: {'; '.join(told)}; over 16 ms: {over}"

    def __str__(self) -> str:
        clock = sorted(self.clock)
        held = sum(turn > 0.05 for turn in self.turns)
        return (
            f"{clock[len(clock) // 2] * 1e3:7.1f} ms, at worst {clock[-1] * 1e3:7.1f}; "
            f"longest turn {max(self.turns) * 1e3:5.1f} ms, over 50 ms: {held}; by the clock {max(self.held) * 1e3:5.1f} ms"
        )


def _drawn(window: MainWindow) -> bool:
    """Whether the picture that was requested is drawn."""
    view = window.spaces.panels[1].view
    if isinstance(view, RendererCanvas):
        drawn, event = view._shown, window.session.interpreter.last_event
        return (
            drawn is not None
            and event is not None
            and drawn.asked == view.viewport.asked
            and drawn.sequence in (0, event.sequence)
            and view.drawing.settle(0.0)
        )
    return not isinstance(view, TableView) or not (
        view.model.sorting or view._sort_timer.isActive()
    )


def _event(window: MainWindow, program: Program, spans: _Spans) -> None:
    seen = window.session.events_seen
    spans.measure(program.let_happen, lambda: window.session.events_seen > seen and _drawn(window))


def _measure_view(
    window: MainWindow, program: Program, name: str, prepare: Callable[[], object], times: int
) -> None:
    chosen, events, sizes = _Spans(), _Spans(), _Spans()
    chosen.measure(prepare, partial(_drawn, window))
    for _ in range(times):
        _event(window, program, events)
    for width in (1500, 1600):
        sizes.measure(partial(window.resize, width, 1000), partial(_drawn, window))
    window.settle()
    worst = max(*chosen.turns, *events.turns, *sizes.turns)
    print(
        f"  {name:28} chosen  {chosen}\n{'':30} event   {events}\n{'':30} resized {sizes}",
        flush=True,
    )
    tell(f"{name}, 1 % changed: longest turn of the window's loop", worst * 1e3, "ms", "<= 50")


def _sorted(view: TableView, column: int) -> None:
    view.table.sortByColumn(column, view.table.horizontalHeader().sortIndicatorOrder())


def _zoomed(window: MainWindow) -> None:
    window.views.choose_view("hilbert")
    for _ in range(8):
        window.spaces_part.zoom(1)


def _measure_map(window: MainWindow, program: Program) -> None:
    """Zoom the map of tiles through all scales and back, pan at each, while events arrive."""
    window.views.choose_view("tiles")
    canvas = window.spaces.panels[1].canvas
    spans = _Spans()
    scales = []
    for step in (1, -1):
        while True:
            before = canvas.picture.layout
            spans.measure(partial(window.spaces_part.zoom, step), partial(_drawn, window))
            spans.measure(partial(canvas.pan, 5), partial(_drawn, window))
            if step > 0:
                scales.append((canvas.picture.layout.per_pixel, canvas.picture.layout.cell_height))
            _event(window, program, spans)
            after = canvas.picture.layout
            if (after.cell_height, after.per_pixel) == (before.cell_height, before.per_pixel):
                break
    window.spaces_part.zoom(0)
    name = f"map, {len(set(scales))} scales"
    print(f"  {name:28} zoomed  {spans}\n{'':30} {spans.shares()}", flush=True)
    tell(
        "the map is zoomed and panned while events arrive: longest turn of the window's loop",
        max(spans.turns) * 1e3,
        "ms",
        "<= 16",
    )


def _table(window: MainWindow, column: int) -> None:
    window.views.choose_view("table")
    view = window.spaces.panels[1].view
    assert isinstance(view, TableView)
    view.table.sortByColumn(column, view.table.horizontalHeader().sortIndicatorOrder())


def _measure(tiles: int, times: int) -> None:
    application()
    program = Program(tiles, second=True)
    window = MainWindow(Theme.DARK)
    window.resize(1600, 1000)
    window.show()
    try:
        with tempfile.TemporaryDirectory(prefix="gcspy-") as folder:
            address = program.server.serve(f"unix:{folder}/session.sock").addresses[0]
            window.link.open(parse_address(address))
            turns_until(lambda: window.link.status.phase.connected)
            program.let_happen()
            turns_until(lambda: window.session.events_seen > 0)
            window.settle()
            program.let_happen()
            opening = turns_until(lambda: window.session.events_seen > 1 and _drawn(window))
            opening = max(
                opening, turns_until(partial(has_passed, time.monotonic() + _OPENING_SECS))
            )
            print(
                f"{tiles:,} tiles; longest turn of the first pictures {opening * 1e3:.1f} ms",
                flush=True,
            )
            looking = window.views
            _measure_map(window, program)
            for name in TITLES:
                _measure_view(window, program, name, partial(looking.choose_view, name), times)
            _measure_view(window, program, "table, sorted", partial(_table, window, 2), times)
            looking.choose_view("tiles")
            _measure_view(window, program, "tiles, in order", looking.turn_order, times)
            _measure_view(
                window, program, "tiles, in an order that follows", looking.follow_order, times
            )
            looking.choose_order(None)
            _measure_view(window, program, "hilbert, zoomed", partial(_zoomed, window), times)
            window.spaces_part.zoom(0)
            looking.choose_view("tiles")
            space = window.session.interpreter.spaces[1]
            formula = partial(window.formulas.add, space, "Share", "Used / (Objects + 1)")
            _measure_view(window, program, "tiles of a formula", formula, times)
    finally:
        window.close()
        program.stop()


def main() -> None:
    """Measure each view."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiles", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=8)
    options = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    _measure(options.tiles, options.times)


if __name__ == "__main__":
    main()
