"""The compression in HELLO applies to every message that a session or a player sends."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from gcspy_protocol import ClientInterpreter, Connection
from gcspy_protocol import messages as m
from gcspy_protocol.frames.frame import FLAG_ZSTD, HEADER, Header
from gcspy_protocol.messages import FrameType, Message
from gcspy_protocol.model import Role
from gcspy_replay.file import MemorySource, Recording
from gcspy_replay.player import PlaybackStart, serve_recording

from gcspy_server.api import ServedSession, UniformNames
from tests.replay.recorded import small
from tests.replay.viewing import told
from tests.server.target import Target
from tests.server.test_hostile import raw

Serve = Callable[..., ServedSession]


class Reader:
    """A client that keeps the headers of its messages beside their meaning."""

    def __init__(self, sock: socket.socket, codecs: tuple[str, ...]) -> None:
        self.compressed: set[int] = set()
        self.types: set[int] = set()
        self.state = ClientInterpreter()
        self._sock = sock
        self._connection = Connection(Role.CLIENT)
        self._bytes = bytearray()
        self._at = 12
        hello = m.Hello(client="reader", codecs=codecs)
        sock.sendall(self._connection.preamble() + self._connection.send(hello))

    def send(self, message: Message) -> None:
        self._sock.sendall(self._connection.send(message))

    def until(self, kind: type[Message]) -> Message:
        """Read up to the next message of a kind."""
        for message in self._messages():
            self.state.apply(message)
            if isinstance(message, kind):
                return message
        raise AssertionError

    def _messages(self) -> Iterator[Message]:
        while True:
            message = self._connection.next_message()
            if message is not None:
                yield message
                continue
            data = self._sock.recv(65536)
            assert data, "the server closed"
            self._connection.receive_data(data)
            self._bytes += data
            while len(self._bytes) >= self._at + HEADER.size:
                header = Header._make(HEADER.unpack_from(self._bytes, self._at))
                self._at += HEADER.size + header.length
                self.types.add(header.type)
                if header.flags & FLAG_ZSTD:
                    self.compressed.add(header.type)


@pytest.mark.parametrize(
    ("codecs", "compresses"), [((), False), (("lz4",), False), (("lz4", "zstd"), True)]
)
def test_a_session_compresses_for_those_who_name_zstd(
    serve: Serve, codecs: tuple[str, ...], compresses: bool
) -> None:
    target = Target(tiles=5000)
    target.server.add_space(
        "with a long description", names=UniformNames(0, 1, 4), description="x" * 4000
    )
    address = serve(target).addresses[0]
    with raw(address) as other, raw(address) as sock:
        usual, reader = Reader(other, ("zstd",)), Reader(sock, codecs)
        for one in (usual, reader):
            one.until(m.Counters)
        for step in range(3):
            if step == 1:
                for one in (usual, reader):
                    one.send(m.Subscribe())  # the next event is a keyframe
                    one.send(m.Ping(number=1))
                    one.until(m.Pong)
            target.event()
            for one in (usual, reader):
                # Messages that SUBSCRIBE made the server send again may come first, or not at all.
                while one.state.last_event is None or one.state.last_event.occurrence <= step:
                    one.until(m.Event)
        assert bool(reader.compressed) == compresses
        assert usual.compressed >= {FrameType.SPACE_DEFINED, FrameType.STREAM_KEY}
        assert reader.types >= usual.compressed
        ours, theirs = told(reader.state), told(usual.state)
        assert (ours["spaces"], ours["epoch"]) == (theirs["spaces"], theirs["epoch"])


@pytest.mark.parametrize(("codecs", "compresses"), [((), False), (("zstd",), True)])
def test_a_player_compresses_for_those_who_name_zstd(
    socket_directory: Path, codecs: tuple[str, ...], compresses: bool
) -> None:
    recording = Recording([MemorySource(small(6, tiles=5000))])
    still = PlaybackStart(running=False)
    with (
        serve_recording(recording, f"unix:{socket_directory}/player", beginning=still) as playing,
        raw(playing.addresses[0]) as sock,
    ):
        reader = Reader(sock, codecs)
        reader.until(m.Position)
        for number in (4, 6, 2):
            reader.send(m.Seek(number=number))
            assert reader.until(m.Position) == m.Position(number=number)
        assert bool(reader.compressed) == compresses
        assert FrameType.STREAM_KEY in reader.types
