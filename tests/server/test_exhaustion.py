"""Strangers that connect and say nothing, and a process that has no file descriptor left."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import trio
import trio.testing
from gcspy_protocol import Connection
from gcspy_protocol import messages as m
from gcspy_protocol.messages import ErrorCode
from gcspy_protocol.model import Role

from gcspy.connection.link import connect
from gcspy_server.api import SessionOptions
from tests.server.conftest import EndLog
from tests.server.target import Target
from tests.server.test_hostile import raw
from tests.server.test_session_clock import Peer, started
from tests.server.viewer import Viewer

Join = Callable[..., Viewer]


@pytest.mark.trio
async def test_of_too_many_that_do_not_greet_the_oldest_goes(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery, ended: EndLog
) -> None:
    session = await started(nursery, Target(), SessionOptions(max_pending=3))
    member = Peer(session, nursery)
    await member.greet()  # counts no more
    silent = []
    for _ in range(3):
        silent.append(Peer(session, nursery))
        await trio.testing.wait_all_tasks_blocked()  # in this order
    assert not any(one.gone.is_set() for one in silent)
    newcomer = Peer(session, nursery)
    await trio.testing.wait_all_tasks_blocked()
    assert [one.gone.is_set() for one in silent] == [True, False, False]
    await newcomer.greet()
    await member.send(m.Ping(number=5))
    await member.next(m.Pong)
    # A client that greeted left a place: none has to go for the next one.
    Peer(session, nursery)
    await trio.testing.wait_all_tasks_blocked()
    assert [one.gone.is_set() for one in silent] == [True, False, False]
    assert "sent no greeting; 3 later clients are waiting" in ended.abnormal()[0]
    nursery.cancel_scope.cancel()


@pytest.mark.trio
async def test_a_thousand_that_do_not_greet_keep_nobody_out(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    session = await started(nursery, Target())
    crowd = [Peer(session, nursery) for _ in range(1000)]
    await trio.testing.wait_all_tasks_blocked()
    assert sum(not one.gone.is_set() for one in crowd) == SessionOptions().max_pending == 128
    newcomer = Peer(session, nursery)
    before = trio.current_time()
    await newcomer.greet()
    assert trio.current_time() == before
    nursery.cancel_scope.cancel()


_SERVER = """
import logging, os, resource, sys
from tests.server.target import START, Target
logging.basicConfig(stream=sys.stdout, format="log: %(message)s", level=logging.WARNING)
target = Target()
with target.server.serve(sys.argv[1]):
    print("serving", flush=True)
    for line in sys.stdin:
        if line == "limit\\n":
            most = max(int(name) for name in os.listdir("/proc/self/fd"))
            resource.setrlimit(resource.RLIMIT_NOFILE, (most + 6, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        else:
            target.event(START)
        print("done", flush=True)
"""


class ServerProcess:
    """A server in a separate process, which obeys lines of commands."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.log: list[str] = []

    def do(self, what: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(what + "\n")
        self._process.stdin.flush()
        self.wait_for("done")

    def wait_for(self, answer: str) -> None:
        assert self._process.stdout is not None
        while (line := self._process.stdout.readline()) != answer + "\n":
            assert line, "the server ended"
            self.log.append(line)

    def end(self) -> int:
        """Let it end; its exit code."""
        rest, _ = self._process.communicate(timeout=60)
        self.log += rest.splitlines()
        return self._process.returncode


@contextmanager
def server_process(address: str) -> Iterator[ServerProcess]:
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER, address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as process:
        server = ServerProcess(process)
        try:
            server.wait_for("serving")
            yield server
        finally:
            process.kill()


def greeting_answered(sock: socket.socket) -> m.Message:
    """Greet; the first messages to a newcomer."""
    sock.settimeout(60)
    connection = Connection(Role.CLIENT)
    sock.sendall(connection.preamble() + connection.send(m.Hello(client="newcomer")))
    while (message := connection.next_message()) is None:
        data = sock.recv(65536)
        assert data, "closed without a word"
        connection.receive_data(data)
    return message


def is_turned_away(sock: socket.socket) -> bool:
    answer = greeting_answered(sock)
    if isinstance(answer, m.Welcome):
        return False
    assert isinstance(answer, m.Error)
    assert (answer.code, answer.fatal) == (ErrorCode.BUSY, True)
    assert "no file descriptor left" in answer.message
    return True


def test_without_a_file_descriptor_newcomers_are_told_and_the_others_notice_nothing(
    socket_directory: Path, join: Join
) -> None:
    address = f"unix:{socket_directory}/s.sock"
    with server_process(address) as server:
        witness = join(address)
        server.do("event")
        witness.event()
        server.do("limit")
        with ExitStack() as stack:
            let_in = 0
            while not is_turned_away(stack.enter_context(raw(address))):
                let_in += 1
                assert let_in < 20, "the limit is beyond twenty"
            assert let_in > 0
            for _ in range(5):
                assert is_turned_away(stack.enter_context(raw(address)))
            server.do("event")
            witness.event()
            witness.sync()
        witness.until(lambda: len(witness.state.clients.clients) == 1)
        connect(address).close()
        witness.link.close()
        assert server.end() == 0
    told = [line for line in server.log if "new connections are refused" in line]
    assert len(told) == 1, server.log
