"""A script that a CPython 3.14 or later is asked to run: it runs, or the request is withdrawn; and an interpreter with remote debugging disabled is left alone."""

from __future__ import annotations

import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from gcspy_drivers.cpython.collector.interpreters import Interpreter
from gcspy_drivers.cpython.cooperation.injection import _answered, bring_in
from gcspy_drivers.cpython.cooperation.remote_exec import RemoteScript
from gcspy_drivers.cpython.cooperative_driver import CooperativeDriver
from gcspy_drivers.cpython.driver import CPythonDriver
from gcspy_drivers.cpython.layouts import debug_offsets, layout_for
from gcspy_drivers.cpython.layouts.debug_offsets import DebuggerSupport
from gcspy_drivers.cpython.target import Target
from gcspy_drivers.remote.address import Addr
from gcspy_drivers.remote.handover import Handover
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.memory_writer import write
from gcspy_drivers.remote.process import Process
from gcspy_protocol.errors import TargetError, Unsupported

from gcspy_server.api import AttachOptions, Event, Mode
from tests.drivers.targets import find_python
from tests.waiting import wait_until

# Left to itself it never checks for requests; and at its end it prints the state it was left with.
BUSY = """
import gc, json, os, sys, threading
def open_files():
    count = 0
    for fd in range(64):
        try: os.fstat(fd)
        except OSError: continue
        count += 1
    return count
fds = open_files()
print(1, flush=True)
asked = []
threading.Thread(target=lambda: asked.append(sys.stdin.readline()), daemon=True).start()
kept = []
while not asked:
    kept.append({})
    if len(kept) > 5000: kept = []
gc.collect()
print(json.dumps([open_files() - fds, len(gc.callbacks)]), flush=True)
sys.stdin.readline()
"""

READING = "import sys; print(1, flush=True); sys.stdin.readline(); print(2, flush=True); sys.stdin.readline()"


@pytest.fixture(params=["3.14", "3.15"])
def asked_python(request: pytest.FixtureRequest) -> str:
    found = find_python(request.param)
    if found is None:
        pytest.skip(
            f"no Python {request.param} on PATH or in ~/.pyenv/versions: asking it to run a script is not tested here"
        )
    return found


