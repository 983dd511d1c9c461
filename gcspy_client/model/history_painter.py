"""Draws history graphs in a thread of its own, so that a window never waits for a picture: of each graph the latest wish counts.

Knows graphs and what is wished of them; does not know who wishes, or Qt.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from gcspy_client.model.history_graph import DetailWanted, HistoryGraph
from gcspy_client.model.history_view import HistoryLook, HistoryPicture
from gcspy_client.model.palette import Palette

__all__ = ["HistoryDrawn", "HistoryPainter"]


@dataclass(frozen=True, slots=True)
class HistoryDrawn:
    """What came of a wish.

    Attributes:
        graph: Of which graph.
        look: What was wished.
        picture: The picture.
        palette: The colours it is in.
        wanted: What would have to be read for it to be as fine as its pixels; None: nothing.
        secs: The drawing took.
    """

    graph: HistoryGraph
    look: HistoryLook
    picture: HistoryPicture
    palette: Palette
    wanted: DetailWanted | None
    secs: float


class HistoryPainter:
    """The thread; it begins with the first wish.

    Args:
        notify: Called from the thread when there is something to collect.
    """

    def __init__(self, notify: Callable[[], None]) -> None:
        self._notify = notify
        self._condition = threading.Condition()
        self._wishes: dict[HistoryGraph, tuple[HistoryLook, Palette]] = {}
        self._drawn: dict[HistoryGraph, HistoryDrawn] = {}
        self._works: deque[Callable[[], None]] = deque()
        self._busy = self._closed = False
        self._thread: threading.Thread | None = None

    def wish(self, graph: HistoryGraph, look: HistoryLook, palette: Palette) -> None:
        """Draw this next, instead of what was wished of the graph before and is not yet begun."""
        with self._condition:
            if self._closed:
                return
            self._wishes[graph] = (look, palette)
            self._wake()

    def do(self, work: Callable[[], None]) -> None:
        """Do something to a graph that must not be waited for; in this order, before anything is drawn."""
        with self._condition:
            if not self._closed:
                self._works.append(work)
                self._wake()

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="gcspy history painter", daemon=True
            )
            self._thread.start()
        self._condition.notify_all()

    def collect(self) -> dict[HistoryGraph, HistoryDrawn]:
        """What was drawn since the last time, the latest of each graph."""
        with self._condition:
            drawn, self._drawn = self._drawn, {}
        return drawn

    def forget(self, graph: HistoryGraph) -> None:
        """Draw it no more."""
        with self._condition:
            self._wishes.pop(graph, None)
            self._drawn.pop(graph, None)

    def settle(self, timeout_secs: float) -> bool:
        """Wait until nothing is wished; whether that came."""
        with self._condition:
            return self._condition.wait_for(
                lambda: not (self._wishes or self._works or self._busy), timeout_secs
            )

    def end(self) -> None:
        """End the thread behind the picture that it is at; `close` waits for it."""
        with self._condition:
            self._closed = True
            self._wishes.clear()
            self._works.clear()
            self._condition.notify_all()

    def close(self) -> None:
        """End the thread behind the picture that it is at, and wait for that."""
        self.end()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._condition:
                self._busy = False
                self._condition.notify_all()
                self._condition.wait_for(lambda: bool(self._wishes or self._works) or self._closed)
                if self._closed:
                    return
                self._busy = True
                work = self._works.popleft() if self._works else None
                if work is None:
                    graph, (look, palette) = next(iter(self._wishes.items()))
                    del self._wishes[graph]
            if work is not None:
                work()
                continue
            drawn = _draw(graph, look, palette)
            with self._condition:
                if not self._closed:
                    self._drawn[graph] = drawn
            self._notify()


def _draw(graph: HistoryGraph, look: HistoryLook, palette: Palette) -> HistoryDrawn:
    with graph.events.lock:
        begun = monotonic()
        picture = graph.look(look, palette)
        wanted = graph.wanted_detail(picture.view, picture)
        return HistoryDrawn(graph, look, picture, palette, wanted, monotonic() - begun)
