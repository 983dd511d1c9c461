"""100 viewers who follow one teacher: what that costs the server, and when each sees where the teacher looks.

The teacher is a separate process that moves its view ten times a second; each place carries its
time of sending, so that a viewer can compute its age. Five viewers read nothing. At the end the
teacher is killed (SIGKILL), and the named successor waits for control.

    python -m benchmarks.server.classroom [--minutes M] [--viewers N] [--stalled N] [--tiles N]
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass

import numpy as np
from gcspy_protocol import Connection
from gcspy_protocol import messages as m
from gcspy_protocol.attendance import Focus
from gcspy_protocol.codec import encode
from gcspy_protocol.messages import FrameType
from gcspy_protocol.model import Role

from benchmarks.harness.figures import tell
from benchmarks.harness.frame_reader import FrameReader
from benchmarks.harness.processes import child
from gcspy.connection.link import connect

__all__ = ["Result", "measure"]

_HEIR = "Successor"
_LOOKS_HZ = 10.0
_READ = {FrameType.LOOKED, FrameType.MISSED, FrameType.PING, FrameType.CLIENTS, FrameType.WELCOME}
"""Frames that a viewer here understands; it takes all others as bytes, for the load is to be the server's."""

_MOST_WAIT_SECS = 30.0
_ROOM = bytearray(1 << 18)


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """Measured values.

    Attributes:
        cpu_share: Of the server, of one core.
        events: Events that were sent.
        received: Events that the slowest viewer got, of those that read.
        whole: Whether each of those got every event from its first one to the last.
        missed: Events that all those missed together.
        places: Places that reached the slowest of them.
        looks: Places that the teacher sent.
        latencies: Shape (places received in all,), milliseconds from the teacher to a viewer.
        stalled_known: How many of those who read nothing were reported to the class as stalled.
        takeover_secs: From the teacher's death to control at the successor; None: it did not come.
    """

    cpu_share: float
    events: int
    received: int
    whole: bool
    missed: int
    places: int
    looks: int
    latencies: np.ndarray
    stalled_known: int
    takeover_secs: float | None


@dataclass
class _Viewer:
    """A client that follows: its socket, and what it received."""

    sock: socket.socket
    watches: bool = False  # whether it reads who is present: a hundred lists of a hundred are the work of a hundred computers
    number: int = 0
    events: int = 0
    first: int = 0
    last: int = 0
    missed: int = 0
    places: int = 0
    clients: m.Clients | None = None

    def __post_init__(self) -> None:
        self.reader = FrameReader(self._reads)

    def _reads(self, kind: int) -> bool:
        return kind in _READ and (kind != FrameType.CLIENTS or self.watches)

    def take(self, data: memoryview, latencies: list[float]) -> None:
        """Follow what came, frame by frame."""
        for frame in self.reader.take(data):
            if frame.kind == FrameType.EVENT:
                self.events += 1
                self.first = self.first or frame.sequence
                self.last = frame.sequence
            match frame.message:
                case m.Looked() as looked if looked.at.key is not None:
                    self.places += 1
                    latencies.append((time.monotonic_ns() - looked.at.key) / 1e6)
                case m.Missed() as missed:
                    self.missed += missed.events
                case m.Ping() as ping:
                    self.sock.send(encode(m.Pong(number=ping.number)).data)
                case m.Clients() as clients:
                    self.clients = clients
                case m.Welcome() as welcome:
                    self.number = welcome.client_id


