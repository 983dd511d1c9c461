"""Which streams say what memory a session has: in real recordings, in a trace, and in a session of this process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.model import Naming, Presentation, Space, Stream
from gcspy_replay.file import Recording

from gcspy_client.model.memory_history import MemoryRole, memory_source
from gcspy_client.model.session import ClientSession
from tests.client.feeding import Feed, follow, uniform

SAMPLES = Path(__file__).parents[3] / "replay" / "samples"


def source_of(path: Path) -> list[tuple[str, str]]:
    with Recording.open(path) as recording:
        found = memory_source(recording.seek(recording.last))
    return [(one.name, one.about) for one in found.quantities]


def test_an_older_recording_of_a_process_has_its_resident_memory_and_its_arenas() -> None:
    assert source_of(SAMPLES / "demo-cpython-3.11.gcspy") == [
        ("Resident", 'sum of "Resident" of Process memory'),
        ("Carved", 'sum of "Carved" of pymalloc arenas'),
        ("Used", 'sum of "Used" of pymalloc arenas'),
    ]


def test_a_simulated_heap_has_what_lies_in_it_and_nothing_is_made_up() -> None:
    assert source_of(SAMPLES / "semispace.gcspy") == [
        ("Used space", 'sum of "Used space" of Semispaces')
    ]


def test_parts_of_a_heap_are_added_up() -> None:
    assert source_of(SAMPLES / "lessons" / "generations.gcspy.zst") == [
        ("Used space", 'sum of "Used space" of Young generation, Old')
    ]


def bytes_stream(name: str, number: int = 0) -> Stream:
    return Stream(id=number, name=name, dtype="u4", maximum=9999, suffix=" bytes")


def session_of(*spaces: Space, bases: tuple[int, ...] = ()) -> ClientSession:
    feed = Feed(spaces, {one.id: 2 for one in spaces})
    session = ClientSession()
    follow(session, feed.bootstrap())
    for message in feed.event(
        {(one.id, stream.id): np.ones(2) for one in spaces for stream in one.streams}
    ):
        session.apply(
            uniform(message.space, 2, bases[message.space - 1])
            if isinstance(message, m.Tiles) and bases
            else message
        )
    return session


def heap(number: int, name: str, *, main: bool = False) -> Space:
    return Space(id=number, name=name, streams=(bytes_stream("Used"),), main=main)


def test_spaces_that_overlap_are_not_added_up() -> None:
    pools, arenas, other = heap(1, "Pools", main=True), heap(2, "Arenas"), heap(3, "Large")
    session = session_of(pools, arenas, other, bases=(0x10000, 0x10000, 0x90000))
    (used,) = memory_source(session.live).quantities
    assert used.parts == (("Pools", "Used"), ("Large", "Used"))
    assert used.about == 'sum of "Used" of Pools, Large'


def test_a_space_of_another_kind_or_driver_is_left_out() -> None:
    streams = (bytes_stream("Used"), bytes_stream("Live", 1), bytes_stream("New", 2))
    main = Space(id=1, name="Heap", streams=streams, main=True)
    session = session_of(
        main,
        heap(2, "Code cache"),
        Space(id=3, name="Other", streams=streams, driver="other"),
        bases=(0x10000, 0x50000, 0x90000),
    )
    (used,) = memory_source(session.live).quantities
    assert used.parts == (("Heap", "Used"),)


def test_what_a_share_is_of_is_named_as_what_it_is() -> None:
    used = replace(bytes_stream("Used"), presentation=Presentation.PERCENT_VAR, max_stream=1)
    space = Space(id=1, name="Heap", streams=(used, bytes_stream("Carved", 1)), main=True)
    found = memory_source(session_of(space).live).quantities
    assert [(one.role, one.name, one.share) for one in found] == [
        (MemoryRole.COMMITTED, "Carved", True),
        (MemoryRole.USED, "Used", False),
    ]


def test_a_process_with_two_memory_managers_has_their_sum_and_one_resident_set() -> None:
    names = ("Resident set", "pymalloc used", "pymalloc committed")
    first = Space(
        id=1,
        name="Memory over time",
        streams=tuple(bytes_stream(name, i) for i, name in enumerate(names)),
    )
    names = ("Resident set", "Java heap used", "Java heap committed")
    second = Space(
        id=2,
        name="Memory over time",
        driver="hotspot",
        streams=tuple(bytes_stream(name, i) for i, name in enumerate(names)),
    )
    found = memory_source(session_of(first, second, heap(3, "Heap", main=True)).live).quantities
    assert [(one.name, one.about, len(one.parts)) for one in found] == [
        ("Resident", "resident set: memory of the process that is in RAM", 1),
        ("Committed", "taken from the system by pymalloc and Java heap", 2),
        ("Used", "in use in pymalloc and Java heap", 2),
    ]


@pytest.mark.parametrize(
    "stream",
    [
        Stream(id=0, name="Used", dtype="u4", maximum=9999),
        Stream(id=0, name="Free", dtype="u4", maximum=9999, suffix=" bytes"),
    ],
)
def test_where_no_stream_says_how_many_bytes_are_used_nothing_is_known(stream: Stream) -> None:
    space = Space(id=1, name="Heap", streams=(stream,), main=True)
    assert memory_source(session_of(space).live).quantities == ()


def test_tiles_without_addresses_are_not_added_to_others() -> None:
    named = Space(id=2, name="Sizes", streams=(bytes_stream("Used"),), naming=Naming.STRINGS)
    feed = Feed((heap(1, "Heap", main=True), named), {1: 2, 2: 2})
    session = ClientSession()
    follow(session, feed.bootstrap())
    for message in feed.event({(1, 0): np.ones(2), (2, 0): np.ones(2)}):
        session.apply(
            replace(message, naming=Naming.STRINGS, base=0, tile_bytes=0)
            if isinstance(message, m.Tiles) and message.space == 2
            else message
        )
    (used,) = memory_source(session.live).quantities
    assert used.parts == (("Heap", "Used"),)
