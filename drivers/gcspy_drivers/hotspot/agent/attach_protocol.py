"""The attach protocol of HotSpot: what ``jcmd`` speaks, here in Python, for one process.

    no socket there? ──.attach_pidN, SIGQUIT──▶ the JVM makes /tmp/.java_pidN and listens
    "1" command argument argument argument, each with a zero byte ──▶
                                              ◀── a line with a code, then text, then the end

SIGQUIT ends a process without a handler for it, and makes a JVM that may not be attached to write
all of its stacks to its own output. So it is sent only to one that handles it and is known to
listen. Older JVMs answer only their own user.

Nothing here waits without a limit: a JVM in a long pause answers after it. The target chooses its
``/tmp`` and its working directory, so the file is made, and the socket connected to, with the
rights of its user; and data is sent only to the process itself.

Knows files of the process and its socket; knows no heap, and no command.

Source: OpenJDK src/hotspot/os/posix/attachListener_posix.cpp (linux/attachListener_linux.cpp until 20), src/jdk.attach/linux/classes/sun/tools/attach/VirtualMachineImpl.java;
credentials(7): the kernel has credentials by thread.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from gcspy_protocol.errors import NotPermitted, TargetError

from gcspy_drivers.remote.files import TargetRoot, remove
from gcspy_drivers.remote.process import Process
from gcspy_drivers.remote.sockets import connect_in, peer_pid, socket_owner
from gcspy_drivers.remote.user import User, as_user, user_of

__all__ = ["AttachListener"]

_VERSION: Final = b"1"
_ARGUMENTS: Final = 3
_MOST_ANSWER_BYTES: Final = 1 << 20
_LOOK_SECS: Final = 0.005
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class _Status:
    """Fields of ``/proc/PID/status``."""

    user: User
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
        """Return why the JVM cannot be sent a command now, with the remedy; empty if it can. Cheap, and sends nothing.

        Raises:
            TargetGone: It has ended.
        """
        status = self._status()
        if status.user.uid != os.geteuid() and os.geteuid() != 0:
            return f"it belongs to uid {status.user.uid}, and a JVM answers only its own user and root: `sudo gcspy attach {self._process.pid}`"
        if status.handles_sigquit or self._listens(status):
            return ""
        return "it does not handle SIGQUIT, the signal that makes it listen: it is starting, or is not a JVM: try again"

    def ask(self, command: str, *arguments: str, secs: float) -> str:
        """Ask the JVM to do something.

        Args:
            command: ``load``, ``jcmd`` …
            arguments: At most three.
            secs: How long to wait for it to listen, and to answer.

        Returns:
            Its answer after the code.

        Raises:
            TargetGone: It has ended.
            NotPermitted: It belongs to another user.
            TargetError: It does not listen, does not answer in time, or answers that it failed.
        """
        deadline = time.monotonic() + secs
        why_not = self.why_not()
        if why_not:
            raise TargetError(f"process {self._process.pid} does not accept commands: {why_not}")
        words = [command, *arguments, *[""] * (_ARGUMENTS - len(arguments))]
        request = b"\0".join([_VERSION, *(word.encode() for word in words), b""])
        with self._connected(deadline) as line:
            answer = self._exchange(line, request, deadline)
        code, _, text = answer.partition("\n")
        if code != "0":
            said = " ".join(text.split())[:400]
            raise TargetError(
                f"process {self._process.pid}: the JVM refused to {command}: {said or 'no reason given'} (code {code[:20]})"
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
                        f"process {self._process.pid}: the JVM's socket exists, but the JVM does not listen: try again"
                    )
            yield line

    def _connect(self, line: socket.socket, status: _Status) -> bool:
        """Connect to the socket, if there is one that is the JVM's own."""
        try:
            with TargetRoot(self._process) as root:
                as_user(status.user, lambda: self._connect_below(root, line, status))
        except (ConnectionRefusedError, FileNotFoundError):
            return False  # there is none, or one that an earlier process of this number left
        except TimeoutError:
            raise self._silent("take the connection") from None
        except PermissionError as error:
            raise NotPermitted(
                f"process {self._process.pid}: no permission to talk to its JVM ({error.strerror})",
                remedy=f"run gcspy as its user, or as root: `sudo gcspy attach {self._process.pid}`",
            ) from None
        except OSError as error:
            self._process.check()
            raise TargetError(
                f"process {self._process.pid}: cannot talk to its JVM: {error.strerror}; try again"
            ) from None
        if peer_pid(line) != self._process.pid:
            raise TargetError(
                f"process {self._process.pid}: another process ({peer_pid(line)}) listens at its socket: nothing was sent"
            )
        return True

    def _connect_below(self, root: TargetRoot, line: socket.socket, status: _Status) -> None:
        folder, name = root.folder("/tmp"), _socket_name(status)
        try:
            connect_in(line, name, folder, (status.user.uid, 0))
        except PermissionError:
            # One that a JVM of root with the same number left; in a sticky folder this JVM cannot replace it.
            if socket_owner(name, folder) in (None, status.user.uid):
                raise
            raise NotPermitted(
                f"process {self._process.pid}: its JVM cannot be reached: /tmp/{name} belongs to another user",
                remedy=f"if an earlier JVM left it, remove it: `sudo rm /tmp/{name}`",
            ) from None
        finally:
            os.close(folder)

    def _exchange(self, line: socket.socket, request: bytes, deadline: float) -> str:
        answer = bytearray()
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
                f"process {self._process.pid}: the JVM closed the connection ({error.strerror}): try again, unless it is ending"
            ) from None
        if not answer:
            self._process.check()
            raise TargetError(
                f"process {self._process.pid}: the JVM did not answer: it is ending, or does not accept commands from uid {os.geteuid()}"
            )
        return answer.decode("utf-8", "replace")

    def _silent(self, what: str) -> TargetError:
        return TargetError(
            f"process {self._process.pid}: the JVM did not {what} in time: it is in a long pause (a collection, a heap dump, another tool's), "
            "is stopped, or has no memory left to answer; gave up waiting: try again"
        )

    # ------------------------------------------------------------------ waking it

    def _wake(self, status: _Status, deadline: float) -> None:
        """Make the JVM listen: create the file that it looks for, and send SIGQUIT.

        Raises:
            TargetError: It does not come to it.
        """
        pid = self._process.pid
        name = f".attach_pid{status.own_pid}"
        with TargetRoot(self._process) as root:
            folder = self._leave(name, root, status)
        try:
            self._quit()
            while not self._listens(status):
                if time.monotonic() > deadline:
                    raise TargetError(
                        f"process {pid}: the JVM does not start to listen: it is in a long pause, is ending or stopped, or has no memory "
                        "left for a thread; gave up waiting: try again"
                    )
                self._process.check()
                time.sleep(_LOOK_SECS)
        finally:
            as_user(status.user, lambda: remove(name, folder))
            os.close(folder)

    def _leave(self, name: str, root: TargetRoot, status: _Status) -> int:
        """Make the file where the JVM looks for it; return the descriptor of its folder."""
        why = "it has neither"
        places: tuple[Callable[[], int], ...] = (
            partial(root.folder, "/tmp"),
            partial(self._process.follow, "cwd"),
        )
        for place in places:
            try:
                folder = place()
            except (OSError, TargetError) as error:
                self._process.check()
                why = str(error)
                continue
            try:
                as_user(status.user, partial(_make, name, folder))
            except FileExistsError:
                pass  # another process is attaching, or was killed while attaching: its file serves as well
            except OSError as error:
                why = error.strerror or str(error)
                os.close(folder)
                continue
            return folder
        raise TargetError(
            f"process {self._process.pid}: cannot create a file in its /tmp or its working directory, where the JVM looks for it: {why}"
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
                    f"process {self._process.pid} does not handle SIGQUIT: it is starting, or is not a JVM; no signal was sent: try again"
                )
            signal.pidfd_send_signal(handle, signal.SIGQUIT)
        except OSError as error:
            self._process.refuse(error, "pidfd_send_signal")
        finally:
            os.close(handle)

    # ------------------------------------------------------------------ files

    def _listens(self, status: _Status) -> bool:
        """Return whether there is a socket that only the target's user, or root, can have made."""
        try:
            with TargetRoot(self._process) as root:
                folder = root.folder("/tmp")
        except (OSError, NotPermitted):
            return False
        try:
            return socket_owner(_socket_name(status), folder) in (status.user.uid, 0)
        finally:
            os.close(folder)

    def _status(self) -> _Status:
        text = self._process.read_file("status").decode("ascii", "replace")
        fields = dict(re.findall(r"^(\w+):\s*(.*)$", text, re.M))
        try:
            return _Status(
                user=user_of(self._process),
                own_pid=int(fields.get("NSpid", str(self._process.pid)).split()[-1]),
                handles_sigquit=bool(int(fields["SigCgt"], 16) >> (signal.SIGQUIT - 1) & 1),
            )
        except (KeyError, IndexError, ValueError):
            self._process.check()
            raise TargetError(
                f"process {self._process.pid}: its /proc/PID/status has an unknown format"
            ) from None


def _socket_name(status: _Status) -> str:
    return f".java_pid{status.own_pid}"


def _make(name: str, folder: int) -> None:
    os.close(os.open(name, _NEW_FILE, 0o600, dir_fd=folder))
