"""Files of object traces: torn, damaged, growing, in parts, and with what was accessed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gcspy_objects.gctrace.blocks import make_block, make_prefix
from gcspy_objects.gctrace.definitions import (
    FrameDefinition,
    SiteDefinition,
    ThreadDefinition,
    TypeDefinition,
    pack_frame,
    pack_named,
    pack_site,
    pack_thread,
    pack_type,
    write_pairs,
)
from gcspy_objects.gctrace.layout import BlockKind, DefinitionKind
from gcspy_objects.gctrace.reader import GCspyTrace
from gcspy_objects.names import ThreadKind, TypeKind
from gcspy_objects.records import Access, AccessMeaning, ReadPosition, RecordKind
from gcspy_objects.trace import open_trace
from gcspy_protocol.errors import TraceError

from tests.objects.gctrace.made import MadeTrace, event_columns


def column(trace: GCspyTrace, name: str, place: ReadPosition | None = None) -> list[int]:
    """Return a column of all records from a place on."""
    parts: list[list[int]] = [getattr(batch, name).tolist() for batch in trace.batches(place)]
    return [value for part in parts for value in part]


def small() -> MadeTrace:
    """Return a trace with definitions and three blocks."""
    made = MadeTrace(name="small", program="/bin/true", order="file", run="0" * 32)
    made.writer.define([
        pack_named(DefinitionKind.TEXT, 1, "main"), pack_named(DefinitionKind.TEXT, 2, "main.c"),
        pack_frame(9, FrameDefinition(1, 2, line=12)), pack_frame(7, FrameDefinition(0, pc=0x401000)),
        pack_type(30, TypeDefinition(TypeKind.INSTANCE, 24, 0, 0, "Node", "")),
        pack_site(5, SiteDefinition(30, "", (7, 9))), pack_site(6, SiteDefinition(0, "", (9,)), 5, (7, 9)),
        pack_thread(3, ThreadDefinition(ThreadKind.PROGRAM, 4711, "main")),
    ])  # fmt: skip
    for start in (0, 100, 200):
        made.writer.write(
            event_columns(
                [1, 1, 24], address=[start, start + 32, start], size=[24, 24, 0], site=[5, 6, 0]
            ),
            thread=3,
        )
    made.writer.end()
    return made


def test_definitions_give_names(tmp_path: Path) -> None:
    with small().opened(tmp_path / "a.gctrace") as trace:
        batch = next(trace.batches())
        assert [trace.types.names[row] for row in batch.type.tolist()[:2]] == ["Node", "(unknown)"]
        assert trace.sites.name(int(batch.site[1])) == "main (main.c) @ 12"
        assert [str(one) for one in trace.sites.frames(int(batch.site[0]))] == [
            "0x401000",
            "main (main.c) @ 12",
        ]
        assert trace.threads.name(int(batch.thread[0])) == "main"
        assert trace.header["program"] == "/bin/true"
        assert trace.ended


def test_the_golden_file_is_read() -> None:
    golden = Path(__file__).parents[3] / "objects/vectors/small.gctrace"
    with GCspyTrace(golden) as trace:
        assert trace.ended
        assert column(trace, "kind") == [1, 1, 24] * 3
        assert column(trace, "address") == [
            start + more for start in (0, 100, 200) for more in (0, 32, 0)
        ]
        assert trace.sites.name(1) == "0x401000"
        assert trace.header["run"] == "0" * 32


def test_a_torn_tail_is_short_at_every_byte(tmp_path: Path) -> None:
    data = small().file.getvalue()
    counts = set()
    for cut in range(len(make_prefix()), len(data)):
        path = tmp_path / "torn.gctrace"
        path.write_bytes(data[:cut])
        with GCspyTrace(path) as trace:
            counts.add(len(column(trace, "kind")))
            assert not trace.ended
    assert counts == {0, 3, 6, 9}


def test_a_changed_byte_is_damage_and_what_is_before_is_read(tmp_path: Path) -> None:
    data = small().file.getvalue()
    random = np.random.default_rng(5)
    for at in random.choice(np.arange(16, len(data)), 60, replace=False).tolist():
        changed = bytearray(data)
        changed[at] ^= 1 << int(random.integers(8))
        path = tmp_path / "changed.gctrace"
        path.write_bytes(changed)
        try:
            with GCspyTrace(path) as trace:
                column(trace, "kind")
        except TraceError:
            continue
        else:  # the block with the last bytes said that it is longer than the file
            pytest.fail(f"the change at byte {at} of {len(data)} was not noticed")


def test_lengths_are_checked_before_memory_is_allocated(tmp_path: Path) -> None:
    bomb = make_block(BlockKind.EVENTS, bytes(60 << 20), events=3)
    assert len(bomb) < 1 << 20
    path = tmp_path / "bomb.gctrace"
    header = make_block(BlockKind.HEADER, write_pairs([("run", "1")]))
    path.write_bytes(make_prefix() + header + bomb)
    with GCspyTrace(path) as trace, pytest.raises(TraceError, match="0 kinds; expected 3"):
        column(trace, "kind")


def test_another_version_and_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "v2.gctrace"
    path.write_bytes(make_prefix().replace(b"\x01\x00\x01\x00", b"\x02\x00\x00\x00"))
    with pytest.raises(TraceError, match="of version 2; this gcspy reads version 1"):
        open_trace(path)


def test_a_growing_file_is_read_on(tmp_path: Path) -> None:
    made = small()
    path = tmp_path / "grows.gctrace"
    data = made.file.getvalue()
    path.write_bytes(data[: len(data) - 200])
    with GCspyTrace(path, growing=True) as trace:
        batches = list(trace.batches())
        before = sum(map(len, batches))
        assert 0 < before < 9
        assert not trace.refresh()
        path.write_bytes(data)
        assert trace.refresh()
        more = list(trace.batches(batches[-1].after))
        assert before + sum(map(len, more)) == 9
        assert more[0].place.event == before
        assert trace.ended


def stamped(*, mark: bool) -> MadeTrace:
    """Return a trace of two threads whose blocks are not in the order of time; with a watermark in between or not."""
    made = MadeTrace(order="stamps")
    made.writer.write(
        event_columns([1, 24, 1], address=[16, 32, 16], stamp=[0, 5, 9], size=[8, 0, 8]),
        thread=1,
        first_stamp=10,
    )
    start = made.writer.bytes
    made.writer.write(
        event_columns([1, 24, 1], address=[32, 16, 48], stamp=[0, 5, 12], size=[8, 0, 8]),
        thread=2,
        first_stamp=10,
    )
    if mark:
        made.writer.watermark(17, start)
    made.writer.write(event_columns([24], address=[48]), thread=1, first_stamp=30)
    return made


@pytest.mark.parametrize("mark", [False, True])
def test_threads_are_ordered_by_stamps_and_addresses(tmp_path: Path, *, mark: bool) -> None:
    with stamped(mark=mark).opened(tmp_path / "s.gctrace") as trace:
        kinds, addresses, stamps = (
            column(trace, "kind"),
            column(trace, "address"),
            column(trace, "stamps"),
        )
        assert stamps == sorted(stamps)
        live: set[int] = set()
        for kind, address in zip(kinds, addresses, strict=True):
            assert (address in live) == (kind == RecordKind.FREE)
            live ^= {address}
        assert trace.unordered == 0
        assert len(kinds) == 7


def test_reading_continues_at_every_batch(tmp_path: Path) -> None:
    with stamped(mark=True).opened(tmp_path / "s.gctrace") as trace:
        whole = column(trace, "address")
        batches = list(trace.batches())
        for batch in batches:
            assert column(trace, "address", batch.place) == whole[batch.place.event :]
            assert column(trace, "address", batch.after) == whole[batch.after.event :]


def test_a_growing_trace_of_threads_waits_for_its_watermark(tmp_path: Path) -> None:
    with stamped(mark=True).opened(tmp_path / "s.gctrace", growing=True) as trace:
        assert len(column(trace, "kind")) == 4
    with stamped(mark=False).opened(tmp_path / "t.gctrace", growing=True) as trace:
        assert column(trace, "kind") == []


def test_a_late_event_counts_and_comes_behind_its_watermark(tmp_path: Path) -> None:
    made = MadeTrace(order="stamps")
    made.writer.write(event_columns([1], address=[16], size=[8]), thread=1, first_stamp=10)
    made.writer.watermark(20)
    made.writer.write(event_columns([1], address=[32], size=[8]), thread=2, first_stamp=15)
    with made.opened(tmp_path / "late.gctrace") as trace:
        assert column(trace, "address") == [16, 32]
        assert column(trace, "stamps") == [10, 21]
        assert trace.late >= 1


def test_what_was_accessed_comes_back(tmp_path: Path) -> None:
    made = MadeTrace()
    bits = np.packbits([1, 0, 0, 1, 1, 0, 0, 0, 0, 1], bitorder="little")
    access = Access(4, 2, 0x4000, 10, 12, AccessMeaning.WRITTEN, bits, bits)
    made.writer.write(event_columns([1], address=[0x4000], size=[8]))
    made.writer.write_access(access)
    made.writer.write(event_columns([24], address=[0x4000]))
    with made.opened(tmp_path / "a.gctrace") as trace:
        (batch,) = trace.batches()
        assert batch.kind.tolist() == [RecordKind.ALLOCATE, RecordKind.ACCESSED, RecordKind.FREE]
        (found,) = batch.accesses
        assert found[:6] == access[:6]
        assert np.flatnonzero(found.accessed).tolist() == [0, 3, 4, 9]
        assert found.known is not None
        assert (int(batch.address[1]), int(batch.size[1]), int(batch.to[1])) == (
            0x4000,
            10 << 12,
            4,
        )


def test_parts_of_a_run_are_one_trace(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    for part, (kinds, detail) in enumerate((([1, 1, 24], [0, 0, 0]), ([1, 24], [1, 0]))):
        made = MadeTrace(run="7", part=str(part), began="live" if part else "start")
        made.writer.write(
            event_columns(
                kinds, detail=detail, address=[16, 32, 16][: len(kinds)], size=[8] * len(kinds)
            ),
            thread=1,
        )
        (folder / f"{part}.gctrace").write_bytes(made.file.getvalue())
    with open_trace(folder) as trace:
        kinds = [kind for batch in trace.batches() for kind in batch.kind.tolist()]
        assert kinds == [1, 1, 24, 24]  # what lives at a cut is told again, and not taken twice
    with open_trace(folder / "1.gctrace") as trace:
        assert [kind for batch in trace.batches() for kind in batch.kind.tolist()] == [1, 24]
