"""Which addresses of archived regions hold fillers: those that no file is mapped to, and none where no file is at all."""

from __future__ import annotations

import pytest
from gcspy_drivers.hotspot.heaps.archive_fillers import archive_fillers
from gcspy_drivers.remote.maps import parse_maps

_MAPS = b"""\
7ff800000-7ffb00000 rw-p 00000000 00:00 0
7ffb00000-7ffb75000 rw-p 00c77000 fe:00 328258                           /usr/lib/jvm/lib/server/classes.jsa
7ffb75000-7ffc00000 rw-p 00000000 00:00 0
7ffc00000-7ffc78000 rw-p 00bff000 fe:00 328258                           /usr/lib/jvm/lib/server/classes.jsa
7ffc80000-7ffc90000 rw-p 00bff000 fe:00 328258                           /usr/lib/jvm/lib/server/classes.jsa (deleted)
7ffc90000-800000000 rw-p 00000000 00:00 0
"""


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ([(0x7FF800000, 0x7FFB75000)], [(0x7FF800000, 0x7FFB00000)]),
        ([(0x7FFC00000, 0x7FFC78000)], []),
        ([(0x7FFC00000, 0x7FFC90000)], [(0x7FFC78000, 0x7FFC80000)]),
        ([(0x7FF800000, 0x7FFA00000)], []),
        ([(0x7FFB00000, 0x7FFB80000)], [(0x7FFB75000, 0x7FFB80000)]),
        ([], []),
    ],
    ids=["before", "all of the file", "between", "nothing of the file", "behind", "no archive"],
)
def test_what_is_of_no_file_is_a_filler_if_anything_there_is_of_one(
    ranges: list[tuple[int, int]], expected: list[tuple[int, int]]
) -> None:
    found = archive_fillers(parse_maps(_MAPS), ranges)
    assert found.shape == (len(expected), 2)
    assert [tuple(row) for row in found.tolist()] == expected
