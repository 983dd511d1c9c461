"""Blocks outside of pymalloc equal what the target says of its own objects with `sys.getsizeof`, with difference zero."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from gcspy_drivers.cpython.driver import CPythonDriver
from gcspy_drivers.cpython.objects.large import KINDS, NOT_TRACKED, BlockRole, LargeBlocks
from gcspy_drivers.cpython.target import ObjectReading, Target

from gcspy_server.api import AttachOptions, ExtentNames, Query, Server, StringNames
from tests.drivers.conftest import Start
from tests.drivers.targets import StillTarget

# One of each kind of container, small and large and derived from, each printed with
# `sys.getsizeof`, and then with how much of that is in the object itself and hence, if it is small,
# in a pool. A dictionary that shares its table with others is printed without it.
WARDROBE = """
import array, collections
class List(list): pass
class Dict(dict): pass
class Set(set): pass
class Text(str): pass
class Queue(collections.deque): pass
class Ordered(collections.OrderedDict): pass
class Slots: __slots__ = tuple(f"s{i}" for i in range(90))
class Wide:
    def __init__(self):
        for i in range(120): setattr(self, f"field{i}", i)
class Numbers(array.array): pass
def holey():
    found = dict.fromkeys(range(500))
    for key in range(490): del found[key]
    return found
def cut():
    found = bytearray(5000)
    del found[:700]
    return found
made = [
    ([None] * 65), (list(range(1000))), ([0] * 60), List(range(300)), list(range(7)),
    dict.fromkeys(range(100)), dict.fromkeys(map(str, range(1000))), {1: 2}, holey(), Dict.fromkeys(range(50)),
    dict.fromkeys(range(70_000)), {}, collections.Counter(range(200)), collections.defaultdict(int, {i: i for i in range(60)}),
    set(range(1000)), {1, 2}, frozenset(range(40)), frozenset(range(20)), Set(range(5000)),
    bytearray(5000), bytearray(b"abc"), cut(), bytearray(), array.array("d", range(999)), array.array("b", range(100)),
    array.array("i", range(3)), Numbers("q", range(600)),
    collections.deque(), collections.deque(range(63)), collections.deque(range(3000)), Queue(range(500)),
    Text("abc"), Text("x" * 3000), Text("\\u1234" * 3000), Text("\\U00012345" * 400),
    tuple([] for _ in range(200)), (1, 2), Slots(), [[0] * 100, [1] * 200],
    Wide(), Wide().__dict__,
]
for queue in (27, 28, 29, 30):
    for _ in range(100): made[queue].append(0); made[queue].popleft() if queue > 27 else made[queue].pop()
ordered = [Ordered.fromkeys(range(300)), collections.OrderedDict.fromkeys(range(900))]
for one in ordered: one.move_to_end(5)
kept = {"names": made}
gc.collect()
gc.disable()
def tell_sizes():
    text = ""
    for one in made + ordered + [List, Dict, Text, Wide, Slots]:
        # What getsizeof adds is before the object; what object.__sizeof__ counts is in it.
        own = object.__sizeof__(one) + sys.getsizeof(one) - type(one).__sizeof__(one)
        if isinstance(one, type): own = sys.getsizeof(type(one)(str("x"), (), {"__slots__": ()}))
        if isinstance(one, str): own = sys.getsizeof(type(one)("")) - 1
        text += "%d %d %d %s\\n" % (id(one), sys.getsizeof(one), own, type(one).__name__)
    one = None
    gc.collect()
    items = [0, 0, 0, 0]
    for one in gc.get_objects():
        which = 0 if type(one) is list else 2 if type(one) is set else None
        if which is not None:
            size = one.__sizeof__() - type(one).__basicsize__
            if size > _most: items[which] += 1; items[which + 1] += size
    one = None
    text += "0 %d %d list\\n0 %d %d set\\n" % tuple(items)
    _write(1, text.encode())
    _kill(_pid, _stop)
