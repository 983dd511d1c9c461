"""Object traces that are still written: played while they grow, and asked about what was shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from gcspy_drivers.traced import TracedOptions
from gcspy_objects.gctrace.writer import TraceWriter
from gcspy_protocol.details import Query
from gcspy_replay.file import Recording
from gcspy_replay.player import Shown

from gcspy.objects.trace_conversion import shown_while_read, traced_recording
from tests.objects.gctrace.made import event_columns
from tests.waiting import wait_until


class Growing:
    """A trace that grows by a number of objects at a time, all of which live."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=0)
        self._writer = TraceWriter(self._file, {"deaths": "told", "started": str(10**18)})
        self._objects = 0

    def grow(self, count: int) -> None:
        addresses = [(1 << 20) + 64 * (self._objects + row) for row in range(count)]
        self._writer.write(
            event_columns([1] * count, address=addresses, size=[64] * count), thread=1
        )
        self._objects += count

    def end(self) -> None:
        self._writer.end()
        self.leave()

    def leave(self) -> None:
        self._file.close()


def events_of(path: Path) -> int:
    """Return how many events a recording has now, of which the last may be the end."""
    with Recording.open(str(path)) as recording:
        return len(recording)


def is_finished(path: Path) -> bool:
    """Return whether a recording was closed."""
    with Recording.open(str(path)) as recording:
        return recording.finished


def test_a_trace_is_shown_while_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "growing.gctrace"
    growing = Growing(path)
    growing.grow(100)
    assert shown_while_read(path)
    with traced_recording(path, TracedOptions(tile_bytes=4096)) as recording:
        wait_until(lambda: events_of(recording.path) >= 2)
        growing.grow(300)
        wait_until(lambda: events_of(recording.path) >= 3)
        shown = recording.query_service(
            Query(number=1, space=0, kind="types", most=5),
            Shown(number=3, sequence=3, space="Types", extent=None, tile=None),
        )
        assert shown is not None
        growing.end()
        wait_until(lambda: is_finished(recording.path))
        with Recording.open(str(recording.path)) as found:
            assert [found.welcome.events[row["event"]].name for row in found.events][
                -1
            ] == "Trace ends"
            assert found.welcome.wall_offset_nanos == 10**18


def test_a_trace_that_was_left_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "left.gctrace"
    growing = Growing(path)
    growing.grow(10)
    growing.leave()
    os.utime(path, (1, 1))
    assert not shown_while_read(path)
    with (
        traced_recording(path, TracedOptions()) as recording,
        Recording.open(str(recording.path)) as found,
    ):
        assert found.finished


@pytest.mark.parametrize("moves", ["none", "exact"])
def test_a_trace_that_is_still_written_is_shown_so_whether_objects_move_or_not(
    moves: str, tmp_path: Path
) -> None:
    path = tmp_path / "moves.gctrace"
    with path.open("wb") as file:
        writer = TraceWriter(file, {"deaths": "told", "moves": moves})
        file.flush()
        assert shown_while_read(path)
        writer.end()
    assert not shown_while_read(path)
