"""Frames: the header's bytes, compression, and what is refused before memory is taken."""

from __future__ import annotations

import random
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
import zstandard
from gcspy_protocol.errors import LocalProtocolError, RemoteProtocolError
from gcspy_protocol.frames.frame import FLAG_ZSTD, HEADER, Header, inflate, pack_frame
from gcspy_protocol.limits import CLIENT_LIMITS, Limits
from gcspy_protocol.messages import FrameType
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.strategies import U16, U64, damaged

LIMITS = Limits(raw_bytes=10_000)


def header_of(frame: bytes) -> Header:
    return Header._make(HEADER.unpack_from(frame))


def compressed(payload: bytes) -> Header:
    return Header(len(payload), 0x21, FLAG_ZSTD, 1, 2, 0, 3, 4)


def test_golden_bytes_of_a_header_worked_out_by_hand() -> None:
    frame = pack_frame(0x21, b"abc", space=0x0102, stream=0x0304, sequence=5, time_nanos=6)
    expected = "03000000 21 00 0201 0403 0000 0500000000000000 0600000000000000 616263"
    assert frame.data == bytes.fromhex(expected)
    assert header_of(frame.data) == Header(3, 0x21, 0, 0x0102, 0x0304, 0, 5, 6)
    assert (frame.space, frame.stream, frame.crc) == (0x0102, 0x0304, zlib.crc32(frame.data))


@given(st.integers(0, 255), st.binary(max_size=40), st.integers(1, 200), U16, U16, U64, U64)
def test_inflating_a_packed_frame_gives_its_payload(
    kind: int, unit: bytes, times: int, space: int, stream: int, sequence: int, time_nanos: int
) -> None:
    payload = unit * times
    frame = pack_frame(
        kind, payload, space=space, stream=stream, sequence=sequence, time_nanos=time_nanos
    ).data
    header = header_of(frame)
    assert len(frame) == HEADER.size + header.length
    assert inflate(header, frame[HEADER.size :], LIMITS, 0) == payload
    assert header[3:] == (space, stream, 0, sequence, time_nanos)


def test_a_payload_is_compressed_from_512_bytes_on_if_that_makes_it_smaller() -> None:
    assert header_of(pack_frame(1, bytes(511)).data).flags == 0
    assert header_of(pack_frame(1, bytes(512)).data).flags == FLAG_ZSTD
    assert header_of(pack_frame(1, bytes(512), compress=False).data).flags == 0
    noise = b"".join(
        zlib.crc32(bytes([i & 255, i >> 8])).to_bytes(4, "little") for i in range(1000)
    )
    assert header_of(pack_frame(1, noise).data).flags == 0


def test_a_large_payload_that_begins_with_noise_is_sent_as_it_is() -> None:
    noise = b"".join(zlib.crc32(struct.pack("<I", i)).to_bytes(4, "little") for i in range(1 << 17))
    assert header_of(pack_frame(1, noise).data).flags == 0
    assert header_of(pack_frame(1, bytes(1 << 19)).data).flags == FLAG_ZSTD


def test_a_flag_of_a_later_version_is_not_looked_at() -> None:
    assert inflate(Header(3, 1, 0xFE, 0, 0, 0, 0, 0), b"abc", LIMITS, 0) == b"abc"


def test_a_place_that_does_not_fit_the_header_is_our_own_fault() -> None:
    with pytest.raises(LocalProtocolError):
        pack_frame(1, b"", space=1 << 16)
    with pytest.raises(LocalProtocolError):
        pack_frame(1, b"", sequence=-1)


def test_a_compressed_payload_over_the_limit_is_refused_before_it_is_unpacked() -> None:
    bomb = zstandard.ZstdCompressor().compress(bytes(10_001))
    with pytest.raises(RemoteProtocolError, match="10001 bytes, over the limit of 10000") as caught:
        inflate(compressed(bomb), bomb, LIMITS, 77)
    assert caught.value.offset == 77
    fits = zstandard.ZstdCompressor().compress(bytes(10_000))
    assert inflate(compressed(fits), fits, LIMITS, 0) == bytes(10_000)


def test_a_compressed_payload_that_does_not_tell_its_size_is_refused() -> None:
    silent = zstandard.ZstdCompressor(write_content_size=False).compress(b"abc" * 100)
    with pytest.raises(RemoteProtocolError, match="without a size"):
        inflate(compressed(silent), silent, LIMITS, 0)


def test_a_compressed_payload_that_lies_about_its_size_is_refused() -> None:
    honest = zstandard.ZstdCompressor().compress(bytes(range(200)))
    place = honest.index(200, 4)  # one byte of content size follows the descriptor
    for lie in (199, 201, 255):
        payload = honest[:place] + bytes([lie]) + honest[place + 1 :]
        with pytest.raises(RemoteProtocolError):
            inflate(compressed(payload), payload, LIMITS, 0)


def test_a_compressed_payload_cut_short_is_refused_at_every_length() -> None:
    payload = zstandard.ZstdCompressor().compress(b"abcdefg" * 99)
    for size in range(len(payload)):
        with pytest.raises(RemoteProtocolError):
            inflate(compressed(payload[:size]), payload[:size], LIMITS, 0)


@given(st.binary(max_size=60) | damaged(zstandard.ZstdCompressor().compress(b"abcdefg" * 99)))
def test_garbage_that_claims_to_be_compressed_is_unpacked_or_blamed_on_the_peer(
    payload: bytes,
) -> None:
    with suppress(RemoteProtocolError):
        assert len(inflate(compressed(payload), payload, LIMITS, 0)) <= LIMITS.raw_bytes


def test_threads_that_compress_at_the_same_time_do_not_disturb_each_other() -> None:
    """What is kept for the next payload is used by one at a time, and not after an error."""

    def round_trips(seed: int) -> bool:
        rng = random.Random(seed)
        for _ in range(60):
            payload = bytes([rng.randrange(4)]) * rng.randrange(600, 9000) + rng.randbytes(80)
            frame = pack_frame(FrameType.STREAM_KEY, payload)
            header = Header._make(HEADER.unpack_from(frame.data))
            packed = frame.data[HEADER.size :]
            assert header.flags & FLAG_ZSTD
            with suppress(RemoteProtocolError):
                inflate(header, packed[:-5] + b"wrong", CLIENT_LIMITS, 0)
            if inflate(header, packed, CLIENT_LIMITS, 0) != payload:
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(round_trips, range(16)))
