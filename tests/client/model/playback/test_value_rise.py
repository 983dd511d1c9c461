"""The event at which a tile rose, in recordings whose tiles come, go, move and change."""

from __future__ import annotations

import pytest
from gcspy_protocol.errors import RecordingError
from gcspy_replay.file import ChunkRule, MemorySource, MemoryStore, Recording, RecordingWriter
from hypothesis import given
from hypothesis import strategies as st

from gcspy_client.model.playback.value_rise import TileSubject, ValueRise, find_rise
from gcspy_client.model.tile_source import StreamSource
from tests.client.model.changing import STREAM, Changing

KEY = 7
History = list[dict[int, int | None]]
"""At each event the values by key; None: unknown."""


def recorded(history: History, *, chunk_events: int = 4) -> Recording:
    store, changing = MemoryStore(), Changing()
    rule = ChunkRule(events=1, most_events=chunk_events)
    writer = RecordingWriter(store, changing.interpreter, rule=rule)
    sent = 0
    for values in history:
        changing.event(
            {key: value or 0 for key, value in values.items()},
            delta=changing.sequence > 0 and None not in values.values(),
            unknown=[key for key, value in values.items() if value is None],
        )
        for message in changing.messages[sent:]:
            writer.add(message)
        sent = len(changing.messages)
    writer.flush()
    return Recording([MemorySource(store.data)])


def subject(key: int = KEY) -> TileSubject:
    return TileSubject("Heap", 1, StreamSource(STREAM), key)


def rise(history: History, number: int, *, chunk_events: int = 4) -> ValueRise | None:
    return find_rise(recorded(history, chunk_events=chunk_events), subject(), number)


def by_hand(history: History, number: int) -> ValueRise | None:
    """The same from the list."""
    least = history[number - 1].get(KEY)
    if least is None:
        return None
    begins = number
    for event in range(number - 1, 0, -1):
        earlier = history[event - 1].get(KEY, -1)
        if earlier is None:
            continue
        if earlier < least:
            return ValueRise(begins, stored=True)
        begins = event
    return ValueRise(begins, stored=False)


def test_it_is_the_event_at_which_the_value_was_reached() -> None:
    history: History = [{KEY: value, 9: 0} for value in (1, 5, 5, 2, 5, 5, 5)]
    assert rise(history, 7) == ValueRise(5, stored=True)
    assert rise(history, 3) == ValueRise(2, stored=True)
    assert rise(history, 4) == ValueRise(2, stored=True), "it was more before, and never less"


def test_a_tile_that_came_rose_when_it_came() -> None:
    history: History = [{9: 1}, {9: 1}, {9: 1, KEY: 3}, {KEY: 3, 9: 1}]
    assert rise(history, 4) == ValueRise(3, stored=True)


def test_what_has_always_been_so_has_no_event_before() -> None:
    assert rise([{KEY: 3}] * 6, 6) == ValueRise(1, stored=False)


def test_of_a_tile_that_is_not_there_or_unknown_nothing_is_found() -> None:
    assert rise([{KEY: 3}, {9: 3}], 2) is None
    assert rise([{KEY: 3}, {KEY: None}], 2) is None


def test_an_event_that_is_not_stored_is_refused() -> None:
    with pytest.raises(RecordingError, match="event 3 is not stored"):
        rise([{KEY: 1}, {KEY: 2}], 3)


def test_a_search_can_be_given_up() -> None:
    recording = recorded([{KEY: 3}] * 20)
    looks: list[int] = []

    def stops() -> bool:
        looks.append(1)
        return len(looks) > 2

    assert find_rise(recording, subject(), 20, stops=stops) is None
    assert len(looks) == 3


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from([KEY, 8, 9]), st.one_of(st.none(), st.integers(0, 3)), min_size=1
        ),
        min_size=1,
        max_size=16,
    ),
    st.integers(1, 5),
    st.data(),
)
def test_chunks_make_no_difference(
    history: History, chunk_events: int, data: st.DataObject
) -> None:
    number = data.draw(st.integers(1, len(history)))
    assert rise(history, number, chunk_events=chunk_events) == by_hand(history, number)


def test_only_the_chunks_back_to_the_rise_are_read() -> None:
    history: History = [{KEY: 0, 9: event % 5} for event in range(100)]
    history += [{KEY: 4, 9: event % 5} for event in range(10)]
    recording = recorded(history)
    read: list[int] = []

    def counts() -> bool:
        read.append(1)
        return False

    assert find_rise(recording, subject(), 110, stops=counts) == ValueRise(101, stored=True)
    assert len(read) < 20
