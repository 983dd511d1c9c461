"""The references that are found are those that the collector of the target itself would follow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from gcspy_drivers.cpython.graph.heap_graph import HeapGraph, build_graph
from gcspy_drivers.cpython.graph.machine_code import Loops
from gcspy_drivers.cpython.target import Target
from gcspy_protocol.errors import Unsupported
from numpy.typing import NDArray

from tests.drivers.conftest import Start

# Objects of many kinds, whose types keep what they refer to in as many ways.
KINDS = """
import array, collections, contextvars, enum, fractions, functools, io, itertools, re, threading, types, weakref
import dataclasses, sys, decimal, json, logging, pathlib, random, uuid, zipfile
class Plain:
    def __init__(self, n): self.n, self.text, self.more = n, str(n), [n]
class Late(Plain):
    pass
class Slotted:
    __slots__ = ("a", "b", "__weakref__")
    def __init__(self, n): self.a, self.b = n, (n, n)
class Mixed(Slotted):
    def __init__(self, n): super().__init__(n); self.c = [n]
class Number(int):
    pass
class Text(str):
    pass
class Names(dict):
    pass
class Row(tuple):
    pass
class Many(list):
    pass
class Colour(enum.Enum):
    RED = 1
    BLUE = 2
Point = collections.namedtuple("Point", "x y")
@dataclasses.dataclass
class Data:
    a: int
    b: list
def made(n):
    captured = [n]
    def inner(other=captured):
        return captured, other
    return inner
def counting(n):
    local = [n]
    while True:
        yield local
@functools.lru_cache(maxsize=None)
def cached(n):
    return (n, str(n))
async def waiting():
    await asyncio_like()
@types.coroutine
def asyncio_like():
    yield
def given(one):
    one.extra = [1]
    return one
keep = [
    [Plain(n) for n in range(3000)],
    [given(Late(n)) for n in range(50)],
    [Slotted(n) for n in range(300)],
    [Mixed(n) for n in range(300)],
    [given(Number(10 ** n)) for n in range(30)],
    [given(Text(n)) for n in range(30)],
    [given(Names(a=[n])) for n in range(30)],
    [given(Row((n, [n]))) for n in range(30)],
    [given(Many([n, [n]])) for n in range(30)],
    [Point(n, [n]) for n in range(100)],
    [Data(n, [n]) for n in range(100)],
    [made(n) for n in range(200)],
    {n: [n] for n in range(300)},
    {str(n): [n] for n in range(300)},
    {(n, n): {n} for n in range(300)},
    set(range(5000)), frozenset("abc"), {Plain(1)},
    collections.deque([n] for n in range(1000)),
    collections.OrderedDict((n, [n]) for n in range(100)),
    collections.defaultdict(list, {1: [1]}),
    collections.ChainMap({1: [2]}),
    collections.Counter("abcabc"),
    [cached(n) for n in range(50)],
    [functools.partial(made, [n], other=[n]) for n in range(50)],
    [weakref.ref(one) for one in [Plain(1)] * 3],
    [itertools.chain([n], [n]) for n in range(20)],
    [iter([n]) for n in range(20)], [enumerate([n]) for n in range(20)], [zip([n], [n]) for n in range(20)],
    [map(str, [n]) for n in range(20)],
    [types.SimpleNamespace(a=[n]) for n in range(20)],
    [types.MappingProxyType({n: [n]}) for n in range(20)],
    [Plain(n).__init__ for n in range(20)],
    [property(made(n)) for n in range(20)],
    [Exception([n]) for n in range(20)],
    [contextvars.ContextVar(str(n)) for n in range(20)],
    [re.compile("a%d" % n) for n in range(20)],
    [threading.Lock() for n in range(20)], [threading.Thread(target=made, args=([n],)) for n in range(20)],
    array.array("d", range(1000)), bytearray(3000), memoryview(bytearray(10)), slice([1], [2]),
    io.StringIO("text"), io.BytesIO(b"bytes"), Colour.RED,
]
generators = [counting(n) for n in range(50)]
for one in generators[:40]:
    next(one)
