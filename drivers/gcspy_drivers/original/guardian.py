"""A small process that takes leave of a server of GCspy 1.0 when its client is gone, however it ended.

A server of GCspy 1.0 ends its whole process when a client closes at the wrong moment: with data that
it has not read, within a frame, or without a word. So this process holds the connection, too. It
sends what the client wants to be sent, a frame at a time. When the client is gone, it asks for the
end, reads everything up to the server's answer, and closes only then.

    client ──datagrams: a letter, and bytes──▶ this process ──frames──▶ server
       ▲────────────────────────values, read by the client itself──────────┘

`S` sends the frame that follows, `F` keeps what follows as the farewell, `D` means that the server
has already answered the farewell. Each is answered by a datagram of a byte once it is done: what
was not answered when this process ended, the client gives to the next one.

It is run as a script, without any other module of ours: `guardian.py SERVER_FD CLIENT_FD GREETING`.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys

FAREWELL = bytes.fromhex("0000000a000a2c2a0500fffffd66")
"""SHUTDOWN_REQ."""

ANSWER = bytes.fromhex("0000000a000a2c2a0600fffffd66")
"""SHUTDOWN, behind which a server sends nothing more."""

_QUIET_SECS = 1.0
_READ_BYTES = 1 << 16
_MOST_DATAGRAM = 1 << 16


def guard(server: socket.socket, client: socket.socket) -> None:
    """Send the client's frames until it is gone; then take leave."""
    farewell, answered = FAREWELL, False
    while datagram := _next(client, server):
        letter, data = datagram[:1], datagram[1:]
        if letter == b"S":
            server.sendall(data)
        elif letter == b"F":
            farewell = data
        elif letter == b"D":
            answered = True
        client.send(letter)
    if not answered:
        server.sendall(farewell)
        _drain(server)


def _next(client: socket.socket, server: socket.socket) -> bytes:
    """The client's next datagram; empty: it is gone, or the server is."""
    hung_up = select.poll()
    hung_up.register(client, select.POLLIN)
    hung_up.register(server, 0)  # only its end: the client reads its data
    while True:
        for number, what in hung_up.poll():
            if number == client.fileno():
                try:
                    return client.recv(_MOST_DATAGRAM)
                except OSError:
                    return b""
            if what & (select.POLLHUP | select.POLLERR):
                sys.exit(0)  # there is nobody to take leave of


def _drain(server: socket.socket) -> None:
    """Read until the server has answered and is quiet, or has closed."""
    tail = b""
    server.settimeout(_QUIET_SECS)
    while True:
        try:
            data = server.recv(_READ_BYTES)
        except TimeoutError:
            if tail == ANSWER:
                return
            continue
        if not data:
            return
        tail = (tail + data)[-len(ANSWER) :]


def main() -> None:
    """Go into the background, send the greeting, and guard the connection."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    if os.fork():  # the client has no child to wait for
        os._exit(0)
    server = socket.socket(fileno=int(sys.argv[1]))
    client = socket.socket(fileno=int(sys.argv[2]))
    try:
        server.sendall(bytes.fromhex(sys.argv[3]))
        guard(server, client)
    except OSError:
        sys.exit(0)  # the server has ended


if __name__ == "__main__":
    main()
