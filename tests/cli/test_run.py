"""`gcspy run` and `gcspy.listen()`: real programs, held by real clients, and released whatever happens to the sidecar."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.model import ControlState, EventFilter, Mode, PauseActsOn

from gcspy.connection.link import connect
from tests.cli.conftest import Run
from tests.server.viewer import Viewer

PROGRAM = Path(__file__).with_name("exact_program.py")
CLOCK, GC_START, GC_END = 0, 1, 2


@dataclass
class Counting:
    """A running `exact_program`.

    Attributes:
        pid: The program itself.
        process: The started process: the program, or the gcspy that runs it.
        address: Where its session is joined.
    """

    pid: int
    process: subprocess.Popen[str]
    address: str
    _file: Path

    def counters(self) -> npt.NDArray[np.uint64]:
        return np.fromfile(self._file, dtype=np.uint64, count=8)

    def until_all_run(self) -> None:
        """Wait until each of its threads has counted on."""
        before = self.counters()
        while not (self.counters() > before).all():
            assert self.process.poll() is None

    def stands_still(self, secs: float) -> bool:
        """Check for this long that nothing counts."""
        before, until = self.counters(), time.monotonic() + secs
        while time.monotonic() < until:
            if (self.counters() != before).any():
                return False
        return True

    def callbacks(self) -> int:
        """How many callbacks of the collector it has."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("callbacks\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def sidecar(self) -> int:
        """The process that serves it."""
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(self.address.removeprefix("unix:"))
            size = struct.calcsize("3i")
            pid, _, _ = struct.unpack(
                "3i", probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
            )
        return int(pid)


@contextmanager
def counting(tmp_path: Path, *, listens: bool) -> Iterator[Counting]:
    shared = tmp_path / "counters"
    shared.write_bytes(bytes(4096))
    program = [str(PROGRAM), str(shared)]
    command = (
        [sys.executable, *program, "listen"]
        if listens
        else [
            sys.executable,
            "-m",
            "gcspy",
            "run",
            "--no-window",
            "--longest-hold",
            "0",
            "--clock",
            "5",
            *program,
        ]
    )
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            lines: list[object] = []
            while not lines:
                line = process.stdout.readline()
                if line.startswith("["):
                    lines = json.loads(line)
            pid = int(str(lines[0]))
            yield Counting(
                pid, process, f"unix:{os.environ['XDG_RUNTIME_DIR']}/gcspy/{pid}.sock", shared
            )
        finally:
            process.stdin.close()  # ends the program, and with it the rest
            process.wait()


@pytest.fixture(autouse=True)
def _own_runtime_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


@contextmanager
def watched(target: Counting) -> Iterator[Viewer]:
    viewer = Viewer(connect(target.address, client="test", wants_control=True))
    try:
        yield viewer
    finally:
        viewer.link.close()


def pause(viewer: Viewer) -> None:
    viewer.send(m.Pause())
    viewer.wait_state(ControlState.PAUSED)


@pytest.mark.parametrize("listens", [False, True])
def test_pause_and_step_stop_the_program_and_resume_lets_it_run(
    tmp_path: Path, listens: bool
) -> None:
    with counting(tmp_path, listens=listens) as target, watched(target) as viewer:
        welcome = viewer.link.welcome
        assert (welcome.mode, welcome.pause_acts_on) == (Mode.COOPERATIVE, PauseActsOn.PROGRAM)
        pause(viewer)
        assert target.stands_still(0.5)
        last = viewer.changes[-1].event
        assert last.event in (GC_START, GC_END), "it can be stopped at collections only"
        for _ in range(4):
            viewer.send(m.Step())
            viewer.wait_state(ControlState.PAUSING)
            viewer.wait_state(ControlState.PAUSED)
            event = viewer.changes[-1].event
            assert event.sequence == last.sequence + 1, "one step is one event"
            assert event.event != CLOCK
            last = event
        assert target.stands_still(0.2)
        viewer.send(m.Resume())
        target.until_all_run()


def test_a_filter_delays_and_pauses_the_program(tmp_path: Path) -> None:
    with counting(tmp_path, listens=True) as target, watched(target) as viewer:
        viewer.send(
            m.SetFilters(
                filters=(
                    EventFilter(event=GC_END, pause=True, period=3),
                    EventFilter(event=GC_START, enabled=False),
                )
            )
        )
        viewer.wait_state(ControlState.PAUSED)
        event = viewer.changes[-1].event
        assert (event.event, event.occurrence % 3) == (GC_END, 0)
        assert event.cause.startswith("generation ")
        assert target.stands_still(0.2)


@pytest.mark.parametrize("listens", [False, True])
@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL], ids=["stopped", "killed"])
def test_a_paused_program_goes_on_without_its_sidecar_and_the_stub_goes_quiet(
    tmp_path: Path, number: signal.Signals, listens: bool
) -> None:
    with counting(tmp_path, listens=listens) as target, watched(target) as viewer:
        pause(viewer)
        sidecar = target.sidecar()
        try:
            os.kill(sidecar, number)
            _until(lambda: not target.stands_still(0.05))
            if number == signal.SIGKILL and listens:
                _until(lambda: target.callbacks() == 0)
            if number == signal.SIGSTOP:
                target.until_all_run()
                os.kill(sidecar, signal.SIGCONT)
                viewer.wait_state(ControlState.RUNNING)
                assert viewer.seen(m.State)[-1].reason.startswith("the program continued")
                pause(viewer)  # and it can be held again
                assert target.stands_still(0.2)
        finally:
            if number == signal.SIGSTOP:
                os.kill(sidecar, signal.SIGCONT)
            if not listens:
                os.kill(target.pid, signal.SIGKILL)


