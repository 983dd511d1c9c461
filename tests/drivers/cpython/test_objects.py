"""The objects found in the pools of a target that holds still equal the target's own report, with difference zero."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from gcspy_drivers.cpython.driver import CPythonDriver
from gcspy_drivers.cpython.spaces.type_space import NO_OBJECT
from gcspy_drivers.cpython.target import ObjectReading, Target

from gcspy_server.api import (
    LEVEL,
    AttachOptions,
    ExtentNames,
    Query,
    Server,
    ServerSpace,
    StringNames,
)
from tests.drivers.conftest import Start
from tests.drivers.targets import StillTarget

# Objects with and without a collector's head, with a dictionary and weak references before it, large ones, dead ones in free
# lists, untracked tuples, classes (which are too large for pymalloc), cycles, and holes everywhere.
ZOO = """
import random, weakref
random.seed(5)
class Node:
    pass
class Slot:
    __slots__ = ()
class Pair:
    __slots__ = ("left", "right")
class Text(str):
    pass
class Meta(type):
    pass
keep = []
for i in range(8_000):
    node = Node(); node.me = node; node.number = i
    pair = Pair(); pair.left = pair
    keep.append((node, Slot(), pair, bytes(i % 90), [i], {i: i}, float(i), Text(i), weakref.ref(node), (i, i)))
classes = [Meta(f"Made{i}", (Node,), {}) for i in range(200)]
large = [tuple(range(200)) for _ in range(50)] + [[Node()] * 300]
large += [tuple(Node() for _ in range(150)) for _ in range(30)]
for i in sorted(random.sample(range(len(keep)), 3_000), reverse=True):
    keep[i] = None
node = pair = None
gc.collect()
gc.disable()
middle = [Node() for _ in range(500)]
gc.collect(0)
young = [Node() for _ in range(700)]
tell_objects()
"""


def read_objects(target: Target) -> ObjectReading:
    interpreters = target.interpreters() or ()
    return target.objects(target.heaps(interpreters), interpreters)


def by_type(found: ObjectReading) -> Counter[str]:
    counts: Counter[str] = Counter()
    for one in found.heaps:
        for number, count in zip(
            one.objects.type.tolist(), one.objects.count.tolist(), strict=True
        ):
            if number >= 0:
                counts[found.types.names[number]] += count
    return counts


def short(name: str) -> str:
    """Return the ``__name__`` of a built-in type, given its name with the module's before it."""
    return name.rpartition(".")[2]


@pytest.mark.parametrize("setting", ["", "debug"])
def test_types_of_each_generation_equal_what_the_target_says(
    python: str, start: Start, setting: str
) -> None:
    child = start(python, ZOO, {"PYTHONMALLOC": setting} if setting else None)
    truth = child.wait_objects()
    with Target(child.pid) as target:
        found = read_objects(target)
    lists = found.lists
    assert lists is not None
    assert lists.complete
    assert lists.count(4)[:3].tolist() == [sum(one.values()) for one in truth]
    for generation in range(3):
        kinds = lists.nodes.type[lists.of_node == generation]
        assert (kinds >= 0).all()
        counted = Counter(short(found.types.names[kind]) for kind in kinds.tolist())
        assert counted == truth[generation]
    assert truth[2]["Node"] > 5_000, (
        "the old generation is empty, so that nothing would be compared"
    )
    assert truth[0]["Node"] >= 700
    # Nothing in the pools is tracked that is on no list, and what is on one outside of them is there too.
    (heap,) = found.heaps
    assert heap.objects.known.all()
    assert int(heap.objects.tracked.sum()) == int((lists.nodes.pool >= 0).sum())
    assert int((lists.nodes.pool < 0).sum()) > 200


def test_objects_that_the_collector_does_not_know_are_counted_exactly(
    python: str, start: Start
) -> None:
    child = start(python, ZOO)
    child.wait_objects()
    with Target(child.pid) as target:
        counts = by_type(read_objects(target))
    assert counts["Slot"] == 5_000
    assert counts["Text"] == 5_000
    assert counts["Pair"] == 5_000
    assert counts["Node"] == 5_000 + 500 + 700 + 1 + 30 * 150
    assert counts["float"] >= 5_000


def test_whatever_a_class_is_called_its_objects_are_counted(python: str, start: Start) -> None:
    """A class of a program may have any name: none of these was taken for a type, and their objects for no objects."""
    child = start(
        python,
        """
names = ["", "two\\nlines", "\\x1b[31mred", "Gr\\u00f6\\u00dfe", "Generic[" + "List[Dict[str, " * 100, "\\u00e9" * 400]
made = [type(name, (), {"__slots__": ()}) for name in names]
keep = [one() for number, one in enumerate(made) for _ in range(1000 + number)]
tell()
""",
    )
    child.wait_still()
    with Target(child.pid) as target:
        counts = by_type(read_objects(target))
    assert counts["(no name)"] == 1000
    assert counts["two\nlines"] == 1001
    assert counts["\x1b[31mred"] == 1002
    assert counts["Größe"] == 1003
    long = {name: count for name, count in counts.items() if name.endswith("…")}
    generic = ("Generic[" + "List[Dict[str, " * 100)[:512] + "…"
    assert long == {generic: 1004, "é" * 256 + "…": 1005}