_most = 488 if os.environ.get("PYTHONMALLOC") else 512
tell_sizes()
"""


def told_sizes(child: StillTarget) -> list[tuple[int, int, int, str]]:
    """Return the target's report of each object: address, bytes, bytes of the object itself, type."""
    lines = (line.split(" ") for line in child._pending(1).decode().splitlines())
    return [(int(address), int(size), int(own), name) for address, size, own, name in lines]


def read_large(target: Target) -> ObjectReading:
    interpreters = target.interpreters() or ()
    return target.objects(target.heaps(interpreters), interpreters, large=True)


def rows_of(blocks: LargeBlocks, address: int) -> list[tuple[BlockRole, int]]:
    return [
        (BlockRole(int(blocks.kind[row])), int(blocks.size[row]))
        for row in np.flatnonzero(blocks.owner == np.uint64(address)).tolist()
    ]


@pytest.mark.parametrize("setting", ["", "debug"])
def test_bytes_of_each_object_equal_what_the_target_says(
    python: str, start: Start, setting: str
) -> None:
    child = start(python, WARDROBE, {"PYTHONMALLOC": setting} if setting else None)
    child._wait_stopped()
    told = told_sizes(child)
    assert len(told) > 45
    with Target(child.pid) as target:
        found = read_large(target)
    blocks = found.large
    assert blocks is not None
    assert (blocks.torn, blocks.elsewhere) == (0, 0)
    most = 488 if setting else 512
    seen: Counter[BlockRole] = Counter()
    for address, size, own, name in told[:-2]:
        rows = rows_of(blocks, address)
        seen.update(kind for kind, _ in rows)
        kinds = {kind for kind, _ in rows}
        left = size - sum(count for _, count in rows)
        if BlockRole.OBJECT not in kinds:
            assert own <= most, (name, size, rows)
            left -= own
        if name in {"Ordered", "OrderedDict"}:
            assert kinds == {BlockRole.DICT_TABLE, BlockRole.ORDER_TABLE}
            left %= 32  # a node for each key, which is in a pool
        if kinds - {BlockRole.OBJECT, BlockRole.SHARED_TABLE}:
            assert left == 0, (name, size, rows)
        assert 0 <= left <= most, (name, size, rows)
    for name, kind, (_, count, total, _) in zip(
        ("list", "set"), (BlockRole.ITEMS, BlockRole.SET_TABLE), told[-2:], strict=True
    ):
        mine = (blocks.kind == kind) & (blocks.type == found.types.names.index(name))
        assert (int(mine.sum()), int(blocks.size[mine].sum())) == (count, total)
    wanted = {
        BlockRole.OBJECT,
        BlockRole.ITEMS,
        BlockRole.DICT_TABLE,
        BlockRole.SET_TABLE,
        BlockRole.BUFFER,
        BlockRole.DEQUE_BLOCK,
        BlockRole.TEXT,
    }
    assert wanted <= set(seen)


UNTRACKED = """
class Node: pass
node = Node()
node.text, node.data = "x" * 5000, bytes(7000)
inside = [1 << 40_000, "\u00e9" * 3000]
wide = [("\u1234%d" % number) * 400 for number in range(200)]
flat = tuple(str(number) * 200 for number in range(100, 400))
hidden = {number: ("%d" % number * 300,) * 100 for number in range(100, 200)}
gc.collect(); gc.collect()
gc.disable()
def tell_untracked():
    text = ""
    for one in [node.text, node.data, flat, *inside, *wide, *flat, *hidden.values(), *[one[0] for one in hidden.values()]]:
        assert sys.getsizeof(one) > 512 and not gc.is_tracked(one)
        text += "%d %d %d %s" % (id(one), sys.getsizeof(one), 0, type(one).__name__) + chr(10)
    _write(1, text.encode())
    _kill(_pid, _stop)
tell_untracked()
"""


