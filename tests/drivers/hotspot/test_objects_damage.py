"""Walks of damaged copies: none leaves its arrays or goes round, and what is in C, compiled, written and done by numpy agrees to the bit."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from gcspy_drivers.hotspot.objects import arrays, kernels, machine_code
from gcspy_drivers.hotspot.objects.form import ObjectForm, ObjectHeader
from gcspy_drivers.hotspot.objects.heap_objects import AGES, REFERENCE, SUM
from gcspy_drivers.hotspot.objects.heap_walk import PLACE, STATE, WalkStop
from gcspy_drivers.hotspot.vm.klasses import CLASS, ClassShape, Klasses, Trait, slot_of
from gcspy_drivers.hotspot.vm.tables import VmField, VmTables, VMType
from gcspy_drivers.remote.address import Addr
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.process import Process
from hypothesis import given
from hypothesis import strategies as st

from gcspy_compiled.c_loops import CLoop
from tests.c_loops import check_accesses, need_c, without_c
from tests.matrix import matrix
from tests.once import compiled_once

I64 = npt.NDArray[np.int64]
Walk = Callable[..., int]

_BASE = 0x7000_0000
_WORDS = 600
_TILE_SHIFT = 9
_KINDS = {
    # word in a header: shape, bytes, log of an element, traits, first map, maps
    0x100: (ClassShape.INSTANCE, 16, 0, 0, 0, 0),
    0x208: (ClassShape.INSTANCE, 40, 0, 0, 0, 1),
    0x310: (ClassShape.ARRAY, 16, 0, 0, 0, 0),
    0x418: (ClassShape.ARRAY, 16, 2, Trait.REFERENCES, 0, 0),
    0x520: (ClassShape.MIRROR, 48, 0, 0, 1, 1),
    0x628: (ClassShape.CHUNK, 32, 0, 0, 0, 0),
    0x730: (ClassShape.ARRAY, 16, 2, Trait.FILLER, 0, 0),
    0x838: (ClassShape.REFUSED, 0, 0, 0, 0, 0),
}


@dataclass
class Case:
    """A small heap, and all inputs of a walk."""

    words: I64
    place: I64
    form: I64
    keys: I64
    numbers: npt.NDArray[np.int32]
    classes: I64
    maps: I64
    gaps: I64
    marks: I64
    generations: npt.NDArray[np.int8]

    def walk(self, how: Walk) -> list[object]:
        """Walk, and after each stop continue behind it; returns all results, in an order that does not depend on the route."""
        tiles = ((_WORDS * 8) >> _TILE_SHIFT) + 1
        state = np.zeros(len(STATE), dtype=np.int64)
        sums, ages = (
            np.zeros((tiles, len(SUM)), dtype=np.int64),
            np.zeros((AGES, 2), dtype=np.int64),
        )
        references = np.zeros((tiles, len(REFERENCE)), dtype=np.int64)
        tally, touched = (
            np.zeros((len(self.classes), 2), dtype=np.int64),
            np.zeros(len(self.classes), dtype=np.int64),
        )
        entries = np.zeros((2000, 4), dtype=np.int64)
        stops = []
        for _ in range(_WORDS + 1):
            why = how(
                self.words, _WORDS, state, self.place, self.form, self.keys, self.numbers, self.classes, self.maps, self.gaps,
                self.marks, tally, touched, sums, entries, ages, references, self.generations,
            )  # fmt: skip
            stops.append(
                (
                    why,
                    int(state[STATE.AT]),
                    int(state[STATE.WORD]) if why == WalkStop.UNKNOWN else 0,
                )
            )
            if why == WalkStop.DONE:
                break
            assert why != WalkStop.ROOM
            state[STATE.AT] += 1
        assert stops[-1][0] == WalkStop.DONE
        assert not tally.any()
        counted: dict[tuple[int, int], tuple[int, int]] = {}
        for tile, number, count, size in entries[: state[STATE.FILLED]].tolist():
            before = counted.get((tile, number), (0, 0))
            counted[tile, number] = (before[0] + count, before[1] + size)
        return [stops, counted, sums.tolist(), ages.tolist(), references.tolist()]


def case() -> Case:
    """Make a heap of objects of all kinds, one behind the other, with a thread's buffer and marks."""
    keys, numbers = np.zeros(64, dtype=np.int64), np.zeros(64, dtype=np.int32)
    for number, word in enumerate(_KINDS):
        at = int(slot_of(word, 64))
        while keys[at]:
            at = (at + 1) & 63
        keys[at], numbers[at] = word, number
    classes = np.array([list(map(int, row)) for row in _KINDS.values()], dtype=np.int64)
    form = ObjectForm(
        header=ObjectHeader.NARROW, class_base=0, class_shift=0, length_offset=12, alignment=8, oop_bytes=4, oop_base=0, oop_shift=0,
        mirror_size=16, mirror_statics=20, age_shift=3, age_mask=15,
    ).numbers(12)  # fmt: skip
    words = np.zeros(_WORDS, dtype=np.int64)
    at, turn = 0, 0
    gap = (300, 340)
    while at < _WORDS - 30:
        if gap[0] <= at < gap[1]:
            at = gap[1]
            continue
        word = list(_KINDS)[turn % 7]
        shape, size, log, *_ = _KINDS[word]
        length = turn % 11 if shape is ClassShape.ARRAY else 3 if shape is ClassShape.CHUNK else 0
        words[at] = 1 | (turn % 16) << 3 if turn % 5 else 2
        words[at + 1] = word | length << 32
        if shape is ClassShape.ARRAY:
            size += length << log
        elif shape is ClassShape.MIRROR:
            words[at + 2] = 8 | 2 << 32  # 8 words, 2 references among its statics
            size = 64
        elif shape is ClassShape.CHUNK:
            size += 8 * 4
        step = -(-size // 8)
        if at < gap[0] < at + step:
            words[at : at + step] = 0
            words[at], words[at + 1] = 1, 0x310 | (8 * (gap[0] - at) - 16) << 32
            step = gap[0] - at
        elif step > 2 and word in (0x208, 0x418, 0x520):
            last = at + step - 1
            words[last] = (_BASE + 8 * (turn % _WORDS)) | (_BASE + 8 * (7 * turn % _WORDS)) << 32
        at, turn = at + step, turn + 1
    words[at], words[at + 1] = 1, 0x310 | (8 * (_WORDS - at) - 16) << 32
    place = np.zeros(len(PLACE), dtype=np.int64)
    place[PLACE.ADDRESS], place[PLACE.STOP], place[PLACE.TILES], place[PLACE.SHIFT] = (
        _BASE,
        _BASE + 8 * _WORDS,
        _BASE,
        _TILE_SHIFT,
    )
    place[PLACE.SURVIVES] = place[PLACE.REFERS] = 1
    place[PLACE.LOW] = place[PLACE.BASE] = _BASE
    place[PLACE.GRAIN], place[PLACE.ALONE] = 10, _BASE + 8 * _WORDS
    return Case(
        words=words,
        place=place,
        form=form,
        keys=keys,
        numbers=numbers,
        classes=classes,
        maps=np.array([[16, 4], [24, 2]], dtype=np.int64),
        gaps=np.array([[_BASE + 8 * gap[0], _BASE + 8 * gap[1]]], dtype=np.int64),
        marks=np.zeros(0, dtype=np.int64),
        generations=np.array([0, 1, -1, 1, 0], dtype=np.int8),
    )


@pytest.fixture(params=matrix(["numba", "c"], usual=["c"]), scope="module")
def compiled(request: pytest.FixtureRequest) -> Iterator[Walk]:
    """The walk as machine code."""
    with pytest.MonkeyPatch.context() as patched:
        if request.param == "c":
            need_c(machine_code.LIBRARY, patched)
            found = machine_code.load()
        else:
            pytest.importorskip("numba")
            without_c(patched)
            found = compiled_once(machine_code.load)
        assert found is not None
        assert isinstance(found.walk, CLoop) == (request.param == "c")
        yield found.walk


@pytest.mark.soak
def test_no_access_in_c_is_outside_of_an_array(tmp_path: Path) -> None:
    check_accesses(machine_code.LIBRARY, tmp_path, Path(__file__))


def as_written(*arguments: Any) -> int:
    """Run the walk as it is written; torn words may be any, and what is made of them wraps around as in a processor."""
    with np.errstate(over="ignore"):
        return kernels.walk(*arguments)


def test_a_heap_in_order_is_walked_to_its_end(compiled: Walk) -> None:
    whole = case()
    found = whole.walk(arrays.walk)
    assert found == whole.walk(as_written) == whole.walk(compiled)
    stops, counted, sums, ages, references = found
    assert stops == [(WalkStop.DONE, _WORDS, 0)]
    assert isinstance(counted, dict)
    assert {number for _, number in counted} == set(range(6)), (
        "all but fillers, and what is refused"
    )
    columns = np.array(sums)
    taken = [SUM.INSTANCE_BYTES, SUM.ARRAY_BYTES, SUM.FREE]
    assert columns[:, taken].sum(axis=1).tolist() == [1 << _TILE_SHIFT] * (
        _WORDS * 8 >> _TILE_SHIFT
    ) + [_WORDS * 8 % (1 << _TILE_SHIFT)]
    assert np.array(ages)[:, 0].sum() == columns[:, SUM.OBJECTS].sum()
    assert (np.array(references).sum(axis=0)[:4] > 0).all()


def test_a_class_that_is_new_costs_a_small_block_and_not_a_large_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at = 0
    follow = arrays._Block.follow

    def counted(block: arrays._Block, at: int, last: int) -> arrays._Chain:
        nonlocal looked_at
        looked_at += last - at
        return follow(block, at, last)

    monkeypatch.setattr(arrays._Block, "follow", counted)
    whole = case()
    repeat, objects = 200, _WORDS - 30
    large = Case(**{**vars(whole), "words": np.zeros(2 * objects * repeat, dtype=np.int64)})
    # Instances of two words; the classes of the first are met one by one.
    large.words[0::2], large.words[1::2] = 1, 0x100
    large.words[1 : 2 * objects : 2] = 8 * np.arange(1000, 1000 + objects)
    large.place[[PLACE.STOP, PLACE.ALONE]] = _BASE + 8 * len(large.words)
    large.place[PLACE.REFERS] = 0
    large.place[PLACE.SHIFT] = 30
    state = np.zeros(len(STATE), dtype=np.int64)
    sums, entries = np.zeros((1, len(SUM)), dtype=np.int64), np.zeros((1 << 17, 4), dtype=np.int64)
    unknown = 0
    for _ in range(objects + 1):
        why = arrays.walk(
            large.words, len(large.words), state, large.place, large.form, large.keys, large.numbers, large.classes, large.maps,
            large.gaps[:0], large.marks, sums[:0], sums[:0, 0], sums, entries, np.zeros((AGES, 2), dtype=np.int64),
            np.zeros((1, len(REFERENCE)), dtype=np.int64), large.generations,
        )  # fmt: skip
        if why != WalkStop.UNKNOWN:
            break
        unknown += 1
        state[STATE.AT] += 2
    assert (why, unknown) == (WalkStop.DONE, objects)
    assert sums[0, SUM.OBJECTS] == objects * (repeat - 1)
    assert looked_at < 4 * len(large.words), f"{len(large.words)} words, {unknown} new classes"


damages = st.lists(
    st.tuples(
        st.integers(0, _WORDS - 1),
        st.one_of(
            st.integers(-(1 << 63), (1 << 63) - 1),
            st.sampled_from([0, 0x100, 0x310 | 5 << 32, 0x310 | 0x7FFFFFFF << 32, 0x520, -1]),
        ),
    ),
    max_size=12,
)


@given(
    damage=damages,
    marked=st.integers(0, _WORDS),
    marks=st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=10, max_size=10),
)
def test_whatever_is_damaged_all_ways_agree_and_end(
    damage: list[tuple[int, int]], marked: int, marks: list[int], compiled: Walk
) -> None:
    torn = case()
    for at, word in damage:
        torn.words[at] = word
    if marked % 2:
        torn.place[PLACE.MARKED_TOP] = _BASE + 8 * marked
        torn.place[PLACE.MARKS], torn.place[PLACE.MARK_SHIFT] = _BASE, 3
        torn.marks = np.array(marks, dtype=np.int64)
    assert torn.walk(arrays.walk) == torn.walk(compiled)


