"""The connection to a server of GCspy 1.0, which outlives its owner as long as the server needs it.

Knows sockets and the guardian; does not know messages.
"""

from __future__ import annotations

import contextlib
import select
import socket
import subprocess
import sys
from collections import deque
from pathlib import Path
from typing import Final

from gcspy_protocol.errors import NotPermitted, TargetError, TargetGone

__all__ = ["OriginalLine"]

_GUARDIAN: Final = Path(__file__).with_name("guardian.py")
_CONNECT_SECS: Final = 10.0
_LEAVE_SECS: Final = 2.0
_READ_BYTES: Final = 1 << 18


class OriginalLine:
    """A connection that was made.

    Args:
        host: Name or address.
        port: TCP port.
        greeting: The client's first frame.

    Raises:
        TargetGone: Nobody listens there.
        TargetError: It cannot be reached, or the guardian cannot be started.
    """

    def __init__(self, host: str, port: int, greeting: bytes) -> None:
        self._where = f"gcspy666://{host}:{port}"
        try:
            self._server = socket.create_connection((host, port), timeout=_CONNECT_SECS)
        except ConnectionRefusedError as error:
            raise TargetGone(
                f"no server of GCspy 1.0 listens at {self._where}: start the program with its server, or forward the port"
            ) from error
        except PermissionError as error:
            raise NotPermitted(
                f"{self._where}: {error.strerror}", remedy="check the firewall"
            ) from error
        except OSError as error:
            raise TargetError(f"cannot reach {self._where}: {error}") from error
        self._server.setblocking(False)
        self._farewell = b""
        self._closed = False
        self._undone: deque[bytes] = deque()
        try:
            self._guardian = self._start(greeting)
        except OSError as error:
            # Nothing was sent yet, and nothing is unread.
            self._server.close()
            raise TargetError(f"cannot start what guards {self._where}: {error}") from error

    def _start(self, greeting: bytes) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            subprocess.run(
                [
                    sys.executable,
                    "-I",
                    "-S",
                    str(_GUARDIAN),
                    str(self._server.fileno()),
                    str(theirs.fileno()),
                    greeting.hex(),
                ],
                pass_fds=(self._server.fileno(), theirs.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                check=True,
            )
        except (OSError, subprocess.SubprocessError) as error:
            ours.close()
            raise OSError(str(error)) from error
        finally:
            theirs.close()
        ours.settimeout(_CONNECT_SECS)
        return ours

    def send(self, frame: bytes) -> None:
        """Send a frame.

        Raises:
            TargetGone: The server has ended.
        """
        self._tell(b"S" + frame)

    def set_farewell(self, frames: bytes) -> None:
        """Set what is sent when this process is gone.

        Raises:
            TargetGone: The server has ended.
        """
        self._farewell = frames
        self._tell(b"F" + frames)

    def answered(self) -> None:
        """Note that the server has said goodbye: nothing more is sent to it."""
        with contextlib.suppress(TargetError):
            self._tell(b"D")

    def _tell(self, datagram: bytes) -> None:
        """Have the guardian do something. One that is ended at this moment may take it and never do it: see `_hear_guardian`."""
        self._hear_guardian()
        self._undone.append(datagram)
        try:
            self._guardian.send(datagram)
        except OSError:
            self._replace_guardian()

    def _hear_guardian(self) -> None:
        """Read what it has done; replace it if it has ended.

        Raises:
            TargetGone: The server has ended.
            TargetError: No other guardian can be started.
        """
        while select.select([self._guardian], [], [], 0)[0]:
            try:
                done = self._guardian.recv(1)
            except OSError:
                done = b""
            if not done:
                self._replace_guardian()  # not again at once: it ends when the server has, whose data may be unread
                return
            if self._undone:
                self._undone.popleft()

    def _replace_guardian(self) -> None:
        """Start another guardian: somebody ended it, or the server has closed, which ends it, too. It does what was not done."""
        if self.ended:
            raise TargetGone(f"the server at {self._where} has ended")
        self._guardian.close()
        try:
            self._guardian = self._start(b"")
            if self._farewell:
                self._undone.appendleft(b"F" + self._farewell)
            for datagram in self._undone:
                self._guardian.send(datagram)
        except OSError as error:
            raise TargetError(f"{self._where}: cannot start its guardian again: {error}") from error

    def receive(self, secs: float) -> bytes | None:
        """Return bytes of the server; None: none came in time.

        Raises:
            TargetGone: It has closed.
        """
        ready = select.select([self._server, self._guardian], [], [], max(0.0, secs))[0]
        if self._server not in ready:
            if self._guardian in ready:
                self._hear_guardian()
            return None
        try:
            data = self._server.recv(_READ_BYTES)
        except BlockingIOError:
            return None
        except OSError as error:
            raise TargetGone(f"the server at {self._where} has ended: {error.strerror}") from error
        if not data:
            raise TargetGone(f"the server at {self._where} has ended")
        return data

    @property
    def ended(self) -> bool:
        """Whether the server has closed, and has nothing more to read."""
        try:
            return self._server.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def close(self) -> None:
        """Leave: the guardian says goodbye and reads what the server still sends. Waits for it a moment, no longer."""
        if self._closed:
            return
        self._closed = True
        self._server.close()  # the guardian has it open, so that the server sees nothing of this
        with contextlib.suppress(OSError):
            self._guardian.shutdown(socket.SHUT_WR)
            self._guardian.settimeout(_LEAVE_SECS)
            while self._guardian.recv(1):
                pass
        self._guardian.close()
