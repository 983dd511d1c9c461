"""Lossless clients: whom the driver's thread waits for, and when that ends (SPEC.md 8.6).

A grant is worth what it costs others. It ends with the client, with its control where a
program would be held, and when its deadlines were used up in vain too often. A client that has
missed an event is not waited for until it is back in step, so that one that reads
nothing costs one deadline, and not one at each event.

Knows clients and who is told their capacity; knows neither sockets nor what is sent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import trio
from gcspy_protocol.messages import Error, ErrorCode
from gcspy_protocol.model import PauseActsOn

from gcspy_session.capacity import Capacity

if TYPE_CHECKING:
    from gcspy_session.client import ClientConnection

__all__ = ["Grant", "LosslessClients"]

_MOST_VAIN = 3
"""Deadlines in a row that may be used up in vain."""

_FORGET_AFTER = 10
"""Two vain deadlines are in a row unless so many deadlines lie between them: waiting in vain never takes more than
about a tenth of the time."""


class Grant:
    """The promise to one client, and how it fared with it; kept for as long as it is connected.

    Args:
        on_change: Called when its queue has more room than before.

    Attributes:
        deadline_secs: How long it is waited for at one event.
        withdrawn: Whether it was too slow too often.
        waived: Whether it is not waited for at the moment, because it took nothing for too long.
        full_since: Since when its queue is full, by the loop's clock; None: it is not.
    """

    def __init__(self, on_change: Callable[[], None]) -> None:
        self.on_change = on_change
        self.deadline_secs = 0.0
        self.withdrawn = False
        self.waived = False
        self.full_since: float | None = None
        self._longest_secs = 0.0
        self._vain = 0
        self._last_vain = 0.0

    def wait(self, deadline_secs: float) -> None:
        """Wait so long from now on; what was in vain before is not forgotten."""
        self.deadline_secs = deadline_secs
        self._longest_secs = max(self._longest_secs, deadline_secs)

    def waited_in_vain(self) -> None:
        """An event was dropped all the same."""
        now = trio.current_time()
        if now - self._last_vain > _FORGET_AFTER * self._longest_secs:
            self._vain = 0
        self._vain += 1
        self._last_vain = now
        self.withdrawn = self._vain >= _MOST_VAIN


class LosslessClients:
    """All grants of a session.

    Args:
        tell: Told how many events were shared, and what each client can take.
        acts_on: What a pause stops; a program is held for its controller only.
        controller: Who controls now.
        silence_secs: A client that takes nothing for so long is not waited for.
    """

    def __init__(
        self,
        tell: Callable[[int, tuple[Capacity, ...]], None],
        acts_on: PauseActsOn,
        controller: Callable[[], int | None],
        *,
        silence_secs: float,
    ) -> None:
        self._tell, self._acts_on, self._controller = tell, acts_on, controller
        self._silence_secs = silence_secs
        self._clients: dict[int, ClientConnection] = {}
        self._grants: dict[int, Grant] = {}  # those that ended, too
        self._shared = 0

    # ------------------------------------------------------------------ who has it

    def ask(self, client: ClientConnection, deadline_millis: int) -> Error | None:
        """Grant it, end it, or say why not."""
        if not deadline_millis:
            self.leave(client)
            return None
        if not self._may(client):
            return Error(
                code=ErrorCode.NOT_CONTROLLER,
                message="Lossless mode holds the program, which is reserved for the controller",
                remedy="take control first, or do without lossless mode",
            )
        grant = self._grants.setdefault(client.number, Grant(self._refresh))
        if grant.withdrawn:
            return self._too_slow("was already withdrawn from this connection")
        grant.wait(deadline_millis / 1000)
        self._clients[client.number] = client
        client.grant = grant
        self._refresh()
        return None

    def leave(self, client: ClientConnection) -> None:
        """The client is not waited for any more."""
        client.grant = None
        if self._clients.pop(client.number, None) is not None:
            self._refresh()

    def forget(self, client: ClientConnection) -> None:
        """The client is gone."""
        self.leave(client)
        self._grants.pop(client.number, None)

    def roles_changed(self) -> None:
        """A program is not held for somebody who does not control any more."""
        for client in list(self._clients.values()):
            if not self._may(client):
                self.leave(client)
                client.send(
                    Error(
                        code=ErrorCode.NOT_CONTROLLER,
                        message="lossless mode ended: this client no longer controls the program",
                    )
                )

    def _may(self, client: ClientConnection) -> bool:
        return self._acts_on is not PauseActsOn.PROGRAM or self._controller() == client.number

    def _too_slow(self, why: str) -> Error:
        return Error(
            code=ErrorCode.TOO_SLOW,
            message=f"lossless {why}: this client is too slow",
            remedy="request fewer events, or reconnect with a longer deadline",
        )

    # ------------------------------------------------------------------- what happens

    def shared(self, sequence: int) -> None:
        """A snapshot is in the queues; some clients may have had no room for it."""
        self._shared = sequence
        for client in list(self._clients.values()):
            grant = client.grant
            if grant is None or not client.refused_event:
                continue
            client.refused_event = False
            grant.waited_in_vain()
            if grant.withdrawn:
                self.leave(client)
                vain = f"{_MOST_VAIN} deadlines of {grant.deadline_secs:g} s"
                client.send(self._too_slow(f"withdrawn after {vain} in vain"))
        if self._clients:
            self._refresh()

    def check(self) -> None:
        """Once a second: do not wait for a client that takes nothing."""
        now = trio.current_time()
        for client in self._clients.values():
            grant = client.grant
            if grant is None or grant.full_since is None:
                continue
            if now - max(grant.full_since, client.last_taken) > self._silence_secs:
                grant.waived = True
        if self._clients:
            self._refresh()

    def _refresh(self) -> None:
        """Tell the driver's thread who has how much room."""
        self._tell(
            self._shared,
            tuple(filter(None, (client.capacity() for client in self._clients.values()))),
        )
