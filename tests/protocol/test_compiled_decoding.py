"""A client reads the same messages, and blames the peer for the same, whether C has checked its events or not."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

import numpy as np
import pytest
from gcspy_protocol import Connection
from gcspy_protocol import messages as m
from gcspy_protocol.codec import encode, encode_event
from gcspy_protocol.compiled.event_reader import EventReader, ReadEvent
from gcspy_protocol.connection import preamble
from gcspy_protocol.errors import RemoteProtocolError
from gcspy_protocol.frames.frame import HEADER, Frame, pack_frame
from gcspy_protocol.limits import CLIENT_LIMITS, Limits
from gcspy_protocol.messages import FrameType, Message
from gcspy_protocol.model import DTYPES, Naming, Role
from gcspy_protocol.streams.values import Stamp, pack_delta, pack_key
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.protocol.exchange import WELCOME
from tests.protocol.sameness import all_same
from tests.protocol.session import server_streams
from tests.protocol.strategies import BY_TYPE, EVENTS, cuts, damaged
from tests.server.compiled import need_library

GREETING = preamble() + encode(WELCOME).data
PARTS = [BY_TYPE[one] for one in FrameType if 0x20 <= one < FrameType.EVENT]
TIGHT = Limits(tiles=1000, payload_bytes=3000, raw_bytes=4000, event_bytes=6000)


class Counting(EventReader):
    """Counts the events that C has checked."""

    events = 0

    def read(self, buffer: bytearray, at: int) -> ReadEvent | None:
        found = super().read(buffer, at)
        self.events += found is not None
        return found


def client(*, compiled: bool, limits: Limits = CLIENT_LIMITS) -> Connection:
    connection = Connection(Role.CLIENT, limits=limits)
    connection.send(m.Hello(client="x"))
    connection._event_reader = Counting(need_library(), limits) if compiled else None
    return connection


def outcome(
    pieces: Sequence[bytes], *, compiled: bool, limits: Limits = CLIENT_LIMITS
) -> tuple[list[Message], object, int]:
    """The messages, what was wrong and where, with the counts of frames and bytes; and how many events C read."""
    connection, wrong = client(compiled=compiled, limits=limits), ""
    messages: list[Message] = []
    offset: int | None = None
    try:
        for piece in pieces:
            connection.receive_data(piece)
            messages += connection.messages()
        connection.receive_eof()
    except RemoteProtocolError as error:
        wrong, offset = repr(error), error.offset
    reader = connection._event_reader
    state = (wrong, offset, connection.read_so_far, connection.unread_bytes, connection.their_state)
    return messages, state, reader.events if isinstance(reader, Counting) else 0


def check(pieces: Sequence[bytes], limits: Limits = CLIENT_LIMITS) -> int:
    """Read with both and compare; return how many events C read."""
    mine, state, events = outcome(pieces, compiled=True, limits=limits)
    theirs, expected, _ = outcome(pieces, compiled=False, limits=limits)
    assert state == expected
    assert all_same(mine, theirs)
    return events


@st.composite
def events(draw: st.DrawFn, *, harm: bool) -> bytes:
    """An event of any frames, whose CRC is right even if they were harmed."""
    frames = [encode(one) for one in draw(st.lists(st.one_of(PARTS), max_size=6))]
    if draw(st.booleans()):
        frames.append(pack_frame(0x2A, draw(st.binary(max_size=9)), compress=False))
    if harm and frames:
        number = draw(st.integers(0, len(frames) - 1))
        data = frames[number].data
        if draw(st.booleans()):
            payload = draw(damaged(data[HEADER.size :])) if len(data) > HEADER.size else b""
            data = struct.pack("<I", len(payload)) + data[4 : HEADER.size] + payload
        else:
            data = data[:4] + draw(damaged(data[4:12]))[:8].ljust(8, b"\0") + data[12:]
        frames[number] = Frame(data, zlib.crc32(data))
    return encode_event(draw(EVENTS), frames)


@given(st.data())
def test_whole_events_are_the_same_messages(data: st.DataObject) -> None:
    sent = [data.draw(events(harm=False)) for _ in range(data.draw(st.integers(1, 3)))]
    assert check([GREETING, *sent]) == len(sent)
    check(data.draw(cuts(GREETING + b"".join(sent))))


@examples(3)
@given(st.data())
def test_harmed_frames_with_a_right_crc_are_the_same_errors(data: st.DataObject) -> None:
    limits = data.draw(st.sampled_from((CLIENT_LIMITS, TIGHT)))
    check([GREETING, data.draw(events(harm=True)), data.draw(events(harm=True))], limits)


@given(st.data())
def test_damaged_bytes_are_the_same_errors(data: st.DataObject) -> None:
    sent = b"".join(data.draw(events(harm=False)) for _ in range(2))
    check([GREETING, data.draw(damaged(sent))])


@given(st.data())
def test_whole_sessions_are_the_same(data: st.DataObject) -> None:
    sent = data.draw(server_streams())
    check([sent])
    check(data.draw(cuts(sent)))


STAMP = Stamp(sequence=5, time_nanos=6, event=0, occurrence=8)
EVENT = m.Event(sequence=5, time_nanos=6, event=0, occurrence=8, epoch=1)


@pytest.mark.parametrize("dtype", sorted(DTYPES))
@pytest.mark.parametrize("compress", [False, True])
def test_gaps_with_escapes_and_large_payloads_are_the_same(dtype: str, compress: bool) -> None:
    frames = []
    for places in (
        [],
        [0],
        [65_534],
        [65_535],
        [65_535, 131_070, 199_999],
        list(range(0, 200_000, 7)),
    ):
        values = np.arange(len(places)).astype("<" + dtype)
        known = np.arange(len(places)) % 3 != 0 if len(places) % 2 else None
        frames.append(
            pack_delta(
                1, 2, STAMP, base_sequence=1, count=200_000, indices=np.array(places, dtype=np.int64),
                values=values, known=known, compress=compress,
            )
        )  # fmt: skip
        frames.append(pack_key(1, 2, STAMP, values, known, compress=compress))
    assert check([GREETING, encode_event(EVENT, frames)]) == 1


@pytest.mark.parametrize("frames", [255, 256, 1023, 1024, 16_383, 16_384, 70_000])
def test_events_of_very_many_frames_are_the_same(frames: int) -> None:
    many = [
        encode(m.Summary(space=1, stream=1, sequence=1, time_nanos=1, values=(), covered=0))
    ] * frames
    assert check([GREETING, encode_event(EVENT, many)]) == (frames < 16_384)


def test_more_than_an_event_may_have_is_refused_before_it_is_decompressed() -> None:
    """Each frame is within its limit, and unpacks to a thousand times what was sent."""
    frame = pack_key(1, 2, STAMP, np.zeros(900, dtype="<i4"))
    assert len(frame.data) < 100
    sent = encode_event(EVENT, [frame] * 5)
    assert check([GREETING, sent], TIGHT) == 0
    assert "more than 6000 bytes" in str(outcome([GREETING, sent], compiled=True, limits=TIGHT)[1])


def test_a_server_that_reads_a_client_has_no_reader_of_events() -> None:
    assert Connection(Role.SERVER)._event_reader is None


def test_tiles_between_values_keep_their_place() -> None:
    tiles = m.Tiles(
        space=1, count=3, naming=Naming.UNIFORM, base=0, tile_bytes=16,
        **{name: np.empty(0, dtype="<u4") for name in ("old_starts", "new_starts", "lengths")},
    )  # fmt: skip
    key = pack_key(1, 2, STAMP, np.zeros(3, dtype="<i4"))
    info = encode(m.SpaceInfo(space=1, sequence=5, time_nanos=6, text="x"))
    sent = encode_event(EVENT, [key, encode(tiles), key, info, key])
    messages, _, read = outcome([GREETING, sent], compiled=True)
    assert read == 1
    assert [type(one).__name__ for one in messages[1:]] == [
        "StreamKey", "Tiles", "StreamKey", "SpaceInfo", "StreamKey", "Event",
    ]  # fmt: skip
