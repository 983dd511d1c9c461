"""Files of memray become traces with its blocks, stacks and threads; without its library they are refused in words."""

from __future__ import annotations

import datetime as dt
import io
import subprocess
import sys
from enum import IntEnum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from gcspy_objects.gctrace.reader import GCspyTrace
from gcspy_objects.heap import RebuiltHeap
from gcspy_objects.memray.conversion import convert_memray, is_memray
from gcspy_protocol.errors import CommandError, TraceError


class Allocator(IntEnum):
    """As `memray.AllocatorType`."""

    MALLOC, FREE, REALLOC, MMAP, MUNMAP, PYMALLOC_MALLOC, PYMALLOC_FREE = 1, 2, 4, 10, 11, 12, 15


STACKS = {1: [("f", "a.py", 3), ("main", "a.py", 9)], 2: [("main", "a.py", 10)]}
RECORDS = [
    (1, Allocator.MALLOC, 0x1000, 24, 1), (1, Allocator.PYMALLOC_MALLOC, 0x2000, 48, 2), (2, Allocator.FREE, 0x1000, 0, 0),
    (2, Allocator.MALLOC, 0x1000, 16, 1), (1, Allocator.FREE, 0x7777, 0, 0), (1, Allocator.REALLOC, 0x1000, 64, 2),
    (1, Allocator.MMAP, 0x100000, 4096, 1), (1, Allocator.MUNMAP, 0x100000, 4096, 0), (1, Allocator.PYMALLOC_FREE, 0x2000, 0, 0),
]  # fmt: skip


class Reader:
    """As `memray.FileReader`."""

    metadata = SimpleNamespace(
        command_line="/home/user/a.py --fast", pid=7, python_allocator="pymalloc", trace_python_allocators=True,
        start_time=dt.datetime(2026, 1, 2, tzinfo=dt.UTC),
    )  # fmt: skip

    def __init__(self, path: str) -> None:
        if "damaged" in path:
            raise OSError("The provided input file is truncated")
        self._sums = "sums" in path

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def get_allocation_records(self) -> Any:
        if self._sums:
            raise NotImplementedError("pre-aggregated")
        for tid, allocator, address, size, stack in RECORDS:
            yield SimpleNamespace(
                tid=tid, allocator=int(allocator), address=address, size=size, stack_id=stack, thread_name=f"t{tid}",
                stack_trace=lambda max_stacks, stack=stack: STACKS[stack][:max_stacks],
            )  # fmt: skip


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    made = SimpleNamespace(FileReader=Reader, AllocatorType=Allocator, __version__="1.20")
    monkeypatch.setitem(sys.modules, "memray", made)


@pytest.mark.usefixtures("library")
def test_blocks_stacks_and_threads_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "made.gctrace"
    with path.open("wb") as file:
        assert convert_memray(tmp_path / "some.bin", file) == 9
    with GCspyTrace(path) as trace, RebuiltHeap(trace) as heap:
        assert heap.findings.first is None
        (batch,) = trace.batches()
        assert batch.kind.tolist() == [1, 1, 24, 1, 24, 1, 30, 31, 24]
        assert [trace.threads.name(row) for row in batch.thread.tolist()[:3]] == ["t1", "t1", "t2"]
        assert [str(one) for one in trace.sites.frames(int(batch.site[0]))] == [
            "f (a.py) @ 3",
            "main (a.py) @ 9",
        ]
        assert trace.header["name"] == "a.py"
        assert trace.header["started"] == str(1767312000 * 10**9)
        last = heap.at(heap.events)
        assert (last.address.tolist(), last.size.tolist()) == ([0x1000], [64])


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("name", "words"), [("damaged.bin", "truncated"), ("sums.bin", "--aggregate")]
)
def test_what_memray_cannot_read_is_an_error(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(TraceError, match=words):
        convert_memray(tmp_path / name, io.BytesIO())


def test_without_its_library_a_file_is_refused_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "memray", None)
    with pytest.raises(CommandError, match="pip install memray"):
        convert_memray(tmp_path / "some.bin", io.BytesIO())


def test_files_are_known_by_their_first_bytes(tmp_path: Path) -> None:
    for data, known in (
        (b"memray\0\x0d\0\0\0", True),
        (bytes.fromhex("04224d184040c09d5c0000f9056d656d726179000d"), True),
        (bytes.fromhex("04224d184040c09d") + bytes(60), False),
        (b"", False),
    ):
        path = tmp_path / "file"
        path.write_bytes(data)
        assert is_memray(path) == known
    assert not is_memray(tmp_path)


def test_a_real_file_has_as_many_blocks_as_memray_counts(tmp_path: Path) -> None:
    memray = pytest.importorskip("memray")
    path = tmp_path / "real.bin"
    text = f"import memray\nwith memray.Tracker({str(path)!r}, trace_python_allocators=True):\n    rows = [[str(one) * 9] for one in range(999)]\n    del rows[:500]\n"
    subprocess.run([sys.executable, "-c", text], check=True, timeout=60)
    assert is_memray(path)
    made = tmp_path / "real.gctrace"
    with made.open("wb") as file:
        convert_memray(path, file)
    with memray.FileReader(str(path)) as reader:
        left = sum(one.size for one in reader.get_leaked_allocation_records())
    with GCspyTrace(made) as trace, RebuiltHeap(trace) as heap:
        assert heap.findings.first is None
        assert int(heap.at(heap.events).size.sum()) == left
