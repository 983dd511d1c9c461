"""A busy server to attach to, its client, and what can be seen of it from outside."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from gcspy_drivers.cpython.cooperation.gdb_call import OLD_GDB
from gcspy_protocol.errors import TargetError

# It answers each line at once, and collects now and then: a missed or mangled answer is a missed request.
SERVER = """
import gc, json, socket, sys
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
        answer = json.dumps([gc.callbacks == [own], sorted(sys.modules), len(gc.get_objects())])
    stream.write(answer + "\\n")
    stream.flush()
"""


@contextmanager
def skipped_with_old_gdb() -> Iterator[None]:
    """Skip the test if gdb can load nothing into any process of this machine."""
    try:
        yield
    except TargetError as error:
        if OLD_GDB not in str(error):
            raise
        pytest.skip(OLD_GDB)


@contextmanager
def running(python: str, source: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program; it is killed at the end."""
    with subprocess.Popen(
        [python, "-I", "-W", "error", "-c", source],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


class Client:
    """Asks the server, and wants each answer.

    Attributes:
        asked: How often it has.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self._connection = socket.create_connection(("127.0.0.1", int(process.stdout.readline())))
        self._stream = self._connection.makefile("rw")
        self.asked = 0

    def ask(self, what: str = "") -> str:
        """Ask once; what comes back must be this request's answer."""
        self.asked += 1
        self._stream.write((what or str(self.asked)) + "\n")
        self._stream.flush()
        answer = self._stream.readline().strip()
        assert what or answer == str(self.asked)
        return answer

    def close(self) -> None:
        """Hang up."""
        self._stream.close()
        self._connection.close()


@dataclass(frozen=True)
class Residue:
    """State of a server that an observer might have changed.

    Attributes:
        fds: Descriptors.
        threads: Threads.
        mappings: Lines of its maps that are shared or of a file: pages that were brought in would be one more.
        own_callbacks: Whether its callbacks of the collector are its own only.
        modules: Its imported modules.
        objects: Number of objects that its collector tracks.
        rss_kib: Resident memory, KiB.
        files: Files in its /tmp with our name, ours or left by others.
    """

    fds: int
    threads: int
    mappings: int
    own_callbacks: bool
    modules: tuple[str, ...]
    objects: int
    rss_kib: int
    files: frozenset[str]


def residue(process: subprocess.Popen[str], client: Client) -> Residue:
    """Query the server, and inspect it from outside."""
    client.ask("how")
    own, modules, objects = json.loads(client.ask("how"))
    folder = Path(f"/proc/{process.pid}")
    status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    maps = [line.split() for line in (folder / "maps").read_text().splitlines()]
    return Residue(
        fds=len(os.listdir(folder / "fd")),
        threads=int(status["Threads"]),
        mappings=sum(
            1
            for words in maps
            if words[1].endswith("s") or (len(words) > 5 and words[5].startswith("/"))
        ),
        own_callbacks=own,
        modules=tuple(modules),
        objects=objects,
        rss_kib=int(status["VmRSS"].split()[0]),
        files=files_of(process),
    )


def files_of(process: subprocess.Popen[str]) -> frozenset[str]:
    """Return the names of the files in its /tmp with our name."""
    folder = Path(f"/proc/{process.pid}", "root", "tmp")
    return frozenset(path.name for path in folder.glob("gcspy-" + "[0-9a-f]" * 16))
