"""The session: choices outlive reconnects, histories hold only what is new."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.model import Naming, Space, Stream
from hypothesis import given
from hypothesis import strategies as st

from gcspy_client.model.history.summaries import SummaryHistory
from gcspy_client.model.session import ClientSession, tile_rows, tile_title
from gcspy_client.model.shell.link_status import retry_delay_secs
from gcspy_client.model.spaces.tile_text import tile_text
from tests.client.feeding import PAGE, Feed, follow, kept

HEAP = Space(
    id=1,
    name="Heap",
    streams=(Stream(id=4, name="Later", order=9), Stream(id=2, name="First", order=1)),
)
MAIN = Space(id=2, name="Main", main=True, streams=(Stream(id=1, name="Only"),))


@pytest.fixture
def feed() -> Feed:
    return Feed(spaces=(HEAP, MAIN), counts={1: 100, 2: 10})


@pytest.fixture
def session(feed: Feed) -> ClientSession:
    made = ClientSession()
    follow(made, feed.bootstrap())
    follow(
        made, feed.event({(1, 2): np.arange(100), (1, 4): np.arange(100), (2, 1): np.arange(10)})
    )
    return made


def active_id(session: ClientSession) -> int:
    space = session.active_space()
    assert space is not None
    return space.space.id


def test_the_main_space_is_active_and_the_most_important_stream_is_chosen(
    session: ClientSession,
) -> None:
    assert active_id(session) == 2
    assert session.chosen_stream(1) == 2


def test_a_reconnect_to_the_same_session_keeps_every_choice(
    session: ClientSession, feed: Feed
) -> None:
    session.activate(1)
    session.choose_stream(1, 4)
    session.select(1, 17)
    feed.sequence = 0
    session.restart()
    follow(session, feed.bootstrap())
    follow(session, feed.event({}))
    assert active_id(session) == 1
    assert session.chosen_stream(1) == 4
    assert session.selected(1) == 17


def test_another_session_begins_with_no_choice(session: ClientSession, feed: Feed) -> None:
    session.activate(1)
    session.select(1, 17)
    session.restart()
    follow(
        session, Feed(spaces=(HEAP, MAIN), counts={1: 100, 2: 10}, session="session-2").bootstrap()
    )
    assert active_id(session) == 2
    assert session.selected(1) is None
    assert not session.selection_gone(1)


def test_selection_follows_its_address_and_knows_when_it_is_gone(session: ClientSession) -> None:
    session.select(1, 50)
    session.apply(kept(1, 80, [(20, 0, 80)], 0x10000 + 20 * PAGE))
    assert session.selected(1) == 30
    session.apply(kept(1, 10, [(0, 0, 10)], 0x10000 + 20 * PAGE))
    assert session.selected(1) is None
    assert session.selection_gone(1)


def test_history_takes_each_summary_once_and_none_that_is_old(
    session: ClientSession, feed: Feed
) -> None:
    follow(session, feed.event({(1, 2): np.arange(100)}))
    series = session.history.series(1, 2)
    assert series.values.tolist() == [4950.0, 4950.0]
    assert series.time_nanos.tolist() == [100_000_000, 200_000_000]
    assert (series.events.tolist(), series.occurrences.tolist()) == ([0, 0], [1, 2])
    assert len(session.history.series(1, 4)) == 1
    assert session.interpreter.last_event is not None
    session.history.follow(session.interpreter, session.interpreter.last_event)
    assert len(session.history.series(1, 2)) == 2
    assert len(session.history.series(1, 99)) == 0


def past_of(feed: Feed) -> ClientInterpreter:
    """Another interpreter at the same session's latest event, as one from the time shift would be."""
    other = ClientSession()
    sequence, feed.sequence = feed.sequence, 0
    follow(other, feed.bootstrap())
    follow(
        other, feed.event({(1, 2): np.arange(100), (1, 4): np.arange(100), (2, 1): np.arange(10)})
    )
    feed.sequence = sequence
    return other.live


def live(session: ClientSession) -> bool:
    return session.is_live


def test_what_is_shown_stays_while_what_is_live_goes_on(session: ClientSession, feed: Feed) -> None:
    past = past_of(feed)
    session.select(1, 50)
    session.show(past, 1)
    assert not live(session)
    assert (session.interpreter, session.number) == (past, 1)
    before = session.behind
    follow(session, feed.event({(1, 2): np.arange(100)}))
    follow(session, [kept(1, 80, [(20, 0, 80)], 0x10000 + 20 * PAGE), *feed.event({})])
    assert session.interpreter is past
    assert session.behind == before + 2
    assert session.selected(1) == 50
    assert session.live.last_event is not None
    assert session.live.last_event.sequence == 3
    assert session.missing_names(2, 0, 10) == []
    session.go_live()
    assert live(session)
    assert session.behind == 0
    assert session.interpreter is session.live
    assert session.selected(1) == 30


