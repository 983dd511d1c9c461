"""Clients that come, go and change their minds while the target runs as fast as it can: no client ever gets a wrong tile.

A delta on the wrong base, a keyframe of another schema, an event twice or out of order: each is an error in the
client interpreter, or a first tile that is not the number of its event.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import numpy as np
from gcspy_protocol import ClientInterpreter
from gcspy_protocol import messages as m

from gcspy.connection.link import Link, connect
from gcspy_server.api import (
    ServedSession,
    Server,
    ServerSpace,
    ServerStream,
    SessionOptions,
    UniformNames,
)

Serve = Callable[..., ServedSession]

_JOINERS = 5
_VISITS = 6
_EVENTS_A_VISIT = 12


class Churner:
    """A target that resizes, adds and removes spaces between events; every tile of an event is its occurrence."""

    def __init__(self) -> None:
        self.server = Server("churn", events=["tick"])
        self.kept = self.add(500)
        self.passing = self.add(20)
        self.stop = threading.Event()
        self.events = 0

    def add(self, tiles: int) -> tuple[ServerSpace, ServerStream, ServerStream]:
        space = self.server.add_space("s", names=UniformNames(0x1000, 16, tiles))
        return space, space.add_stream("number", dtype="u4"), space.add_stream("sparse", dtype="u4")

    def run(self) -> None:
        dice = np.random.default_rng(3)
        while not self.stop.is_set():
            self.events += 1
            if self.events % 7 == 0:
                self.kept[0].resize(UniformNames(0x1000, 16, int(dice.integers(1, 900))))
            if self.events % 11 == 0:
                self.server.remove_space(self.passing[0])
                self.passing = self.add(int(dice.integers(1, 40)))
            request = self.server.should_transmit(0)
            if request:
                for space, number, sparse in (self.kept, self.passing):
                    space.reset(number)
                    number.data[:] = request.occurrence
                    # Few of these change at each event: they travel as deltas.
                    sparse.data[dice.integers(0, space.count)] = request.occurrence
                    sparse.data[0] = request.occurrence
            self.server.finish(0)


def check(state: ClientInterpreter, event: m.Event, seen: list[int]) -> None:
    assert not seen or event.occurrence >= seen[-1]
    for space in state.spaces.values():
        for stream in space.streams.values():
            if stream.sequence:
                assert stream.occurrence <= event.occurrence
            # Values unknown at an event are no longer requested: a keyframe names the tiles again.
            if stream.is_fresh(event) and space.count and stream.known is None:
                assert stream.values[0] == event.occurrence
                assert int(stream.values.max()) == event.occurrence
        number = space.streams[0]
        if space.space.id == 1:  # every client requests it, and it is gathered each time
            assert number.is_fresh(event)
            assert number.known is None
        if number.is_fresh(event) and number.known is None:
            assert (number.values == event.occurrence).all()
            assert number.summary is not None
            assert number.summary.values == (event.occurrence * space.count,)
    seen.append(event.occurrence)


def visit(address: str, dice: random.Random) -> None:
    """Join, receive some events, sometimes request less or fewer, and leave, sometimes without a message."""
    link = connect(address, client="visitor")
    try:
        look(link, dice)
        if dice.random() < 0.5:
            link.close()
    finally:
        link._socket.close()


def look(link: Link, dice: random.Random) -> None:
    state, seen = ClientInterpreter(), list[int]()
    while len(seen) < _EVENTS_A_VISIT:
        message = link.receive(60)
        assert message is not None
        state.apply(message)
        if isinstance(message, m.Event):
            check(state, message, seen)
            if dice.random() < 0.2:
                some = (m.Subscription(space=1, streams=(0,)),) if dice.random() < 0.5 else None
                link.send(m.Subscribe(spaces=some, max_rate_hz=dice.choice([None, 200.0])))


def test_whoever_comes_whenever_gets_the_truth(serve: Serve) -> None:
    churner = Churner()
    address = serve(churner.server, options=SessionOptions(queued_events=3)).addresses[0]
    failures: list[BaseException] = []

    def visits(seed: int) -> None:
        dice = random.Random(seed)
        try:
            for _ in range(_VISITS):
                visit(address, dice)
        except BaseException as error:
            failures.append(error)
            raise

    target = threading.Thread(target=churner.run)
    target.start()
    visitors = [threading.Thread(target=visits, args=(seed,)) for seed in range(_JOINERS)]
    for thread in visitors:
        thread.start()
    for thread in visitors:
        thread.join(60)
    churner.stop.set()
    target.join(60)
    assert failures == []
    assert churner.events > 100
