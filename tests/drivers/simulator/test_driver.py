"""The driver of the simulator, on every collector: tiles and summaries are a recount of the objects, events are in order, settings take effect."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gcspy_drivers.simulator.driver import SimulationOptions, SimulatorSession, parse_size
from gcspy_drivers.simulator.driver.events import CLOCK, ENDS, PROGRESS, STARTS
from gcspy_drivers.simulator.heap import BLACK, FORWARDED, WORD_BYTES, Objects
from gcspy_drivers.simulator.plans import PLANS
from gcspy_drivers.simulator.shadow import Shadow
from gcspy_protocol.errors import LocalProtocolError

from gcspy_server.api import Control, Event, ServerSpace, ServerStream, SettingKind, StringNames
from tests.matrix import matrix

HEAP_BYTES = 32 << 10
STEPS = 60


def run(session: SimulatorSession, look: Callable[[Event], None] | None = None) -> list[Event]:
    """Run a session to its end, with an observer that requests everything."""
    seen: list[Event] = []

    def observe(event: Event) -> None:
        seen.append(event)
        if look is not None:
            look(event)

    session.server.add_observer(observe)
    session.run(threading.Event())
    return seen


def options(collector: str, **more: object) -> SimulationOptions:
    # Not after 700 objects: these heaps have fewer.
    plan = {"threshold0": 20} if collector.startswith("cpython") else {}
    fields: dict[str, Any] = {
        "collector": collector,
        "plan": plan,
        "heap_bytes": HEAP_BYTES,
        "tile_bytes": 512,
        "pace_millis": 0,
        "steps": STEPS,
        **more,
    }
    return SimulationOptions(**fields)


def stream(space: ServerSpace, name: str) -> ServerStream:
    return next(one for one in space.streams if one.name == name)


def heaps(session: SimulatorSession) -> list[ServerSpace]:
    return [
        space for space in session.server.spaces if any(one.name == "Live" for one in space.streams)
    ]


def total(session: SimulatorSession, name: str) -> int:
    return sum(
        int(stream(space, name)._values.sum())
        for space in heaps(session)
        if any(one.name == name for one in space.streams)
    )


def recounted(session: SimulatorSession) -> None:
    """Whether tiles hold what the objects say, which are walked here once more."""
    objects: Objects = session.plan.objects()
    assert total(session, "Used space") == int(objects.sizes.sum()) * WORD_BYTES
    assert total(session, "Objects") == len(objects)
    assert total(session, "Roots") == int((session.heap.roots != 0).sum())
    if any(one.name == "Marked" for one in heaps(session)[0].streams):
        assert total(session, "Marked") == int((objects.colours == BLACK).sum())
    if session.plan.moves:
        assert total(session, "Old copies") == int(objects.having(FORWARDED).sum())
    for space in session.server.spaces:
        for one in space.streams:
            summary = one._summary
            if summary is not None and one.name in (
                "Used space",
                "Live",
                "New",
                "Objects",
                "Roots",
                "Marked",
                "Free bytes",
                "Length",
                "Entries",
                "Dirty cards",
            ):
                assert summary[0][0] == int(one._values.sum()), f"{space.name}: {one.name}"
    lists = session.plan.free_lists()
    if lists is not None:
        shown = next(space for space in session.server.spaces if space.name == "Free lists")
        assert np.array_equal(stream(shown, "Length")._values, lists.lengths)
    cards = session.plan.cards()
    if cards is not None:
        table = next(space for space in session.server.spaces if space.name == "Card table")
        assert np.array_equal(stream(table, "State")._values, cards.table)


@pytest.mark.parametrize("collector", PLANS)
def test_tiles_and_summaries_are_a_recount_of_the_objects_at_every_event(collector: str) -> None:
    session = SimulatorSession(
        options(collector, program="binarytrees", program_options={"live": 12})
    )
    events = run(session, lambda _event: recounted(session))
    names = [session.kinds.names[event.event] for event in events]
    assert names[0] == STARTS
    assert names[-1] == ENDS
    assert CLOCK in names
    if session.plan.kinds:
        starts = [name for name in names if name.endswith("collection starts")]
        assert starts
        assert (
            len(starts)
            == len([name for name in names if name.endswith("collection ends")])
            == session.plan.collections
        )


@pytest.mark.parametrize("collector", PLANS)
def test_what_is_live_is_what_the_programs_own_graph_says(collector: str) -> None:
    session = SimulatorSession(
        options(collector, program="queue", program_options={"live": 12}, steps=20)
    )
    shadow = Shadow(len(session.heap.roots))
    session.mutator.shadow = shadow
    compared = []

    def look(event: Event) -> None:
        if session.kinds.names[event.event] == CLOCK and session.plan.collection is None:
            alive = shadow.reachable()
            assert (
                total(session, "Live")
                == sum(shadow.objects[number].size for number in alive) * WORD_BYTES
            )
            compared.append(len(alive))

    run(session, look)
    assert max(compared) > 20


def test_slow_motion_tells_each_object_and_marks_grow_with_it() -> None:
    session = SimulatorSession(options("marksweep", slow=1, steps=72, program_options={"live": 10}))
    marked: list[int] = []

    def look(event: Event) -> None:
        collection = session.plan.collection
        if (
            session.kinds.names[event.event] == PROGRESS
            and collection is not None
            and collection.phase == "mark"
            and collection.number == 1
        ):
            marked.append(total(session, "Marked"))

    run(session, look)
    assert len(marked) > 50
    assert marked == list(range(1, len(marked) + 1))


def test_the_idle_half_is_unused_and_a_line_stands_between_the_halves() -> None:
    session = SimulatorSession(options("semispace", program_options={"live": 10}))
    idle: set[int] = set()

    def look(_event: Event) -> None:
        (space,) = heaps(session)
        unused = np.flatnonzero(space.control & Control.UNUSED)
        if len(unused):
            assert len(unused) == space.count // 2
            idle.add(int(unused[0]))
        assert np.flatnonzero(space.control & Control.SEPARATOR).tolist() == [space.count // 2]

    run(session, look)
    assert idle == {0, HEAP_BYTES // 512 // 2}, "the halves take turns"


def test_the_same_seed_gives_the_same_events_and_tiles_and_another_seed_others() -> None:
    def told(seed: int) -> list[object]:
        session = SimulatorSession(options("generational", seed=seed, program_options={"live": 10}))
        rows: list[object] = []
        run(
            session,
            lambda event: rows.append(
                (
                    event.event,
                    event.cause,
                    event.program_clock,
                    [
                        one._values.tobytes()
                        for space in session.server.spaces
                        for one in space.streams
                    ],
                )
            ),
        )
        return rows

    assert told(3) == told(3)
    assert told(3) != told(4)


def test_levels_leave_unknown_what_they_do_not_gather() -> None:
    for level, known in (
        (1, set()),
        (3, {"Used space", "Objects"}),
        (4, {"Used space", "Objects", "Live", "Roots"}),
    ):
        session = SimulatorSession(options("marksweep", level=level, steps=30))
        run(session)
        (space,) = heaps(session)
        for one in ("Used space", "Objects", "Live", "Roots"):
            mask = stream(space, one).known
            assert (mask is None or bool(mask.all())) == (one in known), f"{one} at level {level}"


@pytest.mark.parametrize(("program", "more"), [("binarytrees", {}), ("queue", {"data": 40})])
def test_promoted_is_what_a_collection_brought_into_the_old_space(
    program: str, more: dict[str, int]
) -> None:
    """Objects too large for the nursery are made in the old space at once: nobody promotes them."""
    session = SimulatorSession(
        options(
            "generational",
            program=program,
            program_options={"live": 12} | more,
            plan={"young_bytes": 1024},
            steps=20,
        )
    )
    young: set[int] = set()
    direct, promoted, unknown = set[int](), [], 0

    def look(event: Event) -> None:
        nonlocal young, unknown
        objects = session.plan.objects()
        old = next(space for space in session.plan.spaces() if space.role == "old")
        inside = (objects.cells >= old.start) & (objects.cells < old.end)
        if session.kinds.names[event.event].endswith("collection starts"):
            young = set(objects.identities[~inside].tolist())
            promoted.append(0)
        if not promoted:
            unknown += 1
            shown = stream(heaps(session)[-1], "Promoted").known
            assert shown is not None
            assert not shown.any(), "no collection has begun"
            return
        came = inside & np.isin(objects.identities, list(young))
        promoted[-1] = int(objects.sizes[came].sum()) * WORD_BYTES
        assert total(session, "Promoted") == promoted[-1]
        direct.update(objects.identities[inside & ~came].tolist())

    run(session, look)
    assert unknown
    assert any(promoted) == (program == "binarytrees")
    assert direct


def test_a_part_without_cards_has_none_that_are_clean() -> None:
    session = SimulatorSession(options("generational"))

    def look(_event: Event) -> None:
        young, old = heaps(session)
        shown = stream(young, "Dirty cards").known
        assert shown is not None
        assert not shown.any()
        assert stream(old, "Dirty cards").known is None

    assert run(session, look)


def test_blocks_are_as_full_as_their_lines_and_nothing_is_remembered_of_them() -> None:
    """A block that is free is empty; while lines are marked anew it is not known what is in use."""
    session = SimulatorSession(options("immix", program="binarytrees"))
    empty, full, marked_anew = [], [], 0

    def look(_event: Event) -> None:
        nonlocal marked_anew
        table = next(space for space in session.server.spaces if space.name == "Block table")
        used, remembered = stream(table, "Used space"), stream(table, "Remembered")
        assert remembered.known is not None
        assert not remembered.known.any()
        collection, lines, regions = (
            session.plan.collection,
            session.plan.lines(),
            session.plan.regions(),
        )
        assert lines is not None
        assert regions is not None
        if collection is not None and collection.phase:
            marked_anew += 1
            assert used.known is not None
            assert not used.known.any()
            return
        in_use = lines.table.reshape(len(regions.kinds), -1).sum(axis=1)
        assert used.known is None or used.known.all()
        assert np.array_equal(used._values, in_use * lines.card_words * WORD_BYTES)
        objects, bytes_by_block = session.plan.objects(), np.zeros(len(in_use), dtype=np.int64)
        block = np.searchsorted(regions.starts, objects.cells, side="right") - 1
        small = objects.cells + objects.sizes <= regions.ends[block]
        np.add.at(bytes_by_block, block[small], objects.sizes[small] * WORD_BYTES)
        assert (bytes_by_block <= used._values).all()
        free = regions.kinds == 0
        empty.append(int(free.sum()))
        full.append(int((~free).sum()))
        assert not used._values[free].any()

    run(session, look)
    assert any(empty)
    assert any(full)
    assert marked_anew


def test_settings_change_tiles_knobs_and_collect_while_it_runs() -> None:
    session = SimulatorSession(options("marksweep", steps=60))
    by_name = {setting.name: setting for setting in session.server.settings}
    assert by_name["Kept alive"].kind is SettingKind.RANGE
    tile = by_name["Tile size"]
    done: list[str] = []

    def look(event: Event) -> None:
        if session.kinds.names[event.event] == STARTS:
            session.server.set_setting(tile.id, tile.choices.index("1 KiB"))
            session.server.set_setting(by_name["Kept alive"].id, 5)
            session.server.set_setting(
                by_name["Order of free lists"].id,
                by_name["Order of free lists"].choices.index("address"),
            )
            session.server.set_setting(by_name["Collect now"].id, 1)
        done.append(session.kinds.names[event.event])

    run(session, look)
    assert heaps(session)[0].count == HEAP_BYTES // 1024
    assert session.program.value("live") == 5
    assert next(one.value for one in session.plan.knobs() if one.name == "order") == "address"
    assert done[1] == "Full collection starts"


@pytest.mark.parametrize("collector", matrix(PLANS, usual=["marksweep", "generational"]))
def test_the_heap_of_every_collector_is_made_smaller_and_larger_while_it_is_watched(
    collector: str,
) -> None:
    session = SimulatorSession(
        options(collector, program="queue", program_options={"live": 8}, steps=40)
    )
    (knob,) = (one for one in session.plan.knobs() if one.name == "heap")
    (setting,) = (one for one in session.server.settings if one.name == knob.title)
    assert setting.maximum == HEAP_BYTES
    seen: list[int] = []

    def look(event: Event) -> None:
        recounted(session)
        if session.kinds.names[event.event] == CLOCK and event.occurrence in (2, 12):
            session.server.set_setting(
                setting.id, HEAP_BYTES // 2 if event.occurrence == 2 else HEAP_BYTES
            )
        seen.append(next(int(one.value) for one in session.plan.knobs() if one.name == "heap"))

    run(session, look)
    assert {HEAP_BYTES, HEAP_BYTES // 2} <= set(seen)
    assert session.plan.kinds == {} or seen[-1] == HEAP_BYTES


def test_a_collector_without_room_ends_with_the_reason() -> None:
    session = SimulatorSession(options("nogc", steps=0))
    events = run(session)
    assert session.kinds.names[events[-1].event] == ENDS
    assert "do not fit" in events[-1].cause


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4096", 4096),
        ("256KiB", 256 << 10),
        ("1 MiB", 1 << 20),
        ("2g", 2 << 30),
        ("16 kB", 16 << 10),
    ],
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "fields",
    [
        {"heap_bytes": 100},
        {"level": 9},
        {"tile_bytes": 1},
        {"collector": "none"},
        {"program": "none"},
    ],
)
def test_what_cannot_be_simulated_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(LocalProtocolError):
        SimulatorSession(SimulationOptions(**fields))


def test_free_lists_are_named_by_their_sizes() -> None:
    session = SimulatorSession(options("marksweep"))
    space = next(space for space in session.server.spaces if space.name == "Free lists")
    assert isinstance(space.names, StringNames)
    assert space.names.names[1] == "24 bytes"
