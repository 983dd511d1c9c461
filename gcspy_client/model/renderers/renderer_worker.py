"""A renderer that draws in a thread, so that a slow one does not block the window.

Requests wait, and a later one replaces an earlier one of its kind; events wait too, and several that came meanwhile are
drawn together. A renderer that raises is not called again.

Knows renderers and threads; does not know Qt.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic_ns
from typing import TypeVar

from gcspy_protocol.interpreter import EventChange, SpaceState
from gcspy_protocol.messages import Event
from gcspy_protocol.model import CONTROL_STREAM

from gcspy_client.model.latest_worker import LatestWorker
from gcspy_client.model.palette import Palette
from gcspy_client.model.raster import Pixels
from gcspy_client.model.renderers.mirror import Patch, merged, patch_of
from gcspy_client.model.renderers.renderer import Inscription, LabelSide, Renderer
from gcspy_client.model.tile_source import TileSource

__all__ = ["SpaceRenderer", "Drawn"]

T = TypeVar("T")

Make = Callable[[SpaceState, TileSource, Palette], Renderer]

_MOST_WAITING = 2
"""Times the tiles of the space that may wait as changes; beyond it a new copy costs less."""

_REST_SHARE, _MOST_REST_SECS = 0.25, 0.1
_END_SECS = 0.02


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """A picture that is ready.

    Attributes:
        pixels: Shape (height, width), u32 0xFFRRGGBB, C-contiguous; no longer written to.
        asked: The requested width and height.
        inscriptions: Words about it.
        sequence: Sequence of its newest event.
        margins: Room for texts beside it.
        zooms_height: Whether zooming makes it higher.
        least: Width and height below which tiles have no place.
        shared: Tiles that share a place.
        maximum: The value painted as the greatest.
        count: Tiles there are in it.
        finished_nanos: When it was ready, CLOCK_MONOTONIC.
    """

    pixels: Pixels
    asked: tuple[int, int]
    inscriptions: list[Inscription]
    sequence: int
    margins: frozenset[LabelSide]
    zooms_height: bool
    least: tuple[int, int]
    shared: int
    maximum: int
    count: int
    finished_nanos: int


class SpaceRenderer:
    """Draws one space.

    Args:
        make: Makes the renderer; it is called in the thread.
        space: The space, which is copied.
        source: The numbers; its own, not used by other code.
        palette: The colours.
        notify: Called in the thread when there is a new picture, or a failure; never after `stop`.
    """

    def __init__(
        self,
        make: Make,
        space: SpaceState,
        source: TileSource,
        palette: Palette,
        notify: Callable[[], None],
    ) -> None:
        self._make, self._source, self._palette = make, source, palette
        self._space_id = space.space.id
        self._twin = space.copy()
        self._size = (1, 1)
        self._sequence = 0
        self._renderer: Renderer | None = None
        self._requests: dict[str, Callable[[Renderer], None]] = {}
        self._after: Callable[[Renderer, EventChange], None] | None = None
        self._patches: list[Patch] = []
        self._waiting = 0
        self._gate = threading.Lock()  # held while what waits is changed
        self._lock = threading.Lock()  # held while the renderer draws, or is called
        self.drawn: Drawn | None = None
        self.failure: Exception | None = None
        self._worker: LatestWorker[None] = LatestWorker(
            "gcspy renderer", notify, rest_share=_REST_SHARE, most_rest_secs=_MOST_REST_SECS
        )

    # --------------------------------------------------------- called by the window's thread

    def request(self, kind: str, what: Callable[[Renderer], None]) -> None:
        """Queue an operation on the renderer; of one kind only the latest is run."""
        with self._gate:
            self._requests.pop(kind, None)
            self._requests[kind] = what
        self._worker.submit(self._draw_waiting)

    def resize(self, width: int, height: int, scale: float, zoom: float = 1.0) -> None:
        """Set the size in device pixels."""

        def resize(renderer: Renderer) -> None:
            self._size = width, height
            renderer.resize(width, height, scale, zoom)

        self.request("size", resize)

    def show(self, source: TileSource, palette: Palette) -> None:
        """Draw other numbers, or in other colours."""
        self.request("source", lambda renderer: renderer.show(source, palette))

    def after_events(self, what: Callable[[Renderer, EventChange], None] | None) -> None:
        """Have something done after events were drawn."""
        with self._gate:
            self._after = what

    def follow(self, space: SpaceState, change: EventChange) -> None:
        """Take an event, right after the interpreter did."""
        patch = patch_of(space, change)
        with self._gate:
            if self._waiting > _MOST_WAITING * max(space.count, 1) or patch.whole is not None:
                # A resize tells where tiles went only if it directly follows the renderer's state.
                resized = {} if self._patches else change.resized
                patch = Patch(
                    EventChange(change.event, {}, resized),
                    {},
                    patch.whole or space.copy(),
                    space.count,
                )
                self._patches.clear()
                self._waiting = 0
            self._patches.append(patch)
            self._waiting += patch.tiles
        self._worker.submit(self._draw_waiting)

    def use(self, space: SpaceState) -> None:
        """Draw another state of the same space."""
        twin = space.copy()
        change = EventChange(Event(sequence=0, time_nanos=0, event=0, occurrence=0, epoch=0))
        with self._gate:
            self._patches = [Patch(change, {}, twin, space.count)]
            self._waiting = space.count
        self._worker.submit(self._draw_waiting)

    def ask(self, question: Callable[[Renderer], T], *, wait_secs: float = 0.0) -> T | None:
        """Ask the renderer something.

        Returns:
            The answer; None when it draws just now, there is no picture yet, or it has failed.
        """
        if self.failure is not None or not self._lock.acquire(timeout=wait_secs):
            return None
        try:
            if self._renderer is None or self.drawn is None:
                return None
            return question(self._renderer)
        except Exception as error:  # noqa: BLE001  # a stranger's code: whatever it raises ends this view, not the window
            self.failure = error
            return None
        finally:
            self._lock.release()

    def settle(self, timeout_secs: float) -> bool:
        """Wait until all requests are drawn; return whether they are."""
        return self._worker.settle(timeout_secs)

    def stop(self) -> None:
        """Stop drawing; the thread ends after its current drawing, which is not waited for."""
        self._worker.stop()
        self._worker.join(_END_SECS)

    # ------------------------------------------------------------------ called by the thread

    def _draw_waiting(self) -> None:
        with self._gate:
            requests, self._requests = self._requests, {}
            patches, self._patches = self._patches, []
            after, self._waiting = self._after, 0
        if self.failure is not None or not (requests or patches):
            return
        try:
            with self._lock:
                self._draw(requests, patches, after)
                self.drawn = self._picture()
        except Exception as error:  # noqa: BLE001  # as above
            self.failure = error

    def _draw(
        self,
        requests: dict[str, Callable[[Renderer], None]],
        patches: list[Patch],
        after: Callable[[Renderer, EventChange], None] | None,
    ) -> None:
        for patch in patches:
            self._twin = patch.apply(self._twin)
        renderer = self._renderer
        if renderer is None:
            renderer = self._renderer = self._make(self._twin, self._source, self._palette)
            for request in sorted(requests, key=lambda kind: kind == "size"):
                requests[request](renderer)
        else:
            renderer.space = self._twin
            if patches:
                change = self._together(patches)
                renderer.follow(change)
                if after is not None:
                    after(renderer, change)
            for what in requests.values():
                what(renderer)
        if patches:
            self._sequence = patches[-1].change.event.sequence

    def _together(self, patches: list[Patch]) -> EventChange:
        """Several events as one; after a resize or another state everything may have changed."""
        changes = [patch.change for patch in patches]
        if patches[0].whole is None or (len(patches) == 1 and changes[0].resized):
            return merged(changes, self._space_id)
        every = dict.fromkeys(
            (self._space_id, number) for number in (CONTROL_STREAM, *self._twin.streams)
        )
        return EventChange(changes[-1].event, every, changes[0].resized)

    def _picture(self) -> Drawn:
        renderer = self._renderer
        assert renderer is not None
        return Drawn(
            renderer.pixels.copy(),
            self._size,
            renderer.inscriptions(),
            self._sequence,
            renderer.margins,
            renderer.zooms_height,
            renderer.least_size(),
            renderer.shared,
            renderer.maximum,
            self._twin.count,
            monotonic_ns(),
        )
