"""Clients of a player that go anywhere, follow anyone and change their minds: each always has the state of the recording."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from functools import partial

import pytest
import trio
from gcspy_protocol import messages as m
from gcspy_protocol.messages import Message
from gcspy_protocol.model import EventFilter
from gcspy_protocol.playback import Direction, Pace, Seek, SetPlayback
from gcspy_replay.file import ChunkRule, MemorySource, MemoryStore, Recording
from gcspy_replay.player import PlaybackStart, Player
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from gcspy_session.options import SessionOptions
from tests.examples import examples
from tests.protocol.session import KINDS
from tests.replay.recorded import RULES, Recorder, small
from tests.replay.remote import PATIENCE_SECS, Remote, served
from tests.replay.viewing import told

STILL = PlaybackStart(running=False)
RUSH = SetPlayback(pace=Pace.FIXED, interval_millis=0)


def _has_a_picture(remote: Remote) -> bool:
    return bool(remote.positions)


class Churn:
    """Clients of one player, and what they may do.

    Args:
        recording: The played recording, read separately.
        choose: Chooses one of several.
    """

    def __init__(self, recording: Recording, choose: random.Random) -> None:
        self._recording, self._choose = recording, choose
        self.clients: list[Remote] = []

    async def sync(self, remote: Remote) -> None:
        """Wait until all its requests were done."""
        await remote.send(m.TileNamesRequest(space=65_535, first=0, count=1))
        await remote.until(lambda: any("space 65535" in one.message for one in _errors(remote)))
        remote.heard.clear()

    async def agrees(self, remote: Remote) -> None:
        """Wait until what it knows is what the recording says of the event at which it is."""

        def right() -> bool:
            state = remote.state
            return bool(state.position) and told(state) == told(
                self._recording.seek(state.position)
            )

        with trio.fail_after(PATIENCE_SECS):
            await remote.until(right)
        assert right()

    async def follows(self, remote: Remote) -> None:
        """Wait until it is where the one is that it follows; whom it follows, it may learn only now."""

        def is_there() -> bool:
            leader = remote.state.clients.controller
            places = [
                other.state.position
                for other in self.clients
                if other is not remote
                and other.state.welcome is not None
                and other.state.welcome.client_id == leader
            ]
            return not places or remote.state.position == places[0]

        with trio.fail_after(PATIENCE_SECS):
            await remote.until(is_there)
        await self.agrees(remote)

    def command(self, remote: Remote) -> Message:
        """Anything that a client may ask for."""
        last = self._recording.last
        choose = self._choose
        ids = [
            other.state.welcome.client_id
            for other in self.clients
            if other.state.welcome is not None
        ]
        period = EventFilter(
            event=choose.randrange(KINDS),
            period=choose.randint(1, 3),
            enabled=choose.random() < 0.8,
        )
        commands: list[Message] = [
            Seek(number=choose.randint(0, last + 1)),
            Seek(number=choose.randint(0, last + 1)),
            Seek(steps=choose.randint(-3, 3)),
            m.Step(),
            m.Step(),
            m.Resume(),
            m.Pause(),
            RUSH,
            replace(RUSH, direction=Direction.BACKWARDS),
            m.SetFilters(filters=(period,)),
            m.Follow(client=choose.choice(ids)),
            m.Follow(client=None),
            m.TakeControl(),
            m.Subscribe(),
            m.Subscribe(spaces=()),
        ]
        return choose.choice(commands)

    async def run(self, rounds: int, *, clients: int) -> None:
        """Let them do this many things."""
        player = Player(
            self._recording.again(), beginning=STILL, options=SessionOptions(queued_events=3)
        )
        async with served(player) as connect:
            for _ in range(clients):
                remote = connect()
                self.clients.append(remote)
                await remote.greet()
                await remote.until(partial(_has_a_picture, remote))
            for _ in range(rounds):
                remote = self._choose.choice(self.clients)
                for _ in range(self._choose.randint(1, 3)):
                    await remote.send(self.command(remote))
                await self.sync(remote)
            for remote in self.clients:
                await remote.send(m.Subscribe())
                await remote.send(m.Pause())
                await self.sync(remote)
            for remote in self.clients:
                await self.follows(remote)
                await remote.close()


def _errors(remote: Remote) -> list[m.Error]:
    return [message for message in remote.heard if isinstance(message, m.Error)]


@given(st.data(), RULES, st.integers(2, 16), st.integers(0, 1 << 30))
@examples(0.4)
def test_whatever_clients_do_each_knows_what_the_recording_says(
    data: DataObject, rule: ChunkRule, steps: int, seed: int
) -> None:
    store = MemoryStore()
    seen = Recorder(data.draw, store, rule, tapped=True).run(steps)
    if not seen.events:
        return
    churn = Churn(Recording([MemorySource(store.data)]), random.Random(seed))
    trio.run(lambda: churn.run(12, clients=3))


@pytest.mark.soak
def test_a_classroom_follows_and_churns(soak_seed: int) -> None:
    """A hundred clients of one recording, most of which follow another most of the time."""
    data = small(300, rule=ChunkRule(events=20, weight=0), tiles=400)
    churn = Churn(Recording([MemorySource(data)]), random.Random(soak_seed))
    rounds = int(os.environ.get("GCSPY_SOAK_ROUNDS", "1000"))
    trio.run(lambda: churn.run(rounds, clients=100))