def _join(address: str, person: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(address.removeprefix("unix:"))
    greeting = Connection(Role.CLIENT)
    sock.sendall(
        greeting.preamble() + greeting.send(m.Hello(client="bench", person=person, following=True))
    )
    sock.setblocking(False)
    return sock


def _teach(address: str, seconds: float) -> None:
    """Be the teacher: name the successor, look somewhere else again and again, then wait to be killed."""
    link = connect(address, client="bench teacher", wants_control=True, person="Teacher")
    named = threading.Event()

    def read() -> None:
        while True:
            message = link.receive()
            if isinstance(message, m.Clients):
                heirs = [one.id for one in message.clients if one.person == _HEIR]
                if heirs and message.successor is None:
                    link.send(m.NameSuccessor(client=heirs[0]))
                named.set() if message.successor is not None else None

    threading.Thread(target=read, daemon=True).start()
    assert named.wait(60), "no successor came"
    print(json.dumps({"named": True}), flush=True)
    looks = 0
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        looks += 1
        link.send(m.Look(at=Focus(space=1, key=time.monotonic_ns())))
        time.sleep(max(0.0, began + looks / _LOOKS_HZ - time.monotonic()))
    print(json.dumps({"looks": looks}), flush=True)
    threading.Event().wait()


def _pump(selector: selectors.BaseSelector, latencies: list[float], wait_secs: float) -> None:
    """Take what has come for any viewer."""
    for key, _ in selector.select(wait_secs):
        viewer: _Viewer = key.data
        taken = viewer.sock.recv_into(_ROOM)
        if taken:
            viewer.take(memoryview(_ROOM)[:taken], latencies)
        else:
            selector.unregister(viewer.sock)


def measure(
    *,
    viewers: int = 100,
    stalled: int = 5,
    tiles: int = 100_000,
    changed: float = 0.16,
    hz: float = 30.0,
    seconds: float = 60.0,
) -> Result:
    """Run once.

    Raises:
        RuntimeError: The server ended, or the teacher.
    """
    arguments = [
        f"--tiles={tiles}",
        f"--changed={changed}",
        f"--hz={hz}",
        f"--events={int(hz * seconds)}",
        f"--wait={4 + viewers / 20:.0f}",
    ]
    with (
        child("benchmarks.targets.synthetic", *arguments) as server,
        selectors.DefaultSelector() as selector,
    ):
        address = server.line()["address"]
        teacher = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "benchmarks.server.classroom",
                "--teach",
                address,
                "--minutes",
                str(seconds / 60),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        sockets: list[socket.socket] = []
        try:
            return _class(
                server, teacher, selector, sockets, address, viewers=viewers, stalled=stalled
            )
        finally:
            for sock in sockets:
                sock.close()
            teacher.kill()
            teacher.wait()
            if teacher.stdout is not None:
                teacher.stdout.close()


def _class(
    server: object,
    teacher: subprocess.Popen[str],
    selector: selectors.BaseSelector,
    sockets: list[socket.socket],
    address: str,
    *,
    viewers: int,
    stalled: int,
) -> Result:
    from benchmarks.harness.processes import Child

    assert isinstance(server, Child)
    assert teacher.stdout is not None
    heir = _Viewer(_join(address, _HEIR), watches=True)
    present = [heir] + [
        _Viewer(_join(address, f"Student {i}")) for i in range(1, viewers - stalled)
    ]
    sockets += [one.sock for one in present]
    sockets += [_join(address, f"Sleeper {i}") for i in range(stalled)]
    for one in present:
        selector.register(one.sock, selectors.EVENT_READ, one)
    latencies: list[float] = []
    said: list[dict[str, float]] = []
    ends = threading.Event()

    def hear() -> None:
        assert teacher.stdout is not None
        said.extend(json.loads(line) for line in teacher.stdout)
        ends.set()

    threading.Thread(target=hear, daemon=True).start()
    stalled_known = 0
    report: dict[str, float] = {}
    got_report = threading.Event()

    def wait_for_report() -> None:
        report.update(server.line())
        got_report.set()

    threading.Thread(target=wait_for_report, daemon=True).start()
    while not (got_report.is_set() and len(said) >= 2):
        _pump(selector, latencies, 0.2)
        if heir.clients is not None:
            stalled_known = max(
                stalled_known,
                sum(
                    one.stalled for one in heir.clients.clients if one.person.startswith("Sleeper")
                ),
            )
        if ends.is_set() and len(said) < 2:
            raise RuntimeError("the teacher ended early")
    give_up = time.monotonic() + _MOST_WAIT_SECS
    while any(one.last < int(report["events"]) for one in present) and time.monotonic() < give_up:
        _pump(selector, latencies, 0.1)
    os.kill(teacher.pid, signal.SIGKILL)
    killed = time.monotonic()
    takeover: float | None = None
    while takeover is None and time.monotonic() - killed < _MOST_WAIT_SECS:
        _pump(selector, latencies, 0.01)
        if heir.clients is not None and heir.clients.controller == heir.number:
            takeover = time.monotonic() - killed
    return Result(
        cpu_share=report["cpu_share"],
        events=int(report["events"]),
        received=min(one.events for one in present),
        whole=all(
            one.events == one.last - one.first + 1 and one.last == int(report["events"])
            for one in present
        ),
        missed=sum(one.missed for one in present),
        places=min(one.places for one in present),
        looks=int(said[1]["looks"]),
        latencies=np.array(latencies),
        stalled_known=stalled_known,
        takeover_secs=takeover,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--viewers", type=int, default=100)
    parser.add_argument(
        "--tiles",
        type=int,
        default=100_000,
        help="of which 16 %% change at each event: 40 kB of 100,000",
    )
    parser.add_argument(
        "--stalled", type=int, default=None, help="by default once none and once five"
    )
    parser.add_argument("--teach", metavar="ADDRESS", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.teach:
        _teach(options.teach, 60 * options.minutes)
        return
    print(
        "viewers stalled | server cpu  events sent  slowest got  missed | places  slowest told  ms: median     p99     max | stalled told  takeover s"
    )
    for stalled in (0, 5) if options.stalled is None else (options.stalled,):
        r = measure(
            viewers=options.viewers,
            stalled=stalled,
            tiles=options.tiles,
            seconds=60 * options.minutes,
        )
        median, p99, most = (float(np.percentile(r.latencies, share)) for share in (50, 99, 100))
        takeover = "never" if r.takeover_secs is None else f"{r.takeover_secs:.3f}"
        print(
            f"{options.viewers:7} {stalled:7} | {r.cpu_share:10.1%} {r.events:12} {r.received:12} {r.missed:7} |"
            f" {r.looks:6} {r.places:13} {median:11.2f} {p99:7.2f} {most:7.1f} | {r.stalled_known:12} {takeover:>11}",
            flush=True,
        )
        case = (
            f"{options.viewers} viewers follow, {stalled} of them stalled, {options.minutes:g} min"
        )
        tell(f"{case}: share of a core", 100 * r.cpu_share, "%", "<= 15")
        tell(f"{case}: events missed by those who read", r.missed, "", "0")
        tell(f"{case}: place to viewer, p99", p99, "ms")
        tell(
            f"{case}: the successor has control after",
            float("nan") if r.takeover_secs is None else r.takeover_secs,
            "s",
            "<= 2",
        )


if __name__ == "__main__":
    main()
