"""Two collectors under one program and seed, side by side on the clock of allocated bytes: real heaps, servers, files, a window."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from gcspy_drivers.semispace.__main__ import work
from gcspy_drivers.semispace.collector import SemispaceHeap
from gcspy_drivers.semispace.driver import COLLECTION_ENDS, SemispaceDriver, make_server
from gcspy_protocol.address import parse_address
from gcspy_protocol.messages import Event
from gcspy_replay.file import Recording, events_with_clock

from gcspy.cli import main
from gcspy_client.model.compare.pairs import EventMatching
from gcspy_client.view.compare.other_session import OtherLive
from gcspy_client.view.window import MainWindow
from tests.client.conftest import MakeWindow
from tests.client.watching import Wait

STEPS = 400


class Run:
    """One heap, and the program that runs on it on request."""

    def __init__(self, semispace_bytes: int, address: str) -> None:
        self.server, self.heap = make_server(), SemispaceHeap(semispace_bytes)
        SemispaceDriver(self.server, self.heap)
        self.address = self.server.serve(address).addresses[0]

    def run(self) -> None:
        """Do the work, the same for every heap."""
        dice = random.Random(7)
        for step in range(STEPS):
            work(self.heap, dice, step)


@pytest.fixture
def runs(socket_directory: Path) -> Iterator[tuple[Run, Run]]:
    """A small heap and one twice as large."""
    pair = (
        Run(32 << 10, f"unix:{socket_directory}/small"),
        Run(64 << 10, f"unix:{socket_directory}/large"),
    )
    yield pair
    for one in pair:
        one.server.close()


def clock_of(window: MainWindow) -> tuple[int, int]:
    """Kind and allocated bytes of the event that B shows."""
    found = window.compare.beside
    event: Event | None = None if found is None else found.other.session.interpreter.last_event
    assert event is not None
    assert event.program_clock is not None
    return event.event, event.program_clock[1]


def shows(window: MainWindow, value: int) -> bool:
    """Whether B shows an end of a collection at this many bytes."""
    return clock_of(window) == (COLLECTION_ENDS, value)


def test_the_event_at_the_same_count_of_allocated_bytes_is_shown_and_found(
    runs: tuple[Run, Run],
    make_window: MakeWindow,
    wait: Wait,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    small, large = runs
    window = make_window(small.address)
    wait(lambda: window.link.status.phase.connected)
    other = OtherLive(parse_address(large.address))
    window.compare.put_beside(other)
    wait(lambda: other.link.status.phase.connected)
    for one in runs:
        one.run()
    assert small.heap.allocated_bytes == large.heap.allocated_bytes, "the same program"
    wait(lambda: window.session.live.last_event is not None and window.shift.settle(60))
    wait(
        lambda: len(other.clock) > 4 and len(window.session.timeline) > len(other.session.timeline)
    )
    assert window.shift.settle(60)
    assert other.shift.settle(60)
    files = [tmp_path / f"{name}.gcspy" for name in ("small", "large")]
    window.shift.save(files[0])
    other.shift.save(files[1])
    told: list[list[Event]] = []
    for path in files:
        with Recording.open(path) as recording:
            told.append(list(events_with_clock(recording)))
    values = [
        [(event.event, event.program_clock[1]) for event in events if event.program_clock]
        for events in told
    ]
    bar = window.sides.bar
    bar.by.setCurrentIndex(list(EventMatching).index(EventMatching.PROGRAM))
    ends = [
        place
        for place, (kind, value) in enumerate(values[0])
        if kind == COLLECTION_ENDS and value >= values[1][0][1]
    ]
    for place in (ends[0], ends[len(ends) // 2], ends[-1]):
        _, mine = values[0][place]
        window.navigator.go_to(window.session.timeline.first + place)
        # The large heap's latest end of a collection at or before the same count of bytes: half as many happened there.
        theirs = max(
            value for kind, value in values[1] if kind == COLLECTION_ENDS and value <= mine
        )
        wait(partial(shows, window, theirs))
        number = window.session.number
        assert (
            main(["compare", *map(str, files), "--event", str(number), "--by", "program", "--json"])
            == 0
        )
        found = json.loads(capsys.readouterr().out)
        assert values[1][found["b"]["event"] - 1] == (COLLECTION_ENDS, theirs)
    # Before the large heap's first collection there is no event that belongs to it.
    window.navigator.go_to(window.session.timeline.first)
    wait(lambda: window.compare.beside is not None and window.compare.beside.requested is None)
    assert (
        "program's clock" in window.compare.beside.pane.why_not if window.compare.beside else False
    )
    window.compare.leave()
