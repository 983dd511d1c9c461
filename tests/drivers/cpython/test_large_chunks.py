"""The chunks of malloc that hold large blocks are those that malloc itself tells the program, and what is left is what extension memory has."""

from __future__ import annotations

import numpy as np
from gcspy_drivers.cpython.driver import CPythonDriver
from gcspy_drivers.cpython.target import Target

from gcspy_server.api import AttachOptions
from tests.drivers.conftest import Start
from tests.drivers.cpython.test_large_blocks import rows_of, told_sizes

TEXTS = """
import ctypes
malloc, usable = (getattr(ctypes.CDLL(None), name) for name in ("malloc", "malloc_usable_size"))
malloc.restype, malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
usable.restype, usable.argtypes = ctypes.c_size_t, [ctypes.c_void_p]
kept = {number: "x" * (700 + 37 * number) for number in range(200)}
kept[-1], kept[-2] = "y" * 500_000, b"z" * 1_000_000
elsewhere = [malloc(3000) for _ in range(300)]
gc.collect()
gc.disable()
def tell_chunks():
    text = ""
    for one in kept.values():
        # A chunk has a header of 8 bytes, and one with a mapping of its own of 16; see malloc(3).
        text += "%d %d %d %s\\n" % (id(one), sys.getsizeof(one), usable(id(one)), type(one).__name__)
    _write(1, text.encode())
    _kill(_pid, _stop)
tell_chunks()
"""


def test_each_block_has_the_chunk_that_malloc_says(own_python: str, start: Start) -> None:
    child = start(own_python, TEXTS)
    child._wait_stopped()
    told = told_sizes(child)
    assert len(told) == 202
    with Target(child.pid) as target:
        interpreters = target.interpreters() or ()
        heaps = target.heaps(interpreters)
        found = target.objects(heaps, interpreters, large=True, references=True)
        without = target.objects(heaps, interpreters, large=True)
    assert without.chunks is None  # level 3 does not walk malloc's heaps
    blocks, chunks = found.large, found.chunks
    assert blocks is not None
    assert chunks is not None
    for address, size, usable, _ in told:
        assert [count for _, count in rows_of(blocks, address)] == [size]
        (row,) = np.flatnonzero(blocks.owner == np.uint64(address))
        assert int(chunks.size[row]) - usable in (8, 16)
        assert int(chunks.address[row]) == address - 16
    assert (chunks.size < 0).sum() < len(blocks) // 10
    assert chunks.all_chunks is not None
    assert chunks.all_bytes is not None
    # Nobody among the objects has the memory that was taken from malloc directly.
    assert chunks.all_chunks - chunks.chunks >= 300
    assert chunks.all_bytes - chunks.chunk_bytes >= 300 * 3008


def test_the_space_names_the_chunks(own_python: str, start: Start) -> None:
    child = start(own_python, TEXTS)
    child._wait_stopped()
    told_sizes(child)
    driver = CPythonDriver.attach(child.pid, AttachOptions(tiles=4096, level=4))
    try:
        server = driver.describe().server()
        driver.open(server)
        server.add_observer(lambda _: None)
        driver.tick()
        (space,) = [one for one in server.spaces if one.name == "Large blocks"]
        by_name = {one.name: one for one in space.streams}
        size, chunk = by_name["Bytes"], by_name["Chunk of malloc"]
        known = chunk.known if chunk.known is not None else np.ones(space.count, dtype=np.bool_)
        assert known.sum() > 200
        assert (chunk.data[known] + 8 >= size.data[known]).all()
        assert "belong to no object that was found" in space.info
    finally:
        driver.close()
