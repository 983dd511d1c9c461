"""A session on the original's wire and back loses what `docs/original.md` lists, and nothing else."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, seed
from hypothesis import strategies as st

from gcspy_server.api import Server
from tests.examples import examples
from tests.original.sameness import assert_same_space
from tests.original.sessions import ThereAndBack, Viewer, fills, with_streams


def _random_session(data: st.DataObject) -> None:
    draw = data.draw
    now = 0
    server = Server("t", events=["A", "B", "C"], general_info="g", time_nanos=lambda: now)
    spaces = [draw(with_streams(server, f"space {i}")) for i in range(draw(st.integers(1, 3)))]
    way = ThereAndBack(
        Viewer(server), together=draw(st.booleans()), step=draw(st.sampled_from([7, 1 << 20]))
    )
    for number in range(draw(st.integers(1, 4))):
        now += draw(st.integers(0, 5_000)) * 1_000_000
        event = draw(st.integers(0, 2))
        server.skip((event + 1) % 3, draw(st.integers(0, 2)))
        assert server.should_transmit(event) is not None
        for space in spaces:
            if draw(st.integers(0, 4)):
                draw(fills(space))
        now += draw(st.integers(0, 20)) * 1_000_000
        server.finish(event)
        way.send()
        assert way.there is not None
        here, there = way.here.state, way.there.state
        assert len(way.there.changes) == number + 1
        one, back = way.here.changes[-1].event, way.there.changes[-1].event
        assert (back.event, back.occurrence) == (one.event, one.occurrence)
        assert back.gather_nanos == one.gather_nanos
        if number:
            first_here, first_there = way.here.changes[0].event, way.there.changes[0].event
            assert (
                back.time_nanos - first_there.time_nanos == one.time_nanos - first_here.time_nanos
            )
        assert {s.space.name for s in there.spaces.values()} == {
            s.space.name for s in here.spaces.values()
        }
        by_name = {s.space.name: s for s in there.spaces.values()}
        for state in here.spaces.values():
            assert_same_space(state, by_name[state.space.name])
            assert by_name[state.space.name].info.startswith(state.info)


@examples(0.5)
@given(st.data())
def test_a_random_session_comes_back(data: st.DataObject) -> None:
    _random_session(data)


@pytest.mark.soak
@seed(int(os.environ.get("GCSPY_SOAK_SEED", "1")))
@examples(40)  # a thousand
@given(st.data())
def test_a_thousand_random_sessions_come_back(data: st.DataObject) -> None:
    _random_session(data)
