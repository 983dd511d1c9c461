"""A relay between a client and a server that does one harm at a byte that is known: cuts the line there, or changes a bit.

Knows sockets and bytes; knows no frames.
"""

from __future__ import annotations

import socket
import threading
from pathlib import Path

from tests.server.relay import Relay

__all__ = ["DisturbingRelay"]


class DisturbingRelay(Relay):
    """Stands between; what either end closes is closed for the other.

    Args:
        path: Where it listens.
        server: The address that it leads to.
        harm: "cut", "flip", or none.
        at: Before, or in, which byte; of those that the server sends, or the client.
        from_server: Whose bytes are counted.
        bit: Which bit is changed.

    Attributes:
        done: Set once the harm is done.
    """

    def __init__(
        self,
        path: Path,
        server: str,
        *,
        harm: str = "",
        at: int = 0,
        from_server: bool = True,
        bit: int = 0,
    ) -> None:
        self._harm, self._at, self._from_server, self._bit = harm, at, from_server, bit
        self.done = threading.Event()
        super().__init__(path, server)

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        ours = any(far is source for _, far in self._pairs) == self._from_server
        passed = 0
        try:
            while data := source.recv(65536):
                self._flows.wait()
                inside = ours and not self.done.is_set() and passed <= self._at < passed + len(data)
                if inside and self._harm == "cut":
                    sink.sendall(data[: self._at - passed])
                    self.done.set()
                    source.shutdown(socket.SHUT_RDWR)
                    break
                if inside and self._harm == "flip":
                    place = self._at - passed
                    data = data[:place] + bytes([data[place] ^ 1 << self._bit]) + data[place + 1 :]
                sink.sendall(data)
                passed += len(data)
                if inside and self._harm:
                    self.done.set()
        except OSError:
            pass  # an end has gone
        try:
            sink.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it was first
