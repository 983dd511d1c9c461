"""Frames for clients that take no compression: the same messages, and nothing compressed."""

from __future__ import annotations

import zlib

import numpy as np
from gcspy_protocol import messages as m
from gcspy_protocol.codec import encode, encode_event
from gcspy_protocol.connection import Connection, preamble
from gcspy_protocol.frames.frame import FLAG_ZSTD, HEADER, Frame, Header, pack_frame
from gcspy_protocol.frames.transcoding import without_zstd
from gcspy_protocol.messages import Message
from gcspy_protocol.model import Role
from gcspy_protocol.streams.values import Stamp, pack_key
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.sameness import all_same
from tests.protocol.session import Session
from tests.protocol.strategies import EVENTS

STAMP = Stamp(sequence=1, time_nanos=2, event=0, occurrence=1)


def flags_of(data: bytes) -> list[int]:
    flags, at = [], 0
    while at < len(data):
        header = Header._make(HEADER.unpack_from(data, at))
        flags.append(header.flags)
        at += HEADER.size + header.length
    return flags


def understood(data: bytes) -> list[Message]:
    """Return the messages that a client's connection decodes from frames behind a greeting; it checks the CRC of events."""
    connection = Connection(Role.CLIENT)
    connection.receive_data(preamble() + encode(Session.welcome).data + data)
    messages = list(connection.messages())[1:]
    connection.receive_eof()
    return messages


COMPRESSIBLE = st.builds(
    lambda value, count, stream: (
        pack_key(1, stream, STAMP, np.full(count, value, dtype="i4"), None).data
    ),
    st.integers(0, 99),
    st.integers(1, 400),
    st.integers(0, 9),
)


@given(st.lists(st.lists(COMPRESSIBLE, max_size=4), min_size=1, max_size=3), EVENTS)
def test_without_zstd_the_same_is_said(events: list[list[bytes]], end: m.Event) -> None:
    notice = encode(m.Goodbye(reason="x" * 2000)).data
    data = b""
    for frames in events:
        data += encode(m.SpaceRemoved(space=1)).data
        data += encode_event(end, [Frame(one, zlib.crc32(one)) for one in frames])
    data += notice
    plain = without_zstd(data)
    assert any(flags_of(data)), "a goodbye of 2,000 characters is compressed"
    assert not any(flags_of(plain))
    assert all_same(understood(plain), understood(data))
    assert without_zstd(plain) is plain


def test_a_compressed_frame_of_a_later_version_is_left_out() -> None:
    later = pack_frame(0x2A, bytes(2000), space=1, sequence=1)
    assert later.data[5] & FLAG_ZSTD
    key = pack_key(1, 2, STAMP, np.arange(3, dtype="i4"), None)
    event = m.Event(sequence=1, time_nanos=2, event=0, occurrence=1, epoch=1)
    plain = without_zstd(encode_event(event, [later, key]))
    assert plain == encode_event(event, [key])
