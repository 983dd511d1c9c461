"""Whether a controller still lives, and who stands in for one that has fallen silent (SPEC.md section 4.3).

Nobody is told when a cable is pulled: such a connection has no end. So the client in control is asked
for a sign of life: twice a second where a successor is named, who then has control within two seconds;
otherwise each second while it holds what the others need. A window that was only busy is heard again
soon: then it has control again.

Knows clients, roles and silence; knows no sockets, and not what control is good for: a target for a
session, a playback for a player.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

import trio
from gcspy_protocol import messages as m
from gcspy_protocol.codec import encode

from gcspy_session.client import ClientConnection, log

__all__ = ["ControllerWatchdog", "watch_controllers"]

_LOOK_SECS = 0.25
_PING_SECS = 0.5
_HOLDING_PING_SECS = 1.0
_LATE_SECS = 0.5
"""A look that comes so much too late says that it was this loop that did not listen."""
_RETURN_SECS = 10.0
"""Who is heard again within so long has control again. After that the class goes on with whom it has."""


class _StandIn(NamedTuple):
    """Who stands in for a silent controller, since when, and whether the controller had named it."""

    instead_of: int
    number: int
    since: float
    named: bool


class WatchdogHost(Protocol):
    """Whose controller is watched."""

    @property
    def roles(self) -> ControlRoles:
        """Who controls, and who inherits it."""

    @property
    def fallback(self) -> int | None:
        """Who stands in for a controller that has named nobody; None: nobody does."""

    @property
    def held(self) -> bool:
        """Whether the target stands still for the controller."""

    def client(self, number: int | None) -> ClientConnection | None:
        """A client that is connected."""

    def tell_clients(self) -> None:
        """Tell everyone who controls."""


class ControlRoles(Protocol):
    """Who controls, and who inherits it; `Roles` is one."""

    @property
    def controller(self) -> int | None:
        """Number of the client in control."""

    @property
    def successor(self) -> int | None:
        """Number of the client that it has named."""

    def hand_over(self, client: int) -> None:
        """Make another client the controller."""

    def name_successor(self, client: int | None) -> None:
        """Say who inherits."""


async def watch_controllers(watchdogs: Callable[[], Iterable[ControllerWatchdog]]) -> None:
    """Look after the controllers that there are, until cancelled."""
    looked = trio.current_time()
    while True:
        await trio.sleep(_LOOK_SECS)
        now = trio.current_time()
        late = now - looked > _LOOK_SECS + _LATE_SECS
        looked = now
        for watchdog in list(watchdogs()):
            if late:
                watchdog.excuse(now)
            watchdog.look(now)


class ControllerWatchdog:
    """Looks after one controller.

    Args:
        host: Whose it is.
        silence_secs: A controller that holds the target and says nothing for so long is lost. One that has named no
            successor gives way to the fallback after so long.
        succession_secs: One with a successor gives way to it after so long.
    """

    def __init__(self, host: WatchdogHost, *, silence_secs: float, succession_secs: float) -> None:
        self._host = host
        self._silence_secs, self._succession_secs = silence_secs, succession_secs
        self._watched: int | None = None
        self._since = 0.0
        self._pinged = 0.0
        self._number = 0
        self._stands_in: _StandIn | None = None

    def excuse(self, now: float) -> None:
        """Count no silence before now: this loop was late, and what the controller said meanwhile is not read yet."""
        self._since = now

    def look(self, now: float) -> None:
        """Look whether the controller was heard, and ask it for a sign of life."""
        self._give_back(now)
        host = self._host
        controller, named = host.client(host.roles.controller), host.client(host.roles.successor)
        heir = named or host.client(host.fallback)
        if controller is None or not (host.held or heir is not None):
            self._watched = None
            return
        if self._watched != controller.number:
            self._watched, self._since, self._pinged = controller.number, now, 0.0
        silence = now - max(self._since, controller.last_heard)
        patience = self._silence_secs if named is None else self._succession_secs
        if heir is not None and silence > patience:
            self._pass(controller, heir, silence, now, named=named is not None)
        elif host.held and silence > self._silence_secs:
            controller.end(f"silent for {silence:.1f} s while it held the target")
        elif now - self._pinged >= (_HOLDING_PING_SECS if named is None else _PING_SECS):
            self._pinged = now
            self._number += 1
            controller.push_if_room(encode(m.Ping(number=self._number)).data)

    def _pass(
        self,
        controller: ClientConnection,
        heir: ClientConnection,
        silence: float,
        now: float,
        *,
        named: bool,
    ) -> None:
        """Let the heir have control. The connection stays: it may be a window that is busy."""
        log.warning(
            "%s silent for %.1f s: control passes to client %d", controller, silence, heir.number
        )
        self._stands_in = _StandIn(controller.number, heir.number, now, named)
        self._host.roles.hand_over(heir.number)
        self._host.tell_clients()

    def _give_back(self, now: float) -> None:
        """Let one that is heard again have control again, unless the stand-in has passed it on, or has had it for long."""
        found = self._stands_in
        if found is None:
            return
        client, roles = self._host.client(found.instead_of), self._host.roles
        if client is None or roles.controller != found.number or now - found.since > _RETURN_SECS:
            self._stands_in = None
        elif client.last_heard > found.since:
            self._stands_in = None
            log.warning("%s responds again: it gets control back", client)
            roles.hand_over(found.instead_of)
            if found.named:
                roles.name_successor(found.number)
            self._host.tell_clients()