def test_what_nobody_tracks_is_found_where_references_lead_to(python: str, start: Start) -> None:
    child = start(python, UNTRACKED)
    child._wait_stopped()
    told = told_sizes(child)
    assert len(told) == 705
    with Target(child.pid) as target:
        interpreters = target.interpreters() or ()
        heaps = target.heaps(interpreters)
        found = target.objects(heaps, interpreters, large=True, references=True)
        without = read_large(target).large
    blocks = found.large
    assert blocks is not None
    assert without is not None
    for address, size, _, name in told:
        assert rows_of(without, address) == []
        assert rows_of(blocks, address) == [(BlockRole.OBJECT, size)], name
        (row,) = np.flatnonzero(blocks.owner == np.uint64(address))
        assert found.types.names[blocks.type[row]] == name
        assert blocks.of_list[row] == NOT_TRACKED
    assert set(without.address.tolist()) <= set(blocks.address.tolist())
    assert blocks.torn == without.torn == 0


ARRAYS = """
import numpy as np
class Image(np.ndarray): pass
whole = np.arange(120_000.0).reshape(300, 400)
made = [
    whole, whole[10:, ::2], np.ones(5000, "f4"), np.ones((7, 11, 13), order="F"), np.array(3.0), np.zeros((0, 9)),
    np.zeros(70, [("key", "i4"), ("text", "S60")]), np.array([{}] * 300, object), np.array(["word"] * 99), np.ones(3),
    np.ones(400).view(Image), np.full((20, 30), 2.0).copy().view(np.matrix), np.arange(999, dtype="u1").astype("M8[s]"),
    Image((50, 60)), np.ndarray((4, 5, 6, 7, 8), "c8"), np.frombuffer(bytearray(9000), "u1"),
]
gc.collect()
gc.disable()
text = ""
there = {id(each): each for one in made for each in (one, one.base) if isinstance(each, np.ndarray)}
for one in there.values():
    text += "%d %d %d %s\\n" % (id(one), one.nbytes if one.flags.owndata else 0, 0, type(one).__name__)
_write(1, text.encode())
_kill(_pid, _stop)
"""


OUR_NUMPY = {"PYTHONPATH": str(Path(np.__file__).parents[1])}


def test_the_data_of_arrays_is_found_with_the_array_that_owns_it(
    own_python: str, start: Start
) -> None:
    child = start(own_python, ARRAYS, OUR_NUMPY)
    child._wait_stopped()
    told = told_sizes(child)
    with Target(child.pid) as target:
        found = read_large(target)
    blocks = found.large
    assert blocks is not None
    large = 0
    for address, size, _, name in told:
        rows = [row for row in rows_of(blocks, address) if row[0] is BlockRole.BUFFER]
        assert rows == ([(BlockRole.BUFFER, size)] if size > 512 else []), name
        large += size > 512
    assert large == 11


def test_types_have_the_bytes_of_the_data_that_their_objects_keep(
    own_python: str, start: Start, watched: list[Watched]
) -> None:
    child = start(own_python, ARRAYS, OUR_NUMPY)
    child._wait_stopped()
    told = told_sizes(child)
    watched.append(one := Watched(child, tiles=4096))
    names = one.types.names
    assert isinstance(names, StringNames)
    sizes, whole = (
        dict(zip(names.names, stream.data.tolist(), strict=True))
        for stream in (one.types.streams[0], one.types.streams[2])
    )
    for name, types in (("numpy.ndarray", {"ndarray"}), ("Image", {"Image"})):
        data = sum(size for _, size, _, type_name in told if type_name in types and size > 512)
        assert data > 2000
        assert whole[name] - sizes[name] == data
    assert one.types.streams[2].known is None


class Watched:
    """An opened driver of level 3."""

    def __init__(self, child: StillTarget, *, tiles: int) -> None:
        self.driver = CPythonDriver.attach(child.pid, AttachOptions(tiles=tiles, level=3))
        self.server: Server = self.driver.describe().server()
        self.driver.open(self.server)
        self.server.add_observer(lambda _: None)
        self.driver.tick()
        (self.space,) = [space for space in self.server.spaces if space.name == "Large blocks"]
        (self.types,) = [space for space in self.server.spaces if space.name == "Types"]

    def column(self, stream: str) -> npt.NDArray[np.int64]:
        (found,) = [one for one in self.space.streams if one.name == stream]
        return found.data.astype(np.int64)


