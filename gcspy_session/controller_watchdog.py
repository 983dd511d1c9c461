"""Checks whether a controller is alive, and replaces one that has gone silent (SPEC.md section 4.3).

A pulled cable is not reported: such a connection does not end. So the controller is pinged: twice a
second if a successor is named, which then gets control within two seconds; otherwise each second
while it holds something that others need. A window that was only busy answers again soon, and then
gets control back.

Knows clients, roles and silence; does not know sockets, or what is controlled: a target for a
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
"""A check that is this late means that this loop was blocked."""
_RETURN_SECS = 10.0
"""A client that is heard again within this time gets control back. After that the class stays with its new controller."""


class _StandIn(NamedTuple):
    """The replacement of a silent controller, since when, and whether the controller had named it."""

    instead_of: int
    number: int
    since: float
    named: bool


class WatchdogHost(Protocol):
    """The host of a watched controller."""

    @property
    def roles(self) -> ControlRoles:
        """The controller and its successor."""

    @property
    def fallback(self) -> int | None:
        """The replacement for a controller without a successor; None: there is none."""

    @property
    def held(self) -> bool:
        """Whether the target is held for the controller."""

    def client(self, number: int | None) -> ClientConnection | None:
        """A connected client."""

    def tell_clients(self) -> None:
        """Inform all clients about the controller."""


class ControlRoles(Protocol):
    """The controller and its successor; `Roles` is one implementation."""

    @property
    def controller(self) -> int | None:
        """Number of the client in control."""

    @property
    def successor(self) -> int | None:
        """Number of its successor."""

    def hand_over(self, client: int) -> None:
        """Make another client the controller."""

    def name_successor(self, client: int | None) -> None:
        """Name the successor."""


async def watch_controllers(watchdogs: Callable[[], Iterable[ControllerWatchdog]]) -> None:
    """Watch the current controllers, until cancelled."""
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
    """Watches one controller.

    Args:
        host: Its host.
        silence_secs: A controller that holds the target and is silent for this long is lost. One
            without a successor gives way to the fallback after this time.
        succession_secs: One with a successor gives way to it after this time.
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
        """Ignore silence before now: this loop was late, and the controller's messages are not read yet."""
        self._since = now

    def look(self, now: float) -> None:
        """Check whether the controller was heard, and ping it."""
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
        """Give control to the successor. The connection stays open: it may be a window that is busy."""
        log.warning(
            "%s silent for %.1f s: control passes to client %d", controller, silence, heir.number
        )
        self._stands_in = _StandIn(controller.number, heir.number, now, named)
        self._host.roles.hand_over(heir.number)
        self._host.tell_clients()

    def _give_back(self, now: float) -> None:
        """Give control back to a client that is heard again, unless the replacement has passed it on, or has had it for too long."""
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
