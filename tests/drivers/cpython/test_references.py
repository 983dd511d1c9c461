"""References that are found in pools, against what the target itself says of its objects (`gc.get_referents`)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from gcspy_drivers.cpython.driver import CPythonDriver
from gcspy_drivers.cpython.target import ObjectReading, Target

from gcspy_server.api import LEVEL, AttachOptions
from tests.drivers.conftest import Start
from tests.drivers.targets import StillTarget

# Lists, tuples, instances with and without dictionaries, slots and cycles, all small enough for
# pools. It keeps each reference between objects that the collector tracks, its source and its
# target, as numbers in an array, and prints the array's address. It prints in a function: 3.15 does
# lazy imports (PEP 810) when a global name is bound to them and read, which fills the young
# generation.
PROGRAM = """
import array, random
random.seed(7)
class Node: pass
class Pair:
    __slots__ = ("left", "right")
keep = []
for i in range(4_000):
    node, pair = Node(), Pair()
    node.me, node.pair, pair.left, pair.right = node, pair, node, keep[-1] if keep else None
    keep.append([node, pair, (node, [pair]), {i: node, "pair": pair}])
random.shuffle(keep)
node = pair = None
gc.collect(); gc.collect()
gc.disable()
young = [[keep[i]] for i in range(1_000)]      # from young to old
for one in keep[:300]:
    one[0].late = [one]                         # and from old to young
one = None
edges = array.array("Q")
def tell_edges():
    for one in gc.get_objects():
        if type(one) in (Node, Pair, list, tuple, dict):
            for other in gc.get_referents(one):
                if type(other) in (Node, Pair, list, tuple, dict) and gc.is_tracked(other):
                    edges.extend((id(one), id(other)))
tell_edges()
_write(1, b"%d %d" % edges.buffer_info())
tell_objects()
"""


def read(target: Target) -> ObjectReading:
    interpreters = target.interpreters() or ()
    return target.objects(target.heaps(interpreters), interpreters, references=True)


def true_references(
    child: StillTarget, target: Target, found: ObjectReading
) -> npt.NDArray[np.uint64]:
    """Return the references that the target reported, (n, 2), between objects that are in pools."""
    where, count = map(int, child._pending(1).split())
    edges = np.frombuffer(target._memory.read(where, 8 * count), dtype=np.uint64).reshape(-1, 2)
    assert found.lists is not None
    objects = found.lists.inside.address + np.uint64(16)
    inside: npt.NDArray[np.uint64] = edges[np.isin(edges, objects).all(axis=1)]
    return inside


def test_what_is_found_agrees_with_what_the_target_follows(python: str, start: Start) -> None:
    child = start(python, PROGRAM)
    child.wait_objects()
    with Target(child.pid) as target:
        found = read(target)
        edges = true_references(child, target, found)
    assert found.references is not None
    assert found.lists is not None
    within, out, into, down, up = found.references.sum(axis=0).tolist()
    assert out == into, "what leaves one pool arrives in another"
    assert len(edges) > 30_000
    # The items of `keep` and `young`, and of a table or two of the interpreter, are too large for
    # pools. The reader also finds keys and texts, which the program does not list as it lists only
    # five types.
    assert within + out >= 0.97 * len(edges) - 5_000
    generation = dict(
        zip(
            (found.lists.inside.address + np.uint64(16)).tolist(),
            found.lists.of_node.tolist(),
            strict=False,
        )
    )
    of_edges = np.array([[generation[int(a)], generation[int(b)]] for a, b in edges])
    true_down = int((of_edges[:, 0] > of_edges[:, 1]).sum())
    true_up = int((of_edges[:, 0] < of_edges[:, 1]).sum())
    assert true_down >= 300
    assert true_up >= 1_000
    # Room for more items is read too, and nobody clears its old contents.
    assert true_down - 5 <= down <= true_down + 5
    assert true_up <= up <= true_up + 5


def test_level_4_has_a_space_of_references_and_level_3_does_not(
    own_python: str, start: Start
) -> None:
    child = start(own_python, PROGRAM)
    child.wait_objects()
    driver = CPythonDriver.attach(child.pid, AttachOptions(level=3))
    try:
        server = driver.describe().server()
        driver.open(server)
        server.add_observer(lambda _: None)
        driver.tick()
        assert "References" not in {space.name for space in server.spaces}
        server.set_setting(LEVEL, 4)
        driver.tick()
        (space,) = [space for space in server.spaces if space.name == "References"]
        sums = {stream.schema.name: int(stream.data.sum()) for stream in space.streams}
        assert sums["Out"] == sums["Into"] > 10_000
        assert sums["Old to young"] >= 300
        assert all(stream.known is None for stream in space.streams)
        assert f"{sums['Within'] + sums['Out']} references were found" in space.info
    finally:
        driver.close()


def test_padding_of_the_debug_hooks_is_seen_through(own_python: str, start: Start) -> None:
    counts = []
    for env in (None, {"PYTHONMALLOC": "debug"}):
        child = start(own_python, PROGRAM, env)
        child.wait_objects()
        with Target(child.pid) as target:
            found = read(target).references
        assert found is not None
        counts.append(found.sum(axis=0))
    plain, padded = counts
    assert abs(int(padded[3]) - int(plain[3])) <= 20
    assert padded[:2].sum() > 0.9 * plain[:2].sum()