@pytest.fixture
def watched() -> Iterator[list[Watched]]:
    """Return a list: what is put in is closed at the end."""
    opened: list[Watched] = []
    yield opened
    for one in opened:
        one.driver.close()


KEEPING = """
import collections
class Node: pass
old = [Node() for _ in range(2000)]
gc.collect()
gc.disable()
young = [[number] * (100 + number) for number in range(50)]
room = bytearray(3_000_000)
long = collections.deque(range(64 * 2000))
tell_objects()
"""


def test_the_space_tells_each_block_with_its_kind_type_and_generation(
    own_python: str, start: Start, watched: list[Watched]
) -> None:
    child = start(own_python, KEEPING)
    child.wait_objects()
    watched.append(one := Watched(child, tiles=65536))
    names = one.space.names
    assert isinstance(names, ExtentNames)
    size, kind, generation = one.column("Bytes"), one.column("Kind"), one.column("Generation")
    assert np.array_equal(names.sizes[size > 0].astype(np.int64), size[size > 0])
    assert (np.diff(names.bases.astype(np.int64)) > 0).all()
    room = int(np.flatnonzero(size == 3_000_001)[0])
    assert (KINDS[kind[room]], generation[room]) == ("buffer", 0)
    types = one.types.names
    assert isinstance(types, StringNames)
    of_lists = one.column("Type") == types.names.index("list")
    assert set(8 * np.arange(100, 150)) <= set(size[of_lists & (generation == 1)].tolist())
    assert 16_000 <= int(size[of_lists & (generation == 3)].max()) < 20_000
    assert "1,745 more with 921,360 bytes are further on in long deques" in one.space.info

    (told,) = one.server.ask(
        Query(number=1, space=one.space.id, kind="blocks", key=int(names.bases[room]))
    ).table.rows
    assert told[:4] == ("buffer", "bytearray", 3_000_001, "not tracked")
    assert told[4] == hex(int(names.bases[room]))
    whole = one.server.ask(Query(number=2, space=one.space.id, kind="blocks", most=1024)).table
    assert sum(int(row[2] or 0) for row in whole.rows) == one.space.count
    assert sum(int(row[3] or 0) for row in whole.rows) == size.sum()
    assert whole.rest == 0
    (blocks,) = [row for row in whole.rows if row[:2] == ("block of a deque", "collections.deque")]
    assert isinstance(blocks[2], int)
    assert blocks[2] >= 256
    assert blocks[3:] == (blocks[2] * 528, 528)


def test_what_has_no_tile_is_in_the_sum_and_said(
    own_python: str, start: Start, watched: list[Watched]
) -> None:
    child = start(own_python, KEEPING)
    child.wait_objects()
    watched.append(everything := Watched(child, tiles=65536))
    watched.append(largest := Watched(child, tiles=16))
    every = np.sort(everything.column("Bytes"))
    assert np.array_equal(np.sort(largest.column("Bytes")), every[-16:])
    text = f"the largest 16 have tiles, {len(every) - 16:,} others with {int(every[:-16].sum()):,} bytes have none"
    assert text in largest.space.info
    (stream,) = [one for one in largest.space.streams if one.name == "Bytes"]
    assert stream._summary is not None
    assert stream._summary[0] == (int(every.sum()),)


def test_the_bytes_of_frames_and_generators_are_unknown_and_not_zero(
    own_python: str, start: Start, watched: list[Watched]
) -> None:
    fields = ", ".join(f"v{number}" for number in range(120))
    program = f"""
def wide():
    {fields.replace(", ", " = ")} = 1
    yield {fields}
kept = wide()
next(kept)
gc.collect()
tell_objects()
"""
    child = start(own_python, program)
    child.wait_objects()
    watched.append(one := Watched(child, tiles=65536))
    types = one.types.names
    assert isinstance(types, StringNames)
    mine = one.column("Type") == types.names.index("generator")
    assert mine.sum() == 1
    (stream,) = [stream for stream in one.space.streams if stream.name == "Bytes"]
    assert stream.known is not None
    assert not stream.known[mine].any()
    assert "frames and generators are not known" in one.space.info
