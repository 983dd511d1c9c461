"""The library that shows jemalloc, in a Redis: its bytes are those that Redis says."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest
from gcspy_drivers.published.allocator_library import load_allocator_library
from gcspy_drivers.published.include_folder import include_folder
from gcspy_drivers.published.recognition import recognise
from gcspy_drivers.remote import Process
from gcspy_protocol.errors import Unsupported

from tests.drivers.published.programs import find_tool, started
from tests.drivers.published.session import watching
from tests.once import made_once
from tests.waiting import PATIENCE_SECS, wait_until


def library() -> Path:
    compiler = find_tool("cc", "gcc")
    source = str(include_folder() / "gcspy_jemalloc.c")

    def build(folder: Path) -> None:
        flags = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread")
        subprocess.run([compiler, *flags, source, "-o", str(folder / "shown.so")], check=True)

    return made_once("gcspy-jemalloc", build) / "shown.so"


def ask(path: Path, command: str) -> str:
    """Ask a Redis at a Unix socket."""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(PATIENCE_SECS)
        line.connect(str(path))
        line.sendall(f"{command}\r\n".encode())
        answer = line.recv(1 << 16)
        while answer.startswith(b"$") and b"\r\n" in answer:
            head, _, body = answer.partition(b"\r\n")
            if len(body) >= int(head[1:]):
                break
            answer += line.recv(1 << 16)
        return answer.decode()


def answers(path: Path) -> bool:
    """Return whether a Redis listens."""
    try:
        return "PONG" in ask(path, "PING")
    except OSError:
        return False


@pytest.mark.parametrize("loaded", ["when it starts", "while it runs"])
def test_the_bytes_of_all_arenas_are_those_that_redis_says(loaded: str) -> None:
    redis = shutil.which("redis-server")
    if redis is None:
        pytest.skip(
            "there is no redis-server (Debian: redis-server): no program with jemalloc is tested"
        )
    with tempfile.TemporaryDirectory(prefix="gcspy-test-") as folder:
        path = Path(folder, "redis.sock")
        options = ("--port", "0", "--unixsocket", str(path), "--save", "", "--dir", folder)
        preloaded = {"LD_PRELOAD": str(library())} if loaded == "when it starts" else {}
        program = subprocess.Popen([redis, *options], env=preloaded, stdout=subprocess.DEVNULL)
        try:
            wait_until(lambda: answers(path), "it listens")
            if "jemalloc" not in ask(path, "INFO memory"):
                pytest.skip("this redis-server is built without jemalloc")
            for number in range(200):
                ask(path, f"SET key{number} {'x' * number * 20}")
            if not preloaded:
                with Process(program.pid) as process:
                    load_allocator_library(process)
                    load_allocator_library(process)  # it is there already
            with watching(program.pid) as watch:

                def agrees() -> bool:
                    """Redis measures ten times a second, and allocates a little meanwhile."""
                    watch.driver.tick()
                    seen = watch.next_of(1)
                    arenas = sum(int(seen["Arenas", name].sum()) for name in ("Small", "Large"))
                    text = ask(path, "INFO memory").partition("allocator_allocated:")[2]
                    bins, room = seen["Bins", "Used"], seen["Bins", "Slabs' bytes"]
                    assert (bins <= room).all()
                    assert seen["Arenas", "Small"].sum() == bins.sum()
                    return abs(int(text.split()[0]) - arenas) < 64 << 10

                wait_until(agrees, "both say the same")
        finally:
            program.kill()
            program.wait()


def test_a_program_with_another_allocator_gets_no_library() -> None:
    with (
        Process(os.getpid()) as process,
        pytest.raises(Unsupported, match="there is no library for the allocator"),
    ):
        load_allocator_library(process)


def test_a_program_without_jemalloc_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", str(library()))
    true = find_tool("sleep")
    program = subprocess.Popen([true, "600"])
    try:
        wait_until(lambda: b"sleep" in Path(f"/proc/{program.pid}/comm").read_bytes(), "it runs")
        assert recognise(program.pid).runtime == ""
    finally:
        program.kill()
        program.wait()
    with started() as other:  # one that shows itself is not disturbed
        assert recognise(other.pid).supported
