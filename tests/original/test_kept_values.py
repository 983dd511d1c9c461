"""Values of an event that nobody wanted: they still hold at the next one, whose server sends only what changed."""

from __future__ import annotations

import numpy as np
from gcspy_drivers.original.spaces import OriginalSpaces
from gcspy_original.wire import SpaceDefinition, StreamDefinition, StreamValues, Summary

from gcspy_server.api import Server


def test_values_of_an_event_that_nobody_wanted_come_with_the_next_one() -> None:
    server = Server("t", events=["A"])
    spaces = OriginalSpaces(server, driver="d")
    streams = tuple(StreamDefinition(id=number, name=f"s{number}") for number in range(2))
    spaces.add(SpaceDefinition(id=0, name="heap", tiles=2, streams=streams, names=b"a\0b\0"))

    def come(stream: int, *values: int) -> None:
        array = np.array(values, dtype="i4")
        spaces.take(StreamValues(space=0, stream=stream, values=array))
        spaces.take(Summary(space=0, stream=stream, values=(sum(values),)))

    come(0, 1, 2)
    come(1, 3, 4)
    assert server.should_transmit(0) is None  # there is no client
    spaces.leave_out()
    server.finish(0)
    server.add_observer(lambda _event: None)
    come(1, 5, 6)
    request = server.should_transmit(0)
    assert request is not None
    spaces.fill(request)
    first, second = server.spaces[0].streams
    assert first.data.tolist() == [1, 2]
    assert second.data.tolist() == [5, 6]
    server.finish(0)
    request = server.should_transmit(0)
    assert request is not None
    spaces.fill(request)  # nothing came: both are stale now
    assert not first.gathered
    assert not second.gathered
