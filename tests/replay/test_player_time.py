"""A player in virtual time: when events come, and that nothing comes before."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import trio
import trio.testing
from gcspy_protocol import messages as m
from gcspy_protocol.messages import Message
from gcspy_protocol.model import EventFilter
from gcspy_protocol.playback import Direction, Pace, Seek, SetPlayback, Timeline
from gcspy_replay.file import ChunkRule, MemorySource, MemoryStore, Recording
from gcspy_replay.playback import END
from gcspy_replay.player import PlaybackStart, Player

from tests.replay.recorded import Small, small
from tests.replay.remote import Remote, served

RULE = ChunkRule(events=6, weight=0)
DATA = small(40, rule=RULE)
STEP = 0.1
"""Seconds between the events of `recorded.Small`."""


class Watch:
    """A client in virtual time.

    Args:
        remote: The client.
        clock: The loop's.
    """

    def __init__(self, remote: Remote, clock: trio.testing.MockClock) -> None:
        self.remote, self._clock = remote, clock

    async def position(self, number: int) -> None:
        """Wait, in no virtual time at all, until an event has come."""
        await self.remote.until(
            lambda: bool(self.remote.positions) and self.remote.positions[-1] == number
        )
        assert self.remote.positions[-1:] == [number]

    async def ask(self, *messages: Message) -> None:
        """Send commands and wait until they were taken."""
        for message in messages:
            await self.remote.send(message)
        await self.remote.send(
            m.TileNamesRequest(space=99, first=0, count=1)
        )  # answered in order, when the others are done
        before = self._errors()
        await self.remote.until(lambda: self._errors() > before)

    def _errors(self) -> int:
        return sum(isinstance(message, m.Error) for message in self.remote.heard)

    async def passes(self, seconds: float) -> None:
        """Let time pass; whatever is due begins, and what threads do of it ends: they don't know that time is virtual."""
        self._clock.jump(seconds)
        await trio.testing.wait_all_tasks_blocked()
        threads = trio.to_thread.current_default_thread_limiter()
        while threads.borrowed_tokens:
            time.sleep(0.0005)  # lets the thread have the interpreter
            await trio.testing.wait_all_tasks_blocked()

    async def nothing(self) -> None:
        """Nothing more was sent: a ping overtakes no event that was."""
        before = list(self.remote.positions)
        await self.ask()
        assert self.remote.positions == before


def in_virtual_time(
    scenario: Callable[[Watch], Coroutine[Any, Any, None]], beginning: PlaybackStart | None = None
) -> None:
    """Play a recording to one client, in virtual time."""

    async def main() -> None:
        player = Player(Recording([MemorySource(DATA)]), beginning=beginning)
        async with served(player) as connect:
            remote = connect()
            await remote.greet()
            await remote.until(lambda: bool(remote.positions))
            await scenario(Watch(remote, clock))
            await remote.close()

    clock = trio.testing.MockClock()
    trio.run(main, clock=clock)


def test_events_come_when_they_are_due_and_not_before() -> None:
    async def scenario(watch: Watch) -> None:
        await watch.position(1)
        for number in range(2, 8):
            await watch.passes(STEP * 0.9)
            await watch.nothing()
            await watch.passes(STEP * 0.11)
            await watch.position(number)

    in_virtual_time(scenario)


def test_speed_pace_and_direction_count_at_once() -> None:
    async def scenario(watch: Watch) -> None:
        await watch.ask(SetPlayback(speed=10))
        await watch.passes(STEP / 10 * 1.01)
        await watch.position(2)
        await watch.ask(SetPlayback(pace=Pace.FIXED, interval_millis=1000))
        await watch.passes(0.9)
        await watch.nothing()
        await watch.passes(0.11)
        await watch.position(3)
        await watch.ask(SetPlayback(direction=Direction.BACKWARDS))
        await watch.passes(STEP * 1.01)
        await watch.position(2)

    in_virtual_time(scenario)


def test_a_pause_stops_it_at_once_and_keeps_the_time_that_was_left() -> None:
    async def scenario(watch: Watch) -> None:
        await watch.passes(STEP * 0.5)
        await watch.ask(m.Pause())
        assert watch.remote.state.state.value == "paused"
        await watch.passes(3600)
        await watch.nothing()
        await watch.ask(m.Resume())
        await watch.passes(STEP * 0.4)
        await watch.nothing()
        await watch.passes(STEP * 0.11)
        await watch.position(2)

    in_virtual_time(scenario)