@contextmanager
def running(python: str, source: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [python, "-I", "-W", "error", *options, "-c", source],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "1\n"
            yield process
        finally:
            process.kill()
            process.communicate()


def say(process: subprocess.Popen[str]) -> str:
    """Give it a line, and return its next one."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("go on\n")
    process.stdin.flush()
    return process.stdout.readline()


def wait_blocked(process: subprocess.Popen[str]) -> None:
    """Wait until it sleeps: after its first line it still has some way to the next."""
    wait_until(lambda: "State:\tS" in Path(f"/proc/{process.pid}/status").read_text())


def files_of_ctypes(python: str) -> int:
    """Return how many files a Python has open for having imported ctypes: with libffi 3.8 that of libffi itself."""
    count = "len(os.listdir('/proc/self/fd'))"
    source = f"import os; before = {count}; import ctypes; print({count} - before)"
    return int(subprocess.run([python, "-I", "-c", source], capture_output=True, check=True).stdout)


def folders(pid: int) -> list[str]:
    return [path.name for path in Path(f"/proc/{pid}/root", "tmp").glob("gcspy-" + "[0-9a-f]" * 16)]


def test_a_busy_program_takes_the_stub_in_and_gives_it_back(asked_python: str) -> None:
    with running(asked_python, BUSY) as process:
        events: list[Event] = []
        driver = CPythonDriver.attach(process.pid, AttachOptions(values={"inject": "remote-exec"}))
        assert isinstance(driver, CooperativeDriver)
        assert folders(process.pid) == []
        server = driver.describe().server()
        server.add_observer(events.append)
        driver.open(server)
        while len(events) < 4:
            driver.wait(1.0)
        driver.close()
        assert say(process) == f"[{files_of_ctypes(asked_python)}, 0]\n"
        process.kill()
        assert process.stderr is not None
        assert process.stderr.read() == ""


EIGHT_THREADS = """
import sys, threading, time
def work():
    kept = []
    while True:
        kept.append({})
        if len(kept) > 5000: kept = []
sys.setswitchinterval(1e-6)
print(1, flush=True)
for _ in range(8): threading.Thread(target=work, daemon=True).start()
while True: time.sleep(0.01)
"""


def test_eight_threads_change_nothing_while_it_is_held(asked_python: str) -> None:
    read: list[list[list[int]]] = []
    with running(asked_python, EIGHT_THREADS) as process:
        driver = CPythonDriver.attach(process.pid, AttachOptions(values={"inject": "remote-exec"}))
        assert isinstance(driver, CooperativeDriver)
        server = driver.describe().server()

        def look(_event: Event) -> None:
            found = driver._target.interpreters()
            assert found is not None
            looks = [driver._target.heaps(found) for _ in range(2)]
            read.append(
                [
                    [part for heap in one for part in heap.reading.pools.blocks_used.tolist()]
                    for one in looks
                ]
            )

        server.add_observer(look)
        driver.open(server)
        while len(read) < 12:
            driver.wait(1.0)
        driver.close()
    assert sum(first != again for first, again in read) == 0
    assert len({tuple(first) for first, _ in read}) > 1, "between the holds it runs"


def test_one_that_is_blocked_is_left_as_it_was(asked_python: str) -> None:
    with running(asked_python, READING) as process, Target(process.pid) as target:
        wait_blocked(process)
        with pytest.raises(TargetError, match="is blocked"):
            bring_in(target, "auto", secs=0.5)
        assert folders(process.pid) == []
        RemoteScript(target)  # nothing waits there: that would be refused
        assert say(process) == "2\n"
        process.kill()
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_one_that_was_told_not_to_is_not_asked_and_can_be_watched_from_outside(
    asked_python: str,
) -> None:
    with running(asked_python, READING, "-X", "disable-remote-debug") as process:
        with pytest.raises(Unsupported, match="-X disable-remote-debug"):
            CPythonDriver.attach(process.pid, AttachOptions(values={"inject": "remote-exec"}))
        driver = CPythonDriver.attach(process.pid, AttachOptions(values={"inject": "auto"}))
        assert driver.describe().mode is Mode.PASSIVE
        assert driver.describe().general_info.startswith(
            "No exact events: remote debugging is disabled there"
        )
        driver.close()


def test_a_script_of_another_tool_is_not_overwritten(asked_python: str) -> None:
    with running(asked_python, READING) as process, Target(process.pid) as target:
        wait_blocked(process)
        first = RemoteScript(target)
        first.ask("/nowhere")
        with pytest.raises(TargetError, match="the script of another tool is pending"):
            RemoteScript(target)
        assert first.take_back()
        assert say(process) == "2\n"


def test_an_older_one_is_watched_from_outside_and_it_says_what_else_there_is(
    own_python: str,
) -> None:
    with running(own_python, READING) as process:
        with pytest.raises(Unsupported, match="--inject gdb"):
            CPythonDriver.attach(process.pid, AttachOptions(values={"inject": "remote-exec"}))
        driver = CPythonDriver.attach(process.pid, AttachOptions(values={"inject": "auto"}))
        assert driver.describe().mode is Mode.PASSIVE
        driver.close()


@pytest.mark.parametrize("version", [(3, 14), (3, 15)])
def test_a_table_that_contradicts_itself_is_refused_before_anything_is_written(
    version: tuple[int, int],
) -> None:
    layout = layout_for(version)
    table = bytearray(debug_offsets.TABLE_BYTES)
    numbers = [16, 32, 48, 0, 4, 512]
    at = layout.debug_support_at

    def support() -> debug_offsets.DebuggerSupport | None:
        table[at : at + 48] = b"".join(number.to_bytes(8, "little") for number in numbers)
        return debug_offsets.debugger_support(layout, bytes(table))

    found = support()
    assert found is not None
    assert (found.support + found.path, found.path_bytes) == (36, 512)
    for place, number in (
        (0, 1 << 40),
        (1, 1 << 21),
        (2, layout.interpreter_bytes),
        (4, 1 << 63),
        (5, 0),
        (5, 1 << 20),
    ):
        kept, numbers[place] = numbers[place], number
        with pytest.raises(TargetError, match="contradicts itself"):
            support()
        numbers[place] = kept


# Lays out what a 3.14 has, and has it stay there.
LAID_OUT = """
import ctypes, sys
room = ctypes.create_string_buffer(1024)
print(1, flush=True)
print(ctypes.addressof(room), flush=True)
sys.stdin.readline()
"""
SUPPORT = DebuggerSupport(
    threads_main=0, enabled=8, eval_breaker=0, support=16, pending_call=0, path=4, path_bytes=64
)


class LaidOut(Target):
    """A process of an older version, in whose memory stands what a script of a newer one needs.

    An interpreter of 16 bytes, whose main thread is behind it: what stops its loop, the flag, the path.
    """

    def __init__(self, pid: int, room: int) -> None:
        super().__init__(pid)
        self.room = room
        write(
            self.process, Addr(room), struct.pack("<QiiQQi64s", room + 16, 1, 0, 0x101, 0, 0, b"")
        )

    def debugger_support(self) -> DebuggerSupport | None:
        """Return where it stands."""
        return SUPPORT

    def interpreters(self) -> tuple[Interpreter, ...] | None:
        """Return the one that was laid out."""
        return (Interpreter(ident=0, address=Addr(self.room)),)

    def look(self) -> tuple[int, int, bytes]:
        """Return what stops the loop, the flag, and the path with what is behind it."""
        data = Memory(self.process).read(Addr(self.room + 16), 16 + 4 + 64)
        stops, _, flag, path = struct.unpack("<QQi64s", data)
        return stops, flag, path


def test_what_is_written_is_the_path_the_flag_and_one_bit_and_goes_again(own_python: str) -> None:
    with running(own_python, LAID_OUT) as process:
        assert process.stdout is not None
        target = LaidOut(process.pid, int(process.stdout.readline()))
        with target:
            script = RemoteScript(target)
            assert target.look() == (0x101, 0, bytes(64)), "nothing is written before it is asked"
            assert not script.take_back()
            script.hurry()
            assert target.look() == (0x101, 0, bytes(64)), "who does not wait is not hurried"
            with pytest.raises(TargetError, match="63 bytes at most"):
                script.ask("/" + 63 * "x")
            assert target.look() == (0x101, 0, bytes(64))
            script.ask("/" + 62 * "x")
            assert target.look() == (0x101, 1, b"/" + 62 * b"x" + b"\0")
            with pytest.raises(
                TargetError, match=r"another tool is pending there \(pending call 1\)"
            ):
                RemoteScript(target)
            script.hurry()
            assert target.look()[:2] == (0x121, 1), "only the bit that asks it to look"
            assert script.take_back()
            assert target.look() == (0x121, 0, b"\0" + 62 * b"x" + b"\0")
            write(target.process, Addr(target.room + 8), bytes(4))
            with pytest.raises(Unsupported, match="remote debugging is disabled"):
                RemoteScript(target)
            write(target.process, Addr(target.room), struct.pack("<Qi", 0, 1))
            with pytest.raises(TargetError, match="no longer has a main thread"):
                RemoteScript(target)


def test_who_neither_comes_nor_says_why_is_waited_for_so_long_and_who_does_no_longer(
    own_python: str,
) -> None:
    with (
        running(own_python, READING) as process,
        Process(process.pid) as found,
        Handover(found) as folder,
    ):
        begun = time.monotonic()
        assert not _answered(folder, 0.2)
        assert time.monotonic() - begun >= 0.2
        assert not _answered(folder, -1.0)
        Path(folder.add("lines", b"")).with_name("error").write_text("no room")
        begun = time.monotonic()
        assert not _answered(folder, 600.0), "it said why not"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as caller:
            caller.connect(f"{folder.path}/socket")
            assert _answered(folder, 600.0)
            assert _answered(folder, 0.0), "who has come has come, however late it is"
        assert time.monotonic() - begun < 300.0


def test_the_folder_follows_no_link_and_goes_again(own_python: str) -> None:
    with running(own_python, READING) as process, Process(process.pid) as found:
        with Handover(found) as folder:
            path = Path(folder.add("one", b"text"))
            assert path.read_bytes() == b"text"
            assert path.parent.stat().st_mode & 0o777 == 0o700
            (path.parent / "link").symlink_to("/etc/hostname")
            assert folder.told("link") is None
            assert folder.told("none") is None
        assert not path.parent.exists()
