"""The participants with their progress in reading, and the leader's place: the state that a class shares (SPEC.md section 8.12).

Nothing here accesses the target. Places and lists of participants are sent at a bounded rate,
always the latest: one list for any number of changes. Clients with long queues get neither, until
they have room.

Knows clients and their own data. The host, a session or a player, knows the leader.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

import trio
from gcspy_protocol import messages as m
from gcspy_protocol.attendance import Focus, person_name
from gcspy_protocol.codec import encode

from gcspy_session.client import ClientConnection

__all__ = ["Attendance", "Room", "client_message"]

_LOOK_SECS = 0.05
"""The shortest time between two places: twenty per second look like one movement."""

_ROSTER_SECS = 0.25
"""The shortest time between two lists of participants: a hundred clients that join in a second cause four lists, not a hundred."""

_CHECK_SECS = 1.0

_STALLED_SECS = 3.0
"""A client that has not answered for this long has stalled: a window that opens a heap of ten million tiles takes one second."""

_FIRST_PING = 1 << 40
"""Numbers of our pings; those of the controller watchdog are smaller."""


class Room(Protocol):
    """The host of an attendance."""

    def present(self) -> Collection[ClientConnection]:
        """All connected clients."""

    def followers_of(self, leader: ClientConnection) -> Collection[ClientConnection]:
        """The followers that receive this client's place; none if it does not lead."""

    def shared_until(self, client: ClientConnection) -> int:
        """Number of the latest event that was offered to this client's queue."""

    def tell_present(self, clients: Collection[ClientConnection]) -> Collection[ClientConnection]:
        """Send these clients the list of participants; return those without room for it now."""


@dataclass(slots=True)
class _Question:
    """A ping without an answer yet: its number, the event before it, and its time."""

    number: int
    sequence: int
    at: float


