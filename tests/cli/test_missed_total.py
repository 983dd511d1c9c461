"""Missed events are counted over all connections of a session: by the server within one, by the events' numbers between two."""

from __future__ import annotations

from gcspy_protocol.messages import Event, Missed

from gcspy.connection.missed_total import MissedTotal


def event(sequence: int, *, cached: bool = False) -> Event:
    return Event(
        sequence=sequence, time_nanos=sequence, event=0, occurrence=sequence, epoch=1, cached=cached
    )


def test_within_a_connection_the_server_counts() -> None:
    missed = MissedTotal()
    for message in (event(7), Missed(events=2, total=2), event(10), event(11)):
        assert missed.follow(message) == message
    assert missed.total == 2


def test_between_two_connections_the_numbers_tell_and_the_server_begins_anew() -> None:
    missed = MissedTotal()
    for message in (event(7), Missed(events=2, total=2), event(10)):
        missed.follow(message)
    missed.connected()
    missed.follow(event(14, cached=True))
    assert missed.total == 5
    assert missed.follow(Missed(events=4, total=4)) == Missed(events=4, total=9)
    missed.follow(event(19))
    missed.connected()
    missed.connected()
    missed.follow(event(20))
    assert missed.total == 9


def test_an_event_that_was_there_before_ends_no_gap_and_nothing_counts_twice() -> None:
    missed = MissedTotal()
    missed.follow(event(3))
    missed.connected()
    missed.follow(event(3, cached=True))
    missed.follow(Missed(events=5, total=5))
    missed.follow(event(9))
    assert missed.total == 5, "the server reports all missed events"
    missed.follow(Missed(events=1, total=6))
    assert missed.total == 6


def test_before_the_first_event_nothing_was_missed() -> None:
    missed = MissedTotal()
    missed.connected()
    missed.follow(event(100, cached=True))
    assert missed.total == 0