def _until(done: Callable[[], bool]) -> None:
    while not done():
        pass


def test_a_client_that_leaves_while_it_is_paused_lets_it_run(tmp_path: Path) -> None:
    with counting(tmp_path, listens=True) as target:
        with watched(target) as viewer:
            pause(viewer)
        target.until_all_run()
        assert target.callbacks() == 1


def test_a_program_that_is_killed_while_it_is_paused_ends_and_the_session_says_so(
    tmp_path: Path,
) -> None:
    with counting(tmp_path, listens=False) as target, watched(target) as viewer:
        pause(viewer)
        os.kill(target.pid, signal.SIGKILL)
        viewer.wait_state(ControlState.ENDED)


def test_the_program_finds_the_world_as_python_makes_it(gcspy: Run, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, gc\nprint([__name__, sys.argv[1:], sys.path[0], __file__])\nraise SystemExit(5)\n"
    )
    done = gcspy("run", "--no-window", str(script), "-m", "--flag", "x")
    assert done.returncode == 5, done.stderr
    assert str(["__main__", ["-m", "--flag", "x"], str(tmp_path), str(script)]) in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["-c", "import sys; print(sys.argv)", "a"], 0, "['-c', 'a']"),
        (["-m", "json.tool", "--help"], 0, "usage:"),
        (["-c", "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"], 143, ""),
        (["no such script.py"], 2, ""),
        (["-m", "-c", "x"], 2, ""),
    ],
)
def test_modules_code_and_exit_codes(
    gcspy: Run, arguments: list[str], code: int, expected: str
) -> None:
    done = gcspy("run", "--no-window", *arguments)
    assert (done.returncode, expected in done.stdout) == (code, True), done.stdout + done.stderr


def test_a_program_that_cannot_be_watched_is_not_begun(gcspy: Run, tmp_path: Path) -> None:
    done = gcspy("run", "--no-window", "--listen", "tcp:192.0.2.1:1", "-c", "print('begun')")
    assert done.returncode != 0
    assert "begun" not in done.stdout


def test_it_waits_for_a_first_client_where_it_is_told_to(tmp_path: Path) -> None:
    program = ["-c", "import gc; gc.collect(); gc.collect()"]
    command = [
        sys.executable,
        "-m",
        "gcspy",
        "run",
        "--no-window",
        "--wait",
        "--budget",
        "off",
        "--clock",
        "0.01",  # while a tick reads, collections are only counted for a client that may miss some
        *program,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        viewer = Viewer(connect(address, client="test"))
        viewer.wait_state(ControlState.ENDED)
        ends = [one.event.occurrence for one in viewer.changes if one.event.event == GC_END]
        assert ends[:2] == [1, 2], "none was missed"
        viewer.link.close()
        assert process.wait() == 0


LISTENING = """
import gc, json, os, sys
import gcspy
import gcspy.hosts.listener as door
let_read, allowed = door.let_read, []
def noted(pid):
    allowed.append(pid)
    let_read(pid)
door.let_read = noted
own = lambda phase, info: None
gc.callbacks.append(own)
fds = sorted(os.listdir("/proc/self/fd"))
for _ in range(int(sys.argv[1])):
    with gcspy.listen() as listening:
        gc.collect()
        assert listening.connected
        with open(f"/proc/{allowed[-1]}/cmdline") as file:
            assert "gcspy.hosts.sidecar" in file.read(), "it alone may read us, where a kernel asks"
    gc.collect()
    assert gc.callbacks == [own]
try:
    os.waitpid(-1, os.WNOHANG)
    children = True
except ChildProcessError:
    children = False
heavy = [name for name in ("numpy", "trio", "msgpack", "typing_extensions") if name in sys.modules]
print(json.dumps([fds == sorted(os.listdir("/proc/self/fd")), children, heavy]))
"""


def listen_again_and_again(times: int) -> None:
    command = [sys.executable, "-W", "error", "-c", LISTENING, str(times)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [True, False, []], done.stderr


def test_listening_leaves_nothing_in_the_program() -> None:
    listen_again_and_again(3)


@pytest.mark.soak
def test_listening_two_hundred_times_leaves_nothing_in_the_program() -> None:
    listen_again_and_again(200)


@pytest.mark.soak
def test_a_pause_of_five_minutes_holds_and_then_a_stopped_sidecar_does_not(tmp_path: Path) -> None:
    with counting(tmp_path, listens=True) as target, watched(target) as viewer:
        pause(viewer)
        before, until = target.counters(), time.monotonic() + 300
        while time.monotonic() < until:
            assert target.stands_still(1.0)
            viewer.sync()
        assert (target.counters() == before).all()
        sidecar = target.sidecar()
        os.kill(sidecar, signal.SIGSTOP)
        try:
            target.until_all_run()
        finally:
            os.kill(sidecar, signal.SIGCONT)
