"""Queries to a player: answered for the shown event, from the recorded data; refused honestly where there is none."""

from __future__ import annotations

import threading
from collections.abc import Callable

from gcspy_protocol import messages as m
from gcspy_protocol.details import AnswerState, ColumnKind, DetailColumn, DetailTable, Query
from gcspy_protocol.errors import RecordingError
from gcspy_protocol.playback import Pace, SetPlayback
from gcspy_replay.file import ChunkRule
from gcspy_replay.player import PlaybackStart, PlayerThread, Shown

from tests.replay.recorded import small
from tests.replay.watching import Watcher

Play = Callable[..., PlayerThread]
Watch = Callable[..., Watcher]

STILL = PlaybackStart(running=False, manner=SetPlayback(pace=Pace.FIXED, interval_millis=0))
DATA = small(20, rule=ChunkRule(events=6, weight=0), details=("types", "objects"))
COLUMNS = (DetailColumn(name="What", kind=ColumnKind.TEXT), DetailColumn(name="Event"))


def told(query: Query, shown: Shown) -> DetailTable | None:
    """A table that says what it was asked about."""
    if query.text == "nothing":
        return None
    if query.text == "wrong":
        raise RecordingError("there is no size 'x': write size:16..64")
    if query.text == "broken":
        raise ZeroDivisionError
    return DetailTable(
        columns=COLUMNS,
        rows=((f"{query.kind} {query.text} {shown.space} {shown.extent}", shown.number),),
    )


def ask(
    watcher: Watcher, key: int | None = None, *, kind: str = "types", text: str = ""
) -> m.Answer:
    watcher.send(Query(number=9, space=1, kind=kind, key=key, text=text))
    return watcher.next(m.Answer)


def test_an_answer_is_of_the_event_that_is_shown_forwards_and_backwards(
    play: Play, watch: Watch
) -> None:
    watcher = watch(play(DATA, STILL, query_service=told), DATA)
    for number in (7, 13, 2):
        watcher.seek(number)
        answer = ask(watcher, 0x1040, kind="objects", text="size:8..")
        assert (answer.number, answer.state) == (9, AnswerState.ANSWERED)
        assert watcher.state.last_event is not None
        assert answer.sequence == watcher.state.last_event.sequence
        assert answer.table.rows == (("objects size:8.. heap (4160, 64)", number),)
    assert ask(watcher).table.rows == (("types  heap None", 2),)


def test_what_cannot_be_told_is_said_so(play: Play, watch: Watch) -> None:
    watcher = watch(play(DATA, STILL, query_service=told), DATA)
    watcher.seek(3)
    assert ask(watcher, 0x1041).state is AnswerState.GONE
    refused = ask(watcher, kind="colours")
    assert refused.state is AnswerState.REFUSED
    assert "types, objects" in refused.reason
    for text, reason in (
        ("nothing", "no data"),
        ("wrong", "no size 'x'"),
        ("broken", "no data"),
    ):
        answer = ask(watcher, text=text)
        assert (answer.state, answer.sequence) == (AnswerState.UNKNOWN, 3)
        assert reason in answer.reason
    assert ask(watcher).state is AnswerState.ANSWERED, "a query_service's fault ends nothing"


def test_a_recording_alone_tells_nothing(play: Play, watch: Watch) -> None:
    watcher = watch(play(DATA, STILL), DATA)
    watcher.seek(3)
    assert ask(watcher).state is AnswerState.NOT_RECORDED


def test_nobody_can_ask_a_plain_recording_who_holds_objects(play: Play, watch: Watch) -> None:
    watcher = watch(play(DATA, STILL), DATA)
    watcher.seek(3)
    answer = ask(watcher, kind="holders", text="Order")
    assert answer.state is AnswerState.NOT_RECORDED
    assert "ask the process" in answer.reason
    answer = ask(watcher, kind="memory")
    assert answer.state is AnswerState.NOT_RECORDED
    assert "gcspy why FILE" in answer.reason


def test_who_holds_objects_is_passed_on_with_the_event_and_the_addresses(
    play: Play, watch: Watch
) -> None:
    watcher = watch(play(DATA, STILL, query_service=told), DATA)
    for number in (3, 11):
        watcher.seek(number)
        for space, key, expected in (
            (0, None, "holders Order  None"),
            (0, 0x1234, "holders Order  (4660, 0)"),
            (1, 0x1040, "holders Order heap (4160, 64)"),
        ):
            watcher.send(Query(number=9, space=space, kind="holders", key=key, text="Order"))
            answer = watcher.next(m.Answer)
            assert answer.state is AnswerState.ANSWERED
            assert answer.table.rows == ((expected, number),)
    watcher.send(Query(number=9, space=1, kind="holders", key=0x1041))
    assert watcher.next(m.Answer).state is AnswerState.GONE


def test_a_slow_answer_does_not_keep_the_playback_from_going_on(play: Play, watch: Watch) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(query: Query, shown: Shown) -> DetailTable | None:
        begun.set()
        assert go_on.wait(30)
        return told(query, shown)

    watcher = watch(play(DATA, STILL, query_service=slow), DATA)
    watcher.seek(3)
    watcher.send(Query(number=1, space=1, kind="types"))
    assert begun.wait(30)
    watcher.seek(8)
    go_on.set()
    answer = watcher.next(m.Answer)
    assert answer.table.rows[0][1] == 3, "of the event at which it was asked"
