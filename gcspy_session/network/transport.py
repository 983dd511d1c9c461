"""One client's byte stream: a trio stream, the identity of its peer, and direct access to its socket.

Knows sockets; does not know frames.
"""

from __future__ import annotations

import os
import socket
import struct

import trio
from gcspy_protocol.handshake.credentials import Channel

from gcspy_session.network.short_reads import ShortReads

__all__ = ["Transport", "peer_of"]

_UCRED = struct.Struct("3i")
"""struct ucred of unix(7): pid, uid, gid."""


class Transport:
    """A byte stream to a client.

    Args:
        stream: The stream.
        who: The peer, for the log only: ``unix uid 1000 pid 4711``.
        channel: Its channel.
        refusal: Why this peer may not connect at all; empty: it may.
    """

    def __init__(
        self, stream: trio.abc.Stream, who: str, *, channel: Channel, refusal: str = ""
    ) -> None:
        self._stream = stream
        self.who = who
        self.channel = channel
        self.refusal = refusal

    @property
    def trusted(self) -> bool:
        """Whether the channel identifies the peer, so that no token is needed."""
        return self.channel is Channel.LOCAL

    @property
    def unread_bytes(self) -> int:
        """Bytes that have arrived over TLS and were not read yet; 0 if a read takes everything."""
        under = self._stream.transport_stream if isinstance(self._stream, trio.SSLStream) else None
        return under.waiting_bytes() if isinstance(under, ShortReads) else 0

    def send_now(self, data: bytes | memoryview) -> int:
        """Give the socket what it takes without waiting; return the number of bytes.

        A task switch costs more than the copy into the socket: for a hundred viewers this is most
        of the work. Streams other than plain sockets take nothing this way.
        """
        if not isinstance(self._stream, trio.SocketStream):
            return 0
        try:
            return os.write(self._stream.socket.fileno(), data)
        except OSError:
            return 0  # full, or broken: the sending task waits, or finds out why

    async def start(self) -> None:
        """Make the stream ready: the TLS handshake, if there is one."""
        if isinstance(self._stream, trio.SSLStream):
            await self._stream.do_handshake()

    async def send_all(self, data: bytes | memoryview) -> None:
        """Send all bytes."""
        await self._stream.send_all(data)

    async def receive_some(self) -> bytes:
        """Some bytes, or none at the end."""
        return bytes(await self._stream.receive_some(65536))

    async def send_eof(self) -> None:
        """Close the sending direction, if the stream can; reading continues."""
        if isinstance(self._stream, trio.abc.HalfCloseableStream):
            await self._stream.send_eof()

    async def close(self) -> None:
        """Close at once, without a goodbye of the transport itself."""
        await trio.aclose_forcefully(self._stream)


def peer_of(stream: trio.SocketStream) -> tuple[str, int | None]:
    """The identity of the peer, for the log, and over a Unix socket its uid."""
    found = stream.socket
    if found.family == socket.AF_UNIX:
        raw = found.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
        pid, uid, _ = _UCRED.unpack(raw)
        return f"unix uid {uid} pid {pid}", uid
    try:
        host, port = found.getpeername()[:2]
    except OSError:
        return "tcp peer that is gone", None
    return f"tcp {host}:{port}", None