@given(damage=damages)
def test_what_is_written_is_what_is_compiled(damage: list[tuple[int, int]], compiled: Walk) -> None:
    torn = case()
    for at, word in damage:
        torn.words[at] = word
    assert torn.walk(as_written) == torn.walk(compiled)


@pytest.mark.parametrize("alone", [1, 40])
def test_behind_the_object_of_a_series_there_are_fillers_and_where_it_is_dead_all_is(
    alone: int, compiled: Walk
) -> None:
    series = case()
    series.place[PLACE.ALONE] = _BASE + 8 * alone
    found = series.walk(arrays.walk)
    assert found == series.walk(compiled)
    series.place[PLACE.MARKED_TOP] = _BASE + 8 * _WORDS
    series.place[PLACE.MARKS], series.place[PLACE.MARK_SHIFT] = _BASE, 3
    series.marks = np.zeros(10, dtype=np.int64)
    dead = series.walk(arrays.walk)
    assert dead == series.walk(compiled)
    assert np.array(dead[2])[:, SUM.DEAD].sum() == 8 * _WORDS


@pytest.mark.parametrize("cut", [*range(24), 299, 340, *range(_WORDS - 4, _WORDS)])
def test_a_copy_that_ends_earlier_is_walked_up_to_the_object_that_is_not_whole_in_it(
    cut: int,
) -> None:
    whole = case()
    whole.words[-2:] = 1, 0x100  # the last object is a header alone
    last = np.flatnonzero(whole.words[:-2])[-1]
    whole.words[last] -= 16 << 32
    found = []
    for how in (arrays.walk, as_written):
        state = np.zeros(len(STATE), dtype=np.int64)
        sums, entries = (np.zeros((10, len(SUM)), dtype=np.int64), np.zeros((2000, 4), np.int64))
        ages, references = np.zeros((AGES, 2), np.int64), np.zeros((10, len(REFERENCE)), np.int64)
        tally, touched = np.zeros((8, 2), dtype=np.int64), np.zeros(8, dtype=np.int64)
        why = how(
            whole.words[:cut], cut, state, whole.place, whole.form, whole.keys, whole.numbers, whole.classes, whole.maps, whole.gaps,
            whole.marks, tally, touched, sums, entries, ages, references, whole.generations,
        )  # fmt: skip
        found.append((why, int(state[STATE.AT]), sums.tolist(), ages.tolist(), references.tolist()))
    assert found[0] == found[1]
    assert found[0][0] in (WalkStop.DONE, WalkStop.MORE)
    assert (found[0][0] == WalkStop.DONE) == (found[0][1] >= cut)


