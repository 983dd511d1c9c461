"""A program's clock: which event belongs to a value."""

from __future__ import annotations

from gcspy_protocol.messages import Event
from hypothesis import given
from hypothesis import strategies as st

from gcspy_client.model.playback.program_clock import ProgramClock


def at(time: int, value: int, kind: int = 0, name: str = "allocated bytes") -> Event:
    return Event(
        sequence=time,
        time_nanos=time,
        event=kind,
        occurrence=1,
        epoch=1,
        program_clock=(name, value),
    )


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 2)), min_size=1),
    st.integers(-1, 25),
    st.integers(0, 2),
)
def test_the_latest_event_no_further_than_a_value_of_the_requested_kind_where_several_are_there(
    told: list[tuple[int, int]], wanted: int, kind: int
) -> None:
    highest, events = 0, []
    for time, (value, its_kind) in enumerate(told):
        highest = max(highest, value)
        events.append((time, highest, its_kind))
    clock = ProgramClock.of(
        *(at(time, value, its_kind) for time, (value, its_kind) in enumerate(told))
    )
    before = [one for one in events if one[1] <= wanted]
    if not before:
        assert clock.time_of(wanted, kind) is None
        return
    ties = [one for one in before if one[1] == before[-1][1]]
    expected = ([one for one in ties if one[2] == kind] or ties)[-1][0]
    assert clock.time_of(wanted, kind) == expected


def test_another_clock_and_events_without_one_are_left_out() -> None:
    plain = Event(sequence=1, time_nanos=1, event=0, occurrence=1, epoch=1)
    clock = ProgramClock.of(None, plain, at(2, 10), at(3, 99, name="other"), at(4, 20))
    assert (clock.name, len(clock), clock.value_at(3), clock.value_at(4)) == (
        "allocated bytes",
        2,
        None,
        20,
    )
