"""All threads of a target stand still during a hold and continue after it, whatever happens to us."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from gcspy_drivers.remote import process_hold
from gcspy_drivers.remote.process import Process
from gcspy_drivers.remote.process_hold import held
from gcspy_protocol.errors import NotPermitted, TargetError, TargetGone

from tests.waiting import PATIENCE_SECS, wait_until

# Eight threads that count, in a file that we map too, and a ninth that starts and ends short ones all the time.
COUNTING = """
import mmap, struct, sys, threading, time
with open(sys.argv[1], "r+b") as file:
    room = mmap.mmap(file.fileno(), 4096)
def count(number):
    value = 0
    while True:
        value += 1
        struct.pack_into("<q", room, 8 * number, value)
def short():
    value = 0
    while True:
        thread = threading.Thread(target=lambda: None); thread.start(); thread.join()
        value += 1
        struct.pack_into("<q", room, 64, value)
sys.setswitchinterval(0.0005)
for number in range(8):
    threading.Thread(target=count, args=(number,), daemon=True).start()
threading.Thread(target=short, daemon=True).start()
sys.stdin.read()
"""

Counters = npt.NDArray[np.int64]


def advances(counters: Counters) -> None:
    before = counters.copy()
    wait_until(lambda: bool((counters > before).all()), "that each thread goes on")


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give threads long to stand still: the machine that runs this may be busy."""
    monkeypatch.setattr(process_hold, "STOP_SECS", 30.0)


@pytest.fixture(scope="module")
def counting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Counters]]:
    """Return the process id of a program with nine threads that count, and their counters."""
    path = Path(tmp_path_factory.mktemp("counting") / "counters")
    path.write_bytes(bytes(4096))
    counters: Counters = np.memmap(path, dtype=np.int64, mode="r+")[:9]
    with subprocess.Popen(
        [sys.executable, "-c", COUNTING, str(path)], stdin=subprocess.PIPE
    ) as process:
        try:
            advances(counters)
            yield process.pid, counters
        finally:
            process.kill()


def test_no_thread_advances_during_a_hold_and_all_do_after_it(
    counting: tuple[int, Counters],
) -> None:
    pid, counters = counting
    with Process(pid) as process:
        for _ in range(20):
            with held(process, longest_secs=60) as hold:
                assert hold.threads >= 10
                before = counters.copy()
                # As long as several turns of the target's threads.
                time.sleep(0.01)
                assert np.array_equal(before, counters)
            assert not hold.expired
            assert hold.nanos >= 10_000_000
        advances(counters)


def test_a_hold_that_takes_too_long_is_over_and_says_so(counting: tuple[int, Counters]) -> None:
    pid, counters = counting
    with Process(pid) as process, held(process, longest_secs=0.02) as hold:
        advances(counters)
    assert hold.expired


def test_an_error_in_the_body_lets_go(counting: tuple[int, Counters]) -> None:
    pid, counters = counting
    with Process(pid) as process, pytest.raises(ZeroDivisionError), held(process, longest_secs=60):
        _ = 1 // 0
    advances(counters)


