"""A target that knows its own truth: two spaces, filled from a seeded generator."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from gcspy_protocol.model import PauseActsOn

from gcspy_server.api import Presentation, Server, UniformNames
from tests.waiting import PATIENCE_SECS

START, END = 0, 1


class Target:
    """A small heap and the driver that shows it.

    Attributes:
        server: Its server.
        gathered: (event, occurrence) of every gathering.
    """

    def __init__(
        self,
        *,
        tiles: int = 64,
        time_nanos: Callable[[], int] | None = None,
        longest_hold_secs: float | None = None,
        acts_on: PauseActsOn = PauseActsOn.PROGRAM,
    ) -> None:
        self.server = Server(
            "test target",
            events=["collection starts", "collection ends"],
            time_nanos=time_nanos,
            longest_hold_secs=longest_hold_secs,
            pause_acts_on=acts_on,
        )
        self.heap = self.server.add_space(
            "heap", names=UniformNames(0x1000, 0x100, tiles), main=True
        )
        self.used = self.heap.add_stream("used", maximum=0x100, presentation=Presentation.PERCENT)
        self.objects = self.heap.add_stream("objects", dtype="u2", maximum=255)
        self.lists = self.server.add_space("free lists", names=UniformNames(0, 1, 8))
        self.length = self.lists.add_stream("length", maximum=1000)
        self.gathered: list[tuple[int, int]] = []
        self.random = np.random.default_rng(1)

    def fill(self) -> None:
        """Change every stream; the first tile of `objects` is the occurrence."""
        self.heap.reset()
        self.used.data[:] = self.random.integers(0, 0x100, self.heap.count)
        self.objects.data[:] = self.random.integers(0, 255, self.heap.count)
        self.lists.reset()
        self.length.data[:] = self.random.integers(0, 1000, self.lists.count)

    def event(self, kind: int = START, cause: str = "") -> bool:
        """Let an event happen; returns whether it was requested."""
        request = self.server.should_transmit(kind)
        if request is not None:
            self.gathered.append((kind, request.occurrence))
            self.fill()
            self.objects.data[0] = request.occurrence
        self.server.finish(kind, cause)
        return request is not None

    @contextmanager
    def running(self, *kinds: int) -> Iterator[Progress]:
        """Let events happen in a thread of the target's own, one of `kinds` after the other, each once."""
        progress = Progress()

        def run() -> None:
            for kind in kinds:
                self.event(kind)
                progress.step()

        thread = threading.Thread(target=run, name="target")
        thread.start()
        try:
            yield progress
        finally:
            thread.join(60)
            assert not thread.is_alive(), "the target is still held"


class Progress:
    """How many events a running target has got through."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.events = 0

    def step(self) -> None:
        with self._changed:
            self.events += 1
            self._changed.notify_all()

    def wait_for(self, events: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.events >= events, PATIENCE_SECS), (
                f"only {self.events} events"
            )
