"""A socket under TLS that is read in small pieces, so that data that its peer has sent ahead stays where it can be counted.

TLS returns one record per read. A read of 16 KiB would take hundreds of short records into a buffer
that cannot be examined, and a client that floods would seem to have sent one request.

Knows sockets; does not know TLS or frames.
"""

from __future__ import annotations

import fcntl
import struct
import termios

import trio

__all__ = ["ShortReads"]

_MOST_BYTES = 1024
"""Maximum bytes of a read: as much as a client may leave unread without being counted as one that floods."""

_COUNT = struct.Struct("i")


class ShortReads(trio.abc.Stream):
    """A socket's stream, of which at most 1 KiB is read at once.

    Args:
        stream: The socket's.
    """

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream

    def waiting_bytes(self) -> int:
        """Bytes that have arrived at the socket and were not read yet; 0 when it is closed."""
        try:
            found = fcntl.ioctl(self._stream.socket.fileno(), termios.FIONREAD, bytes(_COUNT.size))
        except OSError:
            return 0
        (count,) = _COUNT.unpack(found)
        return int(count)

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        """Some bytes, or none at the end."""
        most = _MOST_BYTES if max_bytes is None else min(max_bytes, _MOST_BYTES)
        return await self._stream.receive_some(most)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send all bytes."""
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until the socket has room."""
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        """Close the socket."""
        await self._stream.aclose()