def test_killed_while_it_holds_it_leaves_the_target_running(counting: tuple[int, Counters]) -> None:
    pid, counters = counting
    program = (
        "import sys, time\n"
        "from gcspy_drivers.remote.process import Process\n"
        "from gcspy_drivers.remote.process_hold import held\n"
        f"with held(Process({pid}), longest_secs=600):\n"
        "    print('held', flush=True); time.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            before = counters.copy()
            # A second tracer learns who holds it.
            with (
                Process(pid) as process,
                pytest.raises(NotPermitted, match=f"process {holder.pid} is attached"),
                held(process, longest_secs=60),
            ):
                pass
            assert np.array_equal(before, counters)
        finally:
            holder.kill()
    advances(counters)


def test_a_stopped_target_is_held_and_stays_stopped(counting: tuple[int, Counters]) -> None:
    pid, counters = counting
    os.kill(pid, signal.SIGSTOP)
    try:
        with Process(pid) as process:
            wait_until(lambda: process.stat().state == "T", "that the target stops")
            for _ in range(3):
                with held(process, longest_secs=60) as hold:
                    assert hold.threads >= 10
                wait_until(lambda: process.stat().state == "T", "that the target is stopped again")
            before = counters.copy()
            time.sleep(0.01)
            assert np.array_equal(before, counters)
    finally:
        os.kill(pid, signal.SIGCONT)
    advances(counters)


def test_signals_that_come_during_a_hold_are_delivered_after_it(tmp_path: Path) -> None:
    program = (
        "import signal, sys\n"
        "seen = []\n"
        "signal.signal(signal.SIGUSR1, lambda *_: (seen.append(1), print(len(seen), flush=True)))\n"
        "print('ready', flush=True)\n"
        "while True: signal.pause()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            with Process(child.pid) as process:
                for number in range(1, 21):
                    if number % 2:
                        with held(process, longest_secs=60):
                            os.kill(child.pid, signal.SIGUSR1)
                    else:
                        # About to be delivered when it is attached to.
                        os.kill(child.pid, signal.SIGUSR1)
                        with held(process, longest_secs=60):
                            pass
                    assert child.stdout.readline() == f"{number}\n"
        finally:
            child.kill()


def test_a_target_that_has_ended_is_gone_and_one_that_ends_meanwhile_is_no_trouble() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = Process(child.pid)
    try:
        with held(process, longest_secs=60):
            child.kill()
        child.wait()
        with pytest.raises(TargetGone), held(process, longest_secs=60):
            pass
    finally:
        process.close()
        child.communicate()


def test_the_others_are_held_where_the_first_thread_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "counters"
    path.write_bytes(bytes(4096))
    counters: Counters = np.memmap(path, dtype=np.int64, mode="r+")[:9]
    ending = COUNTING + "import ctypes; ctypes.CDLL(None).pthread_exit(None)"
    with subprocess.Popen(
        [sys.executable, "-c", ending, str(path)], stdin=subprocess.PIPE
    ) as child:
        try:
            assert child.stdin is not None
            with Process(child.pid) as process:
                advances(counters)
                child.stdin.close()
                wait_until(
                    lambda: process.read_file("stat").split()[2] == b"Z", "that the first ends"
                )
                with held(process, longest_secs=60) as hold:
                    assert hold.threads >= 9
                    before = counters.copy()
                    time.sleep(0.01)
                    assert np.array_equal(before, counters)
                advances(counters)
        finally:
            child.kill()


def test_threads_that_do_not_stand_still_are_let_go(
    counting: tuple[int, Counters], monkeypatch: pytest.MonkeyPatch
) -> None:
    pid, counters = counting
    monkeypatch.setattr(process_hold, "STOP_SECS", 0.0)
    monkeypatch.setattr(process_hold.Hold, "_is_still", lambda *_: False)
    with (
        Process(pid) as process,
        pytest.raises(TargetError, match="did not stop within"),
        held(process, longest_secs=60),
    ):
        pass
    advances(counters)
    assert not [thread for thread in threading.enumerate() if thread.name == "gcspy hold"]


# One thread starts children, each of which ends with a different exit code; the others count. With
# "exec", a thread that is not the first executes the program again, again and again.
FORKING = """
import mmap, os, struct, sys, threading, time
with open(sys.argv[1], "r+b") as file:
    room = mmap.mmap(file.fileno(), 4096)
def add(number):
    value, = struct.unpack_from("<q", room, 8 * number)
    struct.pack_into("<q", room, 8 * number, value + 1)
def count():
    while True:
        add(0)
        time.sleep(0)
def fork():
    while True:
        child = os.fork()
        if child == 0:
            add(2)
            os._exit(7)
        _, status = os.waitpid(child, 0)
        add(1 if os.waitstatus_to_exitcode(status) == 7 else 3)
def execute():
    add(1)
    time.sleep(0.01)
    os.execv(sys.executable, [sys.executable, "-I", "-S", "-c", SOURCE, *sys.argv[1:]])
SOURCE = os.environ["SOURCE"]
threading.Thread(target=count, daemon=True).start()
threading.Thread(target=count, daemon=True).start()
threading.Thread(target=fork if sys.argv[2] == "fork" else execute, daemon=True).start()
while True:
    time.sleep(1)
"""


def forking(path: Path, how: str) -> subprocess.Popen[bytes]:
    path.write_bytes(bytes(4096))
    command = [sys.executable, "-I", "-S", "-c", FORKING, str(path), how]
    return subprocess.Popen(command, env={**os.environ, "SOURCE": FORKING})


def test_a_target_that_starts_children_while_it_is_held_goes_on_and_so_do_they(
    tmp_path: Path,
) -> None:
    path = tmp_path / "counters"
    with forking(path, "fork") as program:
        try:
            counters: Counters = np.memmap(path, dtype=np.int64, mode="r+")[:4]
            advances(counters[:3])
            with Process(program.pid) as process:
                for _ in range(30):
                    with held(process, longest_secs=30):
                        began = counters.copy()
                        assert (counters[:2] == began[:2]).all()
                    wait_until(
                        partial(child_ended, counters, began), "a child that ends as it should"
                    )
            advances(counters[:3])
            assert counters[3] == 0, "no child was killed, or left standing still"
        finally:
            program.kill()


def test_a_target_that_executes_itself_while_it_is_held_goes_on_and_is_another_one(
    tmp_path: Path,
) -> None:
    path = tmp_path / "counters"
    with forking(path, "exec") as program:
        try:
            counters: Counters = np.memmap(path, dtype=np.int64, mode="r+")[:2]
            advances(counters)
            noticed = 0
            for _ in range(15):
                with Process(program.pid) as process:
                    executed = counters[1]
                    while counters[1] < executed + 2:
                        try:
                            with held(process, longest_secs=30):
                                pass
                            process.check()
                        except TargetError:
                            break
                    with pytest.raises(TargetGone, match="executed another program"):
                        until_executed(process)
                    noticed += 1
            assert noticed == 15
            advances(counters)
        finally:
            program.kill()


def child_ended(counters: Counters, before: Counters) -> bool:
    return bool(counters[1] > before[1])


def until_executed(process: Process) -> None:
    give_up = time.monotonic() + PATIENCE_SECS
    while time.monotonic() < give_up:
        process.check()
        time.sleep(0.001)


class LateEvent(threading.Event):
    """The setting thread continues a little later than the waiting one."""

    def set(self) -> None:
        super().set()
        time.sleep(0.2)


def test_a_hold_that_failed_has_let_all_go_when_it_says_so() -> None:
    """A target that was attached and never stood still is released by the end of the attaching thread."""
    command = [sys.executable, "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as child, Process(child.pid) as process:
        child.kill()
        child.wait()
        hold = process_hold.Hold(process, 60)
        hold._ready = LateEvent()
        with pytest.raises(TargetGone):
            hold._start()
        assert not hold._thread.is_alive()


def test_how_a_child_of_ours_ended_is_left_for_who_started_it() -> None:
    command = [sys.executable, "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as child, Process(child.pid) as process:
        hold = process_hold.Hold(process, 60)
        hold._known = {child.pid}
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        hold._reap()
        assert child.wait() == -signal.SIGKILL
