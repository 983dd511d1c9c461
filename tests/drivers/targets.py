"""Tiny target programs that print their own truth and then hold still, and the Pythons to run them with.

A target holds still by stopping itself right after it printed its truth: between the two nothing is
allocated or freed, so a reading from outside must be equal, not almost equal. The test learns of it
from ``waitpid``: a handshake, no sleep.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.15")
"""Versions that the driver reads; `find_python` finds one of each, if there is one."""

_TRUTH = struct.Struct("<3q3q9q")
_CLASS_LINE = re.compile(r"^ *(\d+) +(\d+) +(\d+) +(\d+) +(\d+)$", re.M)
_ARENAS_LINE = re.compile(r"^# arenas allocated current += +([\d,]+)$", re.M)
_UNUSED_LINE = re.compile(r"^([\d,]+) unused pools", re.M)
_SYMBOLS = re.compile(rb"\bmaxarenas\b")

# `tell` keeps everything that it made until it is stopped, and makes nothing after the call of
# gc.get_count: its tuple comes from the interpreter's free list, which the calls before have
# filled. Writing returns numbers below 257, which exist already.
TELL = """
import gc, os, signal, struct, sys
_pack = struct.Struct("<3q3q9q").pack_into
_room = bytearray(struct.calcsize("<3q3q9q"))
_write, _kill, _pid, _stop = os.write, os.kill, os.getpid(), int(signal.SIGSTOP)
def tell():
    stats = gc.get_stats()
    t0, t1, t2 = gc.get_threshold()
    s = [g[key] for g in stats for key in ("collections", "collected", "uncollectable")]
    u0, u1, u2, u3, u4, u5, u6, u7, u8 = s
    for _ in range(8):
        gc.get_count()
    count = gc.get_count()
    c0, c1, c2 = count
    _pack(_room, 0, c0, c1, c2, t0, t1, t2, u0, u1, u2, u3, u4, u5, u6, u7, u8)
    _write(1, _room)
    sys._debugmallocstats()
    _kill(_pid, _stop)
"""


# Counts by generation and type, by what makes no object that the collector tracks: the state that is counted is the one it stops in.
# The first rounds are for what is made only once.
TELL_OBJECTS = """
_counts = {}
def tell_objects():
    gc.disable()
    for _ in range(3):
        text = ""
        for generation in range(3):
            counts = _counts
            counts.clear()
            objects = gc.get_objects(generation)
            for one in objects:
                name = type(one).__name__
                counts[name] = counts.get(name, 0) + 1
            one = objects = None
            for name in counts:
                text += str(generation) + " " + name + " " + str(counts[name]) + chr(10)
    _write(2, text.encode())
    _kill(_pid, _stop)
