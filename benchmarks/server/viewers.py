"""100 viewers of one server: processor share of the server, events each viewer got, and what five that stall do to the others.

Budget: 100 viewers x 40 kB x 30 events/s in at most 5 % of a core; a stalled viewer delays no
other client.
"""

from __future__ import annotations

import argparse
import selectors
import socket
import time

import numpy as np
from gcspy_protocol import Connection
from gcspy_protocol import messages as m
from gcspy_protocol.model import Role

from benchmarks.harness.figures import tell
from benchmarks.harness.processes import child

__all__ = ["measure"]

_PARSED = 10
"""This many of the viewers read every message; the others only take the bytes, for the load is to be the server's."""

_PATIENCE_SECS = 60.0
"""How long the first event is waited for: a hundred viewers join a busy machine one after the other."""

_QUIET_SECS = 3.0
"""Without a byte for so long, the server has ended."""


def _join(address: str) -> tuple[socket.socket, Connection]:
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(address.removeprefix("unix:"))
    connection = Connection(Role.CLIENT)
    sock.sendall(connection.preamble() + connection.send(m.Hello(client="bench")))
    sock.setblocking(False)
    return sock, connection


def measure(
    *,
    viewers: int = 100,
    stalled: int = 0,
    tiles: int = 100_000,
    changed: float = 0.16,
    hz: float = 30,
    seconds: float = 10,
) -> dict[str, float]:
    """Run once.

    Returns:
        ``cpu_share`` of the server, ``kilobytes`` an event, ``latency_p50`` and ``latency_p99`` in ms from gathered
        array to parsed event, ``received`` events of the slowest parsed viewer, ``sent`` events, ``missed``.
    """
    arguments = [
        f"--tiles={tiles}",
        f"--changed={changed}",
        f"--hz={hz}",
        f"--events={int(hz * seconds)}",
        "--wait=2",
    ]
    with (
        child("benchmarks.targets.synthetic", *arguments) as server,
        selectors.DefaultSelector() as selector,
    ):
        address = server.line()["address"]
        clients = [_join(address) for _ in range(viewers)]
        for number, (sock, connection) in enumerate(clients):
            if number < viewers - stalled:
                selector.register(
                    sock, selectors.EVENT_READ, (connection if number < _PARSED else None, number)
                )
        latencies: list[float] = []
        events, bytes_in, missed = [0] * min(_PARSED, viewers - stalled), 0, 0
        quiet = time.monotonic() + _PATIENCE_SECS
        while time.monotonic() < quiet:
            for key, _ in selector.select(0.2):
                connection, number = key.data
                quiet = time.monotonic() + (_QUIET_SECS if events[0] else _PATIENCE_SECS)
                assert isinstance(key.fileobj, socket.socket)
                data = key.fileobj.recv(1 << 18)
                if connection is None:
                    continue
                bytes_in += len(data) if number == 0 else 0
                connection.receive_data(data)
                for message in connection.messages():
                    if isinstance(message, m.Event) and message.program_clock:
                        events[number] += 1
                        latencies.append((time.monotonic_ns() - message.program_clock[1]) / 1e6)
                    elif isinstance(message, m.Missed):
                        missed += message.events
        report = server.line()
        for sock, _ in clients:
            sock.close()
    if not latencies:
        raise SystemExit(f"no viewer got an event of {seconds:g} s: take longer with --seconds")
    return {
        "cpu_share": report["cpu_share"],
        "kilobytes": bytes_in / max(events[0], 1) / 1e3,
        "latency_p50": float(np.percentile(latencies, 50)),
        "latency_p99": float(np.percentile(latencies, 99)),
        "received": min(events),
        "sent": report["events"],
        "missed": missed,
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    print(
        "viewers stalled | server cpu  kB/event  latency p50 / p99 ms  events received/sent  missed   (budget: 100 x 40 kB x 30/s in 5 %)"
    )
    for viewers, stalled in ((1, 0), (100, 0), (100, 5)):
        r = measure(viewers=viewers, stalled=stalled, seconds=options.seconds)
        print(
            f"{viewers:7} {stalled:7} | {r['cpu_share']:9.1%} {r['kilobytes']:8.1f} {r['latency_p50']:12.2f} / {r['latency_p99']:.1f}"
            f"{r['received']:16.0f}/{r['sent']:.0f} {r['missed']:9.0f}",
            flush=True,
        )
        case = f"{viewers} viewers, {stalled} of them stalled, {r['kilobytes']:.0f} kB an event, 30 events/s"
        tell(
            f"{case}: share of a core",
            100 * r["cpu_share"],
            "%",
            "<= 5 at 100" if viewers == 100 else "",
        )
        tell(f"{case}: latency p99", r["latency_p99"], "ms", "as without" if stalled else "")
        tell(f"{case}: events received of those sent", r["received"] / r["sent"])


if __name__ == "__main__":
    main()
