"""A link without a socket: what a session sends, given to a time shift and to a live interpreter alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from gcspy_protocol import messages as m
from gcspy_protocol.codec import encode_event
from gcspy_protocol.connection import Connection
from gcspy_protocol.frames.frame import Frame
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.messages import Event
from gcspy_protocol.model import Mode, Naming, Role, Space, Stream
from gcspy_protocol.streams.tiles import pack_tiles
from gcspy_protocol.streams.values import Stamp, StreamEncoder
from numpy.typing import NDArray

from gcspy_client.model.playback.time_shift import TimeShift
from tests.protocol.session import Session, Truth
from tests.replay.recorded import without_clients

__all__ = ["Steady", "Wire", "truth_of"]

_NO_RUNS: NDArray[np.uint32] = np.empty(0, dtype="<u4")


def truth_of(session: Session) -> Truth:
    """The state that a client has, without the list of participants and its losses, which are each connection's own."""
    truth = without_clients(session.truth)
    truth.said.pop(m.Missed, None)
    return truth


class Wire:
    """One client of a session, as a link would have it.

    Args:
        shift: Gets what the link's tap would.
        session: Where it comes from.

    Attributes:
        truths: Expected state after each received event.
        live: The live state of a window.
    """

    def __init__(self, shift: TimeShift, session: Session) -> None:
        self.shift, self.session = shift, session
        self.truths: list[Truth] = []
        self.events: list[Event] = []
        self.live = ClientInterpreter()
        self.server, self.client = Connection(Role.SERVER), Connection(Role.CLIENT)

    def connect(self, *, session: str = "s", mode: Mode = Mode.EMBEDDED) -> None:
        """Begin a connection: the bootstrap, and the latest event as a keyframe."""
        self.live = ClientInterpreter()
        self.server, self.client = Connection(Role.SERVER), Connection(Role.CLIENT)
        self.client.send(m.Hello(client="test"))
        self.server.receive_data(self.client.preamble())
        self.shift.connected()
        data = self.server.preamble()
        for message in self.session.bootstrap():
            if isinstance(message, m.Welcome):
                data += self.server.send(replace(message, session=session, mode=mode))
            elif not isinstance(message, m.Missed):
                data += self.server.send(message)
        self.hear(data + self.session.keyframe())

    def hear(self, data: bytes, *, pieces: int = 1) -> bool:
        """Let bytes arrive, in this many pieces; whether there is room for more."""
        room = True
        size = max(1, -(-len(data) // pieces))
        for start in range(0, len(data), size):
            piece = data[start : start + size]
            self.client.receive_data(piece)
            messages = list(self.client.messages())
            room = self.shift.received(piece, messages)
            for message in messages:
                if self.live.apply(message) is not None:
                    assert isinstance(message, Event)
                    self.events.append(message)
                    self.truths.append(truth_of(self.session))
        return room

    def say(self, *messages: m.Message) -> None:
        """Let the server say something between events."""
        self.hear(b"".join(self.server.send(message) for message in messages))


class Steady:
    """A session of one space whose values are known by formula: tile i of event n has (i * n) % 9973.

    Args:
        shift: Hears it.
        tiles: Tiles of its space.
        session: Its name.
        few: Only every hundredth tile ever changes.
        noise: Values are random, and so are many bytes.
    """

    def __init__(
        self,
        shift: TimeShift,
        *,
        tiles: int = 1000,
        session: str = "steady",
        few: bool = False,
        noise: bool = False,
    ) -> None:
        self.shift, self.tiles, self.name = shift, tiles, session
        self.number = 0
        self.live = ClientInterpreter()
        self.room = True
        self.sent_bytes = 0
        self._encoder = StreamEncoder(1, 2, dtype="u2", default=0, count=tiles)
        self._server, self._client = Connection(Role.SERVER), Connection(Role.CLIENT)
        self._few, self._noise = few, noise

    def connect(self, *, mode: Mode = Mode.PASSIVE) -> None:
        """Begin a connection; what happened before comes as a keyframe."""
        self.live = ClientInterpreter()
        self._server, self._client = Connection(Role.SERVER), Connection(Role.CLIENT)
        self._client.send(m.Hello(client="test"))
        self._server.receive_data(self._client.preamble())
        self.shift.connected()
        welcome = replace(Session.welcome, session=self.name, mode=mode)
        space = Space(
            id=1, name="Heap", streams=(Stream(id=2, name="Used", dtype="u2", maximum=9999),)
        )
        data = self._server.preamble()
        for message in (welcome, m.SpaceDefined(space=space), m.EpochEnd(epoch=1)):
            data += self._server.send(message)
        if self.number:
            data += encode_event(
                self._event(keyframe=True, cached=True), [self._tiles(), self._encoder.key()]
            )
        self.hear(data)

    def values(self, number: int) -> NDArray[np.uint16]:
        """Return the values of the tiles at an event."""
        if self._noise:
            return np.random.default_rng(number).integers(0, 1 << 16, self.tiles, dtype="<u2")
        tiles = np.arange(self.tiles, dtype=np.uint64)
        return np.where((tiles % 100 != 0) & self._few, 7, tiles * number % 9973).astype("<u2")

    def encode(self, *, events: int = 1) -> bytes:
        """The bytes of the next events."""
        data = b""
        for _ in range(events):
            self.number += 1
            frames = [self._tiles()] if self.number == 1 else []
            stamp = Stamp(
                sequence=self.number,
                time_nanos=self.number * 1_000_000,
                event=0,
                occurrence=self.number,
            )
            frames.append(self._encoder.encode(self.values(self.number), None, stamp))
            data += encode_event(self._event(keyframe=self.number == 1), frames)
        return data

    def events(self, count: int) -> None:
        """Deliver this many events, each by itself."""
        for _ in range(count):
            self.hear(self.encode())

    def say(self, *messages: m.Message) -> None:
        """Let the server say something between events."""
        self.hear(b"".join(self._server.send(message) for message in messages))

    def hear(self, data: bytes) -> None:
        """Let bytes arrive."""
        self.sent_bytes += len(data)
        self._client.receive_data(data)
        messages = list(self._client.messages())
        self.room = self.shift.received(data, messages)
        for message in messages:
            self.live.apply(message)

    def _tiles(self) -> Frame:
        message = m.Tiles(
            space=1,
            count=self.tiles,
            naming=Naming.UNIFORM,
            base=0x1000,
            tile_bytes=64,
            old_starts=_NO_RUNS,
            new_starts=_NO_RUNS,
            lengths=_NO_RUNS,
        )
        frame = pack_tiles(message)
        self._encoder.remap(_NO_RUNS, _NO_RUNS, _NO_RUNS, self.tiles) if self.number == 1 else None
        return frame

    def _event(self, *, keyframe: bool = False, cached: bool = False) -> Event:
        return Event(
            sequence=self.number,
            time_nanos=self.number * 1_000_000,
            event=0,
            occurrence=self.number,
            epoch=1,
            keyframe=keyframe,
            cached=cached,
        )