coroutines = [waiting() for n in range(10)]
for one in coroutines[:5]:
    one.send(None)
class Stacked:
    def __init__(self, n): self.n = n
def resting(n):
    def given(one, two, three): return one
    return [given(Stacked(n), (yield [n]), [n])]
stacked = [resting(n) for n in range(50)]
for one in stacked:
    next(one)
class Own:
    def __init__(self, n): self.__dict__ = {"a": [n], n: n}
class Mapping(collections.UserDict):
    pass
keep.append([Own(n) for n in range(50)])
keep.append([Mapping({n: [n]}) for n in range(50)])
class Marked(int):
    def __init__(self, n): self.a = [n]
keep.append([Marked(n) for n in range(50)])
if sys.version_info >= (3, 15):
    keep.append([frozendict({n: [n], "b": [n]}) for n in range(50)])
long = list(range(400))
while len(long) < 100_000:
    long.append([1])
"""

# Numbers go into an array of C, which is no part of what is listed; written twice, for what is made only once.
TELL_REFERENTS = """
import array, gc, os
def tell_referents(path):
    gc.collect()
    gc.disable()
    for _ in range(2):
        found = array.array("q")
        add = found.append
        for one in gc.get_objects():
            if one is found:
                continue
            for other in gc.get_referents(one):
                add(id(one)); add(id(other))
        one = other = None
    with open(path, "wb") as file:
        found.tofile(file)
    del found, add, file
    _write(1, bytes(len(_room)))
    sys._debugmallocstats()
    _kill(_pid, _stop)
"""


def pairs_of(graph: HeapGraph) -> NDArray[np.int64]:
    """(m, 2) address of who refers, and of what."""
    sources = np.repeat(graph.address, np.diff(graph.graph.starts))
    return np.stack((sources, graph.address[graph.graph.targets]), axis=1)


def missing(graph: HeapGraph, told: NDArray[np.int64]) -> NDArray[np.int64]:
    """The pairs that the target reported and the reader did not find."""
    kind = np.dtype([("by", "<i8"), ("held", "<i8")])
    found = np.ascontiguousarray(pairs_of(graph)).view(kind).reshape(-1)
    wanted = np.unique(np.ascontiguousarray(told).view(kind).reshape(-1))
    return np.setdiff1d(wanted, found).view(np.int64).reshape(-1, 2)


@pytest.mark.timeout(300)
def test_what_the_collector_follows_is_found(
    start: Start, python: str, compiled: Loops, tmp_path: Path
) -> None:
    path = tmp_path / "referents"
    target = start(python, f"{TELL_REFERENTS}\n{KINDS}\ntell_referents({str(path)!r})")
    target.wait_still()
    told = np.fromfile(path, dtype=np.int64).reshape(-1, 2)
    with Target(target.pid) as reader:
        graph = build_graph(reader.graph_source(held=False), compiled)
    assert graph.complete
    sources = np.unique(told[:, 0])
    lost = np.setdiff1d(sources, graph.address)
    assert len(lost) <= 2, "but for what the telling itself was made of"
    wrong = [
        (names_of(graph, by), names_of(graph, held))
        for by, held in missing(graph, told[np.isin(told[:, 0], graph.address)]).tolist()
    ]
    # The objects of a cache are found through its entries, which the collector does not know.
    wrong = [pair for pair in wrong if pair[0] != "functools._lru_cache_wrapper"]
    assert len(wrong) < 1e-4 * len(told), wrong[:20]
    assert len(told) > 200_000


def test_a_version_whose_roots_are_not_known_is_refused(start: Start, own_python: str) -> None:
    target = start(own_python, "tell()")
    target.wait_still()
    with Target(target.pid) as reader:
        reader._layout = replace(reader._layout, graph=None)
        with pytest.raises(Unsupported, match=r"cannot be found in this version.*3\.14, 3\.15"):
            reader.graph_source(held=False)


def names_of(graph: HeapGraph, address: int) -> str:
    """The name of the type of what is at an address."""
    number = graph.number_of(address)
    return "nothing" if number is None else graph.types.names[int(graph.kind[number])]