"""


@dataclass(frozen=True)
class Truth:
    """A target's report of itself, just before it stopped.

    Attributes:
        count: ``gc.get_count()``.
        threshold: ``gc.get_threshold()``.
        stats: Collections, collected and uncollectable of each generation.
        classes: By size class: pools, blocks in use, available blocks.
        arenas: Arenas allocated; None when pymalloc said nothing.
        unused_pools: Pools without a block in use, carved or not.
    """

    count: tuple[int, ...]
    threshold: tuple[int, ...]
    stats: tuple[tuple[int, ...], ...]
    classes: dict[int, tuple[int, int, int]]
    arenas: int | None
    unused_pools: int | None


class StillTarget:
    """A running target program.

    Args:
        python: The interpreter.
        source: Its program; `TELL` comes before it.
        env: Environment variables on top of ours.
    """

    def __init__(self, python: str, source: str, env: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [python, "-I" if env is None else "-s", "-c", TELL + TELL_OBJECTS + source],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
        )
        self.pid = self.process.pid

    def wait_still(self) -> Truth:
        """Wait until it has printed its truth and holds still."""
        self._wait_stopped()
        return parse_truth(self._pending(1), self._pending(2).decode())

    def wait_objects(self) -> list[dict[str, int]]:
        """Wait until it has printed its objects and holds still: how many of each type, by generation."""
        self._wait_stopped()
        found: list[dict[str, int]] = [{}, {}, {}]
        for line in self._pending(2).decode().splitlines():
            generation, name, count = line.split(" ")
            found[int(generation)][name] = int(count)
        return found

    def _wait_stopped(self) -> None:
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            self.process.returncode = os.waitstatus_to_exitcode(status)
            raise AssertionError(
                f"the target ended instead of holding still: {self._pending(2).decode()[-2000:]}"
            )

    def go_on(self) -> None:
        """Let it run until it prints its truth again, or ends."""
        os.kill(self.pid, signal.SIGCONT)

    def read_line(self) -> str:
        """Read a line that it printed; waits for it."""
        if self.process.stdout is None:
            raise AssertionError("stdout is a pipe")
        return self.process.stdout.readline().decode().strip()

    def say(self, line: str) -> None:
        """Give it a line to read."""
        if self.process.stdin is None:
            raise AssertionError("stdin is a pipe")
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def end(self) -> None:
        """End it, also when it is stopped, and wait until it is gone. May be called twice."""
        if self.process.returncode is None:
            self.process.kill()
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None and not pipe.closed:
                pipe.close()

    def _pending(self, number: int) -> bytes:
        """Read what it wrote until it stopped: all of that is in the pipe now, and a pipe holds 64 KiB."""
        pipe = self.process.stdout if number == 1 else self.process.stderr
        if pipe is None:
            raise AssertionError("output is a pipe")
        os.set_blocking(pipe.fileno(), False)
        try:
            return os.read(pipe.fileno(), 1 << 17)
        except BlockingIOError:
            return b""
        finally:
            os.set_blocking(pipe.fileno(), True)


def parse_truth(numbers: bytes, text: str) -> Truth:
    """Read the output of `TELL` and ``sys._debugmallocstats``."""
    found = _TRUTH.unpack(numbers[-_TRUTH.size :])
    arenas, unused = _ARENAS_LINE.search(text), _UNUSED_LINE.search(text)
    return Truth(
        count=found[0:3],
        threshold=found[3:6],
        stats=(found[6:9], found[9:12], found[12:15]),
        classes={
            int(line[1]): (int(line[3]), int(line[4]), int(line[5]))
            for line in _CLASS_LINE.finditer(text)
        },
        arenas=None if arenas is None else int(arenas[1].replace(",", "")),
        unused_pools=None if unused is None else int(unused[1].replace(",", "")),
    )


def find_python(version: str) -> str | None:
    """Find an interpreter of a version such as ``3.12``: ours, one on the path, or one of pyenv's."""
    if version == ".".join(map(str, sys.version_info[:2])):
        return os.path.realpath(sys.executable)
    ours = sorted(Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python{version}"))
    if ours:
        return str(ours[-1])
    return shutil.which(f"python{version}")


def find_stripped_python() -> str | None:
    """Find a 3.11 whose variables have no names, such as a distribution's."""
    for candidate in ("/usr/bin/python3.11", shutil.which("python3.11")):
        if candidate is not None and Path(candidate).exists():
            path = Path(candidate).resolve()
            data = path.read_bytes()
            if len(data) > 1 << 20 and not _SYMBOLS.search(data):
                return str(path)
    return None


_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.process_vm_writev.restype = ctypes.c_ssize_t


def write_memory(pid: int, addr: int, data: bytes) -> None:
    """Write into a target that holds still: to damage what the driver reads. Only tests do that."""
    ours = (ctypes.c_char * len(data)).from_buffer_copy(data)
    local = (ctypes.c_size_t * 2)(ctypes.addressof(ours), len(data))
    remote = (ctypes.c_size_t * 2)(addr, len(data))
    written = _LIBC.process_vm_writev(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
    if written != len(data):
        raise OSError(ctypes.get_errno(), f"could not write {len(data)} bytes at {addr:#x}")