@pytest.mark.parametrize("tile_0", [-9, -4, 1])
def test_references_beyond_the_tiles_are_not_counted(tile_0: int, compiled: Walk) -> None:
    """The tiles begin elsewhere than the heap: some objects have none, and some of what they refer to."""
    moved = case()
    moved.place[PLACE.BASE] += tile_0 << _TILE_SHIFT
    found = moved.walk(arrays.walk)
    assert found == moved.walk(as_written) == moved.walk(compiled)
    whole = np.array(case().walk(arrays.walk)[4])
    part = np.array(found[4])
    assert 0 < part.sum() < whole.sum()
    kept = np.arange(len(whole)) - tile_0
    kept = kept[(kept >= 0) & (kept < len(whole))]
    assert (part[kept, 0] == whole[kept + tile_0, 0]).all(), "what is within a tile stays there"


# --- Klasses -----------------------------------------------------------------------------------------------------------

_AT = {
    "_layout_helper": 8,
    "_super_check_offset": 20,
    "_name": 24,
    "_primary_supers[0]": 48,
    "_vtable_len": 112,
}
_KLASS_BYTES, _INSTANCE_BYTES = 120, 144


def klass_tables() -> VmTables:
    fields = {
        ("Klass", name): VmField("Klass", name, "", False, at, Addr(0)) for name, at in _AT.items()
    }
    for name, at in (("_itable_len", 120), ("_nonstatic_oop_map_size", 124)):
        fields["InstanceKlass", name] = VmField("InstanceKlass", name, "", False, at, Addr(0))
    for name, at in (("_length", 4), ("_body", 6)):
        fields["Symbol", name] = VmField("Symbol", name, "", False, at, Addr(0))
    return VmTables(
        fields,
        {"Klass": VMType("", _KLASS_BYTES), "InstanceKlass": VMType("Klass", _INSTANCE_BYTES)},
        {},
    )


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    """Return our own memory, to be read as a target's."""
    with Process(os.getpid()) as process:
        yield Memory(process)


