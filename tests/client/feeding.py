"""Sessions made of messages, without a server: what the tests of model and view feed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gcspy_protocol import messages as m
from gcspy_protocol.interpreter import EventChange, SpaceState
from gcspy_protocol.messages import Message
from gcspy_protocol.model import (
    CONTROL_STREAM,
    Control,
    EventFilter,
    EventKind,
    Mode,
    Naming,
    PauseActsOn,
    Space,
    Stream,
)
from numpy.typing import NDArray

from gcspy_client.model.session import ClientSession

NO_RUNS: NDArray[np.uint32] = np.empty(0, dtype=np.uint32)
PAGE = 4096


def uniform(space: int, count: int, base: int = 0x10000) -> m.Tiles:
    """Tiles of a page each, all new."""
    return m.Tiles(
        space=space,
        count=count,
        old_starts=NO_RUNS,
        new_starts=NO_RUNS,
        lengths=NO_RUNS,
        naming=Naming.UNIFORM,
        base=base,
        tile_bytes=PAGE,
    )


def kept(space: int, count: int, runs: list[tuple[int, int, int]], base: int) -> m.Tiles:
    """A resize that keeps runs of (old start, new start, length)."""
    columns = np.array(runs, dtype=np.uint32).reshape(-1, 3)
    return m.Tiles(
        space=space,
        count=count,
        old_starts=columns[:, 0],
        new_starts=columns[:, 1],
        lengths=columns[:, 2],
        naming=Naming.UNIFORM,
        base=base,
        tile_bytes=PAGE,
    )


def space_state(stream: Stream, values: NDArray[Any], **more: NDArray[Any]) -> SpaceState:
    """A space with one stream and these values, all used and known."""
    state = SpaceState(Space(id=1, name="Test space", streams=(stream,)))
    state.resize(uniform(1, len(values)))
    state.streams[stream.id].values[:] = values
    state.streams[stream.id].known = more.get("known")
    state.control.values[:] = more.get("control", Control.USED)
    state.control.known = None
    return state


@dataclass
class Feed:
    """A server that exists as messages only.

    Attributes:
        messages: Messages that were sent and not yet taken.
    """

    spaces: tuple[Space, ...]
    counts: dict[int, int]
    controller: bool = True
    pause_acts_on: PauseActsOn = PauseActsOn.SAMPLING
    session: str = "session-1"
    sequence: int = 0
    messages: list[Message] = field(default_factory=list)

    def bootstrap(self) -> list[Message]:
        """Return the messages that a client gets first."""
        welcome = m.Welcome(
            server="CPython 3.12.1, pid 4711",
            session=self.session,
            client_id=1,
            controller=self.controller,
            mode=Mode.PASSIVE,
            pause_acts_on=self.pause_acts_on,
            events=(EventKind(id=0, name="Clock"), EventKind(id=1, name="Collection")),
        )
        clients = m.Clients(
            clients=(m.Client(id=1, name="this"), m.Client(id=2, name="other")),
            controller=1 if self.controller else 2,
        )
        return [
            welcome,
            *(m.SpaceDefined(space=space) for space in self.spaces),
            m.EpochEnd(epoch=1),
            m.Filters(filters=(EventFilter(event=0), EventFilter(event=1, period=10))),
            clients,
            m.Counters(counts=(0, 0)),
        ]

    def event(
        self, values: dict[tuple[int, int], NDArray[Any]], *, cause: str = ""
    ) -> list[Message]:
        """A whole event: tiles at the first, all values by space and stream; streams left out are stale."""
        self.sequence += 1
        stamp: dict[str, Any] = {
            "sequence": self.sequence,
            "time_nanos": self.sequence * 100_000_000,
            "event": 0,
        }
        out: list[Message] = []
        for space in self.spaces:
            if self.sequence == 1:
                out.append(uniform(space.id, self.counts[space.id]))
                control = np.full(self.counts[space.id], Control.USED, dtype=np.uint8)
                out.append(
                    m.StreamKey(
                        space=space.id,
                        stream=CONTROL_STREAM,
                        occurrence=self.sequence,
                        values=control,
                        **stamp,
                    )
                )
            for stream in space.streams:
                now = values.get((space.id, stream.id))
                if now is None:
                    continue
                out.append(
                    m.StreamKey(
                        space=space.id,
                        stream=stream.id,
                        occurrence=self.sequence,
                        values=now.astype("<" + stream.dtype),
                        **stamp,
                    )
                )
                if stream.summary_length == 1:
                    out.append(
                        m.Summary(
                            space=space.id,
                            stream=stream.id,
                            sequence=self.sequence,
                            time_nanos=self.sequence * 100_000_000,
                            values=(int(now.sum()),),
                            covered=len(now),
                        )
                    )
        out.append(
            m.Event(
                sequence=self.sequence,
                time_nanos=self.sequence * 100_000_000,
                event=0,
                occurrence=self.sequence,
                epoch=1,
                cause=cause,
                gather_nanos=1_500_000,
            )
        )
        out.append(m.Counters(counts=(self.sequence, 0)))
        return out


def follow(session: ClientSession, messages: list[Message]) -> list[EventChange]:
    """Apply messages to a session; the changes of the events among them."""
    changes = [session.apply(message) for message in messages]
    return [change for change in changes if change is not None]
