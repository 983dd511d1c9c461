"""A program with the Boehm collector, at work: attached to again and again, and its readers killed, it goes on; a still moment is read right."""

from __future__ import annotations

import os
import random
import signal
import threading
import time

import pytest
from gcspy_drivers.boehm.collector import Collector
from gcspy_drivers.remote.process import Process
from gcspy_protocol.errors import TargetError

from tests.drivers.boehm.programs import BoehmProgram, started

pytestmark = pytest.mark.soak

ATTACHINGS = int(os.environ.get("GCSPY_ATTACHINGS", "1000"))
KILLS = int(os.environ.get("GCSPY_NATIVE_KILLS", "200"))
COMMANDS = ("keep 400", "free 300", "collect", "keep 50", "unmap")
STILL_EVERY = 20


class Work:
    """Commands for a program, one after the other, in a thread.

    Args:
        program: The program.
        seed: What the commands follow from.
    """

    def __init__(self, program: BoehmProgram, seed: int) -> None:
        self._program, self._dice = program, random.Random(seed)
        self.lock = threading.Lock()
        self.done = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.is_set():
            with self.lock:
                self._program.do(self._dice.choice(COMMANDS))
                self.done += 1
            time.sleep(0.0005)  # the lock is for others as well

    def end(self) -> None:
        """End it, after the command at hand."""
        self._ended.set()
        self._thread.join()


def read(pid: int) -> tuple[int, int, bool]:
    """Attach, and read the bytes of all blocks, the size of the heap, and whether it is whole."""
    with Process(pid) as process:
        collector = Collector(process)
        size = collector.heap_bytes()
        table = collector.blocks(marks=True)
        seen = int(table.span_bytes[~table.overlaps].sum())
        return seen, size, seen == size and not table.unknown


def kill_a_reader(pid: int, dice: random.Random) -> None:
    """Let a child process read the program, and kill it at some moment."""
    child = os.fork()
    if not child:
        try:
            while True:
                read(pid)
        except BaseException:  # noqa: BLE001  # a child of the test ends, whatever happened to it
            os._exit(0)
    time.sleep(dice.random() * 0.06)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_a_program_at_work_goes_on() -> None:
    seed = int(os.environ.get("GCSPY_SEED", "1"))
    dice = random.Random(seed)
    whole = torn = refused = 0
    with started() as program:
        for _ in range(KILLS):
            kill_a_reader(program.pid, dice)  # before there is a thread: this process forks
            program.do("keep 5")
        work = Work(program, seed)
        began = time.thread_time()
        for number in range(ATTACHINGS):
            try:
                if number % STILL_EVERY:
                    *_, is_whole = read(program.pid)
                    whole, torn = whole + is_whole, torn + (not is_whole)
                    continue
                with work.lock:
                    seen, size, is_whole = read(program.pid)
                    assert is_whole
                    assert seen == size == program.do("nothing").heap_bytes
            except TargetError:
                refused += 1  # its variables contradicted each other
        cpu = time.thread_time() - began
        work.end()
        assert work.done
        program.do("collect")
    assert refused <= ATTACHINGS // 20
    print(
        f"{ATTACHINGS} attachings ({whole} whole, {torn} torn, {refused} refused; {-(-ATTACHINGS // STILL_EVERY)} still, all right), "
        f"{cpu / ATTACHINGS * 1e3:.1f} ms of processor each, {work.done:,} commands done, {KILLS} readers killed"
    )