def klass_at(room: ctypes.Array[ctypes.c_char], name: bytes = b"java/util/Some$Thing") -> int:
    """Lay out a class of 40 bytes with references at 16, and its name; returns its address."""
    address = ctypes.addressof(room)
    symbol = address + 400
    struct.pack_into("<i", room, _AT["_layout_helper"], 40)
    struct.pack_into("<I", room, _AT["_super_check_offset"], _AT["_primary_supers[0]"] + 8)
    struct.pack_into("<Q", room, _AT["_name"], symbol)
    struct.pack_into("<QQ", room, _AT["_primary_supers[0]"], address + 8, address)
    struct.pack_into("<iii", room, _AT["_vtable_len"], 5, 0, 2)
    struct.pack_into("<i", room, 124, 1)
    struct.pack_into("<i", room, 120, 2)
    struct.pack_into("<iI", room, _INSTANCE_BYTES + 8 * 7, 16, 3)
    struct.pack_into("<IH", room, 400, 0, len(name))
    struct.pack_into(f"{len(name)}s", room, 406, name)
    return address


PLAIN = ObjectForm(
    header=ObjectHeader.PLAIN, class_base=0, class_shift=0, length_offset=16, alignment=8, oop_bytes=8, oop_base=0, oop_shift=0,
    mirror_size=96, mirror_statics=100, age_shift=3, age_mask=15,
)  # fmt: skip


