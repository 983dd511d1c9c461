"""Draws history graphs in a thread, so that a window never waits for a picture; of each graph the latest request counts.

Knows graphs and requests; does not know who makes them, or Qt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import monotonic

from gcspy_client.model.history.graph import DetailWanted, HistoryGraph
from gcspy_client.model.history.view import GraphOptions, HistoryPicture
from gcspy_client.model.latest_worker import LatestWorker
from gcspy_client.model.palette import Palette

__all__ = ["HistoryDrawn", "HistoryPainter"]


@dataclass(frozen=True, slots=True)
class HistoryDrawn:
    """The result of a request.

    Attributes:
        graph: The graph.
        look: The request.
        picture: The picture.
        palette: The colours it is in.
        wanted: Events to read for full detail; None: none.
        secs: The drawing took.
    """

    graph: HistoryGraph
    look: GraphOptions
    picture: HistoryPicture
    palette: Palette
    wanted: DetailWanted | None
    secs: float


class HistoryPainter:
    """Draws graphs, one at a time; the thread begins with the first request.

    Args:
        notify: Called from the thread when there is something to collect.
    """

    def __init__(self, notify: Callable[[], None]) -> None:
        self._worker: LatestWorker[HistoryDrawn | None] = LatestWorker(
            "gcspy history painter", notify
        )

    def request(self, graph: HistoryGraph, look: GraphOptions, palette: Palette) -> None:
        """Draw this next, instead of an earlier request for the graph that has not begun."""
        self._worker.submit(partial(_draw, graph, look, palette), kind=graph)

    def do(self, work: Callable[[], None]) -> None:
        """Run a slow operation on a graph; in this order, before anything is drawn."""
        self._worker.submit_ordered(work)

    def collect(self) -> list[HistoryDrawn]:
        """The drawings since the last call, the latest of each graph."""
        drawn = [outcome.result() for outcome in self._worker.take_all()]
        return [one for one in drawn if one is not None]

    def forget(self, graph: HistoryGraph) -> None:
        """Draw it no more."""
        self._worker.forget(graph)

    def stop(self) -> None:
        """Draw nothing more; `join` waits for the picture that is being drawn."""
        self._worker.stop()

    def join(self) -> None:
        """Wait until the thread has ended."""
        self._worker.join()


def _draw(graph: HistoryGraph, look: GraphOptions, palette: Palette) -> HistoryDrawn:
    with graph.events.lock:
        begun = monotonic()
        picture = graph.look(look, palette)
        wanted = graph.wanted_detail(picture.view, picture)
        return HistoryDrawn(graph, look, picture, palette, wanted, monotonic() - begun)
