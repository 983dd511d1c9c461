"""Makes a CPython 3.14 or later run a script by itself: the memory protocol behind ``sys.remote_exec``.

The runtime's table of offsets shows where a debugger writes the path of a script and a flag; the
main thread runs the script when it is next between two instructions. ``sys.remote_exec`` itself
requires a caller of the same minor version; the protocol does not.

A request can be withdrawn as long as the script has not begun. The flag alone is enough for a
program that collects: everything that interrupts the evaluation loop makes it check. Only a program
that does not check is interrupted, by a bit in a word that it also changes itself (signals);
CPython's own writer does the same, and as late as possible.

Knows the protocol; does not know the purpose of the script.

Source: PEP 768; CPython 3.14 Python/remote_debugging.c, send_exec_to_proc_handle; Python/ceval_gil.c, _PyRunRemoteDebugger;
pycore_debug_offsets.h, struct _debugger_support.
"""

from __future__ import annotations

from typing import Final

from gcspy_protocol.errors import TargetError, Unsupported

from gcspy_drivers.cpython.target import Target
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.memory_writer import write

__all__ = ["FIRST_VERSION", "RemoteScript"]

FIRST_VERSION: Final = (3, 14)

_PLEASE_STOP: Final = 1 << 5
_ON: Final = (1).to_bytes(4, "little")
_OFF: Final = bytes(4)


class RemoteScript:
    """A request to one process; nothing is written before `ask`.

    Args:
        target: The process.

    Raises:
        Unsupported: Its version has no such thing, or it was switched off.
        TargetError: It is ending, or another request is pending.
    """

    def __init__(self, target: Target) -> None:
        self._process = target.process
        self._memory = Memory(target.process)
        support = target.debugger_support()
        if support is None:
            raise Unsupported(
                "only newer versions of Python can run a script on request: start the program with `gcspy run`, let it call gcspy.listen(), "
                "or use --inject gdb",
                found="CPython " + ".".join(map(str, target.version)),
                known="CPython 3.14 or later",
            )
        main = next(iter(target.interpreters() or ()), None)
        if main is None:
            raise TargetError(
                f"process {self._process.pid} has no interpreter: it is starting or ending, try again"
            )
        if self._number(main.address + support.enabled, 4) != 1:
            raise Unsupported(
                "remote debugging is disabled there, by -X disable-remote-debug, PYTHON_DISABLE_REMOTE_DEBUG or the build: "
                "start the program with `gcspy run`, or let it call gcspy.listen()",
                found=f"process {self._process.pid}",
                known="a Python in which it is enabled",
            )
        thread = self._number(main.address + support.threads_main, 8)
        if not thread:
            raise TargetError(
                f"process {self._process.pid} no longer has a main thread: it is ending"
            )
        self._path_bytes = support.path_bytes
        self._flag = thread + support.support + support.pending_call
        self._path = thread + support.support + support.path
        self._breaker = thread + support.eval_breaker
        if self._number(self._flag, 4) != 0:
            raise TargetError(
                f"process {self._process.pid}: the script of another tool is pending there (pending call "
                f"{self._number(self._flag, 4)}): try again later"
            )

    def ask(self, path: str) -> None:
        """Have the script at a path run, which is the target's own; at its next collection at the latest.

        Raises:
            TargetError: The path is too long, or the target has ended.
        """
        data = path.encode() + b"\0"
        if len(data) > self._path_bytes:
            raise TargetError(
                f"the path {path} is too long for process {self._process.pid}: {self._path_bytes - 1} bytes at most"
            )
        write(self._process, self._path, data)
        write(self._process, self._flag, _ON)

    def hurry(self) -> None:
        """Make it check at once, and not when it next collects or switches threads."""
        if self.waits:
            # One byte: the bits that interrupt the loop are all in the lowest, the other bytes
            # belong to others.
            now = self._number(self._breaker, 1)
            write(self._process, self._breaker, bytes([now | _PLEASE_STOP]))

    @property
    def waits(self) -> bool:
        """Whether the script has not begun yet."""
        return self._number(self._flag, 4) == 1

    def take_back(self) -> bool:
        """Take the request back; False: too late, it has begun."""
        if not self.waits:
            return False
        write(self._process, self._flag, _OFF)
        write(self._process, self._path, b"\0")
        return True

    def _number(self, addr: int, size_bytes: int) -> int:
        return int.from_bytes(self._memory.read(addr, size_bytes), "little")
