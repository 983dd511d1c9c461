"""Events that a stub counted and did not report: the requesting client decides whether they count as missed."""

from __future__ import annotations

import mmap

import pytest
from gcspy_drivers.cooperative.event_accounting import EventAccounting
from gcspy_drivers.cooperative.line import StubEvent, StubLine
from gcspy_protocol.model import EventFilter

from gcspy_server.api import NEVER, Server
from gcspy_server.interpreter.core import Audience
from gcspy_session.interest import EVERYTHING

KINDS = (1, 2)


class Page(StubLine):
    """The shared page of a stub, without the stub."""

    def __init__(self) -> None:
        self.words = [0] * (mmap.PAGESIZE // 8)

    @property
    def counts(self) -> tuple[int, int]:
        return self.words[0], self.words[1]

    def want(self, kind: int, *, period: int, not_before_nanos: int) -> None:
        self.words[2 + kind] = period
        self.words[4] = not_before_nanos

    def rest(self, nanos: int, *, after: int) -> None:
        self.words[10:12] = nanos, after


def event(kind: int, number: int) -> StubEvent:
    return StubEvent(kind, 0, 1, number, 0, 0, 0)


def made(*, budget: int | None = None) -> tuple[Server, Page, EventAccounting]:
    page = Page()
    server = Server("test", events=["Clock", "GC start", "GC end"], budget=budget, pairs=(KINDS,))
    return server, page, EventAccounting(page, KINDS)


def come(server: Server) -> None:
    server._core.publish()
    server._core.handoff_queue.open(lambda: None)
    server._core.set_audience(Audience(clients=1, wants=EVERYTHING))


def test_what_happened_before_anybody_came_is_counted_and_not_lost() -> None:
    server, page, accounting = made()
    accounting.want(server)
    assert page.words[2:4] == [0, 0]
    page.words[:2] = [50, 50]
    come(server)  # the stub does not know yet
    page.words[:2] = [70, 70]
    accounting.want(server)
    assert page.words[2:4] == [1, 1]
    page.words[0] = 71
    accounting.count_to_event(server, event(0, 71))
    assert server.counts() == (0, 70, 70)
    assert server._core.lost == 0


def test_what_happens_once_somebody_is_there_and_is_not_told_is_lost() -> None:
    server, page, accounting = made()
    come(server)
    accounting.want(server)
    page.words[:2] = [5, 5]
    accounting.count_untold(server)
    assert server.counts() == (0, 4, 4), "the last of each may be on its way"
    page.words[0] = 6
    accounting.count_to_event(server, event(0, 6))
    assert server.counts() == (0, 5, 5)
    assert server._core.lost == 10


def test_what_the_stub_is_not_to_tell_while_we_are_busy_was_wanted_all_the_same() -> None:
    server, page, accounting = made()
    come(server)
    accounting.want(server)
    accounting.want_none()
    assert page.words[2:5] == [0, 0, NEVER]
    page.words[:2] = [3, 3]
    accounting.want(server)
    accounting.count_to_event(server, event(0, 4))
    assert server._core.lost == 6


def test_a_stub_rests_between_events_under_a_budget_alone() -> None:
    for budget, rests in ((None, False), (50, True)):
        server, page, accounting = made(budget=budget)
        come(server)
        server.should_transmit(KINDS[0])
        server.finish(KINDS[0])
        accounting.want(server)
        assert (page.words[10] > 0) is rests
        assert page.words[11] >= server.counts()[KINDS[0]]


@pytest.mark.parametrize(("budget", "lost", "left_out"), [(50, 0, 10), (1000, 10, 0)])
def test_under_a_budget_it_is_left_out_for_that(budget: int, lost: int, left_out: int) -> None:
    server, page, accounting = made(budget=budget)
    come(server)
    accounting.want(server)
    page.words[:2] = [5, 5]
    accounting.count_to_event(server, event(0, 6))
    assert (server._core.lost, sum(server._core.spending._keeper.left_out)) == (lost, left_out)


def test_what_a_filter_leaves_out_is_neither() -> None:
    server, page, accounting = made()
    come(server)
    filters = (EventFilter(event=1, enabled=False), EventFilter(event=2, period=4))
    server._core.set_filters(filters)
    accounting.want(server)
    assert page.words[2:4] == [0, 4]
    page.words[:2] = [9, 9]
    accounting.count_to_event(server, event(1, 4))
    assert server.counts() == (0, 9, 3)
    assert server._core.lost == 0
    accounting.count_to_event(server, event(1, 12))
    assert server._core.lost == 2, "the fourth and the eighth"


def test_who_was_told_of_a_start_is_told_of_its_end_and_of_the_next_start() -> None:
    server, page, accounting = made()
    come(server)
    assert server.should_transmit(0)
    server.finish(0)
    accounting.want(server, inside=True)
    assert page.words[2:5] == [1, 1, 0]


def test_the_end_of_what_started_before_anybody_came_is_half_and_that_of_the_next_is_not() -> None:
    server, page, accounting = made()
    accounting.want(server)
    page.words[:2] = [7, 6]  # within the seventh
    come(server)
    accounting.want(server)
    assert accounting.is_half(event(1, 7))
    assert not accounting.is_half(event(0, 8))
    assert not accounting.is_half(event(1, 8))
    server._core.set_filters((EventFilter(event=1, enabled=False),))
    accounting.want(server)
    assert not accounting.is_half(event(1, 7)), "who wants ends alone gets them"