def test_a_filter_delays_then_pauses_and_a_resume_ends_the_delay() -> None:
    filters = (EventFilter(event=1, delay_millis=5000, pause=True),)

    async def scenario(watch: Watch) -> None:
        await watch.ask(Seek(number=2))
        await watch.passes(STEP * 1.01)
        await watch.position(3)
        await watch.passes(4)
        await watch.nothing()
        assert watch.remote.state.state.value == "running"
        await watch.passes(1.01)
        await watch.remote.until(lambda: watch.remote.state.state_reason == "event filter")
        await watch.ask(m.Resume())
        await watch.passes(STEP * 1.01)
        await watch.position(4)
        await watch.passes(STEP)
        await watch.position(5)
        await watch.passes(STEP)
        await watch.position(6)
        await watch.passes(1)
        await watch.ask(m.Resume())
        assert watch.remote.state.state_reason == "event filter"

    in_virtual_time(scenario, PlaybackStart(filters=filters))


def test_a_loop_and_the_end() -> None:
    async def scenario(watch: Watch) -> None:
        await watch.ask(SetPlayback(loop=(2, 3), interval_millis=50))
        for number, secs in ((2, STEP), (3, STEP), (2, 0.05), (3, STEP), (2, 0.05)):
            await watch.passes(secs * 1.001)
            await watch.position(number)
        await watch.ask(SetPlayback(), Seek(number=39))
        await watch.passes(STEP * 1.01)
        await watch.position(40)
        await watch.remote.until(lambda: watch.remote.state.state_reason == END)
        await watch.passes(3600)
        await watch.nothing()
        await watch.ask(m.Resume())
        await watch.position(1)

    in_virtual_time(scenario)


def test_a_player_that_was_held_up_leaves_nothing_out_and_does_not_rush() -> None:
    async def scenario(watch: Watch) -> None:
        await watch.passes(
            STEP * 5
        )  # four events late: they are shown one after the other, at once
        await watch.position(6)
        assert watch.remote.positions == [1, 2, 3, 4, 5, 6]
        await watch.passes(60)
        await watch.position(7)
        await watch.nothing()
        await watch.passes(STEP * 1.01)
        await watch.position(8)

    in_virtual_time(scenario)


def test_a_growing_recording_is_played_as_it_grows_and_given_up_after_a_while() -> None:
    async def main() -> None:
        player = Player(Recording([MemorySource(store.data)]), beginning=PlaybackStart(manner=fast))
        async with served(player) as connect:
            remote = connect()
            await remote.greet()
            watch = Watch(remote, clock)
            await watch.position(3)
            await watch.nothing()
            assert remote.state.state.value == "running"
            for number in (4, 5, 6):
                session.event()
                for _ in range(10):  # it is checked five times a second
                    await watch.passes(0.2)
                    await watch.ask()
                    if remote.positions[-1] == number:
                        break
                assert remote.positions[-1] == number
            assert remote.state.playback is not None
            assert (remote.state.playback.last, remote.state.playback.growing) == (6, True)
            for _ in range(7):  # it is given up after half a minute
                await watch.passes(5)
                await watch.nothing()
                if not remote.state.playback.growing:
                    break
            assert not remote.state.playback.growing
            assert remote.state.state_reason == END
            await remote.close()

    store = MemoryStore()
    session = Small(store, rule=RULE).events(3)
    fast = SetPlayback(pace=Pace.FIXED, interval_millis=0)
    clock = trio.testing.MockClock()
    trio.run(main, clock=clock)


def test_a_timeline_of_many_pages_is_sent_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages that go into the socket at once leave the queue empty, which nothing reports."""
    monkeypatch.setattr("gcspy_replay.player.player._PAGE_ROWS", 4)

    async def scenario(watch: Watch) -> None:
        await watch.ask()
        pages = [each for each in watch.remote.heard if isinstance(each, Timeline)]
        assert [len(page.rows) for page in pages] == [4] * 10
        assert [page.first for page in pages] == [*range(1, 40, 4)]

    in_virtual_time(scenario, PlaybackStart(running=False))
