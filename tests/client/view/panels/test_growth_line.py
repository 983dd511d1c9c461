"""The line above the tiles: a real server whose resident set grows, and a real window that says so; nothing where nothing grows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from gcspy_client.model.memory_history import MEMORY_HISTORY, RESIDENT_SET
from gcspy_client.view.window import MainWindow
from gcspy_server.api import Server, StringNames
from tests.client.conftest import MakeWindow
from tests.client.watching import Wait


class Growing:
    """A process of a resident set, with a clock of its own."""

    def __init__(self) -> None:
        self.nanos = 10**12
        self.server = Server("growing", events=("Tick",), time_nanos=lambda: self.nanos)
        self.space = self.server.add_space(
            MEMORY_HISTORY, names=StringNames(("process",)), main=True
        )
        self.resident = self.space.add_stream(
            RESIDENT_SET, dtype="i8", maximum=1 << 40, suffix=" bytes"
        )

    def add_types(self) -> None:
        names = StringNames([f"type {number}" for number in range(40)])
        self.types = self.server.add_space("Types", names=names)
        self.objects = self.types.add_stream("Objects", dtype="i8", maximum=1 << 40, order=0)
        self.sizes = self.types.add_stream("Bytes", dtype="i8", maximum=1 << 40, order=1)
        self.heap = self.server.add_space("Heap", names=StringNames(["pool"]))
        self.heap.add_stream("Top type", dtype="u2", maximum=40, names_from=self.types.id)

    def happen(self, secs: int, resident: int, sizes: Sequence[int] = ()) -> None:
        self.nanos += secs * 10**9
        assert self.server.should_transmit(0) is not None
        if sizes:
            self.types.reset()
            self.heap.reset()
            self.sizes.data[:] = sizes
            self.objects.data[:] = 7
        self.space.reset()
        self.resident.data[:] = resident
        self.server.finish(0)


@pytest.fixture
def growing(socket_directory: Path) -> Iterator[Growing]:
    made = Growing()
    made.server.serve(f"unix:{socket_directory}/growing.sock")
    yield made
    made.server.close()


def seen(window: MainWindow, events: int) -> bool:
    return window.session.events_seen == events


def test_growth_is_said_above_the_tiles_and_nothing_where_nothing_grows(
    growing: Growing, socket_directory: Path, make_window: MakeWindow, wait: Wait
) -> None:
    window = make_window(f"unix:{socket_directory}/growing.sock")
    wait(lambda: window.link.status.phase.connected)
    label = window.growth_line.label
    for number, (secs, mebibytes) in enumerate(((1, 100), (60, 100), (60, 130)), start=1):
        assert label.isHidden()
        growing.happen(secs, mebibytes << 20)
        wait(partial(seen, window, number))
    assert label.isVisible()
    assert "resident set grew by 30" in label.text()
    growing.happen(400, 130 << 20)
    wait(partial(seen, window, 4))
    assert label.isHidden(), "that was longer ago"


def test_it_says_what_part_of_the_growth_no_type_accounts_for(
    growing: Growing, socket_directory: Path, make_window: MakeWindow, wait: Wait
) -> None:
    growing.add_types()
    window = make_window(f"unix:{socket_directory}/growing.sock")
    wait(lambda: window.link.status.phase.connected)
    label = window.growth_line.label
    # 40 types grow by 20 MiB together: one by 10.25 MiB, and each of the others by a quarter.
    sizes = [(41 << 20) // 4] + [(1 << 20) // 4] * 39
    for number, (resident, times) in enumerate(((100, 1), (140, 2)), start=1):
        growing.happen(60, resident << 20, [times * size for size in sizes])
        wait(partial(seen, window, number))
    text = label.text()
    assert "resident set grew by 40" in text
    assert "type 0 (26 %)" in text, "of all growth, and not of that of types"
    assert text.endswith("The owner of 50 % of it is not known.")
    growing.happen(60, 140 << 20, [3 * size for size in sizes])
    wait(partial(seen, window, 3))
    assert "not known" not in label.text()