def test_who_looks_back_goes_on_doing_so_through_a_reconnect(
    session: ClientSession, feed: Feed
) -> None:
    past = past_of(feed)
    session.show(past, 1)
    session.restart()
    follow(session, feed.bootstrap())
    assert session.interpreter is past
    session.restart()
    follow(
        session, Feed(spaces=(HEAP, MAIN), counts={1: 100, 2: 10}, session="session-2").bootstrap()
    )
    assert session.interpreter is session.live, "another session has another past"


@given(st.lists(st.integers(1, 60), max_size=80), st.integers(1, 20))
def test_in_whatever_order_events_are_seen_the_history_is_the_same(
    order: list[int], capacity: int
) -> None:
    history = SummaryHistory(capacity)
    interpreter = past_of(Feed(spaces=(HEAP, MAIN), counts={1: 100, 2: 10}))
    stream = interpreter.spaces[1].streams[2]
    seen: list[int] = []
    for number in order:
        stream.sequence = number
        stream.told = m.Summary(
            space=1, stream=2, sequence=number, time_nanos=number, values=(number,), covered=1
        )
        history.follow(
            interpreter,
            m.Event(sequence=number, time_nanos=number, event=0, occurrence=number, epoch=1),
        )
        seen = sorted({*seen, number})
        if len(seen) > capacity:
            seen.remove(max((abs(one - number), -one, one) for one in seen)[2])
        assert history.series(1, 2).time_nanos.tolist() == seen
        assert history.series(1, 2).values.tolist() == seen


def test_a_playback_that_jumps_back_leaves_one_point_an_event() -> None:
    session = ClientSession()
    feed = Feed(spaces=(HEAP, MAIN), counts={1: 100, 2: 10})
    follow(session, feed.bootstrap())
    events = [feed.event({(1, 2): np.arange(100)}) for _ in range(5)]
    for i in (0, 1, 2, 3, 4, 2, 1, 3):
        follow(
            session,
            [message for message in events[i] if i == 0 or not isinstance(message, m.Tiles)],
        )
    series = session.history.series(1, 2)
    assert series.time_nanos.tolist() == [n * 100_000_000 for n in range(1, 6)]
    assert len(series) == 5


def test_what_was_gathered_without_a_sum_is_a_gap_and_no_zero(
    session: ClientSession, feed: Feed
) -> None:
    def without_sums(covered: int | None) -> list[m.Message]:
        """The next event, with an empty summary for this many tiles; None: with no summary."""
        messages: list[m.Message] = []
        for message in feed.event({(1, 2): np.arange(100)}):
            if isinstance(message, m.Summary):
                if covered is None:
                    continue
                messages.append(replace(message, values=(0,), covered=covered))
            else:
                messages.append(message)
        return messages

    for covered in (None, 0, 100):
        follow(session, without_sums(covered))
    values = session.history.series(1, 2).values
    assert np.isnan(values).tolist() == [False, True, True, False]
    assert values[3] == 0


def test_a_tile_is_told_in_every_stream_the_most_important_first(
    session: ClientSession, feed: Feed
) -> None:
    feed.sequence += 30  # three seconds later: what was not gathered is old
    follow(session, feed.event({(1, 2): np.arange(100)}))
    space = session.interpreter.spaces[1]
    rows = tile_rows(space, 7, session.interpreter.last_event)
    assert [(row.name, row.text, row.fresh) for row in rows] == [
        ("First", "7", True),
        ("Later", "7", False),
    ]
    assert tile_title(space, 7) == f"Tile [{0x10000 + 7 * PAGE:#x}, {0x10000 + 8 * PAGE:#x})"


def test_names_are_asked_for_once_a_page_until_a_resize() -> None:
    session = ClientSession()
    names = Space(id=1, name="Named", naming=Naming.STRINGS, streams=(Stream(id=1, name="s"),))
    follow(session, Feed(spaces=(names,), counts={1: 600}).bootstrap())
    none = np.empty(0, dtype=np.uint32)
    tiles = m.Tiles(
        space=1, count=600, old_starts=none, new_starts=none, lengths=none, naming=Naming.STRINGS
    )
    follow(session, [tiles, m.Event(sequence=1, time_nanos=1, event=0, occurrence=1, epoch=1)])
    assert [(r.first, r.count) for r in session.missing_names(1, 250, 600)] == [
        (0, 256),
        (256, 256),
        (512, 88),
    ]
    assert session.missing_names(1, 250, 600) == []
    follow(session, [tiles, m.Event(sequence=2, time_nanos=2, event=0, occurrence=2, epoch=1)])
    assert len(session.missing_names(1, 0, 5)) == 1


def test_waiting_between_tries_grows_to_five_seconds() -> None:
    delays = [retry_delay_secs(attempt) for attempt in range(10)]
    assert delays[0] == 0.25
    assert delays == sorted(delays)
    assert max(delays) == 5.0


def test_a_tile_as_text_names_its_event_and_space(session: ClientSession) -> None:
    text = tile_text(session, 2, 3)
    event = session.interpreter.last_event
    assert event is not None
    name = session.interpreter.event_name(event.event)
    assert re.search(rf"^Event +(event 1, )?{name} #{event.occurrence}$", text, re.M), text
    assert re.search(r"^Space +Main, 10 tiles$", text, re.M)
    assert "Whole space" in text
