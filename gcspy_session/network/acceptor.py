"""Accepts connections: from a listening socket to a transport that a host serves.

Knows sockets, TLS and uids; does not know the data.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Protocol

import trio
from gcspy_protocol.handshake.credentials import Channel

from gcspy_session.network.listeners import SocketListener
from gcspy_session.network.short_reads import ShortReads
from gcspy_session.network.spare_descriptor import SpareDescriptor
from gcspy_session.network.transport import Transport, peer_of

__all__ = ["ClientHost", "accept_all"]


class ClientHost(Protocol):
    """The host of clients: a session, or a player."""

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run tasks that are not for one client, until cancelled."""

    async def serve(self, transport: Transport) -> None:
        """Serve one connection to its end."""

    async def close(self, reason: str) -> None:
        """Send goodbye to all clients, and wait a little until they have read it."""


def accept_all(
    listeners: Sequence[SocketListener], host: ClientHost, clients: trio.Nursery
) -> None:
    """Accept clients at all listeners, until the nursery is cancelled."""
    for listener in listeners:
        clients.start_soon(partial(_accept, listener, host, clients))


async def _accept(listener: SocketListener, host: ClientHost, clients: trio.Nursery) -> None:
    accepting = trio.SocketListener(trio.socket.from_stdlib_socket(listener.socket))
    spare = SpareDescriptor(listener.socket, speaks=listener.tls is None)
    async with accepting:
        with spare:
            while True:
                try:
                    stream = await accepting.accept()
                except OSError as error:
                    await spare.turn_away(error)
                else:
                    clients.start_soon(_serve, stream, listener, host)


async def _serve(stream: trio.SocketStream, listener: SocketListener, host: ClientHost) -> None:
    try:
        await host.serve(_transport(stream, listener))
    finally:
        await trio.aclose_forcefully(stream)


def _transport(stream: trio.SocketStream, listener: SocketListener) -> Transport:
    who, uid = peer_of(stream)
    if listener.tls is not None:
        encrypted = trio.SSLStream(
            ShortReads(stream), listener.tls, server_side=True, https_compatible=True
        )
        return Transport(encrypted, f"tls {who.removeprefix('tcp ')}", channel=Channel.TLS)
    if uid is None:
        return Transport(stream, who, channel=Channel.PLAIN_TCP)
    ours = os.geteuid()
    refusal = "" if uid in (ours, 0) else f"uid {uid} may not connect to a session of uid {ours}"
    return Transport(stream, who, channel=Channel.LOCAL, refusal=refusal)
