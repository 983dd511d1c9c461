"""Receives connections for any host: makes clients of them, and checks their greetings.

Knows clients and the limits of a session; does not know the data or the leader.
"""

from __future__ import annotations

from collections.abc import Callable

from gcspy_protocol.messages import Error, Hello, Message

from gcspy_session.admission import refusal_of
from gcspy_session.allowance import shared_bucket
from gcspy_session.client import ClientConnection
from gcspy_session.network.pending_connections import PendingConnections
from gcspy_session.network.transport import Transport
from gcspy_session.options import SessionOptions
from gcspy_session.queued_bytes import QueuedBytes

__all__ = ["Reception"]


class Reception:
    """Turns connections into clients.

    Args:
        options: The limits of the session.
        token: The token for clients whose transport does not identify them; None: such clients are
            refused.
        admit: Called with a client and its greeting: admits it, or returns why not; it calls
            `refusal_of`.
        handle: Called with each message after that.
        drained: Called when everything was sent to a client.
        remove: Called when a client has gone, admitted or not.

    Attributes:
        closing: Whether the session is ending, so that no client is admitted.
    """

    def __init__(
        self,
        options: SessionOptions,
        token: str | None,
        *,
        admit: Callable[[ClientConnection, Hello], Error | None],
        handle: Callable[[ClientConnection, Message], None],
        drained: Callable[[ClientConnection], None],
        remove: Callable[[ClientConnection], None],
    ) -> None:
        self.closing = False
        self._options, self._token = options, token
        self._admit, self._handle, self._drained, self._remove = admit, handle, drained, remove
        self._next_number = 1
        self._pending = PendingConnections(options.max_pending)
        self._shared = shared_bucket(options.requests)
        self._memory = QueuedBytes(options.queued_bytes_all)

    async def serve(self, transport: Transport) -> None:
        """Serve one connection to its end."""
        client = ClientConnection(
            self._next_number,
            transport,
            self._options,
            self._shared,
            memory=self._memory,
            token=self._token,
        )
        self._next_number += 1
        self._pending.add(client)
        try:
            await client.run(self._admit, self._handle, self._drained)
        finally:
            self._pending.remove(client)
            self._remove(client)
            await client.close()
        client.log_end()

    def refusal_of(self, client: ClientConnection, hello: Hello, *, present: int) -> Error | None:
        """Check a greeting; return why the client is refused, or None.

        Args:
            client: The client.
            hello: Its greeting.
            present: Number of admitted clients.
        """
        self._pending.remove(client)
        client.name = hello.client
        return refusal_of(
            client.transport,
            hello,
            token=self._token,
            proven=client.proven,
            closing=self.closing,
            clients=present,
            most_clients=self._options.max_clients,
        )
