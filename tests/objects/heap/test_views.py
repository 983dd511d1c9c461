"""Snapshots answer which object covers an address, and where the one is that an event bore."""

from __future__ import annotations

from gcspy_objects.heap import RebuiltHeap

from tests.objects.heap.copying_world import Told, World


def test_each_object_covers_its_bytes_and_no_others() -> None:
    snapshot = RebuiltHeap(Told(World(1, collections=3).rows)).at(400)
    assert len(snapshot.address) > 5
    for row, (address, size) in enumerate(
        zip(snapshot.address.tolist(), snapshot.size.tolist(), strict=True)
    ):
        assert snapshot.row_at(address) == row
        assert snapshot.row_at(address + size - 1) == row
        behind = snapshot.row_at(address + size)
        assert behind is None or behind == row + 1
    assert snapshot.row_at(int(snapshot.address[0]) - 1) is None


def test_objects_are_found_by_the_events_that_bore_them() -> None:
    snapshot = RebuiltHeap(Told(World(1, collections=3).rows)).at(400)
    for row, birth in enumerate(snapshot.birth.tolist()):
        assert snapshot.row_of(birth) == row
    assert snapshot.row_of(-5) is None
