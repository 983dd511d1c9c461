"""A client of the tests: a blocking link, the client interpreter, and a diary of what came."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from gcspy_protocol import ClientInterpreter
from gcspy_protocol import messages as m
from gcspy_protocol.interpreter import EventChange
from gcspy_protocol.messages import Message
from gcspy_protocol.model import ControlState

from gcspy.connection.link import Link
from gcspy_server.api import ServerSpace
from tests.waiting import PATIENCE_SECS

Kind = TypeVar("Kind", bound=Message)


class Viewer:
    """A connected client.

    Attributes:
        link: Its connection.
        state: Its state of the session.
        diary: Every message that came, events only once they are complete.
        changes: Every event that came.
    """

    def __init__(self, link: Link) -> None:
        self.link = link
        self.state = ClientInterpreter()
        self.diary: list[Message] = []
        self.changes: list[EventChange] = []
        self.until(lambda: bool(self.seen(m.Counters)))  # ends the bootstrap

    @property
    def number(self) -> int:
        return self.link.welcome.client_id

    def send(self, message: Message) -> None:
        self.link.send(message)

    def read(self) -> Message:
        """Wait for the next message and follow it."""
        message = self.link.receive(PATIENCE_SECS)
        assert message is not None, f"nothing came; before it: {self.diary[-5:]}"
        self.diary.append(message)
        change = self.state.apply(message)
        if change is not None:
            self.changes.append(change)
        return message

    def until(self, done: Callable[[], bool]) -> None:
        while not done():
            self.read()

    def seen(self, kind: type[Kind]) -> list[Kind]:
        return [message for message in self.diary if isinstance(message, kind)]

    def next(self, kind: type[Kind]) -> Kind:
        """Wait for the next message of a kind that has not come yet."""
        while True:
            message = self.read()
            if isinstance(message, kind):
                return message

    def event(self) -> m.Event:
        return self.next(m.Event)

    def until_events(self, events: int) -> None:
        """Wait until this many events have come, in all."""
        self.until(lambda: len(self.changes) >= events)

    def wait_state(self, state: ControlState) -> None:
        self.until(lambda: self.state.state is state)

    def sync(self) -> None:
        """Wait until the server has handled everything sent so far."""
        number = len(self.diary) + 1_000_000
        self.send(m.Ping(number=number))
        while self.next(m.Pong).number != number:
            pass

    def events(self) -> list[tuple[int, int]]:
        return [(change.event.event, change.event.occurrence) for change in self.changes]

    def assert_has(self, space: ServerSpace) -> None:
        """Every tile of every stream is what the driver filled in."""
        state = self.state.spaces[space.id]
        assert state.count == space.count
        np.testing.assert_array_equal(state.control.values, space._control)
        for stream in space.streams:
            mine = state.streams[stream.schema.id]
            known = np.ones(space.count, dtype=bool) if stream.known is None else stream.known
            ours = np.ones(space.count, dtype=bool) if mine.known is None else mine.known
            np.testing.assert_array_equal(ours, known)
            np.testing.assert_array_equal(mine.values[known], stream._values[known])

    def assert_equals(self, other: Viewer) -> None:
        """Tile for tile what another client has."""
        assert self.state.spaces.keys() == other.state.spaces.keys()
        for number, mine in self.state.spaces.items():
            theirs = other.state.spaces[number]
            assert (mine.count, mine.info) == (theirs.count, theirs.info)
            assert [mine.names.key(i) for i in range(mine.count)] == [
                theirs.names.key(i) for i in range(mine.count)
            ]
            np.testing.assert_array_equal(mine.control.values, theirs.control.values)
            for stream, values in mine.streams.items():
                other_values = theirs.streams[stream]
                np.testing.assert_array_equal(values.values, other_values.values)
                assert (values.sequence, values.occurrence) == (
                    other_values.sequence,
                    other_values.occurrence,
                )
                assert values.summary == other_values.summary
