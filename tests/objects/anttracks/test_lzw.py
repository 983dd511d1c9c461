"""Compressed buffers: what the VM's algorithm packs is unpacked, by both ways alike, and damage never costs more than the bound."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gcspy_objects.anttracks import buffers, lzw
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.targets.anttracks_writer import pack
from tests.c_loops import c_loop

ROOM = 1 << 16


def unpack(packed: bytes, room: int = ROOM) -> bytes | lzw.LzwDamage:
    """Unpack by the loop that numba compiles, as it is written, and in C, which says the same."""
    out, codes = np.empty(room, np.uint8), len(packed) + 1
    numbers: Any = list(packed)  # whole numbers of Python: as written, no array is needed
    written = lzw.unpack(numbers, out, np.empty(codes, np.int64), np.empty(codes, np.int64))
    found = out[:written].tobytes() if written >= 0 else lzw.LzwDamage(written)
    if (loop := c_loop(buffers.LIBRARY, "unpack", lzw.SIGNATURE)) is not None:
        bytes_of = np.frombuffer(bytearray(packed), np.uint8)
        again = loop(bytes_of, out, np.empty(codes, np.int64), np.empty(codes, np.int64))
        assert again == written
        assert written < 0 or out[:written].tobytes() == found
    return found


def test_a_text_by_hand() -> None:
    # 'a' and 'b' in 8 bits; 256 = "ab" needs 9, so a widener goes before it; the end is a widener and a 0 in 10 bits.
    bits = f"{97:08b}{98:08b}{255:08b}{256:09b}{511:09b}{0:010b}"
    packed = int(bits.ljust(56, "0"), 2).to_bytes(7, "big")
    assert lzw.unpack_plainly(packed, ROOM) == b"abab"
    assert pack(b"abab") == packed


def test_an_entry_that_is_used_while_it_is_made() -> None:
    assert lzw.unpack_plainly(pack(b"a" * 1000), ROOM) == b"a" * 1000


@given(
    st.binary(max_size=3000)
    | st.lists(st.sampled_from([b"abc", b"\xff", b"\0\0\0\x4c"]), max_size=400).map(b"".join)
)
def test_what_was_packed_is_unpacked_by_both_ways(plain: bytes) -> None:
    packed = pack(plain)
    assert lzw.unpack_plainly(packed, ROOM) == plain
    assert unpack(packed) == plain


@given(st.binary(max_size=300))
def test_whatever_bytes_there_are_both_ways_say_the_same(packed: bytes) -> None:
    assert unpack(packed) == lzw.unpack_plainly(packed, ROOM)


@given(st.binary(min_size=1, max_size=300), st.data())
def test_what_is_cut_short_is_noticed(plain: bytes, data: st.DataObject) -> None:
    packed = pack(plain)
    cut = data.draw(st.integers(0, len(packed) - 1))
    assert lzw.unpack_plainly(packed[:cut], ROOM) is lzw.LzwDamage.NO_END


@pytest.mark.parametrize("way", [unpack, lzw.unpack_plainly])
def test_what_unpacks_to_too_much_is_refused_before_it_is_there(
    way: Callable[[bytes, int], object],
) -> None:
    assert way(pack(bytes(2 * ROOM)), ROOM) is lzw.LzwDamage.TOO_LONG


WAYS = pytest.mark.parametrize("way", [unpack, lzw.unpack_plainly])


@WAYS
def test_bytes_after_the_end_are_noticed(way: Callable[[bytes, int], object]) -> None:
    assert way(pack(b"ab") + b"\0", ROOM) is lzw.LzwDamage.TRAILING


@WAYS
@pytest.mark.parametrize("entry", [1, 2, 44])
def test_a_code_of_no_entry_is_noticed(way: Callable[[bytes, int], object], entry: int) -> None:
    """After one code there is entry 0 only, which is being made."""
    bits = f"{97:08b}{255:08b}{256 + entry:09b}"
    assert way(int(bits.ljust(32, "0"), 2).to_bytes(4, "big"), ROOM) is lzw.LzwDamage.NO_ENTRY


@pytest.mark.parametrize("compiled", [False, True])
def test_a_buffer_unpacks_to_no_more_than_the_most_regular_one_of_the_vm(
    compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine: Any = (lambda packed, *more: lzw.unpack(packed.tolist(), *more)) if compiled else None
    monkeypatch.setattr(buffers, "_UNPACK", SimpleNamespace(machine=machine))
    for regular in (bytes(24 << 10), b"\0\0\0\x4c" * (6 << 10)):
        assert buffers._unpack(pack(regular)) == regular
    bomb = pack(bytes(2 << 20))
    assert len(bomb) < 3000
    assert buffers._unpack(bomb) is lzw.LzwDamage.TOO_LONG


@WAYS
def test_a_code_that_stands_for_nothing_yet_is_damage(way: Callable[[bytes, int], object]) -> None:
    """Codes become 9 bits long, and the first of these is 256: there is no entry before the first code."""
    assert way(bytes([0xFF, 0x80, 0, 0]), ROOM) is lzw.LzwDamage.NO_ENTRY
