"""Each rule that a heap is held to is broken once, and the finding says where, what was expected and what was found."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from gcspy_objects.consistency import check
from gcspy_objects.heap import ObjectFlag, RebuiltHeap, Rule, state
from gcspy_objects.hotspot_log import LoggedCollection, LoggedSpace
from gcspy_objects.records import CollectionKind, RecordFlag, RecordKind, SpaceKind

from tests.objects.heap.copying_world import EDEN, KINDS, LEFT, OLD, RIGHT, Row, Told, World, row

BASE, SIZE = 0x10000, 0x1000
OTHER, THREAD, COLLECTOR = 0, 1, 2


def start(space: int) -> int:
    return BASE + space * SIZE


def small() -> list[Row]:
    """A trace without fault: two buffers, one filled up by another thread; a minor collection that copies; a full one that slides.

    Rows 0 to 7 are the spaces, 8 to 14 the program, 15 to 24 the minor collection, 25 to 28 the program, 29 to 32 the full one.
    """
    rows = [one for space in (OLD, EDEN, LEFT, RIGHT) for one in (
        row(RecordKind.SPACE_DEFINE, length=space, address=start(space), size=SIZE), row(RecordKind.SPACE_KIND, length=space, detail=KINDS[space]),
    )]  # fmt: skip
    rows += [
        row(RecordKind.BUFFER, thread=THREAD, address=start(EDEN), size=0x100),
        row(RecordKind.ALLOCATE_NEXT, thread=THREAD, size=0x40, type=2),
        row(RecordKind.ALLOCATE, thread=THREAD, address=start(EDEN) + 0x40, size=0x20, type=3),
        row(RecordKind.ALLOCATE_NEXT, thread=THREAD, size=0x80, type=2),
        row(RecordKind.ALLOCATE, thread=OTHER, address=start(EDEN) + 0xE0, size=0x20, type=1, flags=RecordFlag.FILLER),
        row(RecordKind.ALLOCATE, thread=OTHER, address=start(OLD), size=0x80, type=4),
        row(RecordKind.ALLOCATE, thread=OTHER, address=start(EDEN) + 0x100, size=0x10, type=4),
        row(RecordKind.COLLECTION_START, length=1, detail=CollectionKind.MINOR),
        row(RecordKind.COLLECTS, length=EDEN), row(RecordKind.COLLECTS, length=RIGHT), row(RecordKind.BARRIER),
        row(RecordKind.GC_BUFFER, thread=COLLECTOR, address=start(LEFT), size=0x80),
        row(RecordKind.MOVE_NEXT, thread=COLLECTOR, address=start(EDEN), detail=SpaceKind.SURVIVOR),
        row(RecordKind.MOVE, thread=COLLECTOR, address=start(EDEN) + 0x60, to=start(OLD) + 0x80),
        row(RecordKind.MOVE_NEXT, thread=COLLECTOR, address=start(EDEN) + 0x40, detail=SpaceKind.SURVIVOR),
        row(RecordKind.ALLOCATE, thread=COLLECTOR, address=start(LEFT) + 0x60, size=0x20, type=1, flags=RecordFlag.FILLER | RecordFlag.BY_COLLECTOR),
        row(RecordKind.COLLECTION_END, length=1, detail=CollectionKind.MINOR),
        row(RecordKind.BUFFER, thread=THREAD, address=start(EDEN), size=0x40),
        row(RecordKind.ALLOCATE_NEXT, thread=THREAD, size=0x40, type=2),
        row(RecordKind.BARRIER), row(RecordKind.MARK, size=7),
        row(RecordKind.COLLECTION_START, length=2, detail=CollectionKind.FULL),
        row(RecordKind.MOVE_RUN, thread=COLLECTOR, address=start(OLD) + 0x80, to=start(OLD), length=1),
        row(RecordKind.MOVE_RUN, thread=COLLECTOR, address=start(LEFT), to=start(OLD) + 0x80, length=2),
        row(RecordKind.COLLECTION_END, length=2, detail=CollectionKind.FULL),
    ]  # fmt: skip
    return rows


Change = Callable[[list[Row]], None]


def both(one: Change, other: Change) -> Change:
    def change(rows: list[Row]) -> None:
        one(rows)
        other(rows)

    return change


def put(number: int, **columns: int) -> Change:
    return lambda rows: rows[number].update(columns)


def added(number: int, one: Row) -> Change:
    return lambda rows: rows.insert(number, one)


def gone(number: int) -> Change:
    return lambda rows: rows.__setitem__(number, row(RecordKind.BARRIER))


def cut(rows: list[Row]) -> None:
    rows.pop()


BROKEN: dict[str, tuple[Rule, int | None, Change]] = {
    "no buffer": (Rule.BUFFER, 9, gone(8)),
    "a buffer that is too small": (Rule.BUFFER, 11, put(8, size=0x60)),
    "not behind the one before it": (Rule.CURSOR, 10, put(10, address=start(EDEN) + 0x50)),
    "a buffer that is not full": (Rule.BUFFER_SUM, 15, gone(12)),
    "a hole outside of buffers": (Rule.TILED, 15, put(14, address=start(EDEN) + 0x140)),
    "a hole at the bottom": (Rule.TILED, 15, put(13, address=start(OLD) + 0x10)),
    "a hole after a collection": (Rule.TILED, 24, put(21, to=start(OLD) + 0x90)),
    "a copying buffer that is not full": (Rule.TILED, 24, gone(20)),
    "two at one address": (Rule.OVERLAP, 15, put(14, address=start(EDEN) + 0xF0)),
    "spaces that overlap": (Rule.OVERLAP, 15, put(4, address=start(EDEN) + 0x800)),
    "spaces that overlap where objects lie": (Rule.OVERLAP, 15, put(4, address=start(EDEN))),
    "out of its space": (Rule.SPACE, 15, put(13, size=SIZE + 0x10)),
    "a space that was never defined": (Rule.SPACE, 16, put(16, length=9)),
    "in front of all spaces": (Rule.SPACE, 15, put(14, address=BASE - 0x100)),
    "moved and never allocated": (Rule.UNKNOWN_OBJECT, 21, put(21, address=start(EDEN) + 0x68)),
    "a run of more than there are": (Rule.UNKNOWN_OBJECT, 31, put(31, length=9)),
    "a run of one more than there are young ones": (Rule.UNKNOWN_OBJECT, 31, put(31, length=4)),
    "moved twice": (Rule.TWICE, 22, put(22, address=start(EDEN))),
    "moved out of a space that stays": (Rule.COLLECTED, 21, put(21, address=start(OLD), to=start(LEFT) + 0x80)),
    "a move without a collection": (Rule.PHASE, 27, put(27, kind=RecordKind.MOVE)),
    "an allocation in a collection": (Rule.PHASE, 18, put(18, kind=RecordKind.ALLOCATE_NEXT, size=8)),
    "an end without a start": (Rule.PHASE, 27, put(27, kind=RecordKind.COLLECTION_END)),
    "a start within a collection": (Rule.PHASE, 18, put(18, kind=RecordKind.COLLECTION_START, detail=CollectionKind.MINOR)),
    "an end of another one": (Rule.PHASE, 24, put(24, length=7)),
    "never ended": (Rule.PHASE, None, cut),
    "a collected space without a collection": (Rule.PHASE, 27, put(27, kind=RecordKind.COLLECTS)),
    "copied to eden": (Rule.DESTINATION, 19, put(19, address=start(EDEN) + 0x200)),
    "bits that are always 0": (Rule.FORM, 9, put(9, flags=RecordFlag.ODD)),
    "no size": (Rule.SIZE, 11, put(11, size=0)),
    "no size in a collection": (Rule.SIZE, 23, put(23, size=0)),
    "a size beyond all bounds in a collection": (Rule.SIZE, 23, put(23, size=1 << 50)),
    "a size beyond all bounds": (Rule.SIZE, 13, put(13, size=1 << 50)),
    "more than there is room": (Rule.CAPACITY, 14, put(14, size=SIZE * 5)),
    "more in old and young spaces together than there is room": (Rule.CAPACITY, 14, both(put(13, size=SIZE * 3), put(14, size=SIZE * 3 // 2))),
    "another type than before": (Rule.SNAPSHOT, 21, put(21, kind=RecordKind.SNAPSHOT_MOVE, size=0x80, type=9)),
    "a snapshot of what was not there": (Rule.UNKNOWN_OBJECT, 21, put(21, kind=RecordKind.SNAPSHOT_MOVE, address=start(EDEN) + 8, size=0x80, type=9)),
}  # fmt: skip


def test_the_small_trace_is_without_fault() -> None:
    heap = RebuiltHeap(Told(small()))
    assert not heap.findings, heap.findings.first
    end = heap.at(heap.events)
    assert end.address.tolist() == [start(OLD), start(OLD) + 0x80, start(OLD) + 0xC0]
    assert end.promoted_in.tolist() == [1, 2, 2]
    assert end.birth.tolist() == [11, 9, 10]


def test_what_is_named_one_by_one_goes_on_beside_a_run_of_what_was_never_there() -> None:
    rows = small()
    rows[-3].update(address=start(EDEN) + 8)
    rows[-2:-1] = [
        row(RecordKind.MOVE, thread=COLLECTOR, address=address, to=start(OLD) + to)
        for address, to in ((start(OLD) + 0x80, 0), (start(LEFT), 0x80), (start(LEFT) + 0x40, 0xC0))
    ]
    heap = RebuiltHeap(Told(rows))
    end = heap.at(heap.events)
    assert end.address.tolist() == [start(OLD), start(OLD) + 0x80, start(OLD) + 0xC0]
    assert end.birth.tolist() == [11, 9, 10]
    assert {one.rule for one in heap.findings.kept} == {Rule.UNKNOWN_OBJECT}


@pytest.mark.parametrize("what", BROKEN)
def test_what_breaks_a_rule_is_found_where_it_is(what: str) -> None:
    rule, event, change = BROKEN[what]
    rows = small()
    change(rows)
    heap = RebuiltHeap(Told(rows, batch=5))
    found = [one for one in heap.findings.kept if one.rule == rule]
    assert found, heap.findings.kept
    assert (found[0].where.event if found[0].where else None) == event
    assert found[0].expected
    assert found[0].found
    assert str(found[0]).startswith(f"{rule}: expected ")
    assert heap.at(heap.events) is not None
    assert list(heap.lives())
    assert len(list(heap.steps())) == len(heap.collections)
    if rule == Rule.CAPACITY:
        assert heap.ended is not None
        assert heap.ended.event == event


def test_a_buffer_that_is_not_full_is_told_with_the_event_that_gave_it() -> None:
    rows = small()
    rows[12] = row(RecordKind.BARRIER)
    found = RebuiltHeap(Told(rows)).findings.first
    assert found is not None
    assert (
        "objects of 256 bytes in the buffer 0x11000 to 0x11100 of thread number 1" in found.expected
    )
    assert "(event 8, made: buffer 0 at byte 0" in found.expected
    assert "224 bytes; 32 bytes at 0x110e0" in found.found


def test_after_a_thousand_findings_rebuilding_ends_and_says_so() -> None:
    rows = small()
    rows[11:11] = [row(RecordKind.ALLOCATE_NEXT, thread=7, size=8) for _ in range(1_001)]
    heap = RebuiltHeap(Told(rows))
    assert heap.ended is not None
    assert "1,001 contradictions" in str(heap.ended)
    assert heap.ended.event == 1_000
    assert heap.findings.first is not None
    assert heap.findings.first.where is not None
    assert heap.findings.first.where.event == 11
    assert heap.events < len(rows)
    assert not heap.collections


def test_spaces_and_collections_without_end_are_not_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(state, "MOST_SPACES", 4)
    monkeypatch.setattr(state, "MOST_COLLECTIONS", 2)
    rows = [
        *small(),
        row(RecordKind.SPACE_DEFINE, length=9, address=start(9), size=8),
        row(RecordKind.COLLECTION_START, length=3),
    ]
    heap = RebuiltHeap(Told(rows))
    assert [(one.rule, one.where.event if one.where else None) for one in heap.findings.kept] == [
        (Rule.SPACE, 33),
        (Rule.CAPACITY, 34),
    ]
    assert heap.ended is not None
    assert len(heap.collections) == 2


def test_where_the_log_says_otherwise_it_is_said() -> None:
    log = {
        1: LoggedCollection(
            before=[LoggedSpace("eden", start(EDEN), start(EDEN) + 0x118, start(LEFT))]
        )
    }
    report = check(RebuiltHeap(Told(small())), log)
    assert not report.consistent
    assert report.tops_compared == 1
    assert report.findings.counts == {Rule.LOG: 1}
    assert "0x11110" in report.findings.kept[0].found


def test_what_cannot_be_compared_with_the_log_is_counted_and_told() -> None:
    """A space that begins elsewhere, a collection that one of the two has not, a moment without tops, a histogram of a minor one."""
    eden = LoggedSpace("eden", start(EDEN), start(EDEN) + 0x110, start(LEFT))
    moved = LoggedSpace("from", 0x1234, 0x1240, 0x2000)
    log = {
        1: LoggedCollection(before=[eden, moved], histogram={"[I": (1, 16)}),
        7: LoggedCollection(before=[eden], after=[eden, moved], histogram={"[I": (1, 16)}),
    }
    heap = RebuiltHeap(Told(small()))
    report = check(heap, log)
    assert report.consistent, report.findings.first
    others = [one for one in heap.collections if one.id != 1]
    ours = sum(len(one.spaces_before) + len(one.spaces_after) for one in others)
    (first,) = [one for one in heap.collections if one.id == 1]
    assert others
    assert not first.full
    assert report.tops_compared == 1
    assert report.tops_left == 1 + len(first.spaces_after) + 3 + ours
    assert (report.histograms_compared, report.histograms_left) == (0, 2)
    told = "\n".join(report.remarks)
    assert "the top of from, which begins at 0x1234" in told
    assert "the VM's log has no tops at the end of collection 1" in told
    assert "the class histogram after collection 1, which is not a full collection" in told
    assert "collection 7 of the VM's log is not in the trace" in told
    assert f"collection {others[0].id} of the trace is not in the VM's log" in told
    json = report.as_json()
    assert json["tops_not_compared"] == report.tops_left
    assert json["histograms_not_compared"] == 2
    assert json["remarks"] == report.remarks


def test_a_trace_of_which_the_beginning_was_thrown_away_stands_alone_from_a_snapshot_on() -> None:
    world = World(4, snapshots=(2, 5))
    begins = [
        number
        for number, one in enumerate(world.rows)
        if one["detail"] == CollectionKind.MINOR_SNAPSHOT
        and one["kind"] == RecordKind.COLLECTION_START
    ]
    heap = RebuiltHeap(Told(world.rows[:8] + world.rows[begins[1] :]))
    assert not heap.findings, heap.findings.first
    last, truth = heap.at(heap.events), world.truth(len(world.rows))
    assert last.address.tolist() == sorted(truth)
    assert last.size.tolist() == [truth[address].size for address in sorted(truth)]
    assert last.type.tolist() == [truth[address].type for address in sorted(truth)]
    first = heap.at_collection(1, end=True)

    assert ((first.flags & (ObjectFlag.SNAPSHOT | ObjectFlag.FILLER)) != 0).all()
    lives = [one for one in heap.lives() if one.snapshot.any()]
    assert all((one.born_after[one.snapshot] == -1).all() for one in lives)


def test_a_lost_beginning_is_told_by_the_number_of_the_first_collection_whatever_lies_before_it() -> (
    None
):
    world = World(4, snapshots=(2, 5))
    begin = [
        number
        for number, one in enumerate(world.rows)
        if one["detail"] == CollectionKind.MINOR_SNAPSHOT
        and one["kind"] == RecordKind.COLLECTION_START
    ][1]
    filler = row(
        RecordKind.ALLOCATE,
        address=world.bounds[EDEN][0] + 0x100,
        size=0x20,
        type=1,
        flags=RecordFlag.FILLER | RecordFlag.VM,
    )
    heap = RebuiltHeap(Told([*world.rows[:8], filler, *world.rows[begin:]]))
    assert not heap.findings, heap.findings.first
    assert heap.at(heap.events).address.tolist() == sorted(world.truth(len(world.rows)))


def test_a_minor_collection_that_does_not_say_so_collects_the_young_spaces() -> None:
    rows = small()
    rows[16], rows[17] = row(RecordKind.BARRIER), row(RecordKind.BARRIER)
    told, untold = RebuiltHeap(Told(small())), RebuiltHeap(Told(rows))
    assert not untold.findings, untold.findings.first
    assert untold.at(untold.events).address.tolist() == told.at(told.events).address.tolist()
    assert (
        [one.objects_died for one in untold.collections]
        == [one.objects_died for one in told.collections]
        == [1, 2]
    )


def test_a_space_may_be_told_to_have_grown_after_something_was_moved_into_it_but_not_after_the_next_allocation() -> (
    None
):
    rows = small()
    rows[0]["size"] = 0x80
    grown = row(
        RecordKind.SPACE_DEFINE,
        length=OLD,
        address=start(OLD),
        size=SIZE,
        flags=RecordFlag.REDEFINES,
    )
    for at, found in ((25, 0), (27, 1)):
        one = [*rows[:at], grown, *rows[at:]]
        heap = RebuiltHeap(Told(one))
        assert len(heap.findings) == found, heap.findings.kept
        assert [each.rule for each in heap.findings.kept] == [Rule.SPACE] * found


def test_what_g1_does_that_the_rules_do_not_know_ends_in_a_finding() -> None:
    rows = [one for region in range(40) for one in (
        row(RecordKind.SPACE_DEFINE, length=region, address=start(region), size=SIZE), row(RecordKind.SPACE_KIND, length=region, detail=SpaceKind.EDEN),
    )]  # fmt: skip
    rows += [row(RecordKind.BUFFER, thread=1, address=start(1), size=SIZE)] + [
        row(RecordKind.ALLOCATE_NEXT, thread=1, size=0x100, type=1)
    ] * 16
    rows += [
        row(RecordKind.SPACE_KIND, length=1, detail=SpaceKind.OLD),
        row(RecordKind.SPACE_RELEASE, length=2),
        row(RecordKind.SPACE_DESTROY, length=30, size=5),
    ]
    rows += [
        row(RecordKind.COLLECTION_START, length=1, detail=CollectionKind.MINOR),
        row(RecordKind.COLLECTS, length=3),
    ]
    rows += [
        row(RecordKind.MOVE, thread=2, address=start(5) + 8 * number, to=start(6) + 8 * number)
        for number in range(15_000)
    ]
    rows += [row(RecordKind.COLLECTION_END, length=1, detail=CollectionKind.MINOR)]
    heap = RebuiltHeap(Told(rows, batch=1_000))
    assert heap.ended is not None
    assert heap.findings.first is not None
    assert heap.findings.first.rule == Rule.UNKNOWN_OBJECT
    assert "none that begins there" in heap.findings.first.found
    assert len(heap.at(heap.events)) == 16
