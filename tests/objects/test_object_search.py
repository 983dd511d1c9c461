"""Objects are found by what a text says of them: by numbers with both ends among them, by parts of names and by whole ones."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from gcspy_objects.heap.views import HeapSnapshot, ObjectFlag
from gcspy_objects.names import Sites, Thread, ThreadKind, Threads
from gcspy_objects.object_search import ObjectSearch, rows_of, sought_of
from gcspy_objects.trace import Trace
from gcspy_protocol.errors import CommandError

MOST = (1 << 63) - 1


def trace() -> Trace:
    threads = Threads()
    for number, name in enumerate(("main", "Worker one")):
        threads.begin(threads.row_of(0x100 + number), Thread(name, ThreadKind.PROGRAM))
    sites = Sites(
        type=np.zeros(3, np.int32),
        labels=["(unknown)", "", "Object.clone"],
        methods=["List.add(int)", "Main.main()"],
        first_frame=np.array([0, 0, 2, 2]),
        frame_method=np.array([0, 1], np.int32),
        frame_bci=np.array([3, 7], np.int32),
    )
    types = SimpleNamespace(
        names=["(unknown)", "java.util.List", "java.util.ArrayList", "int[]"],
        internal=["(unknown)", "java.util.List", "java.util.ArrayList", "[I"],
    )
    return cast(Trace, SimpleNamespace(types=types, sites=sites, threads=threads))


def heap() -> HeapSnapshot:
    """Five objects side by side from 0x1000 on, of 16, 24, 32, 40 and 48 bytes; the fourth is a filler."""
    size = np.array([16, 24, 32, 40, 48])
    columns: dict[str, Any] = {
        "address": 0x1000 + np.cumsum(size) - size,
        "size": size,
        "type": np.array([1, 2, 3, 3, 2], np.int32),
        "site": np.array([0, 1, 2, 1, 1], np.int32),
        "thread": np.array([0, 1, 1, 0, 0], np.int32),
        "flags": np.array([0, ObjectFlag.BORN_OLD, 0, ObjectFlag.FILLER, 0], np.uint8),
    }
    nothing = np.zeros(5, np.int64)
    others: dict[str, Any] = {
        name: nothing
        for name in HeapSnapshot.__dataclass_fields__
        if name not in ("event", "collections", "allocated_bytes", "spaces", *columns)
    }
    return HeapSnapshot(event=0, collections=0, allocated_bytes=0, spaces=(), **others, **columns)


def found(text: str) -> list[int]:
    rows: list[int] = rows_of(heap(), trace(), sought_of(text)).tolist()
    return rows


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("", [0, 1, 2, 4]),
        ("size:24", [1]),
        ("size:25", []),
        ("size:24..32", [1, 2]),
        ("size:25..47", [2]),
        ("size:..24", [0, 1]),
        ("size:32..", [2, 4]),
        ("size:40", []),
        ("address:0x1000", [0]),
        ("address:0x100f", [0]),
        ("address:0x1010", [1]),
        ("address:0x1010..0x1028", [1, 2]),
        ("address:0x1011..0x1027", [1]),
        ("address:0x0..0xfff", []),
        ("address:0x1070..", [4]),
        ("address:0x109f", [4]),
        ("address:0x10a0", []),
        ("list", [0, 1, 4]),
        ("type:LIST", [0, 1, 4]),
        ("type=java.util.List", [0]),
        ("type=list", []),
        ("[i", [2]),
        ("type=int[]", [2]),
        ("site:add", [1, 4]),
        ("site:main.main", [1, 4]),
        ("site=main.main()", [1, 4]),
        ("site=main.main", []),
        ("site:clone", [2]),
        ("thread:worker", [1, 2]),
        ("thread='worker one'", [1, 2]),
        ("thread=worker", []),
        ("list size:..24 thread:main", [0]),
        ("list array", [1, 4]),
        ("nothing", []),
    ],
)  # fmt: skip
def test_what_a_text_says_is_found_and_nothing_else(text: str, rows: list[int]) -> None:
    assert found(text) == rows


@pytest.mark.parametrize(
    ("text", "sought"),
    [
        ("size:1kB..2KiB", ObjectSearch(size=(1000, 2048))),
        ("size:1_000,000", ObjectSearch(size=(1_000_000, 1_000_000))),
        ("size:0x10", ObjectSearch(size=(16, 16))),
        ("size:010", ObjectSearch(size=(10, 10))),
        ("size:3..", ObjectSearch(size=(3, MOST))),
        ("size:3..3", ObjectSearch(size=(3, 3))),
        (f"address:{MOST}", ObjectSearch(address=(MOST, MOST))),
        ("Type:Node", ObjectSearch(names=(("type", "node", False),))),
        ("x" * 2000, ObjectSearch(names=(("type", "x" * 2000, False),))),
    ],
)
def test_a_text_is_read(text: str, sought: ObjectSearch) -> None:
    assert sought_of(text) == sought


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x" * 2001, "the search has 2,001 characters"),
        ("type:'Node", "close the quotes"),
        ("kind:Node", "nothing is called 'kind'"),
        ("size:4..3", "with A no more than B"),
        ("size:..", "no range"),
        ("size:many", "write it as 64, 100kB or 2MiB"),
        ("size:3 apples", "write it as 64"),
        ("size:3apples", "no number"),
        ("address:3kB", "write it as 0x7f0012345678"),
        (f"size:{MOST + 1}", "too large"),
        ("size:9223372036855GB", "too large"),
    ],
)  # fmt: skip
def test_a_word_that_means_nothing_is_refused(text: str, why: str) -> None:
    with pytest.raises(CommandError, match=why):
        sought_of("'" + text + "'" if " " in text else text)
