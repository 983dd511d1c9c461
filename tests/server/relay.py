"""A relay between a client and a server, for tests of lost connections."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from gcspy_protocol import Connection
from gcspy_protocol.address import TcpAddress, parse_address
from gcspy_protocol.messages import Welcome
from gcspy_protocol.model import Mode, PauseActsOn, Role


def dial(address: str) -> socket.socket:
    """A bare socket to an address, plain TCP or a Unix socket."""
    place = parse_address(address)
    if isinstance(place, TcpAddress):
        return socket.create_connection((place.host, place.port), 60)
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(place.path)
    return sock


class Relay:
    """Stands between a client and a server; can be cut, or held, as a cable that is pulled: nothing comes through, and neither side learns of it.

    Args:
        path: Where it listens; None: at a free port of this machine.
        server: The address that it leads to.
    """

    def __init__(self, path: Path | None, server: str) -> None:
        self._path, self._server = path, server
        if path is None:
            self._listening = socket.create_server(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        else:
            self._listening = socket.socket(socket.AF_UNIX)
            self._listening.bind(str(path))
            self._listening.listen()
            self.address = f"unix:{path}"
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._threads: list[threading.Thread] = []
        self._flows = threading.Event()
        self._flows.set()
        self._start(self._accept)

    def _start(self, work: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=work, args=args)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            far = dial(self._server)
            self._pairs.append((near, far))
            self._start(self._pump, near, far)
            self._start(self._pump, far, near)

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                self._flows.wait()
                sink.sendall(data)
        except OSError:
            return

    def lead_to(self, server: str) -> None:
        """Lead connections from now on to another server."""
        self._server = server

    def hold(self) -> None:
        """Let nothing through."""
        self._flows.clear()

    def go_on(self) -> None:
        """Let everything through, also what was held."""
        self._flows.set()

    def cut(self) -> None:
        for pair in self._pairs:
            for sock in pair:
                with suppress(OSError):  # its end has gone already
                    sock.shutdown(socket.SHUT_RDWR)
                sock.close()
        self._pairs.clear()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.go_on()
        self.cut()
        for thread in self._threads:
            thread.join(60)
        if self._path is not None:
            self._path.unlink()


def welcoming() -> tuple[Connection, bytes]:
    """A server's end of a connection, and its welcome to whoever comes."""
    server = Connection(Role.SERVER)
    server.receive_data(Connection(Role.CLIENT).preamble())
    welcome = Welcome(
        server="s", session="x", client_id=1, controller=False, mode=Mode.PASSIVE,
        pause_acts_on=PauseActsOn.SAMPLING, events=(),
    )  # fmt: skip
    return server, server.preamble() + server.send(welcome)


class HangingUp:
    """Welcomes whoever comes, and hangs up at once.

    Args:
        path: Where it listens.

    Attributes:
        address: The same, as a client needs it.
        welcomed: How often it did.
    """

    def __init__(self, path: Path) -> None:
        self.address = f"unix:{path}"
        self.welcomed = 0
        self._path = path
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen()
        self._thread = threading.Thread(target=self._run, name="hanging up")

    def _run(self) -> None:
        _, says = welcoming()
        while True:
            try:
                sock, _ = self._listening.accept()
            except OSError:
                return
            with sock:
                sock.recv(4096)
                sock.sendall(says)
                self.welcomed += 1

    def __enter__(self) -> HangingUp:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._path.unlink()
        self._thread.join(60)
