"""Stops all threads of another process for a moment, so that the data is of one moment.

Each thread is attached to as by a debugger (PTRACE_SEIZE) and interrupted. When all are stopped and
no new one has appeared meanwhile, the body of the ``with`` runs; then each is released. Nothing
stays in the target: no signal is sent (never SIGSTOP, which would outlive us), and no option is set
that would end the target with us. The kernel releases every attached thread when our attaching
thread ends, in whatever way. The hold has two limits: how long threads may take to stop, and how
long they are held. After the latter they continue, and the hold reports that.

Each hold has a thread of ours, since only the attaching thread may detach, and the kernel watches
for its end.

A process can have only one tracer: if a debugger is attached we are refused. If the target is our
own child, nothing else in this process may wait for it during a hold.

Knows threads; does not know what is read meanwhile. Source: ptrace(2), "Attaching and detaching",
"Group-stop"; wait(2), __WALL.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from gcspy_protocol.errors import NotPermitted, TargetError

from gcspy_drivers.remote.process import Process, permission_remedy

__all__ = ["Hold", "held"]

STOP_SECS: Final = 0.5
"""How long threads may take to stop: one in an uninterruptible system call does not."""

_SEIZE, _INTERRUPT, _DETACH = 0x4206, 0x4207, 17
_EVENT_STOP = 128
_WALL, _NOT_OTHERS = 0x40000000, 0x20000000
_POLL_SECS = 0.0002
_REAP_SECS = 0.02
_ENDS: Final = (os.CLD_EXITED, os.CLD_KILLED, os.CLD_DUMPED)
_ROUNDS = 100  # rounds of searching for threads that appeared while the others were stopped

_VISITED: Final[set[int]] = set()
"""Processes that we hold: each can have one tracer."""

_LEFT: Final = threading.Condition()
"""A requested copy, and the sampling in stopped mode, wait for each other with it."""

_LIBC = ctypes.CDLL(None, use_errno=True)
_PTRACE = _LIBC.ptrace
_PTRACE.restype = ctypes.c_long
_PTRACE.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


class Hold:
    """A hold, during and after it.

    Attributes:
        threads: How many threads were held.
        nanos: How long the target was stopped, from the first thread's stop to the last one's
            release; 0 during the hold.
        expired: Whether the threads were released before the reader was done.
    """

    def __init__(self, process: Process, longest_secs: float) -> None:
        self.threads = 0
        self.nanos = 0
        self.expired = False
        self._process = process
        self._longest_secs = longest_secs
        self._ready = threading.Event()
        self._release = threading.Event()
        self._error: TargetError | None = None
        # Thread, and the signal that was about to be delivered to it: delivered when it is
        # released.
        self._stopped: dict[int, int] = {}
        self._known: set[int] = set()
        self._began_nanos = 0
        self._thread = threading.Thread(target=self._run, name="gcspy hold", daemon=True)

    def _start(self) -> None:
        self._thread.start()
        while not self._ready.wait(_REAP_SECS):
            self._reap()
        if self._error is not None:
            self._thread.join()
            raise self._error

    def _end(self) -> None:
        self._release.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._stop_all()
            self.threads = len(self._stopped)
            self._ready.set()
            self.expired = not self._release.wait(self._longest_secs)
        except TargetError as error:
            self._error = error
        finally:
            self._let_go()
            # A thread that was attached to and never stopped is released by the end of this one.
            if self._began_nanos:
                self.nanos = time.monotonic_ns() - self._began_nanos
            self._ready.set()

    def _stop_all(self) -> None:
        """Stop threads until none is running: only a running one can start another."""
        give_up = time.monotonic() + STOP_SECS
        known = self._known
        for _ in range(_ROUNDS):
            new = [tid for tid in self._process.thread_ids() if tid not in known]
            if not new:
                if not self._stopped:
                    raise self._process.gone()
                self._process.check()  # what it has executed meanwhile has threads under numbers that are known
                return
            for tid in new:
                known.add(tid)
                self._seize(tid)
            waiting = set(new)
            while waiting:
                waiting = {tid for tid in waiting if not self._is_still(tid)}
                if waiting and time.monotonic() > give_up:
                    raise TargetError(
                        f"process {self._process.pid} could not be stopped: {len(waiting)} of its {len(known)} threads "
                        f"(thread {min(waiting)}) did not stop within {STOP_SECS} s"
                    )
                if waiting:
                    time.sleep(_POLL_SECS)
        raise TargetError(
            f"process {self._process.pid} could not be stopped: it starts threads faster than they can be stopped"
        )

    def _seize(self, tid: int) -> None:
        for request in (_SEIZE, _INTERRUPT):
            ctypes.set_errno(0)
            if _PTRACE(request, tid, None, None) == 0:
                continue
            number = ctypes.get_errno()
            if number == errno.ESRCH or self._has_ended(tid):
                return
            self._refuse(number)

    def _refuse(self, number: int) -> None:
        process = self._process
        process.check()
        tracer = _field(process, f"task/{process.pid}/status", "TracerPid")
        if tracer not in ("", "0"):
            raise NotPermitted(
                f"process {process.pid} cannot be stopped: {_owner_of(tracer)} is attached to it as a debugger",
                remedy="end the debugger, or do not stop the process: --mode passive",
            )
        if number in (errno.EPERM, errno.EACCES):
            raise NotPermitted(
                f"no permission to stop process {process.pid}",
                remedy=permission_remedy(process.pid),
            )
        raise TargetError(
            f"process {process.pid} could not be stopped: {os.strerror(number)} (errno {number}); do not stop it: --mode passive"
        )

    def _has_ended(self, tid: int) -> bool:
        """Whether a thread is gone, or only waits for others: the first one of a process can end before them."""
        return _field(self._process, f"task/{tid}/status", "State")[:1] in ("", "Z", "X")

    def _is_still(self, tid: int) -> bool:
        """Whether a thread is stopped, or has ended."""
        try:
            found, status = os.waitpid(tid, os.WNOHANG | _WALL | _NOT_OTHERS)
        except ChildProcessError:
            return True
        if not found:
            # One that ended before the attachment is never reported.
            return self._has_ended(tid)
        if os.WIFSTOPPED(status):
            about_to_deliver = status >> 16 != _EVENT_STOP
            self._stopped[tid] = os.WSTOPSIG(status) if about_to_deliver else 0
            self._began_nanos = self._began_nanos or time.monotonic_ns()
            if self._stopped[tid] == signal.SIGTRAP:
                self._stopped[tid] = 0
        return True

    def _reap(self) -> None:
        """Reap threads that have ended, from any thread of ours.

        A thread of the target that executes another program kills the others and waits until their
        tracer has seen that; and it prevents us from attaching to any meanwhile, so neither would
        continue.
        """
        for tid in tuple(self._known):
            # The first thread is not waited for; if the target is a child of ours, other code must
            # see its end.
            if tid == self._process.pid:
                continue
            with suppress(ChildProcessError):
                # The kernel reports stops of traced threads whatever is asked for, and only once:
                # they belong to the other thread.
                found = os.waitid(os.P_PID, tid, os.WEXITED | os.WNOHANG | os.WNOWAIT | _WALL)
                if found is not None and found.si_code in _ENDS:
                    os.waitid(os.P_PID, tid, os.WEXITED | os.WNOHANG | _WALL)

    def _let_go(self) -> None:
        for tid, number in self._stopped.items():
            _PTRACE(_DETACH, tid, None, ctypes.c_void_p(number))


def _field(process: Process, file: str, name: str) -> str:
    """Return a field of a status file; empty if it is missing."""
    try:
        text = process.read_file(file).decode("ascii", "replace")
    except TargetError:
        return ""
    for line in text.splitlines():
        if line.startswith(name + ":"):
            return line.partition(":")[2].strip()
    return ""


def _owner_of(thread: str) -> str:
    """Name the process of a thread."""
    try:
        with open(f"/proc/{thread}/status", encoding="ascii", errors="replace") as file:
            found = [line.split()[1] for line in file if line.startswith("Tgid:")]
    except OSError:
        found = []
    return f"process {found[0]}" if found else f"thread {thread}"


@contextmanager
def held(process: Process, *, longest_secs: float) -> Iterator[Hold]:
    """Hold all threads of a process for the body of the ``with``.

    Args:
        process: The process.
        longest_secs: They continue after this time, whether the body is done or not; `Hold.expired`
            reports it.

    Raises:
        NotPermitted: The system does not let us, or a debugger is attached already.
        TargetGone: The process has ended.
        TargetError: Not all threads stopped in time; they were released.
    """
    hold = Hold(process, longest_secs)
    with _only_visitor(process.pid, longest_secs):
        hold._start()
        try:
            yield hold
        finally:
            hold._end()


@contextmanager
def _only_visitor(pid: int, most_secs: float) -> Iterator[None]:
    """Wait until we do not hold a process elsewhere, up to a limit; then the system reports who does."""
    with _LEFT:
        alone = _LEFT.wait_for(lambda: pid not in _VISITED, timeout=most_secs)
        _VISITED.add(pid)
    try:
        yield
    finally:
        if alone:
            with _LEFT:
                _VISITED.discard(pid)
                _LEFT.notify_all()
