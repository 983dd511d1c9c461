"""The Tiles message: golden bytes, addresses at the ends of their range, and runs that cannot be."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.errors import LocalProtocolError, RemoteProtocolError
from gcspy_protocol.frames.frame import HEADER, Header, inflate
from gcspy_protocol.limits import Limits
from gcspy_protocol.messages import FrameType, Tiles
from gcspy_protocol.model import Naming
from gcspy_protocol.streams.tiles import decode_tiles, pack_tiles
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.sameness import same
from tests.protocol.strategies import damaged, tiles, tiles_of

LIMITS = Limits(tiles=1000)


def payload_of(message: Tiles) -> bytes:
    frame = pack_tiles(message).data
    header = Header._make(HEADER.unpack_from(frame))
    return inflate(header, frame[HEADER.size :], Limits(), 0)


def read(payload: bytes, limits: Limits = LIMITS) -> Tiles:
    return decode_tiles(Header(len(payload), FrameType.TILES, 0, 9, 0, 0, 0, 0), payload, limits)


def test_golden_bytes_of_extents_worked_out_by_hand() -> None:
    message = tiles_of(9, Naming.EXTENTS, [None, 2, 3, None],
                       bases=np.array([0x2000, 0x1000], dtype="<u8"),
                       sizes=np.array([0x100, 0x200], dtype="<u8"))  # fmt: skip
    payload = bytes.fromhex(
        "04000000 01000000 02000000 01 000000 0000000000000000 0000000000000000"
        "02000000 01000000 02000000"
        "0020000000000000 00efffffffffffff"  # 0x1000 less the end 0x2100 of the extent before
        "0001000000000000 0002000000000000"
    )
    assert payload_of(message) == payload
    assert same(read(payload), message)


def test_golden_bytes_of_uniform_names_worked_out_by_hand() -> None:
    message = tiles_of(9, Naming.UNIFORM, [None, None], base=0x1000, tile_bytes=64)
    payload = bytes.fromhex(
        "02000000 00000000 00000000 00 000000 0010000000000000 4000000000000000"
    )
    assert payload_of(message) == payload
    assert same(read(payload), message)


@given(tiles())
def test_a_packed_message_is_read_back(message: Tiles) -> None:
    frame = pack_tiles(message, sequence=3, time_nanos=4)
    header = Header._make(HEADER.unpack_from(frame.data))
    assert (header.space, header.sequence, header.time_nanos) == (message.space, 3, 4)
    assert same(decode_tiles(header, payload_of(message), LIMITS), message)


def test_addresses_at_the_ends_of_their_range_survive() -> None:
    top = (1 << 64) - 1
    bases = np.array([top, 0, 1 << 63, 5, 4], dtype="<u8")
    sizes = np.array([top, 1, top, 0, 1 << 63], dtype="<u8")
    message = tiles_of(9, Naming.EXTENTS, [None] * 5, bases=bases, sizes=sizes)
    assert same(read(payload_of(message)), message)


def _payload(
    count: int, runs: list[tuple[int, int, int]], named: int = 0, naming: int = 0, rest: bytes = b""
) -> bytes:
    head = struct.pack("<IIIB3xQQ", count, len(runs), named, naming, 0, 0)
    columns = zip(*runs, strict=True) if runs else ()
    return head + b"".join(struct.pack(f"<{len(runs)}I", *column) for column in columns) + rest


@pytest.mark.parametrize(
    ("payload", "about"),
    [
        (bytes(31), "at least 32"),
        (_payload(1001, []), "1001 tiles, over the limit of 1000"),
        (_payload(0xFFFFFFFF, []), "over the limit"),
        (_payload(3, [], naming=3), "naming 3"),
        (_payload(3, [(0, 0, 1)])[:-1], "need 44 bytes, got 43"),
        (struct.pack("<IIIB3xQQ", 3, 0xFFFFFFFF, 0, 0, 0, 0), "4294967295 runs"),
        (struct.pack("<IIIB3xQQ", 3, 0, 0xFFFFFFFF, 1, 0, 0), "4294967295 names"),
        (_payload(3, [(0, 0, 0)]), "runs overlap"),
        (_payload(3, [(0, 0, 4)]), "runs overlap"),
        (_payload(3, [(0, 3, 1)]), "runs overlap"),
        (_payload(3, [(0, 1, 1), (1, 0, 1)]), "runs overlap"),
        (_payload(3, [(0, 0, 2), (2, 1, 1)]), "runs overlap"),
        (_payload(3, [(0, 0, 1), (1, 0, 1)]), "runs overlap"),
        (_payload(3, [(999, 0, 2)]), "runs overlap"),
        (_payload(3, [(0xFFFFFFFF, 0, 1)]), "runs overlap"),
        (_payload(3, [(0, 0xFFFFFFFF, 0xFFFFFFFF)]), "runs overlap"),
        (_payload(3, [], named=1, naming=0, rest=bytes(16)), "1 named tiles"),
        (_payload(3, [], named=3, naming=2, rest=bytes(48)), "3 named tiles"),
        (_payload(3, [], named=2, naming=1, rest=bytes(32)), "2 named tiles, 3 are new"),
        (_payload(3, [(0, 0, 1)], named=3, naming=1, rest=bytes(48)), "3 named tiles, 2 are new"),
        (_payload(3, [], named=3, naming=1, rest=bytes(47)), "need 80 bytes, got 79"),
    ],
)
def test_a_payload_that_contradicts_itself_is_blamed_on_the_peer(
    payload: bytes, about: str
) -> None:
    with pytest.raises(RemoteProtocolError, match=about) as caught:
        read(payload)
    assert "space 9" in str(caught.value)


def test_runs_that_touch_and_fill_the_space_are_fine() -> None:
    message = read(_payload(3, [(998, 0, 2), (0, 2, 1)]))
    assert message.lengths.tolist() == [2, 1]
    assert read(_payload(1000, [(0, 0, 1000)])).count == 1000


@given(tiles().flatmap(lambda message: damaged(payload_of(message))) | st.binary(max_size=80))
def test_garbage_is_read_or_blamed_on_the_peer(payload: bytes) -> None:
    try:
        message = read(payload)
    except RemoteProtocolError:
        return
    ends = message.new_starts.astype(np.int64) + message.lengths
    assert message.count <= LIMITS.tiles
    assert (ends <= message.count).all()
    assert (message.new_starts[1:] >= ends[:-1]).all()


def test_addresses_without_sizes_are_our_own_fault() -> None:
    message = tiles_of(
        9, Naming.EXTENTS, [None], bases=np.zeros(1, dtype="<u8"), sizes=np.zeros(2, dtype="<u8")
    )
    with pytest.raises(LocalProtocolError, match="1 tile addresses but 2 sizes"):
        pack_tiles(message)


def test_the_message_is_not_compared_by_content() -> None:
    """Arrays have no one truth value: the comparing code decides equality."""
    one, two = (tiles_of(1, Naming.STRINGS, [None]) for _ in range(2))
    assert one != two
    assert same(one, two)
    assert isinstance(one, m.Tiles)
