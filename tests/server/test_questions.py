"""Queries for detail: answered for the latest gathering, for any client, never in the way of an event, and honest where the answer is unknown."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.details import (
    MOST_ROWS,
    AnswerState,
    ColumnKind,
    DetailColumn,
    DetailTable,
    Query,
)
from gcspy_protocol.errors import LocalProtocolError

from gcspy_server.api import ServedSession, UniformNames
from gcspy_session.questions import MOST_WAITING
from tests.server.target import START, Target
from tests.server.viewer import Viewer
from tests.waiting import PATIENCE_SECS

Serve = Callable[..., ServedSession]
Join = Callable[..., Viewer]

COLUMNS = (DetailColumn(name="Type", kind=ColumnKind.TEXT), DetailColumn(name="Objects"))


class Asked(Target):
    """A target of which each tile's content is its number and the event."""

    def __init__(self) -> None:
        super().__init__(tiles=4)
        self.space = self.server.add_space(
            "asked", names=UniformNames(0x4000, 0x10, 4), details=("types",)
        )
        self.stream = self.space.add_stream("objects", maximum=9)
        self.told = 0
        self.wait: threading.Event | None = None

    def fill(self) -> None:
        super().fill()
        self.space.reset()
        self.told += 1
        number = self.told
        wait = self.wait

        def table(tile: int | None, most: int) -> DetailTable | None:
            if wait is not None:
                assert wait.wait(PATIENCE_SECS)
            if tile == 2:
                return None
            if tile == 3:
                raise ZeroDivisionError
            rows = (("whole" if tile is None else f"tile {tile}", number), ("other", None))
            return DetailTable(columns=COLUMNS, rows=rows[:most])

        self.space.answer_with("types", table)


def ask(
    viewer: Viewer,
    target: Asked,
    key: int | None = None,
    *,
    kind: str = "types",
    space: int = 0,
    most: int = 9,
) -> m.Answer:
    viewer.send(Query(number=5, space=space or target.space.id, kind=kind, key=key, most=most))
    return viewer.next(m.Answer)


def test_a_viewer_is_told_of_a_tile_by_its_key_and_of_which_event_that_is(
    serve: Serve, join: Join
) -> None:
    target = Asked()
    (address,) = serve(target).addresses
    viewer = join(address)
    viewer.sync()
    before = ask(viewer, target, 0x4010)
    assert (before.state, before.sequence) == (AnswerState.UNKNOWN, 0), "nothing was gathered yet"
    assert viewer.state.spaces[target.space.id].space.details == ("types",)
    target.event(START)
    found = ask(viewer, target, 0x4010)
    assert (found.number, found.state, found.sequence) == (5, AnswerState.ANSWERED, 1)
    assert found.table.rows == (("tile 1", 1), ("other", None))
    target.event(START)
    assert ask(viewer, target).table.rows[0] == ("whole", 2)
    assert ask(viewer, target, most=1).table.rows == (("whole", 2),)
    assert ask(viewer, target).sequence == 2


def test_what_cannot_be_told_is_said_so_and_ends_nothing(serve: Serve, join: Join) -> None:
    target = Asked()
    (address,) = serve(target).addresses
    viewer = join(address)
    viewer.sync()
    target.event(START)
    for key, state in (
        (0x4020, AnswerState.UNKNOWN),
        (0x4030, AnswerState.UNKNOWN),
        (0x4018, AnswerState.GONE),
        (0x4040, AnswerState.GONE),
        (0, AnswerState.GONE),
        ((1 << 64) - 1, AnswerState.GONE),
    ):
        assert ask(viewer, target, key).state is state, hex(key)
    assert ask(viewer, target, kind="nonsense").state is AnswerState.REFUSED
    assert ask(viewer, target, space=999).state is AnswerState.UNKNOWN
    assert ask(viewer, target, 0x4000).state is AnswerState.ANSWERED


def test_a_slow_answer_delays_no_event_and_a_client_has_a_bounded_line(
    serve: Serve, join: Join
) -> None:
    target = Asked()
    target.wait = threading.Event()
    (address,) = serve(target).addresses
    viewer, other = join(address), join(address)
    viewer.sync()
    other.sync()
    target.event(START)
    for number in range(MOST_WAITING + 2):
        viewer.send(Query(number=number, space=target.space.id, kind="types"))
    refused = [viewer.next(m.Answer) for _ in range(2)]
    assert [(one.number, one.state) for one in refused] == [
        (MOST_WAITING, AnswerState.REFUSED),
        (MOST_WAITING + 1, AnswerState.REFUSED),
    ]
    target.event(START)
    assert other.event().sequence >= 1
    other.until_events(2)
    target.wait.set()
    assert [viewer.next(m.Answer).number for _ in range(MOST_WAITING)] == list(range(MOST_WAITING))


def test_a_driver_says_beforehand_what_it_tells() -> None:
    target = Target()
    with pytest.raises(LocalProtocolError, match="when the space is added"):
        target.heap.answer_with("types", None)
    assert Query(number=0, space=0, kind="").most <= MOST_ROWS
