"""A recording of very many spaces, as a target with a region for each arena may have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from gcspy_protocol import messages as m
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.messages import Message
from gcspy_protocol.model import Naming
from gcspy_replay.file.storage.store import MemoryStore
from gcspy_replay.file.storage.writer import RecordingWriter
from numpy.typing import NDArray

from tests.replay.recorded import FACTS, HEAP, WELCOME

__all__ = ["crowded"]

_NO_RUNS: NDArray[np.uint32] = np.empty(0, dtype="<u4")
_TILES = 9


def crowded(spaces: int, events: int = 2) -> bytes:
    """The bytes of a closed recording of this many spaces, of nine tiles each."""
    store, interpreter = MemoryStore(), ClientInterpreter()
    writer = RecordingWriter(store, interpreter, facts=FACTS)

    def say(message: Message) -> None:
        interpreter.apply(message)
        writer.add(message)

    say(WELCOME)
    for space in range(1, spaces + 1):
        say(m.SpaceDefined(space=replace(HEAP, id=space, name=f"space {space}")))
    say(m.EpochEnd(epoch=1))
    say(m.Counters(counts=(0, 0)))
    for number in range(1, events + 1):
        stamp: dict[str, Any] = {"sequence": number, "time_nanos": number * 100_000_000}
        for space in range(1, spaces + 1):
            if number == 1:
                say(
                    m.Tiles(
                        space=space,
                        count=_TILES,
                        naming=Naming.EXTENTS,
                        bases=0x1000 + 64 * np.arange(_TILES, dtype="<u8"),
                        sizes=np.full(_TILES, 64, dtype="<u8"),
                        old_starts=_NO_RUNS,
                        new_starts=_NO_RUNS,
                        lengths=_NO_RUNS,
                    )
                )
            who: dict[str, Any] = {"space": space, **stamp, "event": 0, "occurrence": number}
            values = ((np.arange(_TILES) * number) % 97).astype("<u1")
            say(m.StreamKey(**who, stream=0, values=values))
            say(m.StreamKey(**who, stream=1, values=np.zeros(_TILES, dtype="<u1")))
        say(m.Event(**stamp, event=0, occurrence=number, epoch=1))
    writer.close()
    return bytes(store.data)
