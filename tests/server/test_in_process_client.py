"""A server hands the same events to a receiver in its own process as to a client."""

from __future__ import annotations

import numpy as np
import pytest
from gcspy_protocol.connection import Connection
from gcspy_protocol.errors import LocalProtocolError
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.messages import Event, Hello, Message
from gcspy_protocol.model import Role

from gcspy_server.api import Server, UniformNames


class Hearer:
    """A client in the same process."""

    def __init__(self) -> None:
        self.connection, self.state = Connection(Role.CLIENT), ClientInterpreter()
        self.connection.send(Hello(client="hearer"))
        self.heard: list[Message] = []

    def take(self, data: bytes) -> None:
        self.connection.receive_data(data)
        for message in self.connection.messages():
            self.state.apply(message)
            self.heard.append(message)


def test_every_event_is_handed_over_with_its_own_time_and_all_that_was_filled_in() -> None:
    now = [1000]
    server = Server("computed", events=("Tick", "Tock"), time_nanos=lambda: now[0])
    space = server.add_space("heap", names=UniformNames(0x1000, 16, 4))
    used = space.add_stream("Used", maximum=99)
    hearer = Hearer()
    server.deliver_to(hearer.take, wall_offset_nanos=7)
    assert hearer.state.welcome is not None
    assert (hearer.state.welcome.server, hearer.state.welcome.wall_offset_nanos) == ("computed", 7)
    for number in range(1, 200):
        now[0] += 5
        assert server.should_transmit(number % 2) is not None
        space.reset()
        used.data[:] = number % 97
        if number == 100:
            space.resize(UniformNames(0x1000, 16, 9))
            used.data[:] = 3
        server.finish(number % 2, f"cause {number}", ("bytes", number * 10))
        event = hearer.state.last_event
        assert event is not None
        assert (event.sequence, event.time_nanos, event.program_clock) == (
            number,
            now[0],
            ("bytes", number * 10),
        )
        assert np.array_equal(hearer.state.spaces[space.id].streams[0].values, used.data)
    assert sum(isinstance(message, Event) for message in hearer.heard) == 199
    extra = server.add_space("later", names=UniformNames(0, 1, 1))
    assert server.should_transmit(0) is not None
    server.finish(0)
    assert extra.id in hearer.state.spaces


def test_a_server_that_listens_hands_nothing_over(tmp_path_factory: pytest.TempPathFactory) -> None:
    server = Server("listens", events=("Tick",))
    with (
        server.serve(f"unix:{tmp_path_factory.mktemp('s')}/s"),
        pytest.raises(LocalProtocolError, match="already listening"),
    ):
        server.deliver_to(lambda _data: None)