def test_blocks_in_use_equal_what_the_target_says(python: str, start: Start) -> None:
    child = start(
        python, "keep = [(i, [i], bytes(i % 300)) for i in range(20_000)]\ndel keep[::3]\ntell()"
    )
    truth = child.wait_still()
    with Target(child.pid) as target:
        (heap,) = read_objects(target).heaps
    objects = heap.objects
    used = np.bincount(objects.block_bytes // 16 - 1, weights=objects.count, minlength=32)
    assert {number: int(used[number]) for number in range(32) if used[number]} == {
        number: blocks for number, (_, blocks, _) in truth.classes.items()
    }
    assert int(objects.blocks.sum()) == sum(blocks for _, blocks, _ in truth.classes.values())


class Watched:
    """An opened driver of level 3."""

    def __init__(self, child: StillTarget, *, tiles: int = 65536, level: int = 3) -> None:
        self.driver = CPythonDriver.attach(child.pid, AttachOptions(tiles=tiles, level=level))
        self.server: Server = self.driver.describe().server()
        self.driver.open(self.server)
        self.server.add_observer(lambda _: None)

    def space(self, name: str) -> ServerSpace:
        (found,) = [space for space in self.server.spaces if space.name == name]
        return found

    def column(self, space: str, stream: str) -> list[int]:
        (found,) = [one for one in self.space(space).streams if one.name == stream]
        assert found.known is None
        return [int(value) for value in found.data]


@pytest.fixture
def watched() -> Iterator[list[Watched]]:
    """Return a list: what is put in is closed at the end."""
    opened: list[Watched] = []
    yield opened
    for one in opened:
        one.driver.close()


@pytest.mark.parametrize("tiles", [65536, 16])
def test_streams_say_what_was_found(
    python: str, start: Start, watched: list[Watched], tiles: int
) -> None:
    child = start(python, ZOO)
    truth = child.wait_objects()
    watched.append(one := Watched(child, tiles=tiles))
    one.driver.tick()
    tracked = [sum(found.values()) for found in truth]
    assert one.column("Tracked objects", "Objects")[:3] == tracked
    assert one.column("Tracked objects", "Objects")[4] == 0
    large = one.column("Tracked objects", "Large")
    assert sum(one.column("Objects", "Tracked")) == sum(
        one.column("Tracked objects", "Objects")
    ) - sum(large)
    names = one.space("Types").names
    assert isinstance(names, StringNames)
    counts = one.column("Types", "Objects")
    assert counts[names.names.index("Slot")] == 5_000
    assert sum(counts) == sum(one.column("Size classes", "Blocks in use"))
    assert sum(one.column("Objects", "Objects")) == sum(counts) - counts[NO_OBJECT]
    assert counts[NO_OBJECT] == sum(one.column("Objects", "Other blocks"))
    assert sum(one.column("Types", "Bytes")) == sum(one.column("pymalloc arenas", "Used"))
    top, objects = one.column("Objects", "Top type"), one.column("Objects", "Objects")
    assert all((kind == 0) == (count == 0) for kind, count in zip(top, objects, strict=True))
    assert "Node" in {names.names[kind] for kind in top}
    told = one.server.ask(
        Query(number=1, space=one.space("Types").id, kind="types", most=1024)
    ).table
    by_name: Counter[str] = Counter()
    for row in told.rows:
        assert isinstance(row[1], int)
        by_name[str(row[0])] += row[1]
    assert (by_name["Slot"], by_name["(items and tables of containers)"], told.rest) == (
        5_000,
        counts[NO_OBJECT],
        0,
    )
    assert sum(by_name.values()) == sum(counts)
    space = one.space("Objects")
    names_of = space.names
    assert isinstance(names_of, ExtentNames)
    tile = int(np.argmax(objects))
    table = one.server.ask(
        Query(number=2, space=space.id, kind="types", key=int(names_of.bases[tile]))
    ).table
    types = [
        row for row in table.rows if row[0] != "(items and tables of containers)"
    ]  # several can have one name
    others = [row[1] for row in table.rows if row[0] == "(items and tables of containers)"]
    assert others == [
        count for count in one.column("Objects", "Other blocks")[tile : tile + 1] if count
    ]
    whole = np.array([row[1:] for row in types], dtype=np.int64).sum(axis=0)
    assert whole[0] == objects[tile]
    assert whole[2] == one.column("Objects", "Tracked")[tile] == whole[3:].sum()
    assert types[0][0] == names.names[top[tile]]
    arenas = one.space("pymalloc arenas")
    asked = Query(number=3, space=arenas.id, kind="contents", key=int(names_of.bases[tile]))
    assert one.server.ask(asked).table == table
    generation = one.column("Objects", "Generation")
    assert set(generation) <= {0, 1, 2, 3, 4}
    assert 3 in generation
    assert all(
        (kind == 0) == (count == 0)
        for kind, count in zip(generation, one.column("Objects", "Tracked"), strict=True)
    )


def test_types_keep_their_tiles_while_new_ones_come(
    own_python: str, start: Start, watched: list[Watched]
) -> None:
    child = start(
        own_python,
        """
class Old: pass
old = [Old() for _ in range(3000)]
tell_objects()
class New: pass
new = [New() for _ in range(9000)]
tell_objects()
""",
    )
    child.wait_objects()
    watched.append(one := Watched(child))
    one.driver.tick()
    before = one.space("Types").names
    child.go_on()
    child.wait_objects()
    one.driver.tick()
    after = one.space("Types").names
    assert isinstance(before, StringNames)
    assert isinstance(after, StringNames)
    assert after.names[: before.count] == before.names
    assert "New" not in before.names
    counts = one.column("Types", "Objects")
    assert counts[after.names.index("New")] == 9_000
    assert counts[after.names.index("Old")] == 3_000


def test_without_pymalloc_there_is_nothing_to_look_into(
    python: str, start: Start, watched: list[Watched]
) -> None:
    child = start(python, "tell_objects()", {"PYTHONMALLOC": "malloc"})
    child.wait_objects()
    watched.append(one := Watched(child))
    one.driver.tick()
    assert {space.name for space in one.server.spaces} == {
        "GC generations",
        "Process memory",
        "Memory over time",
    }
    said = "pymalloc is not in use (PYTHONMALLOC=malloc): small objects are in malloc's heaps"
    assert said in one.driver.describe().general_info
    assert said in one.space("Process memory").info, "the window shows it with its first space"


def test_the_level_is_changed_between_events_and_says_what_each_costs(
    own_python: str, start: Start, watched: list[Watched]
) -> None:
    child = start(own_python, ZOO)
    child.wait_objects()
    watched.append(one := Watched(child, level=2))
    one.driver.tick()
    assert "Types" not in {space.name for space in one.server.spaces}
    arenas = one.space("pymalloc arenas")
    assert arenas.streams[1].gathered
    whole = one.server.ask(Query(number=1, space=arenas.id, kind="contents", most=1024)).table
    assert whole.columns[0].name == "Blocks of"
    sums = np.array([row[1:] for row in whole.rows], dtype=np.int64).sum(axis=0).tolist()
    used, carved = (
        sum(one.column("pymalloc arenas", "Used")),
        sum(one.column("pymalloc arenas", "Carved")),
    )
    assert sums[1:4] == [
        *(sum(one.column("pymalloc arenas", name)) for name in ("Blocks in use", "Free blocks")),
        used,
    ]
    uncarved = sum(
        int(row[4 + 1] or 0) for row in whole.rows if row[0] == "(not carved into pools yet)"
    )
    assert sums[3] + sums[4] == carved + uncarved
    names = arenas.names
    assert isinstance(names, ExtentNames)
    tile = int(np.argmax(one.column("pymalloc arenas", "Used")))
    mine = one.server.ask(
        Query(number=2, space=arenas.id, kind="contents", key=int(names.bases[tile]))
    ).table
    (row,) = mine.rows
    assert row[2] == one.column("pymalloc arenas", "Blocks in use")[tile]
    assert row[4] == one.column("pymalloc arenas", "Used")[tile]
    one.server.set_setting(LEVEL, 3)
    one.driver.tick()
    assert one.column("Types", "Objects")[NO_OBJECT] > 0
    one.server.set_setting(LEVEL, 1)
    one.driver.tick()
    gathered = {
        space.name
        for space in one.server.spaces
        if any(stream.gathered for stream in space.streams)
    }
    assert gathered == {"GC generations", "Memory over time"}
    (level,) = [setting for setting in one.server.settings if setting.id == LEVEL]
    assert all(cost > 0 for cost in level.costs[:3])
    assert level.costs[3] == 0, "nobody asked for references"
    assert level.costs[0] < level.costs[2]
    assert (level.value, level.applies) == (1, 3)


def test_a_type_that_is_known_is_not_learnt_again(start: Start, own_python: str) -> None:
    target = start(own_python, ZOO)
    target.wait_objects()
    with Target(target.pid) as reader:
        types = read_objects(reader).types
        known = types.address.copy()
        assert len(known) > 10
        assert not types.learn(np.concatenate((known, known[:1])))
        assert types.address.tolist() == known.tolist()
        assert types.find(known).tolist() == list(range(len(known)))
