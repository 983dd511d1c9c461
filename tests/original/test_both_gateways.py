"""Random sessions through both gateways, over real sockets: ours, the original's wire, and ours again."""

from __future__ import annotations

import os
import tempfile
from functools import partial
from pathlib import Path

import pytest
from gcspy_protocol import messages as m
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from gcspy.connection.link import connect
from gcspy.hosts.original_gateway import OriginalGateway
from gcspy_server.api import Server
from tests.examples import examples
from tests.original.live import session
from tests.original.sameness import assert_same_space
from tests.original.sessions import fills, with_streams
from tests.server.viewer import Viewer
from tests.waiting import wait_until

SESSIONS = 1000


def _random_session(data: st.DataObject, folder: Path) -> None:
    draw = data.draw
    server = Server("t", events=["A", "B", "C"], general_info="g")
    spaces = [draw(with_streams(server, f"space {i}")) for i in range(draw(st.integers(1, 3)))]
    server.add_observer(lambda event: None)  # somebody wants the first event

    def happen(event: int) -> None:
        assert server.should_transmit(event) is not None
        for space in spaces:
            if draw(st.integers(0, 4)):
                draw(fills(space))
        server.finish(event)

    happen(0)  # the gateway describes a session with an event
    with (
        server.serve(f"unix:{folder}/here.sock") as listening,
        connect(listening.addresses[0]) as link,
    ):
        here = Viewer(link)
        gateway = OriginalGateway(listening.addresses[0], 0)
        try:
            with session(f"gcspy666://127.0.0.1:{gateway.port}", folder) as (again, there):
                # The pause comes behind the filters that let events pass.
                there.send(m.Pause())
                wait_until(lambda: server.pausing)
                there.send(m.Resume())
                wait_until(lambda: not again.pausing)
                here.sync()  # it has the latest event
                for _ in range(draw(st.integers(1, 3))):
                    happen(draw(st.integers(0, 2)))
                    here.until_events(len(here.changes) + 1)
                    one = here.changes[-1].event
                    there.until(partial(_has, there, (one.event, one.occurrence)))
                    by_name = {s.space.name: s for s in there.state.spaces.values()}
                    assert by_name.keys() == {s.space.name for s in here.state.spaces.values()}
                    for state in here.state.spaces.values():
                        assert_same_space(state, by_name[state.space.name])
        finally:
            gateway.close()


def _has(viewer: Viewer, event: tuple[int, int]) -> bool:
    return viewer.events()[-1:] == [event]


@examples(0.08)
@given(st.data())
def test_random_sessions_go_through_both_gateways(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory(prefix="gcspy-test-") as folder:
        _random_session(data, Path(folder))


@pytest.mark.soak
@seed(int(os.environ.get("GCSPY_SOAK_SEED", "1")))
@settings(max_examples=SESSIONS)
@given(st.data())
def test_a_thousand_random_sessions_go_through_both_gateways(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory(prefix="gcspy-test-") as folder:
        _random_session(data, Path(folder))