class Attendance:
    """State of the participants.

    Args:
        room: Its host.
    """

    def __init__(self, room: Room) -> None:
        self._room = room
        self._looks: dict[int, Focus] = {}
        self._untold: dict[int, ClientConnection] = {}
        self._late: dict[int, tuple[ClientConnection, ClientConnection]] = {}
        self._questions: dict[int, _Question] = {}
        self._read: dict[int, int] = {}
        self._pings = _FIRST_PING
        self._changed = False
        self._changed_for_all = self._answers_changed = False
        self._informed: ClientConnection | None = None
        self._roster_at = float("-inf")
        self._crowded: set[int] = set()
        self._wakeup = trio.Event()

    async def run(self) -> None:
        """Send changes, until cancelled."""
        check_at = trio.current_time() + _CHECK_SECS
        while True:
            with trio.move_on_at(
                min(check_at, self._roster_at) if self._has_roster_to_tell else check_at
            ):
                await self._wakeup.wait()
                self._wakeup = trio.Event()
            told = self._tell_places()
            now = trio.current_time()
            if now >= check_at:
                check_at = now + _CHECK_SECS
                self._check(now)
            if self._has_roster_to_tell and now >= self._roster_at:
                self._tell_roster(now)
            if told:
                await trio.sleep(_LOOK_SECS)

    # ------------------------------------------------------------------ participants

    def greeted(self, client: ClientConnection, hello: m.Hello) -> None:
        """Note that a client has greeted."""
        client.presence.person = person_name(hello.person)
        client.presence.following = hello.following
        client.presence.attends = bool(hello.person) or hello.following

    def attend(self, client: ClientConnection, message: m.Attend) -> None:
        """Note a client's new name, whether it follows, and its answers, which only the leader is told."""
        presence, person = client.presence, person_name(message.person)
        before = presence.person, presence.following, presence.attends
        presence.person, presence.following, presence.attends = person, message.following, True
        presence.step, presence.tries = message.step, message.tries
        if before == (person, message.following, True):
            self._answers_changed = True
            self._wakeup.set()
        else:
            self.changed()

    def changed(self) -> None:
        """Note that a client's own data changed: inform attending clients, soon."""
        self._changed = True
        self._wakeup.set()

    def changed_for_all(self, *, but: ClientConnection | None = None) -> None:
        """Note that the clients or the controller changed: inform all clients, soon.

        Args:
            but: A client that was informed already.
        """
        self._changed_for_all = True
        self._informed = but
        self._wakeup.set()

    @property
    def _has_roster_to_tell(self) -> bool:
        return (
            self._changed or self._changed_for_all or self._answers_changed or bool(self._crowded)
        )

    def _tell_roster(self, now: float) -> None:
        """Send the list of participants to all clients that need it."""
        told = [
            client
            for client in self._room.present()
            if client is not self._informed
            and (
                self._changed_for_all
                or (self._changed and client.presence.attends)
                or client.number in self._crowded
                or (self._answers_changed and self._room.followers_of(client))
            )
        ]
        must = {client.number for client in told} if self._changed_for_all else self._crowded
        self._changed = self._changed_for_all = self._answers_changed = False
        self._informed = None
        self._roster_at = now + _ROSTER_SECS
        refused = {client.number for client in self._room.tell_present(told)}
        self._crowded = refused & must

    def ponged(self, client: ClientConnection, number: int) -> None:
        """Note how far a client has read."""
        question = self._questions.get(client.number)
        if question is not None and question.number == number:
            self._read[client.number] = question.sequence
            del self._questions[client.number]

    def forget(self, client: ClientConnection) -> None:
        """Note that a client has gone."""
        for known in (self._looks, self._untold, self._late, self._questions, self._read):
            known.pop(client.number, None)
        self._crowded.discard(client.number)
        self._late = {number: pair for number, pair in self._late.items() if pair[1] is not client}

    def _check(self, now: float) -> None:
        """Check how far all clients have read, and ping again; not needed for a class of one."""
        for follower, leader in list(self._late.values()):
            self.bring(follower, leader)
        present = [client for client in self._room.present() if client.presence.attends]
        if len(present) < 2:
            return
        for client in present:
            question, read = self._questions.get(client.number), self._read.get(client.number)
            behind: int | None = None
            if question is not None:
                behind = (
                    max(0, self._room.shared_until(client) - read) if read is not None else None
                )
            elif read is not None:
                behind = 0
            stalled = question is not None and now - question.at >= _STALLED_SECS
            if (behind, stalled) != (client.presence.behind, client.presence.stalled):
                client.presence.behind, client.presence.stalled = behind, stalled
                self._changed = True
            if question is None and not client.crowded:
                self._ask(client, now)

    def _ask(self, client: ClientConnection, now: float) -> None:
        self._pings += 1
        self._questions[client.number] = _Question(
            self._pings, self._room.shared_until(client), now
        )
        client.push_if_room(encode(m.Ping(number=self._pings)).data)

    # ------------------------------------------------------------------ places

    def look(self, leader: ClientConnection, at: Focus) -> None:
        """Note the leader's new place: send the latest one to the followers."""
        self._looks[leader.number] = at
        self._untold[leader.number] = leader
        self._wakeup.set()

    def bring(self, follower: ClientConnection, leader: ClientConnection | None) -> None:
        """Send the leader's place to a client that begins to follow, if it is known."""
        self._late.pop(follower.number, None)
        if leader is None or leader is follower or follower not in self._room.followers_of(leader):
            return
        at = self._looks.get(leader.number)
        if at is not None and not follower.push_if_room(
            encode(m.Looked(client=leader.number, at=at)).data
        ):
            self._late[follower.number] = (follower, leader)

    def _tell_places(self) -> bool:
        """Send places that were not sent yet; return whether there were any."""
        told = bool(self._untold)
        for number, leader in list(self._untold.items()):
            followers = self._room.followers_of(leader)
            data = (
                encode(m.Looked(client=number, at=self._looks[number])).data if followers else b""
            )
            for client in followers:
                if client.push_if_room(data):
                    self._late.pop(client.number, None)
                else:
                    self._late[client.number] = (client, leader)
        self._untold.clear()
        return told


def client_message(client: ClientConnection, *, answers: bool = False) -> m.Client:
    """The data about a client for the others.

    Args:
        answers: Whether its answers are included: for the leader.
    """
    presence = client.presence
    return m.Client(
        id=client.number,
        name=client.name,
        person=presence.person,
        following=presence.following,
        behind=presence.behind,
        stalled=presence.stalled,
        step=presence.step if answers else None,
        tries=presence.tries if answers else (),
    )
