"""A viewer that floods a server: how long a newcomer waits for its first event, with each kind of flood and without any.

Floods: PING, SUBSCRIBE and TAKE_CONTROL at 0.8 MB/s by one viewer, which connects again when it is
disconnected; viewers that join and leave, 100 times a second; viewers of 1,000,000 tiles that are
stopped. Budget: one second.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
from gcspy_protocol import Connection
from gcspy_protocol import messages as m
from gcspy_protocol.model import Role

from benchmarks.harness.figures import tell
from benchmarks.harness.processes import child

__all__ = ["measure"]

_BYTES_PER_SEC = 800_000
_JOINS_PER_SEC = 100
_PRESENT = 100
_STOPPED = 5
_LONGEST_SECS = 10.0
"""Clients without an event are counted with this time."""

_BETWEEN_SECS = 0.1
_START_SECS = 60.0


def _greeted(address: str) -> tuple[socket.socket, Connection]:
    """A connection on which a greeting was sent."""
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(_LONGEST_SECS)
    sock.connect(address.removeprefix("unix:"))
    connection = Connection(Role.CLIENT)
    sock.sendall(connection.preamble() + connection.send(m.Hello(client="flood")))
    return sock, connection


def _await_event(sock: socket.socket, connection: Connection, most_secs: float) -> None:
    """Read until an event has come.

    Raises:
        OSError: The connection ended, or none came within that time.
    """
    until = time.monotonic() + most_secs
    while True:
        sock.settimeout(max(0.001, until - time.monotonic()))
        data = sock.recv(1 << 18)
        if not data:
            raise ConnectionError("the server closed the connection")
        connection.receive_data(data)
        if any(isinstance(message, m.Event) for message in connection.messages()):
            return


def _first_event_secs(address: str) -> float:
    """Join, wait for one event, leave; how long that took."""
    began = time.monotonic()
    try:
        sock, connection = _greeted(address)
        with sock:
            _await_event(sock, connection, _LONGEST_SECS)
    except OSError:
        return _LONGEST_SECS
    return time.monotonic() - began


# ------------------------------------------------------------------ floods, each in a process of its own


def _requests(kind: str) -> list[m.Message]:
    """Return the requests to repeat; two different ones if repeating a single one would change nothing."""
    if kind == "ping":
        return [m.Ping(number=7)]
    if kind == "take_control":
        return [m.TakeControl()]
    return [m.Subscribe(), m.Subscribe(spaces=(m.Subscription(space=1, streams=(0,)),))]


def _send(address: str, kind: str) -> None:
    """Send requests at the rate, reading all answers, for ever."""
    while True:
        with suppress(OSError):
            sock, connection = _greeted(address)
            with sock:
                while not any(isinstance(one, m.Counters) for one in connection.messages()):
                    if not (data := sock.recv(1 << 16)):
                        raise OSError("ended")
                    connection.receive_data(data)
                threading.Thread(target=_drain, args=(sock,), daemon=True).start()
                frames = b"".join(connection.send(one) for one in _requests(kind))
                batch = frames * max(1, 8000 // len(frames))
                began, sent = time.monotonic(), 0
                while True:
                    sock.sendall(batch)
                    sent += len(batch)
                    time.sleep(max(0.0, began + sent / _BYTES_PER_SEC - time.monotonic()))
        time.sleep(0.01)


def _drain(sock: socket.socket) -> None:
    sock.settimeout(None)
    with suppress(OSError):
        while sock.recv(1 << 18):
            pass


def _come_and_go(address: str) -> None:
    """Simulate a hundred viewers; a hundred times a second the oldest leaves and another comes, for ever."""
    present: deque[socket.socket] = deque()
    due = time.monotonic()
    while True:
        with suppress(OSError):
            present.append(_greeted(address)[0])
        if len(present) > _PRESENT:
            present.popleft().close()
        for sock in present:
            with suppress(BlockingIOError, ConnectionError):
                sock.recv(1 << 16, socket.MSG_DONTWAIT)
        due = max(due + 1 / _JOINS_PER_SEC, time.monotonic() - 1)
        time.sleep(max(0.0, due - time.monotonic()))


def _stand_still(address: str) -> None:
    """Join, read nothing and be stopped."""
    socks = [_greeted(address) for _ in range(_STOPPED)]
    os.kill(os.getpid(), signal.SIGSTOP)
    del socks


_FLOODS: dict[str, Callable[[str], None]] = {
    "ping": lambda address: _send(address, "ping"),
    "subscribe": lambda address: _send(address, "subscribe"),
    "take_control": lambda address: _send(address, "take_control"),
    "join_leave": _come_and_go,
    "stopped": _stand_still,
}


# ------------------------------------------------------------------------------ measuring


def _memory_mib(pid: int) -> float:
    """Return the resident set of a process, in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


def measure(flood: str, *, tiles: int, seconds: float) -> dict[str, float]:
    """Run once.

    Args:
        flood: Which; "": none.
        tiles: How many the server has.
        seconds: How long newcomers come.

    Returns:
        ``median``, ``p99`` and ``max`` in milliseconds of the time to a newcomer's first event, ``newcomers``, and the
        most memory of the server, ``mebibytes``.
    """
    with ExitStack() as stack:
        server = stack.enter_context(
            child("benchmarks.targets.synthetic", f"--tiles={tiles}", "--changed=0.16", "--hz=30")
        )
        facts = server.line()
        address, pid = facts["address"], facts["pid"]
        witness, connection = _greeted(address)
        stack.enter_context(witness)
        # The target makes its changes before its first event: before that there is nothing that a newcomer could get.
        _await_event(witness, connection, _START_SECS)
        threading.Thread(target=_drain, args=(witness,), daemon=True).start()
        time.sleep(1)
        if flood:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "benchmarks.server.flood",
                    "--flooder",
                    flood,
                    "--at",
                    address,
                ]
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            time.sleep(2)
        waits, memory = list[float](), 0.0
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            waits.append(_first_event_secs(address))
            memory = max(memory, _memory_mib(pid))
            time.sleep(_BETWEEN_SECS)
        witness.shutdown(socket.SHUT_RDWR)
    return {
        "median": 1e3 * float(np.median(waits)),
        "p99": 1e3 * float(np.percentile(waits, 99)),
        "max": 1e3 * max(waits),
        "newcomers": len(waits),
        "mebibytes": memory,
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--flooder", choices=_FLOODS, help=argparse.SUPPRESS)
    parser.add_argument("--at", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.flooder:
        _FLOODS[options.flooder](options.at)
        return
    print(
        "flood              tiles | first event of a newcomer, ms: median    p99    max  newcomers  server MiB"
    )
    for tiles, floods in ((20_000, ("", *list(_FLOODS)[:-1])), (1_000_000, ("", "stopped"))):
        for flood in floods:
            r = measure(flood, tiles=tiles, seconds=options.seconds)
            print(
                f"{flood or 'none':14} {tiles:9,} | {r['median']:38.0f} {r['p99']:6.0f} {r['max']:6.0f} {r['newcomers']:10.0f}"
                f" {r['mebibytes']:11.0f}",
                flush=True,
            )
            case = f"{flood or 'no'} flood, {tiles:,} tiles: a newcomer's first event"
            tell(f"{case}, median", r["median"], "ms")
            tell(f"{case}, longest", r["max"], "ms", "<= 1000")


if __name__ == "__main__":
    main()
