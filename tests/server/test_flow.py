"""How the driver's thread is held, without any client: the waiting is done here in another thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest
from gcspy_protocol.messages import State
from gcspy_protocol.model import ControlState, EventFilter
from hypothesis import given
from hypothesis import strategies as st

from gcspy_server.interpreter.flow import Flow
from tests.waiting import PATIENCE_SECS

PLAIN = EventFilter(event=0)
STOP = EventFilter(event=0, pause=True)


class Watched:
    """A flow, what it posted, and a way to wait for that."""

    def __init__(
        self, *, longest_hold_secs: float | None = None, silence_secs: float = 60.0
    ) -> None:
        self.posted: list[State] = []
        self._changed = threading.Condition()
        self.flow = Flow(self._post, longest_hold_secs=longest_hold_secs, silence_secs=silence_secs)
        self.flow.pulse()
        self.flow.set_controlled(True)

    def _post(self, state: State) -> None:
        with self._changed:
            self.posted.append(state)
            self._changed.notify_all()

    def states(self) -> list[ControlState]:
        return [state.state for state in self.posted]

    @contextmanager
    def held(self, event_filter: EventFilter) -> Iterator[list[int]]:
        """Hold another thread; it has gone on when the context ends."""
        held: list[int] = []
        pause = self.flow.will_hold(event_filter)
        thread = threading.Thread(
            target=lambda: held.append(self.flow.hold(event_filter, pause=pause))
        )
        thread.start()
        yield held
        thread.join(60)
        assert not thread.is_alive()

    def wait_for(self, state: ControlState) -> None:
        with self._changed:
            assert self._changed.wait_for(
                lambda: self.posted and self.posted[-1].state is state, PATIENCE_SECS
            ), self.posted


def test_nothing_to_do_holds_for_no_time_at_all() -> None:
    watched = Watched()
    assert watched.flow.hold(PLAIN, pause=watched.flow.will_hold(PLAIN)) == 0
    assert watched.posted == []


def test_a_pause_holds_until_it_is_resumed() -> None:
    watched = Watched()
    watched.flow.pause()
    with watched.held(PLAIN) as held:
        watched.wait_for(ControlState.PAUSED)
        assert held == []
        watched.flow.resume()
    assert held[0] > 0
    assert watched.states() == [ControlState.PAUSING, ControlState.PAUSED, ControlState.RUNNING]


def test_when_the_sessions_loop_falls_silent_the_target_goes_on() -> None:
    watched = Watched(silence_secs=0.2)
    with watched.held(STOP):
        pass  # no pulse comes
    assert watched.posted[-1] == State(
        state=ControlState.RUNNING, reason="the server's event loop does not respond"
    )


def test_while_the_sessions_loop_pulses_the_target_is_held() -> None:
    watched = Watched(silence_secs=0.4)
    with watched.held(STOP) as held:
        watched.wait_for(ControlState.PAUSED)
        for _ in range(8):  # twice the silence that is allowed
            time.sleep(0.1)
            watched.flow.pulse()
        assert held == []
        watched.flow.resume()


def test_a_delay_ends_when_nobody_controls_any_more() -> None:
    watched = Watched()
    slow = EventFilter(event=0, delay_millis=3_600_000)
    with watched.held(slow):
        watched.flow.set_controlled(False)


def test_a_delay_is_no_longer_than_the_longest_hold() -> None:
    watched = Watched(longest_hold_secs=0.05)
    with watched.held(EventFilter(event=0, delay_millis=3_600_000)) as held:
        pass
    assert held[0] >= 50_000_000


def test_a_pause_that_is_resumed_during_the_delay_does_not_happen() -> None:
    watched = Watched()
    watched.flow.pause()
    with watched.held(EventFilter(event=0, delay_millis=50)):
        watched.flow.resume()
    assert ControlState.PAUSED not in watched.states()


def test_a_pause_that_comes_during_the_delay_waits_for_the_next_transmission() -> None:
    watched = Watched()
    with watched.held(EventFilter(event=0, delay_millis=50)):
        watched.flow.pause()
    assert watched.states() == [ControlState.PAUSING]
    assert watched.flow.pausing


@pytest.mark.parametrize("pause_first", [True, False])
def test_the_end_of_the_target_is_the_last_state(pause_first: bool) -> None:
    watched = Watched()
    if pause_first:
        watched.flow.pause()
    watched.flow.end("it exited")
    watched.flow.resume()
    watched.flow.pause()
    watched.flow.step()
    watched.flow.set_controlled(False)
    assert watched.posted[-1] == State(state=ControlState.ENDED, reason="it exited")


@given(
    st.lists(
        st.sampled_from(
            ["pause", "resume", "step", "controlled", "uncontrolled", "event", "filtered"]
        )
    )
)
def test_whatever_is_asked_for_the_states_follow_the_diagram(commands: list[str]) -> None:
    watched = Watched(longest_hold_secs=0.0)
    flow = watched.flow
    for command in commands:
        match command:
            case "controlled" | "uncontrolled":
                flow.set_controlled(command == "controlled")
            case "event" | "filtered":
                one = STOP if command == "filtered" else PLAIN
                flow.hold(one, pause=flow.will_hold(one))
                assert flow.state.state is not ControlState.PAUSED
            case _:
                getattr(flow, command)()
    running, pausing, paused = ControlState.RUNNING, ControlState.PAUSING, ControlState.PAUSED
    allowed = {
        (running, pausing),
        (pausing, paused),
        (running, paused),
        (paused, running),
        (pausing, running),
    }
    states = [running, *watched.states()]
    assert set(pairwise(states)) <= allowed
