"""What stands between a client and a server, for tests of lost connections."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path


class Relay:
    """Stands between a client and a server; can be cut, or held, as a cable that is pulled: nothing comes through, and nobody is told."""

    def __init__(self, path: Path, server: str) -> None:
        self.address = f"unix:{path}"
        self._path, self._server = path, server.removeprefix("unix:")
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen()
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
            far = socket.socket(socket.AF_UNIX)
            far.connect(self._server)
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
        self._server = server.removeprefix("unix:")

    def hold(self) -> None:
        """Let nothing through."""
        self._flows.clear()

    def go_on(self) -> None:
        """Let everything through, also what was held."""
        self._flows.set()

    def cut(self) -> None:
        for pair in self._pairs:
            for sock in pair:
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
        self._path.unlink()
