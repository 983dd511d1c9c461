"""A history graph of 1,000,000 tiles and 10,000 events: what an event costs, what a picture costs, and the memory.

One in a hundred tiles changes at each event. The table also has the amount that zooming in reads
again from a recording. Pictures are 1,600 by 1,000 pixels. Times are processor time of this
process, so that other work on the machine does not show. The window's budget: never blocked for
more than 50 ms.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from gcspy_protocol import messages as m
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.model import (
    CONTROL_STREAM,
    Control,
    EventKind,
    Mode,
    Naming,
    PaintStyle,
    PauseActsOn,
    Space,
    Stream,
)
from gcspy_replay.file import MemorySource, MemoryStore, Recording, RecordingWriter

from gcspy_client.model.history.events import HistoryEvents
from gcspy_client.model.history.filler import FillTarget, HistoryFiller
from gcspy_client.model.history.graph import HistoryGraph
from gcspy_client.model.history.rows import HistoryRow, RowMaker
from gcspy_client.model.history.view import HistoryView
from gcspy_client.model.palette import Theme, sequential
from gcspy_client.model.tile_source import StreamSource

__all__ = ["HeapSession", "main"]

_STREAM = Stream(id=0, name="Used", dtype="i4", maximum=32768, paint_style=PaintStyle.ZERO)
_WIDTH, _HEIGHT = 1600, 1000
_READ = 200
"""Events of which a recording is made, to be read again."""


class HeapSession:
    """A session of one space, as messages.

    Args:
        tiles: Of the space.
        changed: Share that changes at each event.
    """

    def __init__(self, tiles: int, changed: float) -> None:
        self._rng = np.random.default_rng(3)
        self._tiles, self._some = tiles, max(1, int(tiles * changed))
        self.sequence = 0
        self.interpreter = ClientInterpreter()
        self.greeting: list[m.Message] = [
            m.Welcome(
                server="bench", session="bench", client_id=1, controller=False, mode=Mode.EMBEDDED,
                pause_acts_on=PauseActsOn.PROGRAM, events=(EventKind(id=0, name="event"),),
            ),
            m.SpaceDefined(space=Space(id=1, name="heap", streams=(_STREAM,))),
            m.EpochEnd(epoch=1),
        ]  # fmt: skip
        for message in self.greeting:
            self.interpreter.apply(message)

    def event(self) -> list[m.Message]:
        """The messages of the next event; they are not applied yet."""
        self.sequence += 1
        stamp: dict[str, Any] = {
            "space": 1,
            "sequence": self.sequence,
            "time_nanos": self.sequence * 16_666_667,
        }
        of_event: dict[str, Any] = {"event": 0, "occurrence": self.sequence}
        out: list[m.Message] = []
        if self.sequence == 1:
            none = np.empty(0, dtype="<u4")
            out.append(
                m.Tiles(
                    space=1, count=self._tiles, old_starts=none, new_starts=none, lengths=none,
                    naming=Naming.UNIFORM, base=1 << 40, tile_bytes=32768,
                )
            )  # fmt: skip
            control = np.full(self._tiles, Control.USED, dtype=np.uint8)
            out.append(m.StreamKey(stream=CONTROL_STREAM, values=control, **stamp, **of_event))
            values = self._rng.integers(0, 32769, self._tiles, dtype="<i4")
            out.append(m.StreamKey(stream=0, values=values, **stamp, **of_event))
        else:
            where = np.unique(self._rng.integers(0, self._tiles, self._some))
            values = self._rng.integers(0, 32769, len(where), dtype="<i4")
            out.append(
                m.StreamDelta(
                    stream=0,
                    base_sequence=self.sequence - 1,
                    count=self._tiles,
                    indices=where,
                    values=values,
                    **stamp,
                    **of_event,
                )
            )
        event = {"sequence": self.sequence, "time_nanos": stamp["time_nanos"], **of_event}
        return [*out, m.Event(epoch=1, keyframe=self.sequence == 1, **event)]


def _timed(action: Callable[[], object], times: int = 5) -> tuple[float, float]:
    """Milliseconds of an action: the median and the longest."""
    took = []
    for _ in range(times):
        began = time.process_time()
        action()
        took.append((time.process_time() - began) * 1e3)
    return float(np.median(took)), max(took)


def _told(what: str, median: float, longest: float, more: str = "") -> None:
    print(f"  {what:<58} {median:8.2f} ms, longest {longest:8.2f} ms {more}", flush=True)


def _build(session: HeapSession, graph: HistoryGraph, events: int) -> None:
    took = []
    for _ in range(events):
        for message in session.event():
            change = session.interpreter.apply(message)
            if change is not None:
                began = time.process_time()
                graph.follow(session.interpreter.spaces[1], change)
                took.append((time.process_time() - began) * 1e3)
    _told(
        "an event taken",
        float(np.median(took)),
        max(took),
        f"(99 of 100: {np.percentile(took, 99):.2f})",
    )


def _look(session: HeapSession, graph: HistoryGraph) -> None:
    palette = sequential(Theme.DARK)
    whole = graph.whole(_HEIGHT, _WIDTH)

    def draw(view: HistoryView) -> Callable[[], object]:
        return lambda: graph.draw(view, palette)

    def anew() -> None:
        graph.forget_picture()
        graph.draw(whole, palette)

    _told("the whole graph drawn", *_timed(anew))
    _told("the same again", *_timed(draw(whole)))
    events, tiles = len(graph.events), len(graph.keys)
    places = iter(range(1000))

    def elsewhere() -> None:
        graph.draw(
            HistoryView(_HEIGHT, _WIDTH, events / 2 + next(places), events * 0.6, 0, tiles / 2),
            palette,
        )

    _told("a tenth of the events, half of the tiles, moved", *_timed(elsewhere))

    def live() -> None:
        for message in session.event():
            change = session.interpreter.apply(message)
            if change is not None:
                graph.follow(session.interpreter.spaces[1], change)
        last = len(graph.events)
        graph.draw(HistoryView(_HEIGHT, _WIDTH, last - _HEIGHT, last, 0, tiles), palette)

    _told("an event taken and the last 1,000 events drawn (live)", *_timed(live, 20))


def _read(tiles: int, changed: float) -> None:
    session = HeapSession(tiles, changed)
    store = MemoryStore()
    writer = RecordingWriter(store, session.interpreter)
    for message in session.greeting:
        writer.add(message)
    for _ in range(_READ):
        for message in session.event():
            session.interpreter.apply(message)
            writer.add(message)
    writer.close()
    recording = Recording([MemorySource(store.data)])
    source, step = StreamSource(_STREAM), 32768
    window = (
        (1 << 40) + tiles // 2 * step,
        (1 << 40) + (tiles // 2 + min(2000, tiles // 2 - 1)) * step,
    )
    for what, make in (
        ("all tiles", lambda: RowMaker(source)),
        ("2,000 tiles, each its own", lambda: RowMaker(source, window=window)),
    ):
        rows: list[HistoryRow] = []
        ended = threading.Event()
        filling = HistoryFiller(recording.again, lambda _: None, lambda: None)
        filling.add(FillTarget(1, make, partial(_put, rows), done=ended.set))
        began = time.process_time()
        filling.start()
        ended.wait()
        secs = time.process_time() - began
        filling.close()
        print(
            f"  {_READ} events read again, {what:<29} {secs * 1e3 / _READ:8.2f} ms an event ({len(rows)} rows)"
        )


def _put(rows: list[HistoryRow], row: HistoryRow, _number: int) -> None:
    rows.append(row)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiles", type=int, default=1_000_000)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--changed", type=float, default=0.01)
    parser.add_argument("--budget", type=int, default=128, help="MiB")
    options = parser.parse_args()
    print(
        f"{options.tiles:,} tiles, {options.events:,} events, {options.changed:.0%} changed, {options.budget} MiB"
    )
    session = HeapSession(options.tiles, options.changed)
    graph = HistoryGraph(StreamSource(_STREAM), HistoryEvents(), budget_bytes=options.budget << 20)
    _build(session, graph, options.events)
    print(
        f"  rows take {graph.nbytes / (1 << 20):.1f} MiB, events {graph.events.nbytes / (1 << 20):.1f} MiB; coarsest: {graph.coarsest} events a row"
    )
    _look(session, graph)
    _read(options.tiles, options.changed)


if __name__ == "__main__":
    main()
