"""Whether the controller still lives, and who stands in for one that has fallen silent (SPEC.md section 4.3).

A connection whose cable was pulled has no end that anybody is told of. So the one in control is asked for a sign of life: twice a second where a successor is
named, who then has control within two seconds; otherwise each second while it holds the target, which nobody else may free. A window that was only busy is
heard again soon: then it has control again.

Knows clients, roles and silence; knows no sockets, and not what control is good for.
"""

from __future__ import annotations

from typing import Protocol

import trio
from gcspy_protocol import messages as m
from gcspy_protocol.codec import encode

from gcspy_server.session.client import Client, log
from gcspy_server.session.roles import Roles

__all__ = ["Vigil"]

_LOOK_SECS = 0.25
_PING_SECS = 0.5
_HOLDING_PING_SECS = 1.0
_LATE_SECS = 0.5
"""A look that comes so much too late says that it was this loop that did not listen."""
_RETURN_SECS = 10.0
"""Who is heard again within so long has control again. After that the class goes on with whom it has."""


class Host(Protocol):
    """Whose controller is looked after."""

    roles: Roles

    def client(self, number: int | None) -> Client | None:
        """A client that is connected."""

    @property
    def held(self) -> bool:
        """Whether the target stands still for the controller."""

    def tell_clients(self) -> None:
        """Tell everyone who controls."""


class Vigil:
    """Looks after one session's controller.

    Args:
        host: The session.
        silence_secs: A controller that holds the target and says nothing for so long is lost.
        succession_secs: One with a successor gives way to it after so long.
    """

    def __init__(self, host: Host, *, silence_secs: float, succession_secs: float) -> None:
        self._host = host
        self._silence_secs, self._succession_secs = silence_secs, succession_secs
        self._watched: int | None = None
        self._since = 0.0
        self._pinged = 0.0
        self._number = 0
        self._stands_in: tuple[int, int, float] | None = None

    async def run(self) -> None:
        """Look, until cancelled."""
        looked = trio.current_time()
        while True:
            await trio.sleep(_LOOK_SECS)
            now = trio.current_time()
            if now - looked > _LOOK_SECS + _LATE_SECS:
                self._since = now  # what it said meanwhile is not read yet
            looked = now
            self.look(now)

    def look(self, now: float) -> None:
        """Look whether the controller was heard, and ask it for a sign of life."""
        self._give_back(now)
        host = self._host
        controller, heir = host.client(host.roles.controller), host.client(host.roles.successor)
        if controller is None or not (host.held or heir is not None):
            self._watched = None
            return
        if self._watched != controller.number:
            self._watched, self._since, self._pinged = controller.number, now, 0.0
        silence = now - max(self._since, controller.last_heard)
        if heir is not None and silence > self._succession_secs:
            self._pass(controller, heir, silence, now)
        elif host.held and silence > self._silence_secs:
            controller.end(f"silent for {silence:.1f} s while it held the target")
        elif now - self._pinged >= (_HOLDING_PING_SECS if heir is None else _PING_SECS):
            self._pinged = now
            self._number += 1
            controller.push_if_room(encode(m.Ping(number=self._number)).data)

    def _pass(self, controller: Client, heir: Client, silence: float, now: float) -> None:
        """Let the successor have control. The connection stays: it may be a window that is busy."""
        log.warning(
            "%s silent for %.1f s: control goes to client %d", controller, silence, heir.number
        )
        self._host.roles.hand_over(heir.number)
        self._stands_in = (controller.number, heir.number, now)
        self._host.tell_clients()

    def _give_back(self, now: float) -> None:
        """Let one that is heard again have control again, unless whoever stood in has passed it on, or has got used to it."""
        if self._stands_in is None:
            return
        before, heir, since = self._stands_in
        client, roles = self._host.client(before), self._host.roles
        if client is None or roles.controller != heir or now - since > _RETURN_SECS:
            self._stands_in = None
        elif client.last_heard > since:
            self._stands_in = None
            log.warning("%s is heard again: it has control", client)
            roles.hand_over(before)
            roles.name_successor(heir)
            self._host.tell_clients()
