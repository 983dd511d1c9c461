"""Sessions that are recorded while a client sees them, with what it saw at each event."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from gcspy_protocol import messages as m
from gcspy_protocol.connection import Connection
from gcspy_protocol.frames.frame import pack_frame
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.messages import Event, Message
from gcspy_protocol.model import (
    EventKind,
    Mode,
    Naming,
    PauseActsOn,
    Presentation,
    Role,
    Space,
    Stream,
)
from gcspy_replay.file.layout import FORMAT_VERSION, PartFacts
from gcspy_replay.file.storage.store import MemoryStore, Store
from gcspy_replay.file.storage.tap import WireTap
from gcspy_replay.file.storage.writer import ChunkRule, RecordingWriter
from hypothesis import strategies as st

from tests.protocol.session import Draw, Session, Truth

FACTS = PartFacts(recording=bytes(range(16)), software="test")

RULES = st.builds(
    ChunkRule,
    events=st.integers(1, 4),
    most_events=st.integers(1, 4),
    weight=st.sampled_from((0.0, 0.6, 99.0)),
    most_secs=st.sampled_from((0.0, 1e-9 * 2500, 10.0)),
)
"""Rules under which small sessions have several chunks; a session's events are a microsecond apart."""

_NO_RUNS = np.empty(0, dtype="<u4")


@dataclass
class Seen:
    """A recorded session as a client received it.

    Attributes:
        truths: The expected state after each event.
        events: The events, as the client got them.
        notices: The messages before each event, since the one before.
        left: The messages after the last event.
    """

    truths: list[Truth] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    notices: list[list[Message]] = field(default_factory=list)
    left: list[Message] = field(default_factory=list)


def without_clients(truth: Truth) -> Truth:
    """The truth without the participants and their views, which a recording does not contain."""
    truth = deepcopy(truth)
    truth.said.pop(m.Clients, None)
    truth.said.pop(m.Looked, None)
    return truth


class Recorder:
    """A client that records: any session in, what it saw out.

    Args:
        draw: Where every choice comes from.
        store: Where to.
        rule: When chunks end.
        tapped: Keep the server's own bytes.
        version: Of the format.
    """

    def __init__(
        self,
        draw: Draw,
        store: Store,
        rule: ChunkRule,
        *,
        tapped: bool = False,
        version: int = FORMAT_VERSION,
    ) -> None:
        self._draw = draw
        self._tap = WireTap() if tapped else None
        self.session = Session(draw)
        self.server, self.client = Connection(Role.SERVER), Connection(Role.CLIENT)
        self.interpreter = ClientInterpreter()
        self.writer = RecordingWriter(
            store, self.interpreter, rule=rule, facts=FACTS, tap=self._tap, version=version
        )
        self.seen = Seen()
        self._recording = True
        self._repeats_left_out = version == FORMAT_VERSION
        self._said: dict[type[Message], Message] = {}

    def _hear(self, data: bytes) -> None:
        self.client.receive_data(data)
        if self._tap is not None:
            self._tap.receive_data(data)
        for message in self.client.messages():
            change = self.interpreter.apply(message)
            repeated = isinstance(message, m.Settings | m.Budget) and message == self._said.get(
                type(message)
            )
            self._said[type(message)] = message
            if not self._recording:
                if self._tap is not None:
                    self._follow_tap(message)
                continue
            self.writer.add(message)
            if change is not None:
                self.seen.events.append(change.event)
                self.seen.truths.append(without_clients(self.session.truth))
                self.seen.notices.append(self.seen.left)
                self.seen.left = []
            elif (self.seen.events and not (repeated and self._repeats_left_out)) and isinstance(
                message,
                m.SpaceDefined
                | m.SpaceRemoved
                | m.EpochEnd
                | m.Counters
                | m.State
                | m.Filters
                | m.Missed
                | m.Triggers
                | m.Fired
                | m.Settings
                | m.Budget,
            ):
                self.seen.left.append(message)

    def _follow_tap(self, message: Message) -> None:
        """Let the tap continue while nothing is recorded."""
        assert self._tap is not None
        if not isinstance(
            message, (m.Tiles, m.StreamKey, m.StreamDelta, m.Summary, m.SpaceInfo, m.NewNames)
        ):
            self._tap.take(message)

    def run(self, steps: int, *, late: bool = False) -> Seen:
        """Let this many things happen, then close the recording.

        Args:
            late: The client was there before; it begins to record in the middle.
        """
        self._recording = not late
        self.client.send(m.Hello(client="test"))
        greeting = self.server.preamble()
        self.server.receive_data(self.client.preamble())
        for message in [*self.session.bootstrap(), *self.session.add_space()]:
            greeting += self.server.send(message)
        self._hear(greeting)
        for step in range(steps):
            if late and step == steps // 2 and self.interpreter.last_event is not None:
                self._recording = True
                self.writer.start()
                self.seen.events.append(self.interpreter.last_event)
                self.seen.truths.append(without_clients(self.session.truth))
                self.seen.notices.append([])
            self._hear(self._something())
        self.writer.close()
        return self.seen

    def _something(self) -> bytes:
        match self._draw(
            st.sampled_from(("event", "event", "event", "say", "add", "remove", "drop", "else"))
        ):
            case "else":
                kind = self._draw(st.sampled_from((0x54, 0x60, 0x71, 0x72, 0x75, 0xFF)))
                return (
                    self.server.send(m.Ping(number=1))
                    + pack_frame(kind, b"of a later version").data
                )
            case "event":
                return self.session.event()
            case "say":
                messages = self.session.notice()
            case "add":
                messages = self.session.add_space()
            case "remove":
                messages = self.session.remove_space()
            case _:
                self.session.event()
                missed = m.Missed(events=1, total=self._draw(st.integers(1, 99)))
                self.session.truth.said[m.Missed] = missed
                return self.server.send(missed) + self.session.keyframe()
        return b"".join(self.server.send(message) for message in messages)


