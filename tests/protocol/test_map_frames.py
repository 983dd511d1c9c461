"""Maps of equal texts, which shrink to almost nothing, and which a reader believes all the same."""

from __future__ import annotations

import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.codec import decode, encode, unpack
from gcspy_protocol.frames.frame import HEADER, Header
from gcspy_protocol.limits import CLIENT_LIMITS

EQUAL = ("a name that many tiles have, such as that of a class without a name",) * 4096


@pytest.mark.parametrize(
    "message",
    [
        m.TileNames(space=1, sequence=2, first=0, names=EQUAL),
        m.NewNames(space=1, sequence=2, time_nanos=3, first=0, names=EQUAL),
    ],
)
def test_many_equal_names_are_sent_as_large_as_a_client_believes(message: m.Message) -> None:
    data = encode(message).data
    header = Header._make(HEADER.unpack_from(data))
    payload = unpack(header, data[HEADER.size :], CLIENT_LIMITS, 0)
    assert decode(header, payload, CLIENT_LIMITS) == message


def test_different_names_are_compressed() -> None:
    names = tuple(f"a name of tile {number}" for number in range(4096))
    frame = encode(m.TileNames(space=1, sequence=2, first=0, names=names))
    assert len(frame.data) < sum(map(len, names)) / 2
