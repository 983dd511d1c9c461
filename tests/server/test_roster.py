"""The list of participants goes a few times a second at most, to every client, however many come and go."""

from __future__ import annotations

from collections.abc import Collection

import pytest
import trio
import trio.testing
from gcspy_protocol import messages as m
from gcspy_protocol.handshake.credentials import Channel

from gcspy_server.api import SessionOptions
from gcspy_session.allowance import shared_bucket
from gcspy_session.attendance import Attendance
from gcspy_session.client import ClientConnection
from gcspy_session.network.transport import Transport
from gcspy_session.queued_bytes import QueuedBytes
from tests.server.target import Target
from tests.server.test_session_clock import Peer, started

pytestmark = pytest.mark.trio


async def lists_until_quiet(peer: Peer) -> list[m.Clients]:
    """The lists that come until nothing has come for a second of the clock that jumps."""
    found: list[m.Clients] = []
    while True:
        found += [one for one in peer.connection.messages() if isinstance(one, m.Clients)]
        with trio.move_on_after(1.5) as quiet:
            peer.connection.receive_data(await peer.stream.receive_some())
        if quiet.cancelled_caught:
            return found


async def test_fifty_that_come_in_a_second_are_a_few_lists(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    session = await started(nursery, Target())
    witness = Peer(session, nursery)
    await witness.greet()
    others = []
    began = trio.current_time()
    for _ in range(50):
        others.append(Peer(session, nursery))
        await others[-1].greet()
        await trio.sleep(0.02)
    assert trio.current_time() - began < 1.1
    lists = await lists_until_quiet(witness)
    assert 4 <= len(lists) <= 6
    assert [one.id for one in lists[-1].clients] == list(range(1, 52))
    for other in others:
        await other.stream.aclose()
        await trio.sleep(0.02)
    lists = await lists_until_quiet(witness)
    assert 4 <= len(lists) <= 6
    assert [one.id for one in lists[-1].clients] == [1]


async def test_one_that_comes_after_a_quiet_time_is_told_at_once(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    session = await started(nursery, Target())
    witness = Peer(session, nursery)
    await witness.greet()
    await trio.sleep(10)
    before = trio.current_time()
    other = Peer(session, nursery)
    await other.greet()
    while not (
        isinstance(one := await witness.next(m.Clients), m.Clients) and len(one.clients) == 2
    ):
        pass
    assert trio.current_time() == before
    assert await lists_until_quiet(other) == [], "it had its list with its greeting"


async def test_control_that_goes_to_and_fro_ends_with_the_right_one(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    session = await started(nursery, Target())
    witness, controller = Peer(session, nursery), Peer(session, nursery)
    await witness.greet()
    await controller.greet(control=True)
    await lists_until_quiet(witness)
    for successor in (1, None) * 20:
        await controller.send(m.NameSuccessor(client=successor))
    await controller.send(m.HandOver(client=1))
    lists = await lists_until_quiet(witness)
    assert len(lists) <= 2
    assert (lists[-1].controller, lists[-1].successor) == (1, None)


class Room:
    """Three clients, of which some have no room."""

    def __init__(self) -> None:
        options = SessionOptions()
        self.clients = [
            ClientConnection(
                number,
                Transport(trio.testing.memory_stream_pair()[0], "memory", channel=Channel.LOCAL),
                options,
                shared_bucket(options.requests),
                memory=QueuedBytes(),
                token=None,
            )
            for number in (1, 2, 3)
        ]
        self.without_room: set[int] = set()
        self.told: list[list[int]] = []

    def present(self) -> Collection[ClientConnection]:
        return self.clients

    def followers_of(self, leader: ClientConnection) -> Collection[ClientConnection]:
        return ()

    def shared_until(self, client: ClientConnection) -> int:
        return 0

    def tell_present(self, clients: Collection[ClientConnection]) -> Collection[ClientConnection]:
        self.told.append([one.number for one in clients if one.number not in self.without_room])
        return [one for one in clients if one.number in self.without_room]

    def take_told(self) -> list[list[int]]:
        told, self.told = [one for one in self.told if one], []
        return told


async def test_who_has_no_room_is_told_when_it_has(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    room = Room()
    attendance = Attendance(room)
    nursery.start_soon(attendance.run)
    room.without_room = {2, 3}
    attendance.changed_for_all()
    await trio.sleep(3)
    assert room.take_told() == [[1]]
    room.without_room = {3}
    await trio.sleep(3)
    assert room.take_told() == [[2]]
    attendance.forget(room.clients.pop())
    room.without_room = set()
    await trio.sleep(3)
    assert room.take_told() == []
    nursery.cancel_scope.cancel()


async def test_what_somebody_says_of_himself_is_told_to_those_who_attend_and_owed_to_nobody(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    room = Room()
    attendance = Attendance(room)
    nursery.start_soon(attendance.run)
    room.without_room = {1}
    for client in room.clients[:2]:
        client.presence.attends = True
    attendance.changed()
    await trio.sleep(0.5)
    room.without_room = set()
    await trio.sleep(0.4)
    assert room.take_told() == [[2]]
    nursery.cancel_scope.cancel()