# ------------------------------------------------------------------ a small, fixed session


WELCOME = m.Welcome(
    server="small",
    session="s",
    client_id=1,
    controller=False,
    mode=Mode.PASSIVE,
    pause_acts_on=PauseActsOn.SAMPLING,
    events=(EventKind(id=0, name="clock"), EventKind(id=1, name="collection")),
    wall_offset_nanos=1_700_000_000_000_000_000,
)

HEAP = Space(
    id=1,
    name="heap",
    naming=Naming.EXTENTS,
    streams=(
        Stream(
            id=0,
            name="Used",
            dtype="u1",
            maximum=100,
            presentation=Presentation.PERCENT,
            suffix=" bytes",
        ),
        Stream(
            id=1,
            name="Kind",
            dtype="u1",
            presentation=Presentation.ENUM,
            enum_names=("old", "young"),
        ),
    ),
)


class Small:
    """A session of a few tiles whose every value is known by formula: tile i of event n is (i * n) % 97.

    Args:
        store: Where it is recorded.
        rule: When chunks end.
        tiles: Tiles of its space.
        nanos: Between events.
        details: Kinds of questions that its space answers.
        version: Of the format.
    """

    def __init__(
        self,
        store: Store,
        *,
        rule: ChunkRule | None = None,
        tiles: int = 9,
        nanos: int = 100_000_000,
        details: tuple[str, ...] = (),
        version: int = FORMAT_VERSION,
    ) -> None:
        self.tiles, self.nanos = tiles, nanos
        self.interpreter = ClientInterpreter()
        self.writer = RecordingWriter(
            store, self.interpreter, rule=rule, facts=FACTS, version=version
        )
        self.number = 0
        for message in (
            WELCOME,
            m.SpaceDefined(space=replace(HEAP, details=details)),
            m.EpochEnd(epoch=1),
            m.Counters(counts=(0, 0)),
        ):
            self.say(message)

    def say(self, message: Message) -> None:
        """Let the client hear and record it."""
        self.interpreter.apply(message)
        self.writer.add(message)

    @staticmethod
    def values(number: int, tiles: int = 9) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        """Return what the tiles have at an event."""
        return ((np.arange(tiles) * number) % 97).astype("<u1")

    def event(self) -> None:
        """Transmit the next event; every third is a collection, one before it was missed each tenth time."""
        self.number += 1
        n, kind = self.number, 1 if self.number % 3 == 0 else 0
        stamp: dict[str, Any] = {"sequence": n, "time_nanos": n * self.nanos}
        who: dict[str, Any] = {"space": 1, **stamp, "event": kind, "occurrence": n}
        if n == 1:
            bases = 0x1000 + 64 * np.arange(self.tiles, dtype="<u8")
            sizes = np.full(self.tiles, 64, dtype="<u8")
            self.say(
                m.Tiles(
                    space=1,
                    count=self.tiles,
                    naming=Naming.EXTENTS,
                    bases=bases,
                    sizes=sizes,
                    old_starts=_NO_RUNS,
                    new_starts=_NO_RUNS,
                    lengths=_NO_RUNS,
                )
            )
            self.say(m.StreamKey(**who, stream=0, values=self.values(n, self.tiles)))
            self.say(m.StreamKey(**who, stream=1, values=np.zeros(self.tiles, dtype="<u1")))
        else:
            if n % 10 == 0:
                self.say(m.Missed(events=1, total=n // 10))
            before, now = self.values(n - 1, self.tiles), self.values(n, self.tiles)
            changed = np.flatnonzero(before != now)
            self.say(
                m.StreamDelta(
                    **who,
                    stream=0,
                    base_sequence=n - 1,
                    count=self.tiles,
                    indices=changed,
                    values=now[changed],
                )
            )
        total = int(self.values(n, self.tiles).sum())
        self.say(
            m.Summary(
                space=1, stream=0, **stamp, values=(total, 100 * self.tiles), covered=self.tiles
            )
        )
        self.say(
            m.Event(
                **stamp,
                event=kind,
                occurrence=n,
                epoch=1,
                gather_nanos=1000,
                held_nanos=10,
                cause=f"cause {n}",
            )
        )
        self.say(m.Counters(counts=(n, n // 3)))

    def events(self, count: int) -> Small:
        """Transmit this many events."""
        for _ in range(count):
            self.event()
        return self


def small(
    events: int,
    *,
    rule: ChunkRule | None = None,
    tiles: int = 9,
    details: tuple[str, ...] = (),
    version: int = FORMAT_VERSION,
) -> bytes:
    """The bytes of a closed recording of the small session."""
    store = MemoryStore()
    session = Small(store, rule=rule, tiles=tiles, details=details, version=version).events(events)
    session.writer.close()
    return bytes(store.data)
