"""Playing a recording of 10,000 events x 100,000 tiles over a socket: seeking, backwards, at once, and to 100 followers.

The player is `gcspy replay --no-window`, a process of its own; the client here decodes all that it gets. A seek is timed from
the command to the last byte of its event, understood. Budget: 20 ms.
"""

from __future__ import annotations

import argparse
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
from gcspy_protocol import ClientInterpreter, Connection
from gcspy_protocol import messages as m
from gcspy_protocol.model import Role
from gcspy_protocol.playback import Direction, Pace, Seek, SetPlayback
from numpy.typing import NDArray

from benchmarks.harness.figures import tell
from benchmarks.recording.recording import Traffic, record
from gcspy.connection.link import Link, connect

__all__ = ["main"]

_RUSH = SetPlayback(pace=Pace.FIXED, interval_millis=0)


@contextmanager
def _player(path: Path, address: str) -> Iterator[psutil.Process]:
    """A player of a recording, at rest."""
    command = [
        sys.executable,
        "-m",
        "gcspy",
        "replay",
        str(path),
        "--no-window",
        "--paused",
        "--listen",
        address,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            while "join with" not in process.stdout.readline():
                if process.poll() is not None:
                    raise RuntimeError(f"the player ended, exit code {process.returncode}")
            yield psutil.Process(process.pid)
        finally:
            process.terminate()


class _Viewer:
    """A client that follows everything.

    Attributes:
        session: Its state.
        events: Events that came.
    """

    def __init__(self, address: str) -> None:
        self.link: Link = connect(address, client="bench")
        self.session = ClientInterpreter()
        self.events = 0
        self.until_position()

    def until_position(self) -> None:
        """Wait for the next event."""
        while True:
            message = self.link.receive()
            if message is None:
                raise RuntimeError("the player said goodbye")
            self.session.apply(message)
            if isinstance(message, m.Position):
                self.events += 1
                return

    def rate(self, seconds: float) -> float:
        """This many events per second, for this many seconds."""
        began, before = time.perf_counter(), self.events
        while time.perf_counter() - began < seconds:
            self.until_position()
        return (self.events - before) / (time.perf_counter() - began)

    def rest(self) -> None:
        """Pause, and read what was still to come."""
        self.link.send(m.Pause())
        while self.session.state.value != "paused":
            message = self.link.receive()
            if message is not None:
                self.session.apply(message)


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def _seeks(viewer: _Viewer, numbers: list[int]) -> NDArray[np.float64]:
    """Milliseconds of each."""
    took = np.empty(len(numbers))
    for i, number in enumerate(numbers):
        began = time.perf_counter()
        viewer.link.send(Seek(number=number))
        viewer.until_position()
        took[i] = time.perf_counter() - began
        if viewer.session.position != number:
            raise RuntimeError(f"asked for event {number}, got {viewer.session.position}")
    return took * 1e3


def _play(
    viewer: _Viewer, process: psutil.Process, manner: SetPlayback, start: int, seconds: float
) -> tuple[float, float]:
    """Play for a while.

    Returns:
        Events a second that were understood here, and the player's share of a core.
    """
    viewer.link.send(Seek(number=start))
    viewer.until_position()
    viewer.link.send(manner)
    viewer.link.send(m.Resume())
    viewer.until_position()
    cpu, began = _cpu(process), time.perf_counter()
    rate = viewer.rate(seconds)
    share = (_cpu(process) - cpu) / (time.perf_counter() - began)
    viewer.rest()
    return rate, share


def _followed(
    viewer: _Viewer, process: psutil.Process, address: str, followers: int, seconds: float
) -> tuple[float, float, int]:
    """Play as recorded to many.

    Returns:
        Events a second, the player's share of a core, and events of the follower that got the fewest.
    """
    with selectors.DefaultSelector() as selector:
        got = [0] * followers
        for number in range(followers):
            sock = socket.socket(socket.AF_UNIX)
            sock.connect(address.removeprefix("unix:"))
            connection = Connection(Role.CLIENT)
            sock.sendall(connection.preamble() + connection.send(m.Hello(client="follower")))
            while not any(isinstance(message, m.Position) for message in connection.messages()):
                connection.receive_data(sock.recv(1 << 18))
            sock.sendall(connection.send(m.Follow(client=viewer.link.welcome.client_id)))
            sock.setblocking(False)
            # All must read, but few need to understand: the load is to be the player's.
            selector.register(
                sock, selectors.EVENT_READ, (number, connection if number < 5 else None)
            )
        # Each arrival sends the list of participants to each client: read that first.
        while selector.select(0.5):
            for key, _ in selector.select(0):
                assert isinstance(key.fileobj, socket.socket)
                data = key.fileobj.recv(1 << 18)
                if key.data[1] is not None:
                    key.data[1].receive_data(data)
                    list(key.data[1].messages())
        viewer.link.send(
            SetPlayback(speed=0.5)
        )  # 30 events a second, as the budget for a live server has it
        viewer.link.send(m.Resume())
        viewer.until_position()
        cpu, began, before = _cpu(process), time.perf_counter(), viewer.events
        while (took := time.perf_counter() - began) < seconds:
            viewer.until_position()
            for key, _ in selector.select(0):
                number, parser = key.data
                assert isinstance(key.fileobj, socket.socket)
                data = key.fileobj.recv(1 << 18)
                if parser is not None:
                    parser.receive_data(data)
                    got[number] += sum(
                        isinstance(message, m.Position) for message in parser.messages()
                    )
        share = (_cpu(process) - cpu) / took
        viewer.rest()
        for key in list(selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
    return (viewer.events - before) / took, share, min(got[:5])


def main() -> None:
    """Run all and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--tiles", type=int, default=100_000)
    parser.add_argument("--changed", type=float, default=0.01)
    parser.add_argument("--seeks", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--followers", type=int, default=100)
    options = parser.parse_args()
    case = f"{options.events:,} events of {options.tiles:,} tiles"
    with tempfile.TemporaryDirectory(prefix="gcspy-bench-") as folder:
        path, address = Path(folder) / "bench.gcspy", f"unix:{folder}/player.sock"
        traffic = Traffic(options.tiles, options.changed, 60)
        size = record(path, traffic.greeting(), (traffic.event() for _ in range(options.events)))[
            "bytes"
        ]
        print(f"{case}, {options.changed:.0%} changed at each, 60 events/s, {size / 1e6:,.1f} MB")
        with _player(path, address) as process:
            began = time.perf_counter()
            viewer = _Viewer(address)
            print(
                f"  from connecting to the first picture    {1e3 * (time.perf_counter() - began):8.1f} ms"
            )
            rng = np.random.default_rng(5)
            cpu = _cpu(process)
            anywhere = _seeks(viewer, rng.integers(1, options.events + 1, options.seeks).tolist())
            each = 1e3 * (_cpu(process) - cpu) / options.seeks
            here = int(viewer.session.position)
            near = _seeks(viewer, [max(1, here - i) for i in range(1, options.seeks + 1)])
            for what, took in (("seek anywhere", anywhere), ("one event back", near)):
                print(
                    f"  {what:<39} median {np.median(took):6.2f} ms, p99 {np.percentile(took, 99):6.2f}, worst {took.max():6.2f}"
                )
                tell(
                    f"{case}: {what} over the socket, median", float(np.median(took)), "ms", "<= 20"
                )
                tell(
                    f"{case}: {what} over the socket, worst of {len(took)}",
                    float(took.max()),
                    "ms",
                    "<= 20",
                )
            print(f"  processor time of the player for a seek {each:8.2f} ms")
            tell(f"{case}: processor time of the player for a seek anywhere", each, "ms")
            manners = (
                ("at 1x, 60 events/s as recorded", SetPlayback(), 1),
                ("at 100x", SetPlayback(speed=100), 1),
                ("as fast as it goes", replace(_RUSH, loop=(1, options.events)), 1),
                (
                    "backwards, as fast as it goes",
                    replace(_RUSH, direction=Direction.BACKWARDS),
                    options.events,
                ),
            )
            for what, manner, start in manners:
                rate, share = _play(
                    viewer, process, manner, start, min(options.seconds, options.events / 1000)
                )
                print(f"  {what:<39} {rate:8,.0f} events/s, {share:6.1%} of a core")
                tell(f"{case}: {what}", rate, "events/s")
                tell(f"{case}: {what}, share of a core", 100 * share, "%")
            rate, share, least = _followed(
                viewer, process, address, options.followers, options.seconds
            )
            print(
                f"  {options.followers} followers at 0.5x                   {rate:8,.1f} events/s, {share:6.1%} of a core; the least of five got {least}"
            )
            tell(
                f"{case}, {options.followers} followers, 30 events/s: share of a core",
                100 * share,
                "%",
                "<= 15 at 100",
            )
            viewer.link.close()


if __name__ == "__main__":
    main()
