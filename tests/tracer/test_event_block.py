"""What the drain of `gcspy trace` fills one event at a time has the bytes that the codec makes of all events at once."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from gcspy_objects.gctrace.address_model import AddressParameters
from gcspy_objects.gctrace.events import EventColumns, decode_events, encode_events
from gcspy_objects.records import RecordKind
from hypothesis import given, settings
from hypothesis import strategies as st

import gcspy.tracer
from gcspy_compiled.libraries import HEADERS
from tests.objects.gctrace.made import differences, event_columns

Column = np.ndarray[Any, Any]

SHIFT: Final = 4
COLUMNS: Final = (
    "kind", "detail", "thread", "address", "to", "size", "type", "site", "length", "later", "age", "freed_size",
)  # fmt: skip
"""Of the program below; all as 64 bit integers."""

PROGRAM = r"""
#include "event_block.h"
#include <stdio.h>

enum { KIND, DETAIL, THREAD, ADDRESS, TO, SIZE, TYPE, SITE, LENGTH, LATER, AGE, FREED_SIZE, COLUMNS };

int main(void)
{
    static struct event_block block;
    int64_t head[3];
    if (!begin_block(&block))
        return 1;
    uint8_t *out = malloc(gct_payload_bytes(BLOCK_ROWS));
    while (fread(head, 8, 3, stdin) == 3) {
        int64_t n = head[0], *read = malloc(8 * COLUMNS * (size_t)n);
        if (fread(read, 8, COLUMNS * (size_t)n, stdin) != COLUMNS * (size_t)n)
            return 2;
        block.shift = 4, block.least = (int)head[1], block.overhead = (int)head[2];
        for (int64_t i = 0; i < n; i++) {
            int64_t one[COLUMNS];
            for (int c = 0; c < COLUMNS; c++)
                one[c] = read[c * n + i];
            uint32_t thread = (uint32_t)one[THREAD];
            uint64_t address = (uint64_t)one[ADDRESS], size = (uint64_t)one[SIZE];
            int kind = (int)one[KIND], detail = (int)one[DETAIL];
            if (one[LATER])
                put_stamp(&block, (uint64_t)one[LATER]);
            if (kind == GCT_ALLOCATE)
                put_allocation(&block, detail, thread, address, size, (uint32_t)one[SITE], (uint32_t)one[TYPE]);
            else if (kind == GCT_FREE)
                put_free(&block, thread, address, (uint64_t)one[AGE], (uint64_t)one[FREED_SIZE]);
            else if (kind == GCT_MOVE)
                put_move(&block, thread, address, (uint64_t)one[TO]);
            else if (kind == GCT_MAP || kind == GCT_UNMAP)
                put_mapping(&block, kind, thread, address, size, (uint32_t)one[SITE]);
            else if (kind == GCT_LOST)
                put_lost(&block, thread, size);
            else
                put_collection(&block, kind, detail, thread, size, one[LENGTH]);
        }
        int64_t bytes = (int64_t)encode_block(&block, out);
        fwrite(&bytes, 8, 1, stdout);
        fwrite(out, 1, (size_t)bytes, stdout);
        fflush(stdout);
        empty_block(&block, 0);
        free(read);
    }
    return 0;
}
"""

Encode = Callable[[EventColumns, AddressParameters], bytes]


@pytest.fixture(name="encode", scope="module")
def _encode(tmp_path_factory: pytest.TempPathFactory) -> Any:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("block")
    (folder / "block.c").write_text(PROGRAM)
    includes = [f"-I{Path(gcspy.tracer.__file__).parent / 'compiled'}", f"-I{HEADERS}"]
    subprocess.run(
        [compiler, "-O1", "-Wall", "-Werror", "-Wno-sign-compare", *includes, "-o", folder / "block", folder / "block.c"],
        check=True,
        timeout=60,
    )  # fmt: skip
    # One block after the other in one process: what an earlier block left would be seen.
    with subprocess.Popen(
        [folder / "block"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def encode(events: EventColumns, parameters: AddressParameters) -> bytes:
            rows = _rows(events)
            head = np.array([len(events), parameters.least, parameters.overhead], np.int64)
            stdin.write(head.tobytes() + b"".join(rows[name].tobytes() for name in COLUMNS))
            stdin.flush()
            return stdout.read(int.from_bytes(stdout.read(8), "little"))

        yield encode
        stdin.close()
        assert process.wait() == 0


def _rows(events: EventColumns) -> dict[str, Column]:
    """Return the program's columns; ages and sizes of what is freed as the drain knows them from its table of live blocks."""
    ages, sizes = np.zeros(len(events), np.int64), np.zeros(len(events), np.int64)
    live: dict[int, tuple[int, int]] = {}
    allocated = 0
    for row, (kind, address, size) in enumerate(
        zip(events.kind.tolist(), events.address.tolist(), events.size.tolist(), strict=True)
    ):
        if kind == RecordKind.ALLOCATE:
            live[address] = allocated, size
            allocated += 1
        elif kind == RecordKind.FREE and address in live:
            ordinal, sizes[row] = live.pop(address)
            ages[row] = allocated - ordinal
    zeros = np.zeros(len(events), np.int64)
    return {
        name: np.ascontiguousarray(column, np.int64)
        for name, column in {
            "kind": events.kind,
            "detail": events.detail,
            "thread": zeros if events.thread is None else events.thread,
            "address": events.address,
            "to": events.to,
            "size": events.size,
            "type": events.type,
            "site": events.site,
            "length": events.length,
            "later": np.diff(events.stamp, prepend=0),
            "age": ages,
            "freed_size": sizes,
        }.items()
    }


