"""A slow network: everything that passes through it arrives after a delay, in order, in both directions."""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def delayed(target: Path, listen: Path, delay_secs: float) -> Iterator[str]:
    """Stand between a server's Unix socket and one client.

    Args:
        target: Where the server listens.
        listen: Where the client joins.
        delay_secs: How long each byte is on its way.

    Yields:
        The address for the client.
    """
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(listen))
        with _between(listener, lambda: _unix(target), delay_secs):
            yield f"unix:{listen}"
        listen.unlink()


@contextmanager
def delayed_tcp(port: int, delay_secs: float) -> Iterator[str]:
    """Stand between a server's TCP port on this machine and one client; yields the address for the client."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        mine = listener.getsockname()[1]
        with _between(listener, lambda: socket.create_connection(("127.0.0.1", port)), delay_secs):
            yield f"127.0.0.1:{mine}"


def _unix(path: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.connect(str(path))
    return made


@contextmanager
def _between(
    listener: socket.socket, connect: Callable[[], socket.socket], delay_secs: float
) -> Iterator[None]:
    listener.listen(1)
    middle = threading.Thread(target=_serve, args=(listener, connect, delay_secs), name="delaying")
    middle.start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        middle.join(60)
        assert not middle.is_alive(), "somebody still holds the connection"


def _serve(
    listener: socket.socket, connect: Callable[[], socket.socket], delay_secs: float
) -> None:
    try:
        client, _ = listener.accept()
    except OSError:
        return  # no client came
    with client, connect() as server:
        pairs = ((client, server), (server, client))
        pumps = [threading.Thread(target=_pump, args=(*pair, delay_secs)) for pair in pairs]
        for pump in pumps:
            pump.start()
        for pump in pumps:
            pump.join()


def _pump(source: socket.socket, sink: socket.socket, delay_secs: float) -> None:
    under_way: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
    arriving = threading.Thread(target=_arrive, args=(under_way, sink))
    arriving.start()
    data = b"begin"
    while data:
        try:
            data = source.recv(1 << 16)
        except OSError:
            data = b""
        under_way.put((time.monotonic() + delay_secs, data))
    arriving.join()


def _arrive(under_way: queue.SimpleQueue[tuple[float, bytes]], sink: socket.socket) -> None:
    while True:
        due, data = under_way.get()
        time.sleep(max(0.0, due - time.monotonic()))
        try:
            if not data:
                sink.shutdown(socket.SHUT_WR)
                return
            sink.sendall(data)
        except OSError:
            return  # it has gone
