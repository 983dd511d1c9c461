"""`gcspy.listen()`: makes a program available for monitoring, with exact events.

The server never runs in the monitored program: its allocations would be part of the picture. So a
sidecar is started, as a process of its own that is not a child, and attaches to the program. Only
the stub and little else is loaded here.

Knows how to start a sidecar and its answers; does not know server or driver.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
from types import TracebackType
from typing import IO, Final

from gcspy_drivers.cpython.cooperation.collect_library import collect_library
from gcspy_drivers.cpython.cooperation.stub import Stub, let_read
from gcspy_protocol.address import TcpAddress, parse_address
from gcspy_protocol.errors import CommandError

__all__ = ["ListeningProgram", "listen"]

_END_SECS: Final = 1.0
"""How long `close` waits for the sidecar's end, which takes some ten milliseconds."""

_open: set[ListeningProgram] = set()
"""A listening program stays so until it is closed, even if the object is not kept."""


class ListeningProgram:
    """A program that can be monitored, until this is closed; made by `gcspy.listen`.

    Attributes:
        addresses: Addresses for clients.
    """

    def __init__(
        self, addresses: tuple[str, ...], stub: Stub, lifeline: IO[bytes], answers: IO[bytes]
    ) -> None:
        self.addresses = addresses
        self._stub: Stub | None = stub
        self._lifeline = lifeline
        self._answers = answers

    @property
    def connected(self) -> bool:
        """Whether the stub is in the program; a collection removes it when the sidecar has gone."""
        return self._stub is not None and self._stub.connected

    def close(self) -> None:
        """Remove the stub from the program and end the sidecar; clients are informed. May be called twice."""
        stub, self._stub = self._stub, None
        if stub is not None:
            stub.close()
        self._lifeline.close()
        if not self._answers.closed:
            # The sidecar sends nothing more: a read returns at its end, and then its address is
            # free for the next one.
            select.select([self._answers], [], [], _END_SECS)
            self._answers.close()
        _open.discard(self)

    def __enter__(self) -> ListeningProgram:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def listen(
    address: str | None = None,
    *,
    wait: bool = False,
    longest_hold_secs: float | None = 30.0,
    budget: float | None = 0.05,
    token: str | None = None,
) -> ListeningProgram:
    """Make this program available for monitoring with exact events: each collection is announced, and waits while the heap is read.

    Args:
        address: Address for clients in addition to the local default, which `gcspy view PID` finds:
            ``127.0.0.1:7777``, ``tls:0.0.0.0:7777``, ``unix:/path``.
        wait: Return when the first client has connected.
        longest_hold_secs: Longest single stop of the program; None: unlimited.
        budget: Maximum share of this program's time for monitoring, until a client changes it;
            None: no limit, so that each requested collection is gathered.
        token: The token for TCP clients; None takes GCSPY_TOKEN.

    Returns:
        An object to close; it also ends with the program.

    Raises:
        CommandError: The sidecar cannot monitor this process, and why; or a token is missing.
        RuntimeError: This Python runs without a GIL.
    """
    addresses = [f"unix:{_default_path()}"]
    if address is not None:
        place = parse_address(address)
        addresses.append(str(place))
        if isinstance(place, TcpAddress):
            token = token or os.environ.get("GCSPY_TOKEN")
            if not token:
                raise CommandError(f"{place} needs a token: give a token file, or set GCSPY_TOKEN")
    options = {
        "does": "watches",
        "pid": os.getpid(),
        "listen": addresses,
        "token": token,
        "wait": wait,
        "longest_hold_secs": longest_hold_secs,
        "budget": 1000 if budget is None else max(1, min(1000, round(1000 * budget))),
    }
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        with theirs:
            launcher = _launch(options, theirs)
        assert launcher.stdin is not None
        assert launcher.stdout is not None
        stub = Stub(ours, waits=wait, library=collect_library())
    answer = json.loads(
        launcher.stdout.readline() or b'{"error": "the sidecar ended at once", "exit_code": 1}'
    )
    listening = ListeningProgram(
        tuple(answer.get("addresses", ())), stub, launcher.stdin, launcher.stdout
    )
    if "error" in answer:
        listening.close()
        raise CommandError(answer["error"], exit_code=answer["exit_code"])
    _open.add(listening)
    if wait:
        stub.wait()
    return listening


def _launch(options: dict[str, object], theirs: socket.socket) -> subprocess.Popen[bytes]:
    """Start a sidecar that is not our child, so that a program that waits for its children does not find it."""
    fd = theirs.fileno()
    launcher = subprocess.Popen(
        [sys.executable, "-P", "-m", "gcspy.hosts.sidecar", "--apart"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=(fd,),
        start_new_session=True,
    )
    assert launcher.stdin is not None
    assert launcher.stdout is not None
    number = launcher.stdout.readline()
    if number:
        let_read(int(number))
    launcher.stdin.write(json.dumps({**options, "stub_fd": fd}).encode() + b"\n")
    launcher.stdin.flush()
    launcher.wait()
    return launcher


def _default_path() -> str:
    from gcspy_session.network.address import default_address

    return default_address(os.getpid()).path
