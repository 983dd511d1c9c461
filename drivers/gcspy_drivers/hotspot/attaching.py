"""The attach protocol of HotSpot: what ``jcmd`` speaks, here in Python, for one process.

    no socket there? ──.attach_pidN, SIGQUIT──▶ the JVM makes /tmp/.java_pidN and listens
    "1" command argument argument argument, each with a zero byte ──▶
                                              ◀── a line with a code, then text, then the end

SIGQUIT ends a process that has no handler for it, and makes a JVM that may not be attached to write all of its stacks to its own output. So it
is sent only to one that handles it and is known to listen. Older JVMs answer nobody but their own user, so the one thread that connects becomes
that user for the moment; no other thread of ours does.

Nothing here waits without a bound: a JVM in a long pause answers after it.

Knows files of the process and its socket; knows no heap, and no command.

Source: OpenJDK src/hotspot/os/posix/attachListener_posix.cpp (linux/attachListener_linux.cpp until 20), src/jdk.attach/linux/classes/sun/tools/attach/VirtualMachineImpl.java;
credentials(7): the kernel has credentials by thread.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from gcspy_protocol.errors import NotPermitted, TargetError

from gcspy_drivers.remote.process import Process

__all__ = ["AttachListener"]

_VERSION: Final = b"1"
_ARGUMENTS: Final = 3
_MOST_ANSWER_BYTES: Final = 1 << 20
_LOOK_SECS: Final = 0.005
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_SETRESUID, _SETRESGID = (
    117,
    119,
)  # x86-64; the system calls, and not libc's functions, which change all threads
_KEEP: Final = -1


@dataclass(frozen=True)
class _Status:
    """What ``/proc/PID/status`` says that matters here."""

    uid: int
    gid: int
    own_pid: int
    handles_sigquit: bool


class AttachListener:
    """The listener of one JVM; nothing is sent to it before `ask`.

    Args:
        process: The target; borrowed.
    """

    def __init__(self, process: Process) -> None:
        self._process = process

    def why_not(self) -> str:
        """Say why the JVM cannot be asked anything now, with the remedy; empty if it can. Cheap, and sends nothing.

        Raises:
            TargetGone: It has ended.
        """
        status = self._status()
        if status.uid != os.geteuid() and os.geteuid() != 0:
            return f"it belongs to uid {status.uid}, and a JVM answers only its own user and root: `sudo gcspy attach {self._process.pid}`"
        if status.handles_sigquit or self._listens(status):
            return ""
        return "it does not handle SIGQUIT, by which it is asked to listen: it is starting, or is no JVM: try again"

    def ask(self, command: str, *arguments: str, secs: float) -> str:
        """Ask the JVM to do something.

        Args:
            command: ``load``, ``jcmd`` …
            arguments: At most three.
            secs: How long to wait for it to listen, and to answer.

        Returns:
            What it answers behind its code.

        Raises:
            TargetGone: It has ended.
            NotPermitted: It belongs to somebody else.
            TargetError: It does not listen, does not answer in time, or answers that it failed.
        """
        deadline = time.monotonic() + secs
        why_not = self.why_not()
        if why_not:
            raise TargetError(
                f"process {self._process.pid} cannot be asked to do anything: {why_not}"
            )
        words = [command, *arguments, *[""] * (_ARGUMENTS - len(arguments))]
        request = b"\0".join([_VERSION, *(word.encode() for word in words), b""])
        with self._connected(deadline) as line:
            answer = self._exchange(line, request, deadline)
        code, _, text = answer.partition("\n")
        if code != "0":
            said = " ".join(text.split())[:400]
            raise TargetError(
                f"process {self._process.pid}: the JVM refused to {command}: {said or 'it did not say why'} (code {code[:20]})"
            )
        return text

    # ------------------------------------------------------------------ the line

    @contextmanager
    def _connected(self, deadline: float) -> Iterator[socket.socket]:
        status = self._status()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            line.settimeout(max(0.1, deadline - time.monotonic()))
            if not self._connect(line, status):
                self._wake(status, deadline)
                line.settimeout(max(0.1, deadline - time.monotonic()))
                if not self._connect(line, status):
                    self._process.check()
                    raise TargetError(
                        f"process {self._process.pid}: the JVM's socket is there, and nobody listens to it: try again"
                    )
            yield line

    def _connect(self, line: socket.socket, status: _Status) -> bool:
        """Connect to the socket, if there is one that is the JVM's own."""
        if not self._listens(status):
            return False
        folder = self._open("root/tmp")
        if folder < 0:
            return False
        try:
            with _as_user(status.uid, status.gid):
                line.connect(f"/proc/self/fd/{folder}/{_socket_name(status)}")
        except (ConnectionRefusedError, FileNotFoundError):
            return False  # one that an earlier process of this number left
        except TimeoutError:
            raise self._silent("take the connection") from None
        except PermissionError as error:
            raise NotPermitted(
                f"process {self._process.pid}: its JVM may not be spoken to ({error.strerror})",
                remedy=f"run gcspy as its user, or as root: `sudo gcspy attach {self._process.pid}`",
            ) from None
        except OSError as error:
            self._process.check()
            raise TargetError(
                f"process {self._process.pid}: its JVM cannot be spoken to: {error.strerror}; try again"
            ) from None
        finally:
            os.close(folder)
        return True

    def _exchange(self, line: socket.socket, request: bytes, deadline: float) -> str:
        answer = b""
        try:
            line.sendall(request)
            while len(answer) < _MOST_ANSWER_BYTES:
                line.settimeout(max(0.001, deadline - time.monotonic()))
                piece = line.recv(1 << 16)
                if not piece:
                    break
                answer += piece
        except TimeoutError:
            self._process.check()
            raise self._silent("answer") from None
        except OSError as error:
            self._process.check()
            raise TargetError(
                f"process {self._process.pid}: the JVM closed the connection ({error.strerror}): it is ending, or try again"
            ) from None
        if not answer:
            self._process.check()
            raise TargetError(
                f"process {self._process.pid}: the JVM answered nothing: it is ending, or does not take orders from uid {os.geteuid()}"
            )
        return answer.decode("utf-8", "replace")

    def _silent(self, what: str) -> TargetError:
        return TargetError(
            f"process {self._process.pid}: the JVM did not {what} in time: it is in a long pause (a collection, a heap dump, another tool's), "
            "is stopped, or has no memory left to answer; it was not waited for any longer, try again"
        )

    # ------------------------------------------------------------------ waking it

    def _wake(self, status: _Status, deadline: float) -> None:
        """Have the JVM listen: leave the file that it looks for, and send SIGQUIT.

        Raises:
            TargetError: It does not come to it.
        """
        pid = self._process.pid
        name = f".attach_pid{status.own_pid}"
        folder = self._leave(name, status)
        try:
            self._quit()
            while not self._listens(status):
                if time.monotonic() > deadline:
                    raise TargetError(
                        f"process {pid}: the JVM does not begin to listen: it is in a long pause, is ending or stopped, or has no memory "
                        "left for a thread; it was not waited for any longer, try again"
                    )
                self._process.check()
                time.sleep(_LOOK_SECS)
        finally:
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)
            os.close(folder)

    def _leave(self, name: str, status: _Status) -> int:
        """Make the file where the JVM looks for it; return the descriptor of its folder."""
        why = "it has neither"
        for place in ("root/tmp", "cwd"):
            folder = self._open(place)
            if folder < 0:
                continue
            try:
                file = os.open(
                    name,
                    os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
                    0o600,
                    dir_fd=folder,
                )
            except FileExistsError:
                return folder  # somebody else attaches at this moment, or was killed at it: it serves as well
            except OSError as error:
                why = error.strerror or str(error)
                os.close(folder)
                continue
            try:
                if status.uid != os.geteuid():
                    os.fchown(file, status.uid, status.gid)
            finally:
                os.close(file)
            return folder
        raise TargetError(
            f"process {self._process.pid}: no file can be made in its /tmp or its working directory, where the JVM looks for one: {why}"
        )

    def _quit(self) -> None:
        """Send SIGQUIT to this very process, if it handles it still."""
        try:
            handle = os.pidfd_open(self._process.pid)
        except OSError as error:
            self._process.refuse(error, "pidfd")
        try:
            self._process.check()
            if not self._status().handles_sigquit:
                raise TargetError(
                    f"process {self._process.pid} does not handle SIGQUIT: it is starting, or is no JVM; it was not sent, try again"
                )
            signal.pidfd_send_signal(handle, signal.SIGQUIT)
        except OSError as error:
            self._process.refuse(error, "pidfd_send_signal")
        finally:
            os.close(handle)

    # ------------------------------------------------------------------ files

    def _open(self, name: str) -> int:
        """Open one of the target's folders; -1: that is not possible."""
        try:
            return os.open(f"/proc/{self._process.pid}/{name}", _FOLDER)
        except OSError:
            return -1

    def _listens(self, status: _Status) -> bool:
        """Tell whether there is a socket that only the target's user, or root, can have made."""
        try:
            found = os.lstat(
                os.path.join("/proc", str(self._process.pid), "root", "tmp", _socket_name(status))
            )
        except OSError:
            return False
        return stat.S_ISSOCK(found.st_mode) and found.st_uid in (status.uid, 0)

    def _status(self) -> _Status:
        text = self._process.read_file("status").decode("ascii", "replace")
        fields = dict(re.findall(r"^(\w+):\s*(.*)$", text, re.M))
        try:
            return _Status(
                uid=int(fields["Uid"].split()[1]),
                gid=int(fields["Gid"].split()[1]),
                own_pid=int(fields.get("NSpid", str(self._process.pid)).split()[-1]),
                handles_sigquit=bool(int(fields["SigCgt"], 16) >> (signal.SIGQUIT - 1) & 1),
            )
        except (KeyError, IndexError, ValueError):
            self._process.check()
            raise TargetError(
                f"process {self._process.pid}: its /proc/PID/status cannot be understood"
            ) from None


def _socket_name(status: _Status) -> str:
    return f".java_pid{status.own_pid}"


@contextmanager
def _as_user(uid: int, gid: int) -> Iterator[None]:
    """Have this thread, and no other, act as a user, where we are root and it is not."""
    ours = os.geteuid(), os.getegid()
    if ours[0] != 0 or (uid, gid) == ours:
        yield
        return
    call = ctypes.CDLL(None, use_errno=True).syscall
    keep, effective_uid, effective_gid = (
        ctypes.c_long(_KEEP),
        ctypes.c_long(uid),
        ctypes.c_long(gid),
    )
    if call(ctypes.c_long(_SETRESGID), keep, effective_gid, keep) or call(
        ctypes.c_long(_SETRESUID), keep, effective_uid, keep
    ):
        call(ctypes.c_long(_SETRESGID), keep, ctypes.c_long(ours[1]), keep)
        raise PermissionError(ctypes.get_errno(), f"cannot act as uid {uid}")
    try:
        yield
    finally:
        call(ctypes.c_long(_SETRESUID), keep, ctypes.c_long(ours[0]), keep)
        call(ctypes.c_long(_SETRESGID), keep, ctypes.c_long(ours[1]), keep)
