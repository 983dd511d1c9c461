"""Lossless clients: which ones the driver's thread waits for, and until when (SPEC.md 8.6).

A grant costs others time. It ends with the client, with its control if a program would be held, and
when its deadlines were missed too often. A client that has missed an event is not waited for until
it is back in step, so that one that reads nothing costs one deadline, and not one at each event.

Knows clients and the receiver of their capacities; does not know sockets or the data.
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
"""Consecutive deadlines that may be missed."""

_FORGET_AFTER = 10
"""Two missed deadlines are consecutive unless this many deadlines lie between them: useless waits
never take more than about a tenth of the time."""


class Grant:
    """The grant of one client, and its history; kept for as long as it is connected.

    Args:
        on_change: Called when its queue has more room than before.

    Attributes:
        deadline_secs: Maximum wait for it at one event.
        withdrawn: Whether it was too slow too often.
        waived: Whether it is not waited for at the moment, because it read nothing for too long.
        full_since: When its queue became full, by the loop's clock; None: it is not.
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
        """Set the deadline from now on; earlier misses still count."""
        self.deadline_secs = deadline_secs
        self._longest_secs = max(self._longest_secs, deadline_secs)

    def waited_in_vain(self) -> None:
        """Note that an event was dropped in spite of the wait."""
        now = trio.current_time()
        if now - self._last_vain > _FORGET_AFTER * self._longest_secs:
            self._vain = 0
        self._vain += 1
        self._last_vain = now
        self.withdrawn = self._vain >= _MOST_VAIN


class LosslessClients:
    """All grants of a session.

    Args:
        tell: Called with the number of shared events, and the capacity of each client.
        acts_on: Activity that a pause stops; a program is held for its controller only.
        controller: The current controller.
        silence_secs: A client that reads nothing for this long is not waited for.
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
        self._grants: dict[int, Grant] = {}  # including those that ended
        self._shared = 0

    # ------------------------------------------------------------------ grants

    def ask(self, client: ClientConnection, deadline_millis: int) -> Error | None:
        """Grant it, end it, or reply why not."""
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
        """Stop waiting for a client."""
        client.grant = None
        if self._clients.pop(client.number, None) is not None:
            self._refresh()

    def forget(self, client: ClientConnection) -> None:
        """Note that a client is gone."""
        self.leave(client)
        self._grants.pop(client.number, None)

    def roles_changed(self) -> None:
        """Do not hold a program for a client that no longer controls."""
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
        """Note that a snapshot is in the queues; some clients may have had no room for it."""
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
        """Once a second: stop waiting for clients that read nothing."""
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
        """Report the capacities to the driver's thread."""
        self._tell(
            self._shared,
            tuple(filter(None, (client.capacity() for client in self._clients.values()))),
        )
