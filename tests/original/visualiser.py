"""A client of GCspy 1.0 for tests: it greets, reads, asks and leaves as the original's visualiser does."""

from __future__ import annotations

import socket
import struct

from gcspy_original import wire
from gcspy_original.wire import Connection, Side, encode

from tests.waiting import PATIENCE_SECS

__all__ = ["CLIENT_BUFFER_BYTES", "Visualiser"]

CLIENT_BUFFER_BYTES = 4 << 20
"""The original's client fails with a larger frame."""


class Visualiser:
    """A connected client.

    Args:
        port: Port of the server, on this machine.
        pause_at_start: Whether its greeting asks for a pause.

    Attributes:
        messages: All that it was sent.
        largest: Bytes of the largest frame.
    """

    def __init__(self, port: int, *, pause_at_start: bool = False) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE_SECS)
        self.wire = Connection(Side.SERVER)
        self.messages: list[wire.Message] = []
        self.largest = 0
        self._ahead = b""
        self.send(wire.ClientGreeting(pause_at_start=pause_at_start))

    def send(self, message: wire.Message) -> None:
        self.socket.sendall(encode(message))

    def read(self) -> bool:
        data = self.socket.recv(1 << 16)
        self._measure(data)
        self.wire.receive_data(data)
        self.messages += self.wire.messages()
        return bool(data)

    def _measure(self, data: bytes) -> None:
        """Note the lengths of frames as they begin."""
        self._ahead += data
        while len(self._ahead) >= 4:
            (size,) = struct.unpack_from(">I", self._ahead)
            self.largest = max(self.largest, size)
            if len(self._ahead) < 4 + size:
                return
            self._ahead = self._ahead[4 + size :]

    def count(self, kind: type) -> int:
        return sum(isinstance(one, kind) for one in self.messages)

    def until(self, kind: type, times: int = 1) -> None:
        while self.count(kind) < times:
            assert self.read(), f"no {kind.__name__}"

    def values(self, stream: int, space: int = 0) -> list[int]:
        """The last values of a stream."""
        found = [
            one.values
            for one in self.messages
            if isinstance(one, wire.StreamValues) and (one.space, one.stream) == (space, stream)
        ]
        return [int(one) for one in found[-1]]

    def info(self, space: int = 0) -> str:
        """The last text about a space."""
        return [
            one.text
            for one in self.messages
            if isinstance(one, wire.SpaceInfo) and one.space == space
        ][-1]

    def leave(self) -> None:
        self.send(wire.ShutdownRequest())
        self.until(wire.Shutdown)
        self.socket.close()