def test_a_class_says_its_name_size_and_references(memory: Memory) -> None:
    room = ctypes.create_string_buffer(1024)
    found = Klasses(memory, klass_tables(), PLAIN)
    number = found.add(klass_at(room))
    assert found.names[number] == "java.util.Some$Thing"
    assert found.classes[number, CLASS.SHAPE] == ClassShape.INSTANCE
    assert found.classes[number, CLASS.BYTES] == 40
    assert found.maps[found.classes[number, CLASS.FIRST_MAP]].tolist() == [16, 3]
    assert found.check()
    struct.pack_into("<i", room, _AT["_layout_helper"], 48)  # another class in its place
    assert not found.check()
    other = found.add(klass_at(room))
    assert other != number
    assert found.check()


@given(damage=st.lists(st.tuples(st.integers(0, 420), st.integers(0, 255)), min_size=1, max_size=8))
def test_a_damaged_class_is_refused_or_says_what_can_be(
    damage: list[tuple[int, int]], memory: Memory
) -> None:
    room = ctypes.create_string_buffer(1024)
    address = klass_at(room)
    for at, byte in damage:
        room[at] = bytes([byte])
    found = Klasses(memory, klass_tables(), PLAIN)
    number = found.add(address)
    row = found.classes[number]
    if row[CLASS.SHAPE] == ClassShape.INSTANCE:
        assert 16 <= row[CLASS.BYTES] <= 1 << 24
        for offset, count in found.maps[
            row[CLASS.FIRST_MAP] : row[CLASS.FIRST_MAP] + max(0, row[CLASS.MAPS])
        ].tolist():
            assert offset >= 8
            assert offset + 8 * count <= row[CLASS.BYTES]
    elif row[CLASS.SHAPE] == ClassShape.ARRAY:
        assert 0 < row[CLASS.BYTES] <= 32
    else:
        assert row[CLASS.SHAPE] == ClassShape.REFUSED
    found.add(8)
    found.add(address + 1)
    assert found.classes[len(found) - 1, CLASS.SHAPE] == ClassShape.REFUSED
    found.check()
