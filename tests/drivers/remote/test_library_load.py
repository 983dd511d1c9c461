"""A library is loaded into a running program, whose thread goes on with all its registers; where that could wait for ever it is refused."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from gcspy_drivers.remote import Process, shared_library_load
from gcspy_drivers.remote.shared_library_load import load_library
from gcspy_protocol.errors import TargetError

from tests.drivers.published.programs import find_tool
from tests.once import made_once
from tests.waiting import wait_until

READ, POLL, NANOSLEEP, EPOLL, EPOLL_OR_INTERRUPTED = range(5)
KILLS = int(os.environ.get("GCSPY_NATIVE_KILLS", "200"))

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="only x86-64 is supported")


def built() -> Path:
    """Return the folder with the program and a library."""
    compiler = find_tool("cc", "gcc")

    def build(folder: Path) -> None:
        target = str(Path(__file__).with_name("library_load_target.c"))
        strict = ("-O1", "-Wall", "-Wextra", "-Werror", "-pthread")
        subprocess.run([compiler, *strict, target, "-o", str(folder / "target")], check=True)
        library = folder / "library.c"
        library.write_text("int gcspy_loaded_for_a_test;\n")
        flags = ("-shared", "-fPIC", "-o", str(folder / "library.so"))
        subprocess.run([compiler, *flags, str(library)], check=True)

    return made_once("gcspy-library-load", build)


class Target:
    """A running program."""

    def __init__(self, way: int) -> None:
        self._process = subprocess.Popen(
            [built() / "target", str(way)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = self._process.pid
        self.ask()

    def ask(self) -> tuple[int, int]:
        """Return how many calls came back, and how many with wrong registers."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("x")
        self._process.stdin.flush()
        words = self._process.stdout.readline().split()
        assert words, f"the program has ended: {self._process.poll()}"
        return int(words[0]), int(words[1])

    def has(self, library: Path) -> bool:
        return str(library) in Path(f"/proc/{self.pid}/maps").read_text()

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextmanager
def running(way: int) -> Iterator[Target]:
    target = Target(way)
    try:
        yield target
    finally:
        target.end()


@pytest.mark.parametrize("way", [READ, POLL, NANOSLEEP, EPOLL])
def test_the_thread_goes_on_with_all_its_registers(way: int) -> None:
    library = built() / "library.so"
    with running(way) as target, Process(target.pid) as process:
        load_library(process, str(library))
        assert target.has(library)
        before, _ = target.ask()

        def goes_on() -> bool:
            calls, wrong = target.ask()
            assert not wrong
            return calls > before + 3

        wait_until(goes_on, "it goes on")


def test_a_thread_in_the_handler_of_a_signal_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_library_load, "_TRY_SECS", 0.3)
    library = built() / "library.so"
    with running(EPOLL) as target, Process(target.pid) as process:
        main = Path(f"/proc/{target.pid}/task/{target.pid}/syscall")
        target.signal(signal.SIGUSR1)  # it may have interrupted malloc
        wait_until(lambda: main.read_text().startswith("34 "), "it waits in the handler")
        with pytest.raises(TargetError, match="certainly in no allocator"):
            load_library(process, str(library))
        assert not target.has(library)


def test_a_library_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with running(READ) as target, Process(target.pid) as process:
        with pytest.raises(TargetError, match="did not load"):
            load_library(process, str(tmp_path / "none.so"), secs=0.3)
        assert target.ask()[1] == 0


@pytest.mark.soak
def test_whoever_loads_is_killed_and_the_program_goes_on() -> None:
    dice = random.Random(int(os.environ.get("GCSPY_SEED", "1")))
    library = built() / "library.so"
    loaded = 0
    for number in range(KILLS):
        with running(dice.choice([POLL, NANOSLEEP, EPOLL_OR_INTERRUPTED])) as target:
            child = os.fork()
            if not child:
                try:
                    with Process(target.pid) as process:
                        load_library(process, str(library))
                finally:
                    os._exit(0)
            time.sleep(dice.random() * 0.12)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            before, _ = target.ask()

            def goes_on(target: Target = target, before: int = before) -> bool:
                calls, wrong = target.ask()
                assert not wrong
                return calls > before + 3

            wait_until(goes_on, f"it goes on after kill {number}")
            loaded += target.has(library)
            status = Path(f"/proc/{target.pid}/status").read_text()
            assert "TracerPid:\t0" in status
    print(f"{KILLS} killed while they loaded, {loaded} libraries loaded")
    assert 0 < loaded < KILLS