def _traced_events(
    count: int, seed: int, *, others: bool, largest: int, types: int, sites: int, threads: int
) -> EventColumns:
    """Return events as a traced program has them.

    Args:
        count: How many.
        seed: For all that is random.
        others: Whether there are events beside ALLOCATE and FREE.
        largest: Size of an object.
        types: Number of types.
        sites: Number of sites.
        threads: Number of threads.
    """
    random = np.random.default_rng(seed)
    usual = random.choice([RecordKind.ALLOCATE, RecordKind.ALLOCATE, RecordKind.FREE], count)
    rare = [
        RecordKind.MOVE, RecordKind.MAP, RecordKind.UNMAP, RecordKind.LOST,
        RecordKind.COLLECTION_START, RecordKind.COLLECTION_END,
    ]  # fmt: skip
    kind = np.where(others & (random.random(count) < 0.2), random.choice(rare, count), usual)

    def at(kinds: list[RecordKind], values: Column) -> Column:
        return np.where(np.isin(kind, kinds), values, 0)

    block = (1 << 40) * random.integers(0, 2) + 16 * random.integers(1, 200, count)
    collections = [RecordKind.COLLECTION_START, RecordKind.COLLECTION_END]
    sized = [RecordKind.ALLOCATE, RecordKind.MAP, RecordKind.UNMAP, RecordKind.LOST, *collections]
    placed = [
        RecordKind.ALLOCATE,
        RecordKind.FREE,
        RecordKind.MOVE,
        RecordKind.MAP,
        RecordKind.UNMAP,
    ]
    events = event_columns(
        kind.tolist(),
        detail=at([RecordKind.ALLOCATE, *collections], random.integers(0, 3, count)),
        address=at(placed, block),
        to=at([RecordKind.MOVE], random.integers(0, 1 << 45, count)),
        size=at(sized, random.integers(0, largest, count)),
        type=at([RecordKind.ALLOCATE], random.integers(0, types, count)),
        site=at([RecordKind.ALLOCATE, RecordKind.MAP], random.integers(0, sites, count)),
        length=at(collections, random.integers(0, 1000, count)),
        stamp=np.cumsum(random.integers(0, 1 << 20, count) * (random.random(count) < 0.1)),
    )
    numbers = random.integers(0, threads, count).astype(np.int32)
    if len(np.unique(numbers)) > 1:
        events.thread = numbers
    return events


@settings(max_examples=200, deadline=None)
@given(
    count=st.integers(1, 500),
    seed=st.integers(0, 1 << 32),
    others=st.booleans(),
    largest=st.sampled_from([2, 400, 1 << 20, 1 << 40]),
    types=st.sampled_from([1, 2, 300, 1 << 21]),
    sites=st.sampled_from([1, 9, 1 << 30]),
    threads=st.sampled_from([1, 2, 300]),
    parameters=st.sampled_from([AddressParameters(SHIFT, 24, 8), AddressParameters(SHIFT, 1, 0)]),
)
def test_a_block_of_the_drain_has_the_bytes_of_the_codec(
    encode: Encode,
    count: int,
    seed: int,
    largest: int,
    types: int,
    sites: int,
    threads: int,
    parameters: AddressParameters,
    *,
    others: bool,
) -> None:
    events = _traced_events(
        count, seed, others=others, largest=largest, types=types, sites=sites, threads=threads
    )
    payload = encode(events, parameters)
    if RecordKind.ALLOCATE in events.kind:  # else the codec looks for a larger shift
        assert payload == encode_events(events, parameters, compressed=True, by_site=False)
    found = decode_events(payload, count, one_thread=events.thread is None)
    assert differences(found, events) == []
