"""A watched program for tests of the window: events happen in a separate thread, one per request."""

from __future__ import annotations

import threading

import numpy as np

from gcspy_server.api import PauseActsOn, Presentation, Server, StringNames, UniformNames
from tests.waiting import PATIENCE_SECS

CLOCK = 0
TILES = 400


class Program:
    """A heap of 400 tiles and three named generations.

    Attributes:
        server: Its server.
        values: Shape (400,): what `used` was at the latest event.
    """

    def __init__(self) -> None:
        self.server = Server(
            "Test program, pid 1", events=["Clock", "Collection"], pause_acts_on=PauseActsOn.PROGRAM
        )
        self.heap = self.server.add_space(
            "Heap", names=UniformNames(0x1000, 0x100, TILES), main=True
        )
        self.used = self.heap.add_stream(
            "Used", dtype="u1", maximum=255, presentation=Presentation.PLAIN
        )
        self.generations = self.server.add_space(
            "Generations", names=StringNames(["young", "middle", "old"])
        )
        self.count = self.generations.add_stream("Count", maximum=700)
        self.values = np.zeros(TILES, dtype=np.uint8)
        self._random = np.random.default_rng(5)
        self._wanted = threading.Semaphore(0)
        self._stopping = False
        self._first_a_client = False
        self._thread = threading.Thread(target=self._run, name="program")
        self._thread.start()

    def let_happen(self, events: int = 1) -> None:
        """Let events happen, as soon as the program is not held."""
        self._wanted.release(events)

    def let_happen_when_watched(self, events: int = 1) -> None:
        """Let events happen as soon as a client is connected."""
        self._first_a_client = True
        self._wanted.release(events)

    def stop(self) -> None:
        """End the program; its server must not hold it any more."""
        self._stopping = True
        self._wanted.release()
        self._thread.join(60)
        assert not self._thread.is_alive(), "the program is still held"

    def _run(self) -> None:
        while True:
            self._wanted.acquire()
            if self._stopping:
                return
            if self._first_a_client:
                self.server.wait_for_client(PATIENCE_SECS)
            if self.server.should_transmit(CLOCK):
                self.heap.reset()
                self.generations.reset()
                self.values = self._random.integers(0, 255, TILES).astype(np.uint8)
                self.used.data[:] = self.values
                self.count.data[:] = self._random.integers(0, 700, 3)
            self.server.finish(CLOCK, "tick")
