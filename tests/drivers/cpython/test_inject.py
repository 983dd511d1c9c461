"""A stub that gdb brings in: into a busy server, again and again, and never into one that does not come to it."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from gcspy_drivers.cpython.cooperative import GC_END, CooperativeDriver
from gcspy_drivers.cpython.driver import CPythonDriver
from gcspy_drivers.cpython.inject import bring_in
from gcspy_drivers.cpython.target import Target
from gcspy_protocol.errors import TargetError, Unsupported

from gcspy_server.api import AttachOptions, Event

pytestmark = pytest.mark.skipif(shutil.which("gdb") is None, reason="there is no gdb here: bringing a stub in is not tested")

# It answers each line at once, and collects now and then: a missed or mangled answer is a missed request.
SERVER = """
import gc, json, os, socket, sys
own = lambda phase, info: None
gc.callbacks.append(own)
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
connection, _ = listening.accept()
stream = connection.makefile("rw")
for number, line in enumerate(stream):
    for _ in range(300):
        loop = []
        loop.append(loop)
    answer = line.strip()
    if answer == "how":
        gc.collect()
        answer = json.dumps([len(os.listdir("/proc/self/fd")), gc.callbacks == [own], len(gc.get_objects())])
    stream.write(answer + "\\n")
    stream.flush()
"""

READING = "import sys; print(1, flush=True); sys.stdin.readline(); print(2, flush=True); sys.stdin.readline()"


@contextmanager
def running(python: str, source: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [python, "-I", "-W", "error", "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


class Client:
    """Asks the server, and wants each answer."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self._connection = socket.create_connection(("127.0.0.1", int(process.stdout.readline())))
        self._stream = self._connection.makefile("rw")
        self._asked = 0

    def ask(self, what: str = "") -> str:
        self._asked += 1
        self._stream.write((what or str(self._asked)) + "\n")
        self._stream.flush()
        answer = self._stream.readline().strip()
        assert what or answer == str(self._asked)
        return answer

    def close(self) -> None:
        self._stream.close()
        self._connection.close()


def attach_and_detach(process: subprocess.Popen[str], client: Client) -> None:
    found: list[CPythonDriver | BaseException] = []

    def attach() -> None:
        try:
            found.append(CPythonDriver.attach(process.pid, AttachOptions(inject="gdb")))
        except BaseException as error:  # noqa: BLE001  # shown by the test, in its own thread
            found.append(error)

    attaching = threading.Thread(target=attach)
    attaching.start()
    while attaching.is_alive():
        client.ask()
    (driver,) = found
    assert isinstance(driver, CooperativeDriver), driver
    events: list[Event] = []
    server = driver.describe().server()
    server.add_observer(events.append)
    driver.open(server)

    def serve() -> None:
        while not any(event.event == GC_END for event in events):
            driver.wait(1.0)
        driver.close()

    serving = threading.Thread(target=serve)
    serving.start()
    while serving.is_alive():
        client.ask()
    serving.join()


def again_and_again(python: str, times: int) -> None:
    with running(python, SERVER) as process:
        client = Client(process)
        attach_and_detach(process, client)  # the module of the stub stays
        client.ask("how")
        fds, own, objects = json.loads(client.ask("how"))
        assert own
        for _ in range(times):
            attach_and_detach(process, client)
            client.ask("how")
            now = json.loads(client.ask("how"))
            assert now[:2] == [fds, True]
        assert now[2] <= objects + 20, f"{now[2] - objects} more objects after {times} times"
        client.close()


def test_attaching_and_detaching_leaves_nothing_and_misses_no_request(python: str) -> None:
    again_and_again(python, 2)


@pytest.mark.soak
def test_attaching_and_detaching_two_hundred_times_leaves_nothing_and_misses_no_request(own_python: str) -> None:
    again_and_again(own_python, 200)


def test_a_target_that_is_blocked_in_reading_is_told_of_and_runs_on(python: str) -> None:
    with running(python, READING) as process, Target(process.pid) as target:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        with pytest.raises(TargetError, match="blocked somewhere"):
            bring_in(target, "gdb", secs=0.2)
        process.stdin.write("go on\n")
        process.stdin.flush()
        assert process.stdout.readline() == "2\n", "what it was left with does nothing"


def test_without_gdb_it_says_what_else_there_is(own_python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(own_python, READING) as process, Target(process.pid) as target:
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        monkeypatch.setenv("PATH", "")
        with pytest.raises(Unsupported, match="gdb is not installed"):
            bring_in(target, "gdb", secs=0.2)
