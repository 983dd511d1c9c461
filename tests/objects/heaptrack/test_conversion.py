"""A file of heaptrack becomes a trace with its blocks and stacks; damage is an error at its line, and a short file is read as far as it goes."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import zstandard
from gcspy_objects.gctrace.writer import TraceWriter
from gcspy_objects.heap import RebuiltHeap
from gcspy_objects.heaptrack import conversion
from gcspy_objects.heaptrack.conversion import convert_heaptrack, is_heaptrack
from gcspy_objects.trace import open_trace
from gcspy_protocol.errors import TraceError

TEXT = b"""v 10400 3
X ./program
s 4 main
s 6 main.c
s 4 work
s 6 inline
i 401000 1 1 2 a
i 402000 1 4 2 15 3 2 14
t 1 0
t 2 1
a 20 2
a 10 1
+ 0
+ 0
c a
+ 1
- 0
+ 0
- 1
"""


def converted(path: Path, folder: Path) -> Path:
    """Convert a file."""
    target = folder / "converted.gctrace"
    with target.open("wb") as file:
        convert_heaptrack(path, file)
    return target


@pytest.mark.parametrize("packed", [True, False])
def test_blocks_and_stacks_are_those_of_the_file(packed: bool, tmp_path: Path) -> None:
    path = tmp_path / "h.zst"
    path.write_bytes(zstandard.compress(TEXT) if packed else TEXT)
    assert is_heaptrack(path)
    with open_trace(converted(path, tmp_path)) as trace, RebuiltHeap(trace) as heap:
        assert not heap.findings
        now = heap.at(heap.events)
        assert now.size.tolist() == [32, 32]
        frames = [str(one) for one in trace.sites.frames(int(now.site[0]))]
        assert frames == ["inline (main.c) @ 21", "work (main.c) @ 20", "main (main.c) @ 10"]
        sizes = [one.size.tolist() for one in heap.lives()]
        assert sorted(size for part in sizes for size in part) == [16, 32, 32, 32]


def test_damage_is_an_error_at_its_line_and_a_cut_file_is_short(tmp_path: Path) -> None:
    lines = TEXT.splitlines(keepends=True)
    for bad in (
        b"+ 2\n",
        b"- 1\n",
        b"t 9 0\n",
        b"i zz 1\n",
        b"a 20 7\n",
        b"v 10400 9\n",
        b"i 1 1 63 1 1\n",
        b"+ -1\n",
    ):
        path = tmp_path / "bad"
        path.write_bytes(b"".join([*lines[:12], bad]))
        with pytest.raises(TraceError, match="damaged at line 13"):
            convert_heaptrack(path, io.BytesIO())
    path = tmp_path / "cut"
    for end in range(10, len(TEXT)):
        path.write_bytes(TEXT[:end])
        assert convert_heaptrack(path, io.BytesIO()) <= 6
    assert not is_heaptrack(tmp_path)


def test_a_short_file_with_many_deep_stacks_costs_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversion, "_MOST_STACKED", 300 * 50)
    monkeypatch.setattr(conversion, "_MOST_HELD", 70)
    held: list[int] = []
    define = TraceWriter.define

    def counted(self: TraceWriter, definitions: list[bytes]) -> None:
        held.append(len(definitions))
        define(self, definitions)

    monkeypatch.setattr(TraceWriter, "define", counted)
    deep = b"v 10400 3\ns 1 f\ni 1 1 1\nt 1 0\n"
    deep += b"".join(b"t 1 %x\n" % depth for depth in range(1, 50))
    path = tmp_path / "h"
    path.write_bytes(deep + b"a 8 32\n" * 300)
    converted(path, tmp_path)
    assert max(held) == 70
    path.write_bytes(deep + b"a 8 32\n" * 301)
    with pytest.raises(TraceError, match="more than 15,000 frames of stacks"):
        converted(path, tmp_path)
