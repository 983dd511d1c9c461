"""Stream values: KEY, DELTA with its gaps, the encoder's memory, and what a resize does to arrays."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from gcspy_protocol.codec import decode, encode
from gcspy_protocol.errors import LocalProtocolError, RemoteProtocolError
from gcspy_protocol.frames.frame import HEADER, Frame, Header, inflate
from gcspy_protocol.limits import Limits
from gcspy_protocol.messages import FrameType, StreamDelta, StreamKey
from gcspy_protocol.model import DTYPES, Naming
from gcspy_protocol.streams.values import Stamp, StreamEncoder, key_is_cheaper
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.sameness import same
from tests.protocol.strategies import (
    DTYPE,
    known_masks,
    remaps,
    stream_deltas,
    tile_arrays,
    tiles_of,
)

LIMITS = Limits()


def read(frame: Frame) -> Any:
    header = Header._make(HEADER.unpack_from(frame.data))
    return decode(header, inflate(header, frame.data[HEADER.size :], LIMITS, 0), LIMITS)


def payload_of(frame: Frame) -> bytes:
    header = Header._make(HEADER.unpack_from(frame.data))
    return inflate(header, frame.data[HEADER.size :], LIMITS, 0)


def stamp(sequence: int) -> Stamp:
    return Stamp(sequence=sequence, time_nanos=sequence * 10, event=1, occurrence=sequence)


def delta(indices: list[int], values: Any, *, count: int, known: Any = None) -> StreamDelta:
    return StreamDelta(
        space=1, stream=2, sequence=4, time_nanos=5, event=6, occurrence=7, base_sequence=3, count=count,
        indices=np.array(indices, dtype=np.int64), values=values, known=known,
    )  # fmt: skip


def test_golden_bytes_of_a_key_worked_out_by_hand() -> None:
    key = StreamKey(space=1, stream=2, sequence=3, time_nanos=4, event=5, occurrence=6,
                    values=np.array([1, -2, 3], dtype="<i2"), known=np.array([True, False, True]))  # fmt: skip
    payload = bytes.fromhex("0500 03 01 03000000 0600000000000000" + "05" + "0100 feff 0300")
    assert payload_of(encode(key)) == payload
    header = Header(len(payload), FrameType.STREAM_KEY, 0, 1, 2, 0, 3, 4)
    assert same(decode(header, payload, LIMITS), key)


def test_golden_bytes_of_a_delta_worked_out_by_hand() -> None:
    change = delta(
        [0, 4, 5], np.array([7, 8, 9], dtype="u1"), count=9, known=np.array([True, True, False])
    )
    payload = bytes.fromhex(
        "0600 02 01 09000000 0700000000000000 0300000000000000 03000000 03000000"
        "0000 0300 0000" + "03" + "070809"
    )  # fmt: skip
    assert payload_of(encode(change)) == payload
    header = Header(len(payload), FrameType.STREAM_DELTA, 0, 1, 2, 0, 4, 5)
    assert same(decode(header, payload, LIMITS), change)


@pytest.mark.parametrize(
    ("indices", "gaps"),
    [
        ([], []),
        ([0], [0]),
        ([65_534], [65_534]),
        ([65_535], [0xFFFF, 0]),
        ([65_536], [0xFFFF, 1]),
        ([131_069], [0xFFFF, 65_534]),
        ([131_070], [0xFFFF, 0xFFFF, 0]),
        ([3, 65_538], [3, 65_534]),
        ([3, 65_539], [3, 0xFFFF, 0]),
        ([0, 1, 200_000, 200_001], [0, 0, 0xFFFF, 0xFFFF, 0xFFFF, 3393, 0]),
    ],
)
def test_golden_gaps_around_the_escape(indices: list[int], gaps: list[int]) -> None:
    change = delta(indices, np.arange(len(indices), dtype="u1"), count=300_000)
    payload = payload_of(encode(change))
    assert struct.unpack_from("<II", payload, 24) == (len(indices), len(gaps))
    assert struct.unpack_from(f"<{len(gaps)}H", payload, 32) == tuple(gaps)
    assert same(read(encode(change)), change)


def test_the_numbers_of_the_types_are_those_of_the_specification() -> None:
    assert DTYPES == {"i1": 1, "u1": 2, "i2": 3, "u2": 4, "i4": 5, "u4": 6, "i8": 7, "u8": 8}
    for name, number in DTYPES.items():
        info = np.iinfo(name)
        values = np.array([info.min, info.max], dtype="<" + name)
        key = StreamKey(
            space=0, stream=0, sequence=0, time_nanos=0, event=0, occurrence=0, values=values
        )
        payload = payload_of(encode(key))
        assert payload[2] == number
        assert payload[16:] == b"".join(
            int(bound).to_bytes(info.bits // 8, "little", signed=info.min < 0)
            for bound in (info.min, info.max)
        )
        assert same(read(encode(key)), key)


def test_values_of_big_endian_and_strided_arrays_travel_as_little_endian() -> None:
    values = np.arange(8, dtype=">i4")[::2]
    frame = encode(
        StreamKey(space=0, stream=0, sequence=0, time_nanos=0, event=0, occurrence=0, values=values)
    )
    assert read(frame).values.tolist() == [0, 2, 4, 6]


@pytest.mark.parametrize("dtype", ["f4", "?", "i4,i4", "m8[s]"])
def test_values_that_are_no_integers_are_our_own_fault(dtype: str) -> None:
    values = np.zeros(2, dtype=dtype)
    with pytest.raises(LocalProtocolError, match="cannot travel"):
        encode(
            StreamKey(
                space=0, stream=0, sequence=0, time_nanos=0, event=0, occurrence=0, values=values
            )
        )


def _key_payload(number: int = 5, flags: int = 0, count: int = 2, rest: bytes = bytes(8)) -> bytes:
    return struct.pack("<HBBIQ", 1, number, flags, count, 1) + rest


def _delta_payload(
    gaps: list[int], *, changed: int | None = None, listed: int | None = None, count: int = 10, number: int = 2,
    flags: int = 0, rest: bytes = bytes(16),
) -> bytes:  # fmt: skip
    changed = len(gaps) if changed is None else changed
    listed = len(gaps) if listed is None else listed
    head = struct.pack("<HBBIQQII", 1, number, flags, count, 1, 1, changed, listed)
    return head + struct.pack(f"<{len(gaps)}H", *gaps) + rest


@pytest.mark.parametrize(
    ("kind", "payload", "about"),
    [
        (FrameType.STREAM_KEY, bytes(15), "at least 16"),
        (FrameType.STREAM_KEY, _key_payload(number=0), "dtype number 0"),
        (FrameType.STREAM_KEY, _key_payload(number=9), "dtype number 9"),
        (FrameType.STREAM_KEY, _key_payload(count=3), "need 12 bytes, 8 are left"),
        (FrameType.STREAM_KEY, _key_payload(flags=1), "need 8 bytes, 7 are left"),
        (FrameType.STREAM_KEY, _key_payload(count=(1 << 25) + 1), "33554433 tiles, over the limit of 33554432"),
        (FrameType.STREAM_KEY, _key_payload(count=0xFFFFFFFF), "over the limit"),
        (FrameType.STREAM_DELTA, bytes(31), "at least 32"),
        (FrameType.STREAM_DELTA, _delta_payload([0], number=77), "dtype number 77"),
        (FrameType.STREAM_DELTA, _delta_payload([0], count=0xFFFFFFFF), "over the limit"),
        (FrameType.STREAM_DELTA, _delta_payload([10]), "tile 10 changed, there are 10"),
        (FrameType.STREAM_DELTA, _delta_payload([4, 5]), "tile 10 changed, there are 10"),
        (FrameType.STREAM_DELTA, _delta_payload([0] * 11, changed=11), "do not fit 10 tiles"),
        (FrameType.STREAM_DELTA, _delta_payload([0, 0], changed=1), "do not fit 10 tiles"),
        (FrameType.STREAM_DELTA, _delta_payload([0], changed=2), "1 tiles listed, 2 promised"),
        (FrameType.STREAM_DELTA, _delta_payload([], changed=1), "0 tiles listed, 1 promised"),
        (FrameType.STREAM_DELTA, _delta_payload([0xFFFF], changed=0), "do not fit"),
        (FrameType.STREAM_DELTA, _delta_payload([0xFFFF, 0], changed=1, count=65_535), "tile 65535 changed"),
        (FrameType.STREAM_DELTA, _delta_payload([0xFFFF, 0], changed=2, count=70_000), "1 tiles listed, 2"),
        (FrameType.STREAM_DELTA, _delta_payload([], changed=9, listed=9, rest=b"\0"), "need 18 bytes, 1 are"),
        (FrameType.STREAM_DELTA, _delta_payload([0], number=7, rest=bytes(7)), "need 8 bytes, 7 are left"),
        (FrameType.STREAM_DELTA, _delta_payload([0], flags=1, rest=b""), "need 1 bytes, 0 are left"),
    ],
)  # fmt: skip
def test_a_payload_that_contradicts_itself_is_blamed_on_the_peer(
    kind: int, payload: bytes, about: str
) -> None:
    with pytest.raises(RemoteProtocolError, match=about) as caught:
        decode(Header(len(payload), kind, 0, 3, 4, 0, 0, 0), payload, LIMITS)
    assert "space 3 stream 4" in str(caught.value)


def test_the_last_tile_can_change() -> None:
    header = Header(0, FrameType.STREAM_DELTA, 0, 3, 4, 0, 0, 0)
    message = decode(header, _delta_payload([9]), LIMITS)
    assert isinstance(message, StreamDelta)
    assert message.indices.tolist() == [9]


@given(stream_deltas())
def test_gaps_give_back_strictly_increasing_tiles_of_the_space(message: StreamDelta) -> None:
    found = read(encode(message))
    assert (np.diff(found.indices) > 0).all()
    assert same(found, message)


# ------------------------------------------------------------------ the encoder


class Receiver:
    """The plainest client: one tile at a time, from the specification."""

    def __init__(self) -> None:
        self.tiles: list[int | None] = []
        self.sequence = 0

    def take(self, message: StreamKey | StreamDelta) -> None:
        values = [int(v) for v in message.values]
        known = [True] * len(values) if message.known is None else message.known.tolist()
        fresh = [v if k else None for v, k in zip(values, known, strict=True)]
        if isinstance(message, StreamKey):
            self.tiles = fresh
        else:
            assert (message.base_sequence, message.count) == (self.sequence, len(self.tiles))
            for tile, value in zip(message.indices.tolist(), fresh, strict=True):
                self.tiles[tile] = value
        self.sequence = message.sequence

    def resize(self, cells: list[int | None]) -> None:
        self.tiles = [None if old is None else self.tiles[old] for old in cells]


def plain(values: Any, known: Any) -> list[int | None]:
    return [int(v) if known is None or known[i] else None for i, v in enumerate(values)]


@given(st.data())
def test_whatever_is_encoded_an_up_to_date_client_has_it(data: st.DataObject) -> None:
    dtype = data.draw(DTYPE)
    count = data.draw(st.integers(0, 12))
    default = data.draw(st.integers(0, 127))
    encoder = StreamEncoder(1, 2, dtype=dtype, default=default, count=count)
    receiver = Receiver()
    values = data.draw(tile_arrays(dtype, count))
    known = None
    before: list[int] = []
    for sequence in range(1, data.draw(st.integers(2, 6))):
        if sequence > 1 and data.draw(st.booleans()):
            cells = data.draw(remaps(count))
            tiles = tiles_of(1, Naming.STRINGS, cells)
            encoder.remap(tiles.old_starts, tiles.new_starts, tiles.lengths, tiles.count)
            receiver.resize(cells)
            count = len(cells)
            assert encoder.values.tolist() == [
                default if old is None else before[old] for old in cells
            ]
            values = encoder.values.copy()
            known = None
        if data.draw(st.booleans()):
            known = data.draw(known_masks(count))
        if count:
            for tile in data.draw(st.lists(st.integers(0, count - 1), max_size=3)):
                values[tile] = data.draw(tile_arrays(dtype, 1))[0]
        message = read(encoder.encode(values, known, stamp(sequence)))
        receiver.take(message)
        assert receiver.tiles == plain(values, known)
        assert plain(encoder.values, encoder.known) == plain(values, known)
        assert same(read(encoder.key()), read(encoder.key()))
        late = Receiver()
        late.take(read(encoder.key()))
        assert (late.tiles, late.sequence) == (receiver.tiles, sequence)
        before = encoder.values.tolist()


def test_a_delta_lists_exactly_the_tiles_whose_known_value_changed() -> None:
    encoder = StreamEncoder(1, 2, dtype="i4", default=0, count=20)
    values = np.zeros(20, dtype="<i4")
    known = np.ones(20, dtype=bool)
    known[3] = False
    assert isinstance(read(encoder.encode(values, known, stamp(1))), StreamKey)
    values[3] = 9  # unknown before and after: no reader can see that it changed
    values[5] = 1
    known[7] = False  # known before
    message = read(encoder.encode(values, known, stamp(2)))
    assert isinstance(message, StreamDelta)
    assert message.indices.tolist() == [5, 7]
    assert message.known is not None
    assert message.known.tolist() == [True, False]
    message = read(encoder.encode(values, None, stamp(3)))
    assert message.indices.tolist() == [3, 7]
    assert (message.values.tolist(), message.known, message.base_sequence) == ([9, 0], None, 2)
    message = read(encoder.encode(values, np.ones(20, dtype=bool), stamp(4)))
    assert message.indices.tolist() == []
    assert encoder.known is None


def test_the_first_frame_is_a_key_and_so_is_one_of_which_too_much_changed() -> None:
    encoder = StreamEncoder(1, 2, dtype="i4", default=0, count=1000)
    values = np.zeros(1000, dtype="<i4")
    assert isinstance(read(encoder.encode(values, None, stamp(1))), StreamKey)
    most = 666
    values[:most] += 1
    assert isinstance(read(encoder.encode(values, None, stamp(2))), StreamDelta)
    values[: most + 1] += 1
    assert isinstance(read(encoder.encode(values, None, stamp(3))), StreamKey)


@pytest.mark.parametrize(
    ("dtype", "most"),
    [("u1", 333), ("i2", 500), ("u4", 666), ("i4", 666), ("i8", 800), ("u8", 800)],
)
def test_a_key_is_sent_when_the_changes_take_more_bytes_before_compression(
    dtype: str, most: int
) -> None:
    for changed in (0, 1, most, most + 1, 1000):
        key = payload_of(encode(zeros(1000, dtype)))
        change = delta(list(range(changed)), np.zeros(changed, dtype=dtype), count=1000)
        assert key_is_cheaper(changed, 1000, np.dtype(dtype).itemsize) == (changed > most)
        assert (len(payload_of(encode(change))) - 32 > len(key) - 16) == (changed > most)


@pytest.mark.parametrize("density", [0.001, 0.01, 0.05, 0.0999, 0.101, 0.3])
@pytest.mark.parametrize("count", [63, 1000, 1001, 70_007])
def test_changes_are_found_however_dense_they_are(count: int, density: float) -> None:
    random = np.random.default_rng(count)
    encoder = StreamEncoder(1, 2, dtype="i8", default=0, count=count)
    values = np.zeros(count, dtype="<i8")
    encoder.encode(values, None, stamp(1))
    for sequence in range(2, 6):
        places = np.sort(random.choice(count, int(count * density), replace=False))
        values[places] += 1 + random.integers(0, 9, len(places))
        message = read(encoder.encode(values, None, stamp(sequence)))
        assert isinstance(message, StreamDelta)
        assert message.indices.tolist() == places.tolist()
        assert message.values.tolist() == values[places].tolist()


@pytest.mark.parametrize("count", [1, 7, 8, 9, 65_535, 65_536, 65_537, 200_003])
@pytest.mark.parametrize("masked", [False, True])
def test_changes_are_found_wherever_they_are(count: int, masked: bool) -> None:
    """Scanning goes in chunks: the first and last tile of each count here, and those around a chunk's end."""
    encoder = StreamEncoder(1, 2, dtype="u2", default=0, count=count)
    values = np.zeros(count, dtype="<u2")
    known = np.ones(count, dtype=bool) if masked else None
    if known is not None:
        known[count // 2] = False
    encoder.encode(values, known, stamp(1))
    places = sorted(
        {0, count - 1, *(p for p in (7, 8, 65_535, 65_536, 131_072) if p < count)} - {count // 2}
    )
    if key_is_cheaper(len(places), count, 2):
        places = []
    values[places] = 7
    message = read(encoder.encode(values, known, stamp(2)))
    assert message.indices.tolist() == places
    assert message.values.tolist() == [7] * len(places)


def zeros(count: int, dtype: str) -> StreamKey:
    return StreamKey(space=1, stream=2, sequence=4, time_nanos=5, event=6, occurrence=7,
                     values=np.zeros(count, dtype=dtype))  # fmt: skip


def test_the_encoder_keeps_no_view_of_what_it_was_given() -> None:
    encoder = StreamEncoder(1, 2, dtype="i4", default=0, count=4)
    values, known = np.arange(4, dtype="<i4"), np.array([True, True, False, True])
    encoder.encode(values, known, stamp(1))
    values += 1
    known[:] = True
    assert plain(encoder.values, encoder.known) == [0, 1, None, 3]


def test_values_of_another_type_or_number_are_our_own_fault() -> None:
    encoder = StreamEncoder(1, 2, dtype="i4", default=0, count=4)
    with pytest.raises(LocalProtocolError, match="int64, the stream is int32"):
        encoder.encode(np.zeros(4, dtype="<i8"), None, stamp(1))
    with pytest.raises(LocalProtocolError, match="5 values for 4 tiles"):
        encoder.encode(np.zeros(5, dtype="<i4"), None, stamp(1))
    with pytest.raises(LocalProtocolError, match="no values yet"):
        encoder.key()
