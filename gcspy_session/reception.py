"""Receives connections for whoever hosts a session: makes clients of them, and judges their greetings.

Knows clients and the bounds of a session; knows neither what is served nor who leads.
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
    """Where connections become clients.

    Args:
        options: The bounds of the session.
        token: What those must know whose way here does not prove who they are; None: nobody may come that way.
        admit: Called with a client and its greeting: lets it in, or says why not; it asks `refusal_of`.
        handle: Called with each message after that.
        drained: Called when everything was sent to a client.
        remove: Called when a client has gone, let in or not.

    Attributes:
        closing: Whether the session is ending, so that nobody else comes in.
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
        """Take a greeting; return why the client may not come in, or None.

        Args:
            client: Who greets.
            hello: How.
            present: How many were let in and are still there.
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
