"""Rejects new connections when the process has no file descriptor left.

`accept` fails then and the connection stays in the kernel's queue, so that a loop would spin, and
the client would wait forever. So one descriptor is reserved: it is closed, the connection accepted,
given the reason, and closed.

Knows sockets; does not know clients.
"""

from __future__ import annotations

import errno
import os
import socket
from contextlib import suppress

import trio
from gcspy_protocol.connection import Connection
from gcspy_protocol.messages import Error, ErrorCode
from gcspy_protocol.model import Role

from gcspy_session.client import log

__all__ = ["SpareDescriptor"]

_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

_REST_SECS = 0.02
"""Pause after a rejected connection: fifty per second cost nothing, however many come."""

_TELL_AGAIN_SECS = 60.0


class SpareDescriptor:
    """A file descriptor reserved for rejecting connections; a context manager.

    Args:
        listening: The listening socket; it does not block.
        speaks: Whether a reason can be sent; not over TLS, which would need a handshake first.
    """

    def __init__(self, listening: socket.socket, *, speaks: bool) -> None:
        self._listening, self._speaks = listening, speaks
        self._descriptor: int | None = None
        self._told_at = float("-inf")

    def __enter__(self) -> SpareDescriptor:
        self._keep()
        return self

    def __exit__(self, *_: object) -> None:
        self._release()

    async def turn_away(self, error: OSError) -> None:
        """Reject one connection, after `accept` failed.

        Raises:
            OSError: The same: it has another reason.
        """
        if error.errno not in _EXHAUSTED:
            raise error
        now = trio.current_time()
        if now - self._told_at >= _TELL_AGAIN_SECS:
            self._told_at = now
            log.warning(
                "new connections are refused: %s; they are accepted again when a client leaves; raise the limit with `ulimit -n` in the server's shell",
                error.strerror,
            )
        self._release()
        with suppress(OSError):  # another thread took the descriptor, or the client has gone
            newcomer, _ = self._listening.accept()
            with newcomer:
                self._dismiss(newcomer)
        self._keep()
        await trio.sleep(_REST_SECS)

    def _dismiss(self, newcomer: socket.socket) -> None:
        if not self._speaks:
            return
        newcomer.setblocking(False)
        connection = Connection(Role.SERVER)
        words = Error(
            code=ErrorCode.BUSY,
            message="the server has no file descriptor left",
            remedy="try again when a client has left",
            fatal=True,
        )
        newcomer.send(connection.preamble() + connection.send(words))
        newcomer.shutdown(socket.SHUT_WR)
        newcomer.recv(65536)  # unread data would make the close discard our message

    def _keep(self) -> None:
        if self._descriptor is None:
            with suppress(OSError):
                self._descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def _release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
