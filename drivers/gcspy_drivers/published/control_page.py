"""`ControlPage`: the small shared memory through which gcspy tells a program what it wants, and waits for its events.

    program: sequence, the event at which it waits      gcspy: which events it wants, whether to wait, what it has answered

Holding the lock of the page means that somebody watches: the kernel releases it when we end,
however that happens, and a program that waits sees that within 50 ms. Only one gcspy at a time has
it. A thread shows the program that we are alive; one that waits goes on two seconds after the last
sign. Knows the page; does not know the segment or the server.

Source: `drivers/native/include/gcspy.h`, gcspy_control_page; fcntl(2) F_OFD_SETLK; futex(2).
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from gcspy_protocol.errors import TargetError

from gcspy_drivers.remote.files import reopen_sealed_memory
from gcspy_drivers.remote.maps import Maps
from gcspy_drivers.remote.process import Process

__all__ = ["PAGE_BYTES", "ControlPage"]

PAGE_BYTES: Final = 4096
"""Size of the page."""

_SEQUENCE, _WAITING = 4, 5
_READER, _ANSWERED, _HOLD, _NOT_BEFORE, _LIFE, _ASKED, _SLEEPING, _SPACES = range(16, 24)
_PERIODS_AT: Final = 192
_KINDS: Final = 32
_ALL_SPACES: Final = (1 << 64) - 1
_MOST_PERIOD: Final = (1 << 32) - 1

_SET_LOCK: Final = 37  # F_OFD_SETLK, which Python's fcntl has no name for
_LOCK: Final = struct.Struct("hh4xqqi4x")  # struct flock of 64-bit Linux
_SYS_FUTEX: Final = 202  # x86-64
_WAIT, _WAKE = 0, 1
_EVERYBODY: Final = 1 << 30
_LIFE_SECS: Final = 0.4
_NANOS: Final = 1_000_000_000


class _Timespec(ctypes.Structure):
    _fields_ = [("secs", ctypes.c_long), ("nanos", ctypes.c_long)]


class ControlPage:
    """The control page of one program. Used by one thread; a thread of its own shows that we are alive.

    Args:
        process: The program; borrowed.
        maps: Its mappings.
        row: The mapping of the page.
        may_hold: Called while an event is not answered yet, with the seconds since: whether the
            program may be held any longer.

    Raises:
        TargetError: Its descriptor is closed, it is not a page of ours, or another gcspy has it.
        NotPermitted: The system does not let us.
    """

    def __init__(
        self, process: Process, maps: Maps, row: int, may_hold: Callable[[float], bool]
    ) -> None:
        self._may_hold = may_hold
        self._held_since = 0.0
        self._closed = threading.Event()
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = _open(process, int(maps.inode[row]))
        try:
            self._lock(process)
            self._map = mmap.mmap(self._fd, PAGE_BYTES)
        except BaseException:
            os.close(self._fd)
            raise
        self._bytes = memoryview(self._map)
        self._words = self._bytes.cast("Q")
        self._periods = self._bytes[_PERIODS_AT : _PERIODS_AT + 4 * _KINDS].cast("I")
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self._words[_READER] = os.getpid()
        self._words[_SPACES] = _ALL_SPACES
        self._words[_LIFE] = time.monotonic_ns()
        # What a gcspy that was killed left unanswered does not matter any more.
        self.answer(self.sequence)
        self._life = threading.Thread(target=self._live, name="gcspy-life", daemon=True)
        self._life.start()

    @property
    def sequence(self) -> int:
        """Grows by two at each event that is written; odd while one is being written."""
        return self._words[_SEQUENCE]

    def waits_at(self, sequence: int) -> bool:
        """Whether the program waits for the answer to this event."""
        return self._words[_WAITING] == sequence

    def want(self, periods: Sequence[int], *, not_before_nanos: int, hold: bool) -> None:
        """Set which events are wanted.

        Args:
            periods: Every n-th of each kind; 0: none.
            not_before_nanos: None before this time.
            hold: Whether the program waits at each of them, if it can.
        """
        words = self._words
        words[_HOLD] = hold
        words[_NOT_BEFORE] = min(not_before_nanos, _ALL_SPACES)
        for kind, period in enumerate(periods):
            self._periods[kind] = min(period, _MOST_PERIOD)

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Have the program only count its events for the body of the `with`, so that what it wrote can be copied."""
        before = self._words[_NOT_BEFORE]
        self._words[_NOT_BEFORE] = _ALL_SPACES
        try:
            yield
        finally:
            self._words[_NOT_BEFORE] = before

    def want_spaces(self, mask: int) -> None:
        """Set which spaces are wanted, a bit each."""
        self._words[_SPACES] = mask & _ALL_SPACES

    def ask(self) -> None:
        """Ask a program without events of its own for data."""
        self._words[_ASKED] = (self._words[_ASKED] + 1) & _ALL_SPACES

    def hold_begins(self) -> None:
        """Note that the program waits from now on."""
        self._held_since = time.monotonic()

    def answer(self, sequence: int) -> None:
        """Let the program go on after an event; harmless if it has already."""
        self._held_since = 0.0
        self._words[_ANSWERED] = sequence
        self._futex(_ANSWERED, _WAKE, _EVERYBODY)

    def wait(self, sequence: int, secs: float) -> None:
        """Wait until the sequence is not this one any more, or the time is over, or for no reason."""
        words = self._words
        words[_SLEEPING] = 1
        try:
            if words[_SEQUENCE] == sequence:
                whole = int(secs)
                limit = _Timespec(whole, int((secs - whole) * _NANOS))
                self._futex(_SEQUENCE, _WAIT, sequence & 0xFFFFFFFF, ctypes.byref(limit))
        finally:
            words[_SLEEPING] = 0

    def close(self) -> None:
        """Want nothing, let the program go on, and release the page. May be called twice."""
        if self._closed.is_set():
            return
        self._closed.set()
        self._life.join()
        self.want([0] * _KINDS, not_before_nanos=0, hold=False)
        self.answer(self.sequence + 2)
        self._words[_READER] = 0
        self._words.release()
        self._periods.release()
        self._bytes.release()
        self._map.close()
        os.close(self._fd)

    def _live(self) -> None:
        """Show the program that we are alive, unless it has been held for too long."""
        while not self._closed.wait(_LIFE_SECS):
            since = self._held_since
            if not since or self._may_hold(time.monotonic() - since):
                self._words[_LIFE] = time.monotonic_ns()

    def _lock(self, process: Process) -> None:
        try:
            fcntl.fcntl(self._fd, _SET_LOCK, _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        except BlockingIOError:
            raise TargetError(
                f"process {process.pid} is watched by another gcspy: `gcspy view {process.pid}` joins that session, or end it"
            ) from None

    def _futex(self, word: int, what: int, value: int, limit: object = None) -> None:
        self._libc.syscall(
            ctypes.c_long(_SYS_FUTEX),
            ctypes.c_void_p(self._address + 8 * word),
            ctypes.c_long(what),
            ctypes.c_ulong(value),
            limit,
            None,
            ctypes.c_long(0),
        )


def _open(process: Process, inode: int) -> int:
    """Open the page by the descriptor that the program keeps."""
    folder = process.open_file("fd")
    try:
        numbers = os.listdir(folder)
    except OSError as error:
        process.refuse(error, f"/proc/{process.pid}/fd")
    finally:
        os.close(folder)
    for number in numbers:
        try:
            looked_at = process.follow(f"fd/{number}")
        except TargetError:  # closed meanwhile
            process.check()
            continue
        try:
            if os.fstat(looked_at).st_ino == inode:
                return reopen_sealed_memory(looked_at, PAGE_BYTES)
        except OSError as error:
            process.refuse(error, f"/proc/{process.pid}/fd/{number}")
        finally:
            os.close(looked_at)
    raise TargetError(
        f"process {process.pid} has closed the descriptor of its gcspy.h: keep it open, or call gcspy_open after closing all descriptors"
    )
