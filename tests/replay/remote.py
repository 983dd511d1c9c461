"""A client of a player within one trio loop, over streams in memory: for virtual time, and for many short sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio
import trio.testing
from gcspy_protocol import messages as m
from gcspy_protocol.connection import Connection
from gcspy_protocol.handshake.credentials import Channel
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.messages import Message
from gcspy_protocol.model import Role
from gcspy_replay.player import Player

from gcspy_session.network.transport import Transport

PATIENCE_SECS = 60.0


class Remote:
    """The client's end of a connection.

    Attributes:
        state: Its state of the session.
        heard: Every message that came.
        positions: Numbers of the events that came.
    """

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self._connection = Connection(Role.CLIENT)
        self.state = ClientInterpreter()
        self.heard: list[Message] = []
        self.positions: list[int] = []

    async def greet(
        self,
        name: str = "remote",
        *,
        control: bool = False,
        person: str = "",
        following: bool = False,
    ) -> None:
        """Say who it is."""
        await self._stream.send_all(self._connection.preamble())
        await self.send(
            m.Hello(client=name, wants_control=control, person=person, following=following)
        )

    async def send(self, message: Message) -> None:
        """Send a message."""
        await self._stream.send_all(self._connection.send(message))

    async def receive(self) -> bool:
        """Take what comes next; False at the end."""
        data = await self._stream.receive_some(65536)
        if not data:
            return False
        self._connection.receive_data(data)
        for message in self._connection.messages():
            self.heard.append(message)
            self.state.apply(message)
            if isinstance(message, m.Position):
                self.positions.append(message.number)
        return True

    async def until(self, done: Callable[[], bool]) -> None:
        """Receive until something is so, or the player has ended the connection."""
        while not done():
            if not await self.receive():
                return

    async def close(self) -> None:
        """Hang up."""
        await self._stream.aclose()


@asynccontextmanager
async def served(player: Player) -> AsyncIterator[Callable[[], Remote]]:
    """A player that runs; what is yielded connects a client to it."""
    async with trio.open_nursery() as nursery:
        await nursery.start(player.run)

        def connect() -> Remote:
            ours, theirs = trio.testing.memory_stream_pair()
            nursery.start_soon(player.serve, Transport(theirs, "test", channel=Channel.LOCAL))
            return Remote(ours)

        yield connect
        nursery.cancel_scope.cancel()
