"""A server that sends prepared messages, to one client, over a Unix socket."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType

from gcspy_protocol import messages as m
from gcspy_protocol.connection import Connection
from gcspy_protocol.errors import GCspyError
from gcspy_protocol.messages import Message
from gcspy_protocol.model import Role

from tests.hostile.session import packed

__all__ = ["SpeakingServer"]

_PATIENCE_SECS = 60.0


class SpeakingServer:
    """The server; a context manager, whose end ends the thread.

    Args:
        path: Of its socket.
        messages: The first messages.
        answer: The answer to a request; None: no answer.
    """

    def __init__(
        self,
        path: Path,
        messages: list[Message],
        answer: Callable[[Message], Message | None] = lambda _message: None,
    ) -> None:
        self.address = f"unix:{path}"
        self._messages, self._answer = messages, answer
        self._connection = Connection(Role.SERVER)
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen(1)
        self._listening.settimeout(_PATIENCE_SECS)
        self._peer: socket.socket | None = None
        self._lock = threading.Lock()
        # The window that reads is in the thread that says: that may never wait until it has read.
        self._waiting: SimpleQueue[bytes | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=run, name="speaking server")
            for run in (self._serve, self._send)
        ]
        for thread in self._threads:
            thread.start()

    def say(self, messages: list[Message]) -> None:
        """Say something more."""
        with self._lock:
            self._waiting.put(packed(self._connection, messages))

    def _send(self) -> None:
        while (data := self._waiting.get()) is not None:
            try:
                assert self._peer is not None
                self._peer.sendall(data)
            except OSError:
                return  # the client has gone

    def _serve(self) -> None:
        try:
            self._peer, _ = self._listening.accept()
            self._listening.close()  # a client that connects again finds no server
            self._peer.settimeout(_PATIENCE_SECS)
            with self._lock:
                self._waiting.put(self._connection.preamble())
            while data := self._peer.recv(1 << 16):
                self._connection.receive_data(data)
                for message in self._connection.messages():
                    self._reply(message)
        except (OSError, GCspyError):
            return  # the client has gone

    def _reply(self, message: Message) -> None:
        if isinstance(message, m.Hello):
            self.say(self._messages)
        elif isinstance(message, m.Ping):
            self.say([m.Pong(number=message.number)])
        elif (answer := self._answer(message)) is not None:
            self.say([answer])

    def __enter__(self) -> SpeakingServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for one in (self._peer, self._listening):
            if one is not None:
                try:
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                one.close()
        self._waiting.put(None)
        for thread in self._threads:
            thread.join(_PATIENCE_SECS)
            assert not thread.is_alive()
