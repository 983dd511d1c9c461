"""The memory map: every line of the kernel's is read, and a pointer is covered exactly where all of it is readable."""

from __future__ import annotations

import ctypes
import mmap
import os

import numpy as np
import pytest
from gcspy_drivers.remote.mapping_table import EXECUTE, PRIVATE, READ, WRITE
from gcspy_drivers.remote.maps import LiveMaps, Maps, parse_maps, parse_smaps, read_maps, read_smaps
from gcspy_drivers.remote.process import Process
from gcspy_protocol.errors import TargetError
from hypothesis import given
from hypothesis import strategies as st

SMAPS = b"""\
55d000000000-55d000002000 r--p 00001000 fe:00 86389                      /usr/lib/a file with blanks.so
Size:                  8 kB
KernelPageSize:        4 kB
Rss:                   8 kB
Pss:                   4 kB
Private_Dirty:         0 kB
Anonymous:             0 kB
AnonHugePages:         0 kB
Swap:                  0 kB
SwapPss:               0 kB
VmFlags: rd mr mw me sd
7fcfb7800000-7fcfb7a00000 rw-p 00000000 00:00 0
Size:               2048 kB
Rss:                1200 kB
Pss:                1200 kB
Private_Dirty:      1100 kB
Anonymous:          1200 kB
AnonHugePages:      1024 kB
Swap:                 12 kB
SwapPss:              12 kB
VmFlags: rd wr mr mw me ac
"""  # fmt: skip


def test_lines_are_read_with_all_their_columns() -> None:
    found = parse_maps(
        b"00400000-0046f000 r-xp 00000000 08:02 173521  /opt/a\\012b (deleted)\n"
        b"7f0000000000-7f0000001000 rw-s 00002000 fe:01 9  /dev/shm/x\n"
        b"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  [vsyscall]\n"
    )
    assert found.start.tolist() == [0x400000, 0x7F0000000000, 0xFFFFFFFFFF600000]
    assert found.end.tolist() == [0x46F000, 0x7F0000001000, 0xFFFFFFFFFF601000]
    assert found.permissions.tolist() == [READ | EXECUTE | PRIVATE, READ | WRITE, EXECUTE | PRIVATE]
    assert found.offset.tolist() == [0, 0x2000, 0]
    assert found.inode.tolist() == [173521, 9, 0]
    assert found.device == ("08:02", "fe:01", "00:00")
    assert found.path == ("/opt/a\nb (deleted)", "/dev/shm/x", "[vsyscall]")
    assert (found.is_deleted(0), found.file_of(0)) == (True, "/opt/a\nb")
    assert (found.row_of(0x46EFFF), found.row_of(0x46F000), found.row_of(0)) == (0, None, None)


def test_figures_belong_to_their_mappings() -> None:
    found = parse_smaps(SMAPS)
    assert found.rss_bytes.tolist() == [8 << 10, 1200 << 10]
    assert found.swap_bytes.tolist() == [0, 12 << 10], "SwapPss is another figure"
    assert found.dirty_bytes.tolist() == [0, 1100 << 10]
    assert found.huge_bytes.tolist() == [0, 1 << 20]
    assert found.maps.path == ("/usr/lib/a file with blanks.so", "")


@pytest.mark.parametrize("cut", [b"Rss:", b"Swap:", b"Private_Dirty:"])
def test_a_missing_figure_is_an_error_and_not_a_shift(cut: bytes) -> None:
    at = SMAPS.rindex(cut)
    with pytest.raises(TargetError, match=r"2 mappings and 1 figures"):
        parse_smaps(SMAPS[:at] + SMAPS[SMAPS.index(b"\n", at) + 1 :])


def test_nonsense_is_refused_and_nothing_is_nothing() -> None:
    with pytest.raises(TargetError, match="none is a mapping"):
        parse_maps(b"this is no map")
    assert len(parse_maps(b"")) == 0
    assert not parse_maps(b"").cover(0x1000)


def maps_of(pieces: list[tuple[int, bool]]) -> tuple[Maps, list[bool]]:
    """Make maps of pages from 16 on: (gap before, readable) each; and whether each of 200 pages is readable."""
    lines, page, readable = [], 16, [False] * 400
    for gap, may in pieces:
        page += gap
        lines.append(
            b"%x-%x %sw-p 00000000 00:00 0 \n" % (page << 4, (page + 1) << 4, b"r" if may else b"-")
        )
        readable[page] = may
        page += 1
    return parse_maps(b"".join(lines)), readable


@given(
    pieces=st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=40),
    wanted=st.lists(st.integers(0, 3000), min_size=1, max_size=20),
    size_bytes=st.integers(1, 100),
)
def test_covered_is_what_can_be_read_byte_by_byte(
    pieces: list[tuple[int, bool]], wanted: list[int], size_bytes: int
) -> None:
    maps, readable = maps_of(pieces)
    expected = [
        all(readable[byte >> 4] for byte in range(addr, addr + size_bytes)) for addr in wanted
    ]
    assert maps.covers(np.array(wanted, dtype=np.uint64), size_bytes).tolist() == expected
    assert [maps.cover(addr, size_bytes) for addr in wanted] == expected


def test_addresses_beyond_all_are_not_covered() -> None:
    maps, _ = maps_of([(0, True)])
    assert not maps.covers(np.array([2**64 - 1, 2**63, 0], dtype=np.uint64), 8).any()
    assert not maps.cover(-5)
    assert not maps.cover(1 << 64)
    assert not maps.covers(np.array([0x100], dtype=np.uint64), 1 << 62).any()


def test_our_own_maps_have_what_we_have_just_mapped() -> None:
    with Process(os.getpid()) as process, mmap.mmap(-1, 3 << 20) as room:
        room.write(b"x" * (2 << 20))
        addr = ctypes.addressof(ctypes.c_char.from_buffer(room))
        maps = read_maps(process)
        assert maps.cover(addr, 3 << 20)
        row = maps.row_of(addr)
        assert row is not None
        resident = read_smaps(process)
        row = resident.maps.row_of(addr)
        assert row is not None
        assert int(resident.rss_bytes[row]) >= 2 << 20


def test_live_maps_are_read_again_when_something_new_is_asked_for() -> None:
    with Process(os.getpid()) as process:
        live = LiveMaps(process, read_maps(process))
        before = live.maps
        assert live.covers(before.start[:1][(before.permissions[:1] & READ) != 0]).all()
        assert live.maps is before, "nothing new was asked for"
        with mmap.mmap(-1, 64 << 20) as room:
            addr = ctypes.addressof(ctypes.c_char.from_buffer(room))
            assert live.covers(np.array([addr], dtype=np.uint64), 64 << 20).all()
            assert live.maps is not before
