"""A watched program that says what memory it has, and when its collections start and end."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from gcspy_drivers.kit import HeapBytes, MemoryHistorySpace

from gcspy_server.api import PauseActsOn, Server, UniformNames

__all__ = ["CLOCK", "GC_END", "GC_START", "MIB", "MemoryProgram", "Said"]

CLOCK, GC_START, GC_END = range(3)
MIB = 1 << 20
_STEP_NANOS = 100_000_000


@dataclass(frozen=True, slots=True)
class Said:
    """The program's report at an event; None: the value is not known.

    Attributes:
        resident: Bytes.
        committed: Bytes.
        used: Bytes.
        kind: Kind of event.
        nanos: Time since the event before.
    """

    resident: int | None
    committed: int | None
    used: int | None
    kind: int = CLOCK
    nanos: int = _STEP_NANOS


class MemoryProgram:
    """A heap of 400 tiles, and the memory of its process; time is that of its events.

    Attributes:
        server: Its server.
    """

    def __init__(self) -> None:
        self._now = 10**12
        self.server = Server(
            "Memory program, pid 1",
            events=["Clock", "GC start", "GC end"],
            pause_acts_on=PauseActsOn.PROGRAM,
            time_nanos=lambda: self._now,
        )
        self.heap = self.server.add_space("Heap", names=UniformNames(0x1000, 0x100, 400), main=True)
        self.used = self.heap.add_stream("Fill", dtype="u1", maximum=255)
        self.memory = MemoryHistorySpace(self.server, driver="test", managers=("arena",))
        self._wanted: list[Said] = []
        self._gate = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="memory program")
        self._thread.start()

    def say(self, *said: Said) -> None:
        """Let events happen."""
        with self._gate:
            self._wanted += said
            self._gate.notify_all()

    def stop(self) -> None:
        """End the program; its server must not hold it any more."""
        with self._gate:
            self._stopping = True
            self._gate.notify_all()
        self._thread.join(60)
        assert not self._thread.is_alive(), "the program is still held"

    def _run(self) -> None:
        while True:
            with self._gate:
                self._gate.wait_for(lambda: self._wanted or self._stopping)
                if self._stopping:
                    return
                said = self._wanted.pop(0)
            self._now += said.nanos
            if self.server.should_transmit(said.kind):
                self.heap.reset()
                self.used.data[:] = 7
                heap = HeapBytes(used=said.used, committed=said.committed)
                self.memory.fill(said.resident, {"arena": heap})
            self.server.finish(said.kind, "tick")
