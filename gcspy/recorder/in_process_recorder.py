"""Records what a server of this process sends, without a connection: for sessions that are computed or converted.

Knows the server's bytes and the writer; does not know what makes the events.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gcspy_replay.file import Store

    from gcspy_server.api import Server

__all__ = ["record_server"]


def record_server(
    server: Server, run: Callable[[], None], store: Store, *, wall_offset_nanos: int = 0
) -> int:
    """Record a server's events into a store.

    Args:
        server: It must not listen.
        run: Makes all events.
        store: Takes the recording.
        wall_offset_nanos: Add to a time of the server for nanoseconds since 1970; 0: not known.

    Returns:
        How many events were written.

    Raises:
        RecordingError: They cannot be written.
    """
    from gcspy_protocol import Connection
    from gcspy_protocol.interpreter import ClientInterpreter
    from gcspy_protocol.messages import Hello
    from gcspy_protocol.model import Role
    from gcspy_replay.file import PartFacts, RecordingWriter, WireTap

    connection, state, tap = Connection(Role.CLIENT), ClientInterpreter(), WireTap()
    connection.send(Hello(client="gcspy convert"))
    facts = PartFacts(recording=secrets.token_bytes(16), created=time.time_ns())
    writer = RecordingWriter(store, state, facts=facts, tap=tap)

    def take(data: bytes) -> None:
        connection.receive_data(data)
        tap.receive_data(data)
        for message in connection.messages():
            state.apply(message)
            writer.add(message)

    try:
        server.deliver_to(take, wall_offset_nanos=wall_offset_nanos)
        run()
    finally:
        writer.close()
    return writer.events
