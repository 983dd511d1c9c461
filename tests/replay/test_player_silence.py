"""A leader of a playback that falls silent without an end: its class continues, by the deadlines of a live session."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
import trio
import trio.testing
from gcspy_protocol import messages as m
from gcspy_protocol.messages import Message
from gcspy_protocol.playback import Seek
from gcspy_replay.file import MemorySource, Recording
from gcspy_replay.player import PlaybackStart, Player

from gcspy_session.options import SessionOptions
from tests.replay.recorded import small
from tests.replay.remote import Remote, served

pytestmark = pytest.mark.trio

DATA = small(40)
LOOK_SECS = 0.25


@dataclass
class Member:
    """A client that keeps reading and answering, until it falls silent."""

    remote: Remote
    reading: trio.CancelScope
    changed: trio.Condition
    sending: trio.Lock

    @property
    def number(self) -> int:
        (welcome,) = [one for one in self.remote.heard if isinstance(one, m.Welcome)]
        return welcome.client_id

    def fall_silent(self) -> None:
        """Read nothing and say nothing from now on."""
        self.reading.cancel()

    async def read(self) -> None:
        """Read, and answer pings."""
        answered = 0
        with self.reading:
            while await self.remote.receive():
                pings = [one for one in self.remote.heard if isinstance(one, m.Ping)]
                for ping in pings[answered:]:
                    await self.send(m.Pong(number=ping.number))
                answered = len(pings)
                async with self.changed:
                    self.changed.notify_all()

    async def until_leader(self, number: int) -> None:
        """Wait until this client learns that another leads."""
        async with self.changed:
            while self.remote.state.clients.leader != number:
                await self.changed.wait()

    async def until_successor(self, number: int) -> None:
        async with self.changed:
            while self.remote.state.clients.successor != number:
                await self.changed.wait()

    async def until_position(self, number: int) -> None:
        async with self.changed:
            while self.remote.positions[-1:] != [number]:
                await self.changed.wait()

    async def welcomed(self) -> None:
        async with self.changed:
            while not self.remote.positions:
                await self.changed.wait()

    async def send(self, message: Message) -> None:
        async with self.sending:
            await self.remote.send(message)


class Class:
    """Some members of a class at one player."""

    def __init__(self, nursery: trio.Nursery, connect: object) -> None:
        self._nursery = nursery
        self._connect = connect

    async def join(self, name: str, *, leads: bool = False) -> Member:
        assert callable(self._connect)
        member = Member(self._connect(), trio.CancelScope(), trio.Condition(), trio.Lock())
        await member.remote.greet(name, control=leads, person=name, following=not leads)
        self._nursery.start_soon(member.read)
        await member.welcomed()
        return member


@asynccontextmanager
async def classroom() -> AsyncIterator[Class]:
    recording = Recording([MemorySource(DATA)])
    player = Player(recording, beginning=PlaybackStart(running=False))
    async with served(player) as connect, trio.open_nursery() as nursery:
        yield Class(nursery, connect)
        nursery.cancel_scope.cancel()


async def test_the_named_successor_leads_within_two_seconds(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with classroom() as room:
        teacher = await room.join("teacher", leads=True)
        first, heir = await room.join("first"), await room.join("heir")
        await teacher.send(m.NameSuccessor(client=heir.number))
        await heir.until_successor(heir.number)
        await trio.sleep(20)  # it answers, so it leads
        assert heir.remote.state.clients.leader == teacher.number
        teacher.fall_silent()
        pulled = trio.current_time()
        await heir.until_leader(heir.number)
        assert trio.current_time() - pulled <= 2.0
        await heir.send(Seek(number=30))
        await first.until_position(30)


async def test_without_a_named_successor_the_first_follower_leads_after_five_seconds(
    autojump_clock: trio.testing.MockClock,
) -> None:
    silence = SessionOptions().silence_secs
    async with classroom() as room:
        teacher = await room.join("teacher", leads=True)
        first, second = await room.join("first"), await room.join("second")
        await trio.sleep(20)
        assert first.remote.state.clients.leader == teacher.number
        teacher.fall_silent()
        pulled = trio.current_time()
        await second.until_leader(first.number)
        passed = trio.current_time() - pulled
        assert silence - 1 - LOOK_SECS <= passed <= silence + LOOK_SECS + 0.01
        # The next one is not the teacher, who is still silent.
        first.fall_silent()
        await second.until_leader(second.number)
        await second.send(Seek(number=7))
        await second.until_position(7)


@pytest.mark.parametrize("named", [True, False])
async def test_a_teacher_who_is_heard_again_leads_again(
    autojump_clock: trio.testing.MockClock, named: bool
) -> None:
    async with classroom() as room:
        teacher = await room.join("teacher", leads=True)
        first, heir = await room.join("first"), await room.join("heir")
        if named:
            await teacher.send(m.NameSuccessor(client=heir.number))
            await heir.until_successor(heir.number)
        teacher.fall_silent()
        stand_in = heir if named else first
        await stand_in.until_leader(stand_in.number)
        await trio.sleep(3)
        await teacher.send(m.Ping(number=1))
        await first.until_leader(teacher.number)
        assert first.remote.state.clients.successor == stand_in.number
        await teacher.send(Seek(number=12))
        await first.until_position(12)


async def test_who_watches_alone_may_be_silent_for_as_long_as_it_likes(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with classroom() as room:
        alone = await room.join("alone", leads=True)
        alone.fall_silent()
        await trio.sleep(120)
        heard = len(alone.remote.heard)
        await alone.send(Seek(number=5))
        await alone.remote.until(lambda: alone.remote.positions[-1:] == [5])
        assert not any(isinstance(one, m.Ping) for one in alone.remote.heard[heard:])
