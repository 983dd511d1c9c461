"""Whether a thread of the target is at rest: it sleeps in the very call in which a stub waits.

A stub that has reported its event is not yet waiting: between two calls of the C library its
interpreter runs, which allocates, and on a busy machine the kernel may deschedule it there for a
tenth of a second. Data that is read then is not of one moment. The stub cannot report when it
sleeps; the kernel can. If the kernel does not show the call, it must be enough that the thread
sleeps.

Knows ``/proc`` and one system call's number; knows neither runtime nor packets.

Source: proc(5), ``/proc/PID/task/TID/syscall`` ("running" unless it is blocked), ``stat``; poll(2); restart_syscall(2), which is
what a poll becomes that was interrupted by a stop and goes on.
"""

from __future__ import annotations

from typing import Final

from gcspy_protocol.errors import TargetError

from gcspy_drivers.remote.process import Process

__all__ = ["Rest"]

_POLL: Final = (b"7", b"219")  # x86-64: poll, restart_syscall


class Rest:
    """Looks at threads of one process.

    Args:
        process: The target.
        address: The first argument of the poll in which its stub waits, which no other call has.
    """

    def __init__(self, process: Process, address: int) -> None:
        self._process = process
        self._first_argument = b"%#x" % address
        self._shown = True
        self._nested = len(self._numbers("status")) > 1
        self._threads: dict[int, int] = {}

    def reached_by(self, thread: int) -> bool:
        """Return whether a thread sleeps in its stub's poll.

        Args:
            thread: Its id, as the target itself knows it.

        Raises:
            TargetGone: The target has ended.
        """
        if not self._nested:
            return self._sleeps(thread)
        if thread not in self._threads:
            self._threads = {
                self._numbers(f"task/{ours}/status")[-1]: ours
                for ours in self._process.thread_ids()
            }
        return self._sleeps(self._threads.get(thread, thread))

    def knows(self, thread: int) -> bool:
        """Tell whether the target has a thread of this id, as it knows it itself.

        Raises:
            TargetGone: The target has ended.
        """
        return thread in (self._threads if self._nested else self._process.thread_ids())

    def _sleeps(self, thread: int) -> bool:
        if self._shown:
            call = self._words(f"task/{thread}/syscall")
            if call:
                return len(call) > 2 and call[0] in _POLL and call[1] == self._first_argument
        state = self._words(f"task/{thread}/stat", after=b")")
        # A kernel that shows the thread and not its call never does; one whose thread has ended shows neither.
        self._shown = self._shown and not state
        return not self._shown and state[:1] == [b"S"]

    def _words(self, name: str, *, after: bytes = b"") -> list[bytes]:
        """Read one of the process's files; empty when there is none, or it is not for us."""
        try:
            text = self._process.read_file(name)
        except TargetError:
            self._process.check()
            return []
        return text.rpartition(after)[2].split() if after else text.split()

    def _numbers(self, name: str) -> list[int]:
        """Return the numbers that a process or thread has, ours first and its own last; 0 when it has ended."""
        words = self._words(name)
        if b"NSpid:" not in words:
            return [0]
        begin = words.index(b"NSpid:") + 1
        numbers = words[begin : begin + 32]  # namespaces nest no deeper
        end = next((at for at, word in enumerate(numbers) if not word.isdigit()), len(numbers))
        return [int(word) for word in numbers[:end]]
